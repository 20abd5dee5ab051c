! What every image starts with: the trap table at the start of RAM, register windows, the entry of
! traps and interrupts into C, and the way of each CPU to `main(cpu)`.
!
! Invariant: a trap changes nothing that its handler does not: globals, Y, condition codes and the
! windows of what it interrupted come back as they were. Handlers run with traps on and nest;
! an interrupt raises PIL to its own level first.

#include "machine.h"

#define FRAME_PSR 96
#define FRAME_PC 100
#define FRAME_NPC 104
#define FRAME_Y 108
#define FRAME_TT 112
#define FRAME_G1 116
#define FRAME_G2 120            /* doublewords from here */
#define FRAME_SIZE 144

        .macro vector tt, to
        rd      %psr, %l0
        sethi   %hi(\to), %l4
        jmp     %l4 + %lo(\to)
         mov    \tt, %l3
        .endm

        .section .text.traps, "ax"
        .global _start, trap_table
_start:
trap_table:
        sethi   %hi(boot), %g4          ! 0x00, and where each CPU begins
        jmp     %g4 + %lo(boot)
         nop
        nop
        .set    tt, 1
        .rept   4
        vector  tt, trap
        .set    tt, tt + 1
        .endr
        vector  5, window_overflow
        vector  6, window_underflow
        .set    tt, 7
        .rept   249
        vector  tt, trap
        .set    tt, tt + 1
        .endr

        .text

! The trap's window is the invalid one: what lies below it goes to its stack.
window_overflow:
        rd      %wim, %l3
        mov     %g1, %l7
        srl     %l3, 1, %g1
        sll     %l3, WINDOWS - 1, %l4
        or      %l4, %g1, %g1
        save
        std     %l0, [%sp]
        std     %l2, [%sp + 8]
        std     %l4, [%sp + 16]
        std     %l6, [%sp + 24]
        std     %i0, [%sp + 32]
        std     %i2, [%sp + 40]
        std     %i4, [%sp + 48]
        std     %i6, [%sp + 56]
        wr      %g1, %wim
        nop
        nop
        nop
        restore
        mov     %l7, %g1
        jmp     %l1
         rett   %l2

! The window two above the trap's comes back from its stack.
window_underflow:
        rd      %wim, %l3
        sll     %l3, 1, %l4
        srl     %l3, WINDOWS - 1, %l5
        or      %l5, %l4, %l5
        wr      %l5, %wim
        nop
        nop
        nop
        restore
        restore
        ldd     [%sp], %l0
        ldd     [%sp + 8], %l2
        ldd     [%sp + 16], %l4
        ldd     [%sp + 24], %l6
        ldd     [%sp + 32], %i0
        ldd     [%sp + 40], %i2
        ldd     [%sp + 48], %i4
        ldd     [%sp + 56], %i6
        save
        save
        jmp     %l1
         rett   %l2

! Any other trap, %l0 psr, %l1 pc, %l2 npc, %l3 tt: on_trap(tt, frame).
trap:
        rd      %wim, %l4
        mov     1, %l5
        sll     %l5, %l0, %l5           ! by the window number, the lower five bits
        btst    %l4, %l5
        be      1f
         nop
        mov     %g1, %l7                ! it came into the invalid window
        srl     %l4, 1, %g1
        sll     %l4, WINDOWS - 1, %l5
        or      %l5, %g1, %g1
        save
        std     %l0, [%sp]
        std     %l2, [%sp + 8]
        std     %l4, [%sp + 16]
        std     %l6, [%sp + 24]
        std     %i0, [%sp + 32]
        std     %i2, [%sp + 40]
        std     %i4, [%sp + 48]
        std     %i6, [%sp + 56]
        wr      %g1, %wim
        nop
        nop
        nop
        restore
        mov     %l7, %g1
