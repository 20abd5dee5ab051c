/* Where things lie in memory, for C, assembly and the linker.

   Invariant: what the fault handler touches beside the records is below 0x8000, where one instruction reaches it
   without a base register; the link word of a frame lies at (frame address >> 11), so that a link's address is its
   frame's number times four, and a free list of links is a free list of frames. */
#ifndef LAYOUT_H
#define LAYOUT_H

#define SAVED 0x2000        /* registers of the fault handler */
#define FREE_FRAMES 0x2040  /* link of the first free frame, or 0 */
#define HINT_REGION 0x2044  /* record of the region mapped or touched last, if it grants every right */
#define HINT_EXTENT 0x2048  /* bytes of its records; 0: no hint */
#define SPACE_PAGES 0x204c  /* pages of the space */
#define INDEX 0x2100        /* 2^15 bits, then 2^10, then 2^5 */
#define LINKS 0x4000        /* a word a frame, at most 4096 */
#define FRAMES 0x02000000   /* LINKS << 11 */
#define FRAMES_MAX 4096
#define RECORDS 0x00400000  /* a record a page */
#define PAGES_LOG2_MAX 15
#define VIRTUAL 0x40000000  /* page 0 */
#define PAGE_LOG2 13
#define STACK_TOP 0x00100000
#define FAULT_STACK_TOP 0x000f0000

#if RTMMU_TABLES == 2
#define RECORD_LOG2 5
#else
#define RECORD_LOG2 4
#endif

/* Words of a record. */
#define RECORD_TABLE 0   /* word of the page table */
#define RECORD_EXTENT 4  /* of an allocated region's first page: bytes of its records | rights; else 0 */
#define RECORD_TAIL 8    /* address of the last link of the region's frames */
#define RECORD_HEAD 12   /* link of its first frame */
/* With tables in memory, too. */
#define RECORD_SP 16
#define RECORD_REGION 20
#define RECORD_SLOT 24
#define RECORD_STACK 28

/* Registers of the unit: SPRs of group 1. */
#define UNIT_BASE 0x800
#define UNIT_DROP 0x802
#define UNIT_REGION 0x808
#define UNIT_FILL 0x809
#define UNIT_ENTRY 0x80a
#define UNIT_CAUSE 0x80b
#define UNIT_PAGE 0x80c

/* A word of the conventional page table. */
#define TABLE_RESERVED 1
#define TABLE_PRESENT 0x400
#define TABLE_RIGHTS 6
#define RIGHTS_ALL 15

#define DEVICE_OUT 0x90000000
#define DEVICE_END 0x90000004
#define DEVICE_CYCLES 0x90000008
#define DEVICE_OPERATIONS 0x9000000c

#endif
