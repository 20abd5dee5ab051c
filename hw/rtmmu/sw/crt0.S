/* Vectors and start of a bare-metal program; the page fault of the data side, which is what the unit raises.

   Invariant: a page fault returns to the access that raised it, all registers as they were. The straight path serves
   a first touch with four registers saved; it takes what `fault` in pages.c decides in general and has no loop. */
#include "layout.h"

    .section .vectors, "ax"

    .org 0x100
    l.j     start
    l.nop

/* Any other exception ends the run: status 16 + number of its vector. */
    .org 0x200
bus_error:
    l.j     die
    l.addi  r3, r0, 18
    .org 0x300
#ifdef ZERO_FRAMES
    l.j     general
    l.nop
#elif RTMMU_TABLES == 0
    l.sw    SAVED+0(r0), r3
    l.mfspr r3, r0, UNIT_ENTRY          /* 0, whose word is 0, if not a miss */
    l.sw    SAVED+4(r0), r4
    l.lwz   r4, RECORD_TABLE(r3)
    l.sw    SAVED+8(r0), r5
    l.sfeqi r4, (RIGHTS_ALL << TABLE_RIGHTS | TABLE_RESERVED)
    l.bnf   slow
    l.lwz   r5, FREE_FRAMES(r0)
    l.sfeqi r5, 0
    l.bf    slow
    l.lwz   r4, 0(r5)
    l.sw    FREE_FRAMES(r0), r4
    l.slli  r5, r5, 11
    l.ori   r5, r5, (RIGHTS_ALL << TABLE_RIGHTS | TABLE_RESERVED | TABLE_PRESENT)
    l.sw    RECORD_TABLE(r3), r5
    l.lwz   r5, SAVED+8(r0)
    l.lwz   r4, SAVED+4(r0)
    l.lwz   r3, SAVED+0(r0)
    l.rfe
#else
    l.sw    SAVED+0(r0), r3
    l.mfspr r3, r0, UNIT_ENTRY          /* 0, in no region, if not a miss */
    l.sw    SAVED+4(r0), r4
    l.lwz   r4, HINT_REGION(r0)
    l.sw    SAVED+8(r0), r5
    l.lwz   r5, HINT_EXTENT(r0)
    l.sw    SAVED+12(r0), r6
    l.sub   r6, r3, r4
    l.sfltu r6, r5
    l.bnf   other_region
    l.lwz   r5, FREE_FRAMES(r0)
take:
    l.sfeqi r5, 0
    l.bf    slow
    l.lwz   r6, 0(r5)
    l.sw    FREE_FRAMES(r0), r6         /* the frame leaves the free list */
#if RTMMU_TABLES == 1
    l.mtspr r0, r4, UNIT_FILL
#else
    l.sw    RECORD_REGION(r3), r4
    l.lwz   r6, RECORD_SP(r4)
    l.sw    RECORD_SLOT(r3), r6
    l.sw    RECORD_STACK-RIGHTS_ALL(r6), r3
    l.addi  r6, r6, 1 << RECORD_LOG2
    l.sw    RECORD_SP(r4), r6
#endif
    l.lwz   r6, RECORD_TAIL(r4)
    l.sw    0(r6), r5                   /* and becomes the last of its region */
    l.sw    RECORD_TAIL(r4), r5
    l.slli  r5, r5, 11
    l.sw    RECORD_TABLE(r3), r5
    l.lwz   r6, SAVED+12(r0)
    l.lwz   r5, SAVED+8(r0)
    l.lwz   r4, SAVED+4(r0)
    l.lwz   r3, SAVED+0(r0)
    l.rfe
#endif

    .org 0x400
    l.j     die
    l.addi  r3, r0, 20
    .org 0x500
    l.j     die
    l.addi  r3, r0, 21
    .org 0x600
    l.j     die
    l.addi  r3, r0, 22
    .org 0x700
    l.j     die
    l.addi  r3, r0, 23
    .org 0x800
    l.j     die
    l.addi  r3, r0, 24
    .org 0x900
    l.j     die
    l.addi  r3, r0, 25
    .org 0xa00
    l.j     die
    l.addi  r3, r0, 26
    .org 0xb00
    l.j     die
    l.addi  r3, r0, 27
    .org 0xc00
    l.j     die
    l.addi  r3, r0, 28
    .org 0xd00
    l.j     die
    l.addi  r3, r0, 29
    .org 0xe00
    l.j     die
    l.addi  r3, r0, 30

    .org 0x1000
