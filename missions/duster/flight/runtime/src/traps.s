! Traps of a LEON3 of 8 register windows, and the start of its cores.
!
! Invariant: exactly one bit of WIM is set, and it marks the window below the oldest whose registers are not on the stack. An
! interrupt changes nothing of what it interrupts: globals, Y, condition codes and windows come back as they were. It runs at
! its own level, so that higher ones nest.

    .equ WINDOWS, 8
    .equ SUPERVISOR, 0x00c0         ! S and PS
    .equ TRAPS, 0x0020              ! ET
    .equ MASKED, 0x0f00             ! PIL 15
    .equ STACK, 0x8000              ! bytes of a core's stack; system.toml says so, too, and the build compares

    .equ FRAME_PSR, 96
    .equ FRAME_PC, 100
    .equ FRAME_NPC, 104
    .equ FRAME_Y, 108
    .equ FRAME_G1, 116
    .equ FRAME_G2, 120
    .equ FRAME_SIZE, 144

    .macro entry handler
    ba \handler
    nop
    nop
    nop
    .endm

    .macro level number
    rd %psr, %l0
    mov \number, %l3
    ba interrupt
    rd %wim, %l4
    .endm

    .section .text.traps, "ax"
    .align 4096
    .globl trap_table
trap_table:
    entry _start                    ! 0x00 reset
    .rept 4
    entry stray
    .endr
    entry window_overflow           ! 0x05
    entry window_underflow          ! 0x06
    .rept 10
    entry stray
    .endr
    level 1                         ! 0x11
    level 2
    level 3
    level 4
    level 5
    level 6
    level 7
    level 8
    level 9
    level 10
    level 11
    level 12
    level 13
    level 14
    level 15
    .rept 224
    entry stray
    .endr

    .text
! Writes the registers of this window to its stack, which %sp names.
    .macro spill
    std %l0, [%sp]
    std %l2, [%sp + 8]
    std %l4, [%sp + 16]
    std %l6, [%sp + 24]
    std %i0, [%sp + 32]
    std %i2, [%sp + 40]
    std %i4, [%sp + 48]
    std %i6, [%sp + 56]
    .endm

    .macro fill
    ldd [%sp], %l0
    ldd [%sp + 8], %l2
    ldd [%sp + 16], %l4
    ldd [%sp + 24], %l6
    ldd [%sp + 32], %i0
    ldd [%sp + 40], %i2
    ldd [%sp + 48], %i4
    ldd [%sp + 56], %i6
    .endm

! SAVE met the marked window, which the trap has entered: the one below it, the oldest, goes to its stack.
window_overflow:
    mov %g1, %l7
    rd %wim, %l3
    srl %l3, 1, %g1
    sll %l3, WINDOWS - 1, %l4
    or %g1, %l4, %g1
    save %g0, %g0, %g0
    wr %g1, 0, %wim
    nop
    nop
    nop
    spill
    restore %g0, %g0, %g0
    mov %l7, %g1
    jmp %l1
    rett %l2

! RESTORE met the marked window, two above this one: it comes back from its stack.
window_underflow:
    rd %wim, %l3
    sll %l3, 1, %l4
    srl %l3, WINDOWS - 1, %l5
    or %l4, %l5, %l4
    wr %l4, 0, %wim
    nop
    nop
    nop
    restore %g0, %g0, %g0
    restore %g0, %g0, %g0
    fill
    save %g0, %g0, %g0
    save %g0, %g0, %g0
    jmp %l1
    rett %l2

! An interrupt: %l0 psr, %l1 pc, %l2 npc, %l3 level, %l4 wim. Calls on_interrupt(level).
interrupt:
    mov 1, %l5
    sll %l5, %l0, %l5               ! by the number of the window, the lower five bits
    btst %l4, %l5
    be 1f
    sethi %hi(sleep_begin), %l6
    mov %g1, %l7                    ! it came into the marked window
    srl %l4, 1, %g1
    sll %l4, WINDOWS - 1, %l5
    or %l5, %g1, %g1
    save %g0, %g0, %g0
    wr %g1, 0, %wim
    nop
    nop
    nop
    spill
    restore %g0, %g0, %g0
    mov %l7, %g1
1:  or %l6, %lo(sleep_begin), %l6   ! what was about to sleep looks again
    sub %l1, %l6, %l5
    cmp %l5, SLEEP_LENGTH
    bgeu 2f
    sub %fp, FRAME_SIZE, %sp
    mov %l6, %l1
    add %l6, 4, %l2
