! Traps of a LEON3 (SPARC V8, 8 register windows, no operating system), and its end.
!
! Invariant: exactly one bit of WIM is set, and it marks the window below the oldest
! one whose registers are not on the stack.

    .equ WINDOWS, 8
    .equ SUPERVISOR, 0x00c0         ! S and PS
    .equ TRAPS, 0x0020              ! ET
    .equ MASKED, 0x0f00             ! PIL 15: no interrupts

    .macro entry handler
    ba \handler
    nop
    nop
    nop
    .endm

    .section .text.traps, "ax"
    .align 4096
trap_table:
    entry _start                    ! 0x00 reset
    .rept 4
    entry stray
    .endr
    entry window_overflow           ! 0x05
    entry window_underflow          ! 0x06
    .rept 249
    entry stray
    .endr

    .text
! SAVE met the marked window, which the trap has entered. The window below it is the
! oldest: mark that one and write its registers to its stack.
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
    std %l0, [%sp]
    std %l2, [%sp + 8]
    std %l4, [%sp + 16]
    std %l6, [%sp + 24]
    std %i0, [%sp + 32]
    std %i2, [%sp + 40]
    std %i4, [%sp + 48]
    std %i6, [%sp + 56]
    restore %g0, %g0, %g0
    mov %l7, %g1
    jmp %l1
    rett %l2

! RESTORE met the marked window, two above the one of this trap. Move the mark one up
! and read the registers of the window back from its stack.
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
    ldd [%sp], %l0
    ldd [%sp + 8], %l2
    ldd [%sp + 16], %l4
    ldd [%sp + 24], %l6
    ldd [%sp + 32], %i0
    ldd [%sp + 40], %i2
    ldd [%sp + 48], %i4
    ldd [%sp + 56], %i6
    save %g0, %g0, %g0
    save %g0, %g0, %g0
    jmp %l1
    rett %l2

! Any other trap ends the run: report it from a fresh stack.
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
    sethi %hi(__stack_top), %sp
    or %sp, %lo(__stack_top), %sp
    sub %sp, 96, %sp
    mov %g0, %fp
    wr %g0, SUPERVISOR | MASKED | TRAPS, %psr
    nop
    nop
    nop
    mov %g2, %o0
    call trapped
    mov %g3, %o1

! End of the run: a trap while traps are off. QEMU takes software trap 0 as a
! shut-down (status 0) and aborts on any other.
    .globl end_passed
end_passed:
    wr %g0, SUPERVISOR | MASKED, %psr
    nop
    nop
    nop
    ta 0
    .globl end_failed
end_failed:
    wr %g0, SUPERVISOR | MASKED, %psr
    nop
    nop
    nop
    ta 1
