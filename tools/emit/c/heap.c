/* heap.c: the allocator declared in heap.h, whose first page says how it works.
 *
 * The parts read from the bottom of the matter to the top: blocks and their records; each general
 * pool, with the index that finds a free block; object pools; here, the heap that joins them:
 * requests routed to the pools, and the statistics of all.
 */
#include "heap.h"

#if defined(__STDC_HOSTED__) && __STDC_HOSTED__
#include <string.h>
#else
/* Freestanding environments provide these two without a header. */
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
#endif

#ifndef HEAP_ASSERT
#define HEAP_ASSERT(condition) ((void)0)
#endif

#include "heap_blocks.h"

#define HEAP_POOL 0
#include "heap_pool.h"
#undef HEAP_POOL
#if HEAP_POOLS > 1
#define HEAP_POOL 1
#include "heap_pool.h"
#undef HEAP_POOL
#endif
#if HEAP_POOLS > 2
#define HEAP_POOL 2
#include "heap_pool.h"
#undef HEAP_POOL
#endif
#if HEAP_POOLS > 3
#define HEAP_POOL 3
#include "heap_pool.h"
#undef HEAP_POOL
#endif
#if HEAP_OBJECT_POOLS > 0
#include "heap_objects.h"
#endif

/* ---- Pools by number: a switch, which one pool alone does without. */

#if HEAP_POOLS == 1
#define OF_POOL(number, function) pool_##function
#define EACH_POOL(DO) DO(default, 0)
#else
#define OF_POOL(number, function) general##number##_##function
#if HEAP_POOLS == 2
#define EACH_POOL(DO) DO(case 0, 0) DO(default, 1)
#elif HEAP_POOLS == 3
#define EACH_POOL(DO) DO(case 0, 0) DO(case 1, 1) DO(default, 2)
#elif HEAP_POOLS == 4
#define EACH_POOL(DO) DO(case 0, 0) DO(case 1, 1) DO(case 2, 2) DO(default, 3)
#else
#error "a heap has one to four general pools"
#endif
#endif

static inline void *find_in(heap_t *heap, unsigned pool, size_t size, size_t align)
{
    switch (pool) {
#define FIND(label, number) \
    label:                  \
        return OF_POOL(number, find)(&heap->pools[number], size, align, heap->source);
        EACH_POOL(FIND)
#undef FIND
    }
}

static inline void give_back_to(heap_t *heap, unsigned pool, void *place)
{
    switch (pool) {
#define GIVE_BACK(label, number)                                              \
    label:                                                                    \
        OF_POOL(number, give_back)(&heap->pools[number], block_at(place));    \
        break;
        EACH_POOL(GIVE_BACK)
#undef GIVE_BACK
    }
}

static inline void *resize_in_place_in(heap_t *heap, unsigned pool, void *place, size_t size,
                                       size_t align)
{
    switch (pool) {
#define RESIZE(label, number) \
    label:                    \
        return OF_POOL(number, resize_in_place)(&heap->pools[number], block_at(place), size, align);
        EACH_POOL(RESIZE)
#undef RESIZE
    }
}

static inline void *find_larger_in(heap_t *heap, unsigned pool, void *place, size_t size,
                                   size_t align)
{
    switch (pool) {
#define FIND_LARGER(label, number)                                                               \
    label:                                                                                       \
        return OF_POOL(number, find_larger)(&heap->pools[number], block_at(place), size, align,  \
                                            heap->source);
        EACH_POOL(FIND_LARGER)
#undef FIND_LARGER
    }
}

static heap_corruption_t walk_in(const heap_t *heap, unsigned pool, heap_walk_t *walk)
{
    switch (pool) {
#define WALK(label, number) \
    label:                  \
        return OF_POOL(number, walk)(&heap->pools[number], walk);
        EACH_POOL(WALK)
#undef WALK
    }
}

