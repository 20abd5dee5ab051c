/* The emitted C heap (TLSF) over virtual pages, on the core: cycles of its calls, and the frames it holds.

   The heap keeps its records out of band: it manages a shadow of the space, 16 bytes a page in ordinary memory, and a
   block of n * 16 bytes there stands for n pages. So no boundary tag lies in a virtual page, and a page that the
   program does not touch takes no frame. A tag in the shadow shifts the next block by a page: that page is never
   mapped, and an overrun of its neighbour traps. A call maps or unmaps the block's region; every frame goes back at
   once.

   Invariant: a block of the shadow and a region of the space begin and end together. */
#include "console.h"
#include "heap.h"
#include "pages.h"

#ifndef PAGES_LOG2
#define PAGES_LOG2 10
#endif
#define PAGES (1u << PAGES_LOG2)
#define BLOCKS 64

static heap_t shadow_heap;
static uint8_t shadow[PAGES << 4] __attribute__((aligned(16)));

/* The emitted code needs these two; the core has no library. */
void *memcpy(void *to, const void *from, size_t length) {
    for (size_t i = 0; i < length; i++) ((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    return to;
}
void *memset(void *to, int value, size_t length) {
    for (size_t i = 0; i < length; i++) ((volatile uint8_t *)to)[i] = (uint8_t)value;
    return to;
}

/* A block of at least `bytes`, or 0. */
static uint32_t allocate(uint32_t bytes) {
    const uint32_t count = (bytes + (1u << PAGE_LOG2) - 1) >> PAGE_LOG2;
    uint8_t *block = heap_allocate(&shadow_heap, count << 4, 16);
    if (block == 0) return 0;
    const uint32_t start = (uint32_t)(block - shadow) >> 4;
    if (map_region(start, count, RIGHTS_READ | RIGHTS_WRITE) != PAGES_OK) {
        heap_free(&shadow_heap, block);
        return 0;
    }
    return (uint32_t)page_address(start);
}

/* Whether a block began there; else nothing happens. */
static int release(uint32_t address) {
    const uint32_t start = (address - VIRTUAL) >> PAGE_LOG2;
    if ((address & ((1u << PAGE_LOG2) - 1)) != 0 || unmap_region(start) != PAGES_OK) return 0;
    heap_free(&shadow_heap, shadow + (start << 4));
    return 1;
}

int main(void) {
    uint32_t places[BLOCKS] = {0}, sizes[BLOCKS] = {0};
    uint32_t state = 3, failures = 0, refused = 0, allocate_max = 0, free_max = 0, frames_peak = 0, live = 0, live_peak = 0;
    pages_init(PAGES_LOG2, PAGES);
    if (heap_init(&shadow_heap, shadow, sizeof shadow) != HEAP_OK) return 1;
    uint32_t empty = cycles();
    empty = cycles() - empty;
    for (uint32_t step = 0; step < 600; step++) {
        state = state * 1664525u + 1013904223u;
        const uint32_t random = state >> 8, k = random % BLOCKS;
        if (places[k] == 0) {
            /* Mostly small, sometimes up to 128 pages, of which a part is touched. */
            const uint32_t count = 1 + (random >> 6) % ((random & 0x700000) == 0 ? 128 : 8);
            const uint32_t before = cycles();
            const uint32_t place = allocate(count << PAGE_LOG2);
            const uint32_t cost = cycles() - before - empty;
            if (cost > allocate_max) allocate_max = cost;
            if (place == 0) {
                refused++;
                continue;
            }
            places[k] = place;
            sizes[k] = count;
            live += count;
            if (live > live_peak) live_peak = live;
            for (uint32_t page = 0; page < count; page += 1 + (random >> 3) % 3)
                *(volatile uint32_t *)(place + (page << PAGE_LOG2)) = place + page;
        } else {
            if (*(volatile uint32_t *)places[k] != places[k]) failures++;
            const uint32_t before = cycles();
            const int good = release(places[k]);
            const uint32_t cost = cycles() - before - empty;
            if (cost > free_max) free_max = cost;
            if (!good || release(places[k])) failures++;
            live -= sizes[k];
            places[k] = 0;
        }
        const uint32_t used = frames_used();
        if (used > frames_peak) frames_peak = used;
    }
    if (heap_check(&shadow_heap) != HEAP_SOUND) failures++;
    for (uint32_t k = 0; k < BLOCKS; k++)
        if (places[k] != 0 && !release(places[k])) failures++;
    if (frames_used() != 0 || regions_used() != 0) failures++;
    print("{\"failures\": ");
    print_number(failures);
    print_field("refused", refused);
    print_field("allocate_max", allocate_max);
    print_field("free_max", free_max);
    print_field("frames_peak", frames_peak);
    print_field("live_pages_peak", live_peak);
    print("}\n");
    return failures != 0;
}
