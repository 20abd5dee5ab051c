! Start of a LEON3 of one core; behind traps.s.

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
    sethi %hi(__bss_start), %g2
    or %g2, %lo(__bss_start), %g2
    sethi %hi(__bss_end), %g3
    or %g3, %lo(__bss_end), %g3
1:  cmp %g2, %g3
    bgeu 2f
    nop
    st %g0, [%g2]
    ba 1b
    add %g2, 4, %g2
2:  sethi %hi(__stack_top), %sp
    or %sp, %lo(__stack_top), %sp
    sub %sp, 96, %sp                ! room for a spilled window
    mov %g0, %fp
    wr %g0, SUPERVISOR | MASKED | TRAPS, %psr
    nop
    nop
    nop
    call main
    nop

! Functions of known length, to compare the counter with.
    .section .text.nops, "ax"
    .macro nops name, count
    .globl \name
\name:
    .rept \count
    nop
    .endr
    retl
    nop
    .endm
    nops nops_0, 0
    nops nops_1, 1
    nops nops_2, 2
    nops nops_37, 37
    nops nops_1000, 1000

! Calls itself as deep as its argument says and returns the depth. Deeper than there
! are windows it overflows and underflows on its way. A level is nine instructions.
    .globl deep
deep:
    save %sp, -96, %sp
    cmp %i0, 0
    be 1f
    nop
    call deep
    sub %i0, 1, %o0
    add %o0, 1, %i0
1:  ret
    restore
    .text