static heap_corruption_t check_in(heap_t *heap, unsigned pool, heap_walk_t *walk)
{
    switch (pool) {
#define CHECK(label, number) \
    label:                   \
        return OF_POOL(number, check)(&heap->pools[number], walk);
        EACH_POOL(CHECK)
#undef CHECK
    }
}

/* ---- Routes. */

#define LAST_POOL (HEAP_POOLS - 1U)

/* The general pool that requests of `size` ask first. */
static inline unsigned route(size_t size)
{
    (void)size;
#if HEAP_POOLS > 1
    if (HEAP_POOL0_TAKES(size)) {
        return 0;
    }
#endif
#if HEAP_POOLS > 2
    if (HEAP_POOL1_TAKES(size)) {
        return 1;
    }
#endif
#if HEAP_POOLS > 3
    if (HEAP_POOL2_TAKES(size)) {
        return 2;
    }
#endif
    return LAST_POOL;
}

#if HEAP_POOLS > 1
/* The general pool that requests of `size` ask when `pool`, not the last one, has refused: they
 * spill. */
static unsigned next_pool(unsigned pool, size_t size)
{
    HEAP_ASSERT(pool < LAST_POOL);
    (void)pool;
    (void)size;
#if HEAP_POOLS > 2
    if (pool < 1U && HEAP_POOL1_TAKES(size)) {
        return 1;
    }
#endif
#if HEAP_POOLS > 3
    if (pool < 2U && HEAP_POOL2_TAKES(size)) {
        return 2;
    }
#endif
    return LAST_POOL;
}
#endif

/* Whether an address lies in a region of the list. */
static bool regions_contain(const region_t *region, const void *address)
{
    while (region != NULL) {
        if (address_of(address) >= address_of(region)
            && address_of(address) - address_of(region) < length_of(region)) {
            return true;
        }
        region = region->next;
    }
    return false;
}

/* The general pool that a block in use came from. */
static inline unsigned pool_of(const heap_t *heap, const void *place)
{
    (void)heap;
    (void)place;
#if HEAP_POOLS > 1
    if (regions_contain(heap->pools[0].first, place)) {
        return 0;
    }
#endif
#if HEAP_POOLS > 2
    if (regions_contain(heap->pools[1].first, place)) {
        return 1;
    }
#endif
#if HEAP_POOLS > 3
    if (regions_contain(heap->pools[2].first, place)) {
        return 2;
    }
#endif
    return LAST_POOL;
}

static inline void *find(heap_t *heap, size_t size, size_t align)
{
#if HEAP_OBJECT_POOLS > 0
    void *const slot = objects_allocate(&heap->objects, size, align, heap->source);
    if (slot != NULL) {
        return slot;
    }
#endif
    unsigned pool = route(size);
    void *place = find_in(heap, pool, size, align);
#if HEAP_POOLS > 1
    while (place == NULL && pool < LAST_POOL) {
        pool = next_pool(pool, size);
        place = find_in(heap, pool, size, align);
    }
#endif
    return place;
}

void *heap_allocate(heap_t *heap, size_t size, size_t align)
{
    HEAP_ASSERT(heap != NULL);
    void *const place = find(heap, size, align);
    if (place == NULL) {
        heap->failures += 1U;
        return NULL;
    }
    heap->allocations += 1U;
    heap->blocks += 1U;
    heap->peak_blocks = heap->blocks > heap->peak_blocks ? heap->blocks : heap->peak_blocks;
    heap->live += size;
    heap->peak_live = heap->live > heap->peak_live ? heap->live : heap->peak_live;
    return place;
}

/* Counts a block that is freed. */
static inline void count_freed(heap_t *heap, size_t requested)
{
    HEAP_ASSERT(heap->blocks != 0U && heap->live >= requested);
    heap->blocks -= 1U;
    heap->live -= requested;
}

#if HEAP_OBJECT_POOLS > 0
/* Frees a slot; one freed already, or never allocated, is not obeyed. */
static inline void free_slot(heap_t *heap, const void *place)
{
    const slot_t slot = objects_resolve(&heap->objects, place);
    if (slot.found) {
        count_freed(heap, objects_requested(&heap->objects, slot));
        objects_free(&heap->objects, slot);
    }
}
#endif