die:
    l.movhi r4, hi(DEVICE_END)
    l.ori   r4, r4, lo(DEVICE_END)
    l.sw    0(r4), r3
1:  l.j     1b
    l.nop

#if RTMMU_TABLES != 0 && !defined(ZERO_FRAMES)
/* The page is not of the region of the hint: find its region in the index, as index_find does, up to the second level;
   if it grants every right it becomes the hint. */
other_region:
    l.sfeqi r3, 0
    l.bf    slow
    l.movhi r4, hi(RECORDS)
    l.sub   r4, r3, r4
    l.srli  r4, r4, RECORD_LOG2         /* the page */
    l.srli  r5, r4, 5
    l.slli  r5, r5, 2
    l.lwz   r5, INDEX(r5)
    l.xori  r6, r4, -1
    l.sll   r5, r5, r6                  /* regions that begin at the page or before */
    l.fl1   r5, r5
    l.sfnei r5, 0
    l.bf    region_found
    l.add   r5, r5, r4
    l.srli  r5, r4, 5
    l.srli  r6, r4, 10
    l.slli  r6, r6, 2
    l.lwz   r6, INDEX+0x1000(r6)
    l.xori  r4, r5, -1
    l.sll   r6, r6, r4
    l.slli  r6, r6, 1                   /* words before the page's that are not 0 */
    l.fl1   r6, r6
    l.sfeqi r6, 0
    l.bf    slow
    l.add   r5, r5, r6
    l.addi  r5, r5, -33
    l.slli  r6, r5, 2
    l.lwz   r6, INDEX(r6)
    l.fl1   r6, r6
    l.slli  r5, r5, 5
    l.add   r5, r5, r6
    l.addi  r5, r5, 31
region_found:
    l.addi  r5, r5, -32
    l.slli  r5, r5, RECORD_LOG2
    l.movhi r4, hi(RECORDS)
    l.add   r4, r4, r5
    l.lwz   r5, RECORD_EXTENT(r4)
    l.andi  r6, r5, RIGHTS_ALL
    l.sfeqi r6, RIGHTS_ALL
    l.bnf   slow
    l.addi  r5, r5, -RIGHTS_ALL
    l.sub   r6, r3, r4
    l.sfltu r6, r5
    l.bnf   slow
    l.nop
    l.sw    HINT_REGION(r0), r4
    l.sw    HINT_EXTENT(r0), r5
    l.j     take
    l.lwz   r5, FREE_FRAMES(r0)
#endif

/* A region that does not grant every right, or begins far away, or an error. */
slow:
    l.lwz   r5, SAVED+8(r0)
    l.lwz   r4, SAVED+4(r0)
#if RTMMU_TABLES != 0
    l.lwz   r6, SAVED+12(r0)
#endif
    l.lwz   r3, SAVED+0(r0)
/* pages.c is compiled so that `fault` keeps all registers but these. */
general:
    l.sw    SAVED+0(r0), r1
    l.sw    SAVED+4(r0), r3
    l.sw    SAVED+8(r0), r9
    l.sw    SAVED+12(r0), r11
    l.movhi r1, hi(FAULT_STACK_TOP)
    l.jal   fault
    l.ori   r1, r1, lo(FAULT_STACK_TOP)
    l.sfeqi r11, 0
    l.bf    2f
    l.lwz   r11, SAVED+12(r0)
    /* An error: step over the access. It is not in a delay slot: only probe_load and probe_store may err. */
    l.mfspr r3, r0, 32
    l.addi  r3, r3, 4
    l.mtspr r0, r3, 32
2:  l.lwz   r9, SAVED+8(r0)
    l.lwz   r3, SAVED+4(r0)
    l.lwz   r1, SAVED+0(r0)
    l.rfe

start:
    l.movhi r0, 0
    l.movhi r1, hi(STACK_TOP)
    l.ori   r1, r1, lo(STACK_TOP)
    l.movhi r2, 0
    l.addi  r3, r0, START_SR
    l.mtspr r0, r3, 17
    l.nop
    l.nop
    l.jal   main
    l.nop
    l.j     die
    l.ori   r3, r11, 0

    .section .text
/* Accesses that may err, as instructions whose successor can be returned to. */
    .global probe_load
probe_load:
    l.lwz   r11, 0(r3)
    l.jr    r9
    l.nop
    .global probe_store
probe_store:
    l.sw    0(r3), r4
    l.jr    r9
    l.nop
