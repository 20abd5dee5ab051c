/* Index, records and frame lists of the page manager: what its operations and its page fault share.

   The index is a hierarchy of bitmaps over 32-bit words; a bit of the lowest level is set where an allocated region
   begins. A region's record knows its extent, so free space needs no entry, and mapping and unmapping change one bit
   each instead of splitting and joining intervals.

   The frames of a region are a list from RECORD_HEAD to the link that RECORD_TAIL points to. Of an empty list
   RECORD_TAIL points to RECORD_HEAD itself, so that appending a frame and splicing the whole list to the free frames
   are straight lines.

   Invariant: bit a is set in the lowest level if and only if the extent of a's record is not 0, and a bit of a
   higher level is set if and only if its word below is not 0. Regions do not overlap: what Lemma 1 of the paper
   needs. A frame is in exactly one list. */
#ifndef MANAGER_H
#define MANAGER_H

#include "pages.h"

typedef volatile uint32_t word;

#define AT(address) (*(word *)(address))
#define SIZE (1u << RECORD_LOG2)

#define SET(spr, value) __asm__ volatile("l.mtspr r0, %0, %1" : : "r"(value), "K"(spr) : "memory")
#define GET(spr) ({ uint32_t got; __asm__ volatile("l.mfspr %0, r0, %1" : "=r"(got) : "K"(spr)); got; })

/* A word below 0x8000, in one instruction. */
static inline uint32_t low(uint32_t address) {
    uint32_t value;
    __asm__ volatile("l.lwz %0, %1(r0)" : "=r"(value) : "K"(address) : "memory");
    return value;
}
static inline void set_low(uint32_t address, uint32_t value) {
    __asm__ volatile("l.sw %0(r0), %1" : : "K"(address), "r"(value) : "memory");
}

/* Number of the highest bit, from 1; 0 of 0. */
static inline uint32_t last_one(uint32_t bits) {
    uint32_t number;
    __asm__("l.fl1 %0, %1" : "=r"(number) : "r"(bits));
    return number;
}

/* Opaque, so that a record's words are reached by offsets, not each by an address of its own. */
static inline uint32_t record(uint32_t page) {
    uint32_t at = RECORDS + (page << RECORD_LOG2);
    __asm__("" : "+r"(at));
    return at;
}

/* Words of the levels; there are as many as the pages need. */
#ifndef PAGES_LOG2
#define PAGES_LOG2 PAGES_LOG2_MAX
#endif
_Static_assert(PAGES_LOG2 <= PAGES_LOG2_MAX, "the index has three levels");
#define LEVEL0(page) AT(INDEX + ((page) >> 5 << 2))
#define LEVEL1(page) AT(INDEX + 0x1000 + ((page) >> 10 << 2))
#define LEVEL2 AT(INDEX + 0x1080)
#define HAS_LEVEL2 (PAGES_LOG2 > 10)

/* One level: sets or clears a bit; returns whether the word above is to follow. */
static inline int set_bit(word *at, uint32_t bit) {
    const uint32_t old = *at;
    *at = old | 1u << (bit & 31);
    return old == 0;
}
static inline int clear_bit(word *at, uint32_t bit) {
    const uint32_t left = *at & ~(1u << (bit & 31));
    *at = left;
    return left == 0;
}

static inline void index_insert(uint32_t page) {
    if (set_bit(&LEVEL0(page), page) && set_bit(&LEVEL1(page), page >> 5) && HAS_LEVEL2) set_bit(&LEVEL2, page >> 10);
}

static inline void index_remove(uint32_t page) {
    if (clear_bit(&LEVEL0(page), page) && clear_bit(&LEVEL1(page), page >> 5) && HAS_LEVEL2)
        clear_bit(&LEVEL2, page >> 10);
}

#define NONE 0xffffffffu

/* The last region that begins at `page` or before. */
static inline uint32_t index_find(uint32_t page) {
    uint32_t bit = last_one(LEVEL0(page) << (~page & 31));
    if (bit != 0) return page + bit - 32;
    uint32_t word1 = page >> 5;
    bit = last_one(LEVEL1(page) & ((1u << (word1 & 31)) - 1));
    if (bit != 0) {
        word1 = (word1 & ~31u) + bit - 1;
    } else {
        if (!HAS_LEVEL2) return NONE;
        bit = last_one(LEVEL2 & ((1u << (page >> 10)) - 1));
        if (bit == 0) return NONE;
        word1 = (bit - 1) << 5;
        word1 += last_one(AT(INDEX + 0x1000 + ((bit - 1) << 2))) - 1;
    }
    return (word1 << 5) + last_one(AT(INDEX + (word1 << 2))) - 1;
}

static inline uint32_t extent(uint32_t region) { return AT(region + RECORD_EXTENT) & ~(SIZE - 1); }

static inline void clear_frame(uint32_t frame) {
    for (uint32_t at = frame; at != frame + (1u << PAGE_LOG2); at += 16) {
        AT(at) = 0;
        AT(at + 4) = 0;
        AT(at + 8) = 0;
        AT(at + 12) = 0;
    }
}

/* Maps `page`, for an access that needs `rights`, if nothing forbids. */
static inline enum pages_result take_frame(uint32_t page, uint32_t rights) {
    const uint32_t entry = record(page);
#if RTMMU_TABLES == 0
    const uint32_t reserved = AT(entry);
    if ((reserved & TABLE_RESERVED) == 0) return PAGES_UNMAPPED;
    if ((rights & ~(reserved >> TABLE_RIGHTS)) != 0) return PAGES_RIGHTS;
    if (reserved & TABLE_PRESENT) return PAGES_PRESENT;
#else
    const uint32_t start = index_find(page);
    if (start == NONE) return PAGES_UNMAPPED;
    const uint32_t region = record(start);
    const uint32_t granted = AT(region + RECORD_EXTENT);
    if (entry - region >= (granted & ~(SIZE - 1))) return PAGES_UNMAPPED;
    if ((rights & ~granted) != 0) return PAGES_RIGHTS;
#endif
    const uint32_t link = low(FREE_FRAMES);
    if (link == 0) return PAGES_NO_FRAME;
    set_low(FREE_FRAMES, AT(link));
    const uint32_t frame = link << 11;
#ifdef ZERO_FRAMES
    clear_frame(frame);
#endif
#if RTMMU_TABLES == 0
    AT(entry) = frame | reserved | TABLE_PRESENT;
#else
    AT(AT(region + RECORD_TAIL)) = link;
    AT(region + RECORD_TAIL) = link;
    AT(entry) = frame;
#if RTMMU_TABLES == 1
    SET(UNIT_PAGE, entry);
    SET(UNIT_FILL, region);
#else
    const uint32_t slot = AT(region + RECORD_SP);
    AT(entry + RECORD_REGION) = region;
    AT(entry + RECORD_SLOT) = slot;
    AT((slot & ~(SIZE - 1)) + RECORD_STACK) = entry;
    AT(region + RECORD_SP) = slot + SIZE;
#endif
    if ((granted & RIGHTS_ALL) == RIGHTS_ALL) {
        set_low(HINT_REGION, region);
        set_low(HINT_EXTENT, granted & ~(SIZE - 1));
    }
#endif
    return PAGES_OK;
}

#endif