void heap_free(heap_t *heap, void *place)
{
    HEAP_ASSERT(heap != NULL);
    if (place == NULL) {
        return;
    }
#if HEAP_OBJECT_POOLS > 0
    if (objects_contain(&heap->objects, place)) {
        free_slot(heap, place);
        return;
    }
#endif
    HEAP_ASSERT(is_in_use(block_at(place)));
    count_freed(heap, requested_of(block_at(place)));
    give_back_to(heap, pool_of(heap, place), place);
}

/* Counts a resize, refused where `moved` is NULL, and returns that. */
static inline void *count_resized(heap_t *heap, void *moved, size_t from, size_t to)
{
    if (moved == NULL) {
        heap->failures += 1U;
        return NULL;
    }
    heap->resizes += 1U;
    heap->live = heap->live - from + to;
    heap->peak_live = heap->live > heap->peak_live ? heap->live : heap->peak_live;
    return moved;
}

/* Moves a block of a general pool, or resizes it where it lies. It stays in
 * general pools, which are asked as an allocation of the new size asks them. */
static void *resize_block(heap_t *heap, void *place, size_t size, size_t align)
{
    const unsigned from = pool_of(heap, place);
    const size_t requested = requested_of(block_at(place));
    unsigned to = route(size);
    void *moved = NULL;
    for (;;) {
        if (from == to) {
            void *const same = resize_in_place_in(heap, from, place, size, align);
            if (same != NULL) {
                return same;
            }
            moved = find_larger_in(heap, from, place, size, align);
        } else {
            moved = find_in(heap, to, size, align);
        }
        if (moved != NULL || to == LAST_POOL) {
            break;
        }
#if HEAP_POOLS > 1
        to = next_pool(to, size);
#endif
    }
    if (moved != NULL && moved != place) {
        memcpy(moved, place, requested < size ? requested : size);
        give_back_to(heap, from, place);
    }
    return moved;
}

#if HEAP_OBJECT_POOLS > 0
/* Resizes a slot where it lies, or moves it to wherever the size is served. What is no slot in use
 * is not obeyed. */
static inline void *resize_slot(heap_t *heap, void *place, size_t size, size_t align)
{
    const slot_t slot = objects_resolve(&heap->objects, place);
    if (!slot.found) {
        return NULL;
    }
    const size_t requested = objects_requested(&heap->objects, slot);
    void *moved = place;
    if (!objects_resize(&heap->objects, slot, size, align)) {
        moved = find(heap, size, align);
        if (moved != NULL) {
            memcpy(moved, place, requested < size ? requested : size);
            objects_free(&heap->objects, slot);
        }
    }
    return count_resized(heap, moved, requested, size);
}
#endif

void *heap_resize(heap_t *heap, void *place, size_t size, size_t align)
{
    HEAP_ASSERT(heap != NULL && place != NULL);
#if HEAP_OBJECT_POOLS > 0
    if (objects_contain(&heap->objects, place)) {
        return resize_slot(heap, place, size, align);
    }
#endif
    HEAP_ASSERT(is_in_use(block_at(place)));
    const size_t requested = requested_of(block_at(place));
    return count_resized(heap, resize_block(heap, place, size, align), requested, size);
}

size_t heap_usable_size(const heap_t *heap, const void *place)
{
#if HEAP_OBJECT_POOLS > 0
    if (objects_contain(&heap->objects, place)) {
        const slot_t slot = objects_resolve(&heap->objects, place);
        return slot.found ? slot.size : 0U;
    }
#else
    (void)heap;
#endif
    /* The place is only read, through the helper that others write through. */
    return usable_of(block_at((void *)(uintptr_t)place));
}