1:      sub     %fp, FRAME_SIZE, %sp
        rd      %y, %l4
        st      %l0, [%sp + FRAME_PSR]
        st      %l1, [%sp + FRAME_PC]
        st      %l2, [%sp + FRAME_NPC]
        st      %l4, [%sp + FRAME_Y]
        st      %l3, [%sp + FRAME_TT]
        st      %g1, [%sp + FRAME_G1]
        std     %g2, [%sp + FRAME_G2]
        std     %g4, [%sp + FRAME_G2 + 8]
        std     %g6, [%sp + FRAME_G2 + 16]
        mov     %l0, %l5
        sub     %l3, 0x10, %l4          ! interrupts are 0x11..0x1f
        cmp     %l4, 15
        bgu     2f
         sll    %l4, 8, %l4
        andn    %l0, 0xf00, %l5
        or      %l5, %l4, %l5
2:      wr      %l5, %psr               ! the level first, traps on after it
        nop
        nop
        nop
        wr      %l5, 0x20, %psr
        nop
        nop
        nop
        mov     %l3, %o0
        call    on_trap
         add    %sp, FRAME_PSR, %o1
        rd      %psr, %l3               ! traps off
        andn    %l3, 0x20, %l3
        wr      %l3, %psr
        nop
        nop
        nop
        ld      [%sp + FRAME_PSR], %l0
        ld      [%sp + FRAME_PC], %l1
        ld      [%sp + FRAME_NPC], %l2
        ld      [%sp + FRAME_Y], %l4
        wr      %l4, %y
        ld      [%sp + FRAME_G1], %g1
        ldd     [%sp + FRAME_G2], %g2
        ldd     [%sp + FRAME_G2 + 8], %g4
        ldd     [%sp + FRAME_G2 + 16], %g6
        rd      %wim, %l4               ! the window to return to may lie on the stack
        and     %l3, WINDOWS - 1, %l5
        add     %l5, 1, %l5
        and     %l5, WINDOWS - 1, %l5
        mov     1, %l6
        sll     %l6, %l5, %l6
        btst    %l4, %l6
        be      3f
         nop
        sll     %l4, 1, %l5
        srl     %l4, WINDOWS - 1, %l6
        or      %l5, %l6, %l5
        wr      %l5, %wim
        nop
        nop
        nop
        restore
        ldd     [%sp], %l0
        ldd     [%sp + 8], %l2
        ldd     [%sp + 16], %l4
        ldd     [%sp + 24], %l6
        ldd     [%sp + 32], %i0
        ldd     [%sp + 40], %i2
        ldd     [%sp + 48], %i4
        ldd     [%sp + 56], %i6
        save
3:      andn    %l0, WINDOWS - 1, %l0   ! the window is the present one
        and     %l3, WINDOWS - 1, %l3
        andn    %l0, 0x20, %l0
        wr      %l0, %l3, %psr
        nop
        nop
        nop
        jmp     %l1
         rett   %l2

! Each CPU: windows, traps, floating point, a stack of its own.
boot:
        set     0x10c0, %g1             ! EF, S, PS; PIL 0, traps off, window 0
        wr      %g1, %psr
        wr      %g0, 2, %wim
        set     trap_table, %g2
        wr      %g2, %tbr
        nop
        nop
        nop
#if CPUS > 16
        set     CPU_ID, %g3
        ld      [%g3], %g3
#else
        rd      %asr17, %g3
        srl     %g3, 28, %g3
#endif
        set     first_stack, %g4        ! that of CPU 0 is the topmost and the largest
        tst     %g3
        be      1f
         nop
        set     other_stacks, %g4
        sub     %g3, 1, %g5
        sll     %g5, 14, %g5            ! 16 KiB each
        sub     %g4, %g5, %g4
1:      sub     %g4, 96, %sp
        clr     %fp
        wr      %g1, 0x20, %psr
        nop
        nop
        nop
        tst     %g3
        bne     3f
         nop
        set     bss_start, %g4
        set     bss_end, %g5
        clr     %g1                     ! the other half of a doubleword of zeros
        cmp     %g4, %g5
2:      bgeu    3f
         nop
        std     %g0, [%g4]
        add     %g4, 8, %g4
        ba      2b
         cmp    %g4, %g5
3:      call    main
         mov    %g3, %o0
        call    rest
         nop

! The end: a trap with traps off ends the run.
        .global halt
halt:
        rd      %psr, %o0
        andn    %o0, 0x20, %o0
        wr      %o0, %psr
        nop
        nop
        nop
        ta      0
        nop
4:      ba      4b
         nop
