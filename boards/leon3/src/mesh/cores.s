! Start of a LEON3 of many cores; behind traps.s. Core 0 clears what is to be cleared and starts the others, each of
! which comes by here with a stack of its own.
!
! Invariant: memory that is cleared is cleared once, before any other core runs.

    .equ CPU_ID, 0x80000f00         ! where there are more than 16 cores: the number of the one that reads
    .equ NODE_STACKS, 0x40400000    ! behind the image; 16 KiB for each core but the first

    .section .text.start, "ax"
    .globl _start
_start:
    wr %g0, SUPERVISOR | MASKED, %psr   ! window 0, traps off
    nop
    nop
    nop
    wr %g0, 2, %wim                 ! window 1 is the last that SAVE reaches
    sethi %hi(trap_table), %g1
    wr %g1, %lo(trap_table), %tbr
    nop
    nop
    nop
    sethi %hi(NODES), %g4
    ld [%g4 + %lo(NODES)], %g4
    rd %asr17, %g3
    cmp %g4, 16
    bleu 1f
    srl %g3, 28, %g3
    sethi %hi(CPU_ID), %g3
    ld [%g3 + %lo(CPU_ID)], %g3
1:  cmp %g3, 0
    be 2f
    mov %g3, %g1
    sethi %hi(NODE_STACKS), %sp
    sll %g3, 14, %g2
    ba 4f
    add %sp, %g2, %sp
2:  sethi %hi(__bss_start), %g2
    or %g2, %lo(__bss_start), %g2
    sethi %hi(__bss_end), %g3
    or %g3, %lo(__bss_end), %g3
3:  cmp %g2, %g3
    bgeu 5f
    nop
    st %g0, [%g2]
    ba 3b
    add %g2, 4, %g2
5:  sethi %hi(__stack_top), %sp
    or %sp, %lo(__stack_top), %sp
4:  sub %sp, 96, %sp                ! room for a spilled window
    mov %g0, %fp
    wr %g0, SUPERVISOR | MASKED | TRAPS, %psr
    nop
    nop
    nop
    call main
    mov %g1, %o0

! Sleeps for ever: interrupts are masked.
    .globl rest
rest:
    wr %g0, %asr19
    ba rest
    nop
    .text