size_t heap_requested_size(const heap_t *heap, const void *place)
{
#if HEAP_OBJECT_POOLS > 0
    if (objects_contain(&heap->objects, place)) {
        const slot_t slot = objects_resolve(&heap->objects, place);
        return slot.found ? objects_requested(&heap->objects, slot) : 0U;
    }
#else
    (void)heap;
#endif
    return requested_of(block_at((void *)(uintptr_t)place));
}

/* Whether an address lies in a region of a general pool. */
static bool regions_contain_any(const heap_t *heap, const void *address)
{
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        if (regions_contain(heap->pools[pool].first, address)) {
            return true;
        }
    }
    return false;
}

bool heap_contains(const heap_t *heap, const void *address)
{
#if HEAP_OBJECT_POOLS > 0
    if (objects_contain(&heap->objects, address)) {
        return true;
    }
#endif
    return regions_contain_any(heap, address);
}

size_t heap_footprint(const heap_t *heap)
{
    size_t bytes = 0;
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        bytes += heap->pools[pool].footprint;
    }
#if HEAP_OBJECT_POOLS > 0
    bytes += objects_footprint(&heap->objects);
#endif
    return bytes;
}

size_t heap_level_footprint(const heap_t *heap, unsigned level)
{
    const unsigned levels[HEAP_POOLS] = HEAP_POOL_LEVELS;
    size_t bytes = 0;
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        bytes += levels[pool] == level ? heap->pools[pool].footprint : 0U;
    }
#if HEAP_OBJECT_POOLS > 0
    bytes += level == HEAP_OBJECT_LEVEL ? objects_footprint(&heap->objects) : 0U;
#endif
    return bytes;
}

void heap_prepare(heap_t *heap, size_t span, const heap_source_t *source)
{
    const unsigned levels[HEAP_POOLS] = HEAP_POOL_LEVELS;
    const size_t sizes[HEAP_LEVELS] = HEAP_LEVEL_SIZES;
    HEAP_ASSERT(heap != NULL);
    HEAP_ASSERT(source == NULL || (source->increment != 0U && source->increment % GRANULE == 0U));
    memset(heap, 0, sizeof(*heap));
    heap->source = source;
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        /* No block is larger than the memory level. */
        const size_t level = sizes[levels[pool]];
        heap->pools[pool].span = span < level ? span : level;
#if HEAP_USES_TREE
        /* Nor than what a tree is laid out for. */
        const size_t own[HEAP_POOLS] = HEAP_POOL_SPANS;
        if (own[pool] < heap->pools[pool].span) {
            heap->pools[pool].span = own[pool];
        }
#endif
    }
#if HEAP_OBJECT_POOLS > 0
    objects_prepare(&heap->objects);
#endif
}

size_t heap_smallest_region(const heap_t *heap, unsigned pool)
{
    if (pool >= HEAP_POOLS) {
        return 0;
    }
    switch (pool) {
#define SMALLEST(label, number) \
    label:                      \
        return OF_POOL(number, smallest)(heap->pools[number].span);
        EACH_POOL(SMALLEST)
#undef SMALLEST
    }
}

heap_result_t heap_add_region(heap_t *heap, unsigned pool, void *memory, size_t length)
{
    HEAP_ASSERT(memory != NULL);
    if (pool >= HEAP_POOLS) {
        return HEAP_NO_SUCH_POOL;
    }
    switch (pool) {
#define ADD_REGION(label, number) \
    label:                        \
        return OF_POOL(number, add_region)(&heap->pools[number], memory, length);
        EACH_POOL(ADD_REGION)
#undef ADD_REGION
    }
}

bool heap_extend(heap_t *heap, unsigned pool, size_t bytes)
{
    if (pool >= HEAP_POOLS || bytes == 0U || bytes % GRANULE != 0U
        || heap->pools[pool].base == NULL) {
        return false;
    }
    switch (pool) {
#define APPEND(label, number) \
    label:                    \
        return OF_POOL(number, append)(&heap->pools[number], bytes);
        EACH_POOL(APPEND)
#undef APPEND
    }
}

