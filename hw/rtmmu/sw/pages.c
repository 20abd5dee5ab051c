/* The operations of the page manager. Each is a straight line but for the levels of the index; the conventional form
   goes page by page.

   Invariant: that of manager.h, which each operation leaves as it found it. */
#include "manager.h"

static uint32_t frames_count;

#define pages_count low(SPACE_PAGES)

void pages_init(unsigned pages_log2, unsigned frames) {
    const uint32_t pages = 1u << pages_log2;
    set_low(SPACE_PAGES, pages);
    frames_count = frames;
    for (uint32_t at = INDEX; at <= INDEX + 0x1080; at += 4) AT(at) = 0;
    for (uint32_t k = 0; k < frames; k++) AT(LINKS + 4 * k) = k + 1 < frames ? LINKS + 4 * (k + 1) : 0;
    set_low(FREE_FRAMES, frames != 0 ? LINKS : 0);
    set_low(HINT_EXTENT, 0);
    fault_error = PAGES_OK;
    /* The extents, and in the conventional form the page table, are zero when memory is: this makes it so. */
    for (uint32_t page = 0; page < pages; page++) {
        AT(record(page) + RECORD_EXTENT) = 0;
#if RTMMU_TABLES == 0
        AT(record(page) + RECORD_TABLE) = 0;
#elif RTMMU_TABLES == 2
        AT(record(page) + RECORD_SP) = 0;
#endif
    }
    SET(UNIT_BASE, RECORDS);
}

enum pages_result map_region(uint32_t start, uint32_t count, uint32_t rights) {
    if (count == 0) return PAGES_EMPTY;
    if (start >= pages_count || count > pages_count - start) return PAGES_BEYOND;
    const uint32_t region = record(start);
    const uint32_t before = index_find(start + count - 1);
    if (before != NONE && (before >= start || extent(record(before)) > (start - before) << RECORD_LOG2)) return PAGES_OVERLAP;
    index_insert(start);
    AT(region + RECORD_EXTENT) = count << RECORD_LOG2 | rights;
#if RTMMU_TABLES == 0
    for (uint32_t at = region; count != 0; count--, at += SIZE) AT(at) = rights << TABLE_RIGHTS | TABLE_RESERVED;
#else
    AT(region + RECORD_TAIL) = region + RECORD_HEAD;
    if (rights == RIGHTS_ALL) {
        set_low(HINT_REGION, region);
        set_low(HINT_EXTENT, count << RECORD_LOG2);
    }
#if RTMMU_TABLES == 2
    AT(region + RECORD_SP) = region | rights;
#endif
    SET(UNIT_REGION, region | rights);
#endif
    return PAGES_OK;
}

enum pages_result unmap_region(uint32_t start) {
    if (start >= pages_count) return PAGES_BEYOND;
    const uint32_t region = record(start);
#if RTMMU_TABLES == 0
    const uint32_t end = region + extent(region);
    if (end == region) return PAGES_UNMAPPED;
    AT(region + RECORD_EXTENT) = 0;
    uint32_t free = low(FREE_FRAMES);
    for (uint32_t at = region; at != end; at += SIZE) {
        const uint32_t entry = AT(at);
        AT(at) = 0;
        if (entry & TABLE_PRESENT) {
            const uint32_t link = entry >> PAGE_LOG2 << 2;
            AT(link) = free;
            free = link;
        }
    }
    set_low(FREE_FRAMES, free);
    SET(UNIT_DROP, 0);
#else
    if (AT(region + RECORD_EXTENT) == 0) return PAGES_UNMAPPED;
    AT(region + RECORD_EXTENT) = 0;
    set_low(HINT_EXTENT, 0);
#if RTMMU_TABLES == 2
    AT(region + RECORD_SP) = 0;
#endif
    SET(UNIT_REGION, region);
    /* The region's last link leads on to the free frames, and its first becomes the first of those. */
    AT(AT(region + RECORD_TAIL)) = low(FREE_FRAMES);
    set_low(FREE_FRAMES, AT(region + RECORD_HEAD));
#endif
    index_remove(start);
    return PAGES_OK;
}

/* Whether the page has a frame. */
static uint32_t present(uint32_t page) {
#if RTMMU_TABLES == 0
    return AT(record(page)) & TABLE_PRESENT;
#elif RTMMU_TABLES == 2
    const uint32_t mask = (pages_count - 1) << RECORD_LOG2;
    const uint32_t region = RECORDS + (AT(record(page) + RECORD_REGION) & mask);
    const uint32_t slot = RECORDS + (AT(record(page) + RECORD_SLOT) & mask);
    return region <= slot && slot < (AT(region + RECORD_SP) & ~(SIZE - 1)) &&
           (AT(slot + RECORD_STACK) & mask) == page << RECORD_LOG2;
#else
    /* Only the unit knows: `page` looks it up. */
    SET(UNIT_PAGE, record(page));
    return GET(UNIT_PAGE) & 1;
#endif
}

enum pages_result map_page(uint32_t page) {
    if (page >= pages_count) return PAGES_BEYOND;
    if (present(page)) return PAGES_PRESENT;
    return take_frame(page, 0);
}

uint32_t frames_used(void) {
    uint32_t used = frames_count;
    for (uint32_t link = low(FREE_FRAMES); link != 0; link = AT(link)) used--;
    return used;
}

uint32_t regions_used(void) {
    uint32_t used = 0;
    for (uint32_t page = 0; page < pages_count; page++) used += AT(record(page) + RECORD_EXTENT) != 0;
    return used;
}