2:  rd %y, %l5
    st %l0, [%sp + FRAME_PSR]
    st %l1, [%sp + FRAME_PC]
    st %l2, [%sp + FRAME_NPC]
    st %l5, [%sp + FRAME_Y]
    st %g1, [%sp + FRAME_G1]
    std %g2, [%sp + FRAME_G2]
    std %g4, [%sp + FRAME_G2 + 8]
    std %g6, [%sp + FRAME_G2 + 16]
    sll %l3, 8, %l4
    andn %l0, MASKED, %l5
    or %l5, %l4, %l5
    wr %l5, 0, %psr                 ! the level first, traps on after it
    nop
    nop
    nop
    wr %l5, TRAPS, %psr
    nop
    nop
    nop
    call on_interrupt
    mov %l3, %o0
    rd %psr, %l3
    andn %l3, TRAPS, %l3
    or %l3, MASKED, %l3             ! no window for an interrupt before traps are off
    wr %l3, 0, %psr
    nop
    nop
    nop
    ld [%sp + FRAME_PSR], %l0
    ld [%sp + FRAME_PC], %l1
    ld [%sp + FRAME_NPC], %l2
    ld [%sp + FRAME_Y], %l4
    wr %l4, 0, %y
    ld [%sp + FRAME_G1], %g1
    ldd [%sp + FRAME_G2], %g2
    ldd [%sp + FRAME_G2 + 8], %g4
    ldd [%sp + FRAME_G2 + 16], %g6
    rd %wim, %l4                    ! the window to return to may lie on the stack
    and %l3, WINDOWS - 1, %l5
    add %l5, 1, %l5
    and %l5, WINDOWS - 1, %l5
    mov 1, %l6
    sll %l6, %l5, %l6
    btst %l4, %l6
    be 3f
    nop
    sll %l4, 1, %l5
    srl %l4, WINDOWS - 1, %l6
    or %l5, %l6, %l5
    wr %l5, 0, %wim
    nop
    nop
    nop
    restore %g0, %g0, %g0
    fill
    save %g0, %g0, %g0
3:  andn %l0, WINDOWS - 1, %l0      ! the window is the present one
    and %l3, WINDOWS - 1, %l3
    andn %l0, TRAPS, %l0
    wr %l0, %l3, %psr
    nop
    nop
    nop
    jmp %l1
    rett %l2

! Any other trap is a fault: on_fault(type, pc), which does not return, on a stack that holds.
stray:
    rd %tbr, %g2
    srl %g2, 4, %g2
    and %g2, 0xff, %g2
    mov %l1, %g3
    wr %g0, SUPERVISOR | MASKED, %psr
    nop
    nop
    nop
    wr %g0, 2, %wim
    sethi %hi(__fault_stack), %sp
    or %sp, %lo(__fault_stack), %sp
    sub %sp, 96, %sp
    mov %g0, %fp
    wr %g0, SUPERVISOR | MASKED | TRAPS, %psr
    nop
    nop
    nop
    mov %g2, %o0
    call on_fault
    mov %g3, %o1

! Sleeps until an interrupt, unless the word at %o0 is no longer %o1: sleep_while(address, seen). Interrupted before it
! sleeps, it begins anew, so no change of the word is slept over.
    .globl sleep_while
sleep_while:
sleep_begin:
    ld [%o0], %o2
    cmp %o2, %o1
    bne sleep_end
    nop
    wr %g0, %asr19
sleep_end:
    retl
    nop
    .equ SLEEP_LENGTH, 20

! Each core: windows, traps, a stack of its own, main(core). Core 0 clears what is to be cleared and starts the other.
    .section .text.start, "ax"
    .globl _start
_start:
    wr %g0, SUPERVISOR | MASKED, %psr
    nop
    nop
    nop
    wr %g0, 2, %wim
    sethi %hi(trap_table), %g1
    wr %g1, %lo(trap_table), %tbr
    nop
    nop
    nop
    rd %asr17, %g1
    srl %g1, 28, %g1
    sethi %hi(__stacks), %sp
    or %sp, %lo(__stacks), %sp
    add %g1, 1, %g2
    set STACK, %g3
    umul %g2, %g3, %g3
    add %sp, %g3, %sp
    cmp %g1, 0
    bne 2f
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
2:  sub %sp, 96, %sp
    mov %g0, %fp
    wr %g0, SUPERVISOR | MASKED | TRAPS, %psr
    nop
    nop
    nop
    call main
    mov %g1, %o0
    nop

! The end: a trap while traps are off.
    .globl halt
halt:
    wr %g0, SUPERVISOR | MASKED, %psr
    nop
    nop
    nop
    ta 0
    ba halt
    nop
    .text