#if HEAP_OBJECT_POOLS > 0
void heap_add_slabs(heap_t *heap, void *slabs, heap_slab_t *records, uint16_t *slack,
                    size_t capacity)
{
    heap->objects.slabs = slabs;
    heap->objects.records = records;
    heap->objects.slack = slack;
    heap->objects.capacity = capacity < NO_SLAB ? capacity : NO_SLAB - 1U;
}

/* Shares `length` bytes out to slabs and, behind them, their records. */
static void share_slabs(heap_t *heap, unsigned char *memory, size_t length)
{
    const size_t skip = ((size_t)0 - address_of(memory)) & (OBJECT_GRANULE - 1U);
    const size_t one = HEAP_SLAB + sizeof(heap_slab_t) + HEAP_SLOTS * sizeof(uint16_t);
    const size_t count = length < skip ? 0U : (length - skip) / one;
    unsigned char *const slabs = memory + skip;
    unsigned char *const records = slabs + count * HEAP_SLAB;
    unsigned char *const slack = records + count * sizeof(heap_slab_t);
    heap_add_slabs(heap, slabs, (heap_slab_t *)(void *)records, (uint16_t *)(void *)slack, count);
}
#endif

heap_result_t heap_init(heap_t *heap, void *memory, size_t length)
{
    heap_prepare(heap, 0, NULL);
#if HEAP_POOLS == 1 && HEAP_OBJECT_POOLS == 0
    return heap_add_region(heap, 0, memory, length);
#else
    const size_t shares = HEAP_POOLS + (HEAP_OBJECT_POOLS > 0 ? 1U : 0U);
    const size_t share = length / shares & ~(GRANULE - 1U);
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        const heap_result_t result =
            heap_add_region(heap, pool, (unsigned char *)memory + pool * share, share);
        if (result != HEAP_OK) {
            heap_prepare(heap, 0, NULL);
            return result;
        }
    }
#if HEAP_OBJECT_POOLS > 0
    share_slabs(heap, (unsigned char *)memory + HEAP_POOLS * share, share);
#endif
    return HEAP_OK;
#endif
}

heap_statistics_t heap_statistics(const heap_t *heap)
{
    heap_statistics_t statistics;
    heap_walk_t walk = {0};
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        (void)walk_in(heap, pool, &walk);
    }
    statistics.live = heap->live;
    statistics.peak_live = heap->peak_live;
    statistics.blocks = heap->blocks;
    statistics.peak_blocks = heap->peak_blocks;
    statistics.allocations = heap->allocations;
    statistics.frees = heap->allocations - heap->blocks;
    statistics.resizes = heap->resizes;
    statistics.failures = heap->failures;
    statistics.largest_free = walk.largest_free;
    statistics.free_blocks = walk.free_blocks;
    statistics.free_bytes = walk.free_bytes;
    statistics.footprint = heap_footprint(heap);
    statistics.record_bytes = walk.record_bytes;
#if HEAP_OBJECT_POOLS > 0
    statistics.record_bytes += heap->objects.extent * sizeof(heap_slab_t);
#endif
    return statistics;
}

heap_corruption_t heap_check(heap_t *heap)
{
    heap_walk_t walk = {0};
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        const heap_corruption_t fault = check_in(heap, pool, &walk);
        if (fault != HEAP_SOUND) {
            return fault;
        }
    }
#if HEAP_OBJECT_POOLS > 0
    const heap_corruption_t fault = objects_check(&heap->objects, &walk);
    if (fault != HEAP_SOUND) {
        return fault;
    }
    if (heap->objects.slack == NULL) {
        /* Requests are not kept slot by slot, so bytes cannot be compared. */
        return walk.blocks == heap->blocks ? HEAP_SOUND : HEAP_CORRUPT_STATISTICS;
    }
#endif
    return walk.live == heap->live && walk.blocks == heap->blocks ? HEAP_SOUND
                                                                  : HEAP_CORRUPT_STATISTICS;
}
