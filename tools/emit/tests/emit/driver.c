/* driver.c: replays operations on an emitted heap and prints its decisions.
 *
 * Standard input, a line an operation: `a ID SIZE ALIGN`, `f ID`,
 * `r ID SIZE ALIGN`. Standard output: a line an operation with the offset of
 * the block (`-` when refused) and the footprint, and at the end the
 * statistics, and with HEAP_COUNT a line a memory level: its footprint, words of
 * records read and written. Every block is filled with a pattern of its own that is verified
 * before it is freed and after it is resized: exit status 1 and a message when
 * it was overwritten, or when heap_check finds a fault.
 */
#include "heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPAN ((size_t)1 << 36)
#define ARENA_ALIGNMENT ((size_t)1 << 21)
/* Small enough that sequences run out of memory now and then. */
#define ARENA ((size_t)DRIVER_ARENA)
#define MOST 100000

static heap_t heap;
static unsigned char *bases[HEAP_POOLS];
static size_t lengths[HEAP_POOLS];
static void *places[MOST];
static size_t sizes[MOST];
/* All of these are written. */
static size_t usable[MOST];

/* Bytes taken from each memory level, and how many there are. */
static const size_t level_sizes[HEAP_LEVELS] = HEAP_LEVEL_SIZES;
static const unsigned char pool_levels[HEAP_POOLS] = HEAP_POOL_LEVELS;
static size_t taken[HEAP_LEVELS];

static bool take(unsigned level, size_t bytes)
{
    if (bytes > level_sizes[level] - taken[level]) {
        return false;
    }
    taken[level] += bytes;
    return true;
}

static bool grow(void *context, unsigned pool, size_t bytes)
{
    (void)context;
    if (bytes > ARENA - lengths[pool] || !take(pool_levels[pool], bytes)) {
        return false;
    }
    lengths[pool] += bytes;
    return true;
}

#if HEAP_OBJECT_POOLS
static unsigned char *slabs;
static size_t slabs_length;

static bool grow_slabs(void *context, size_t bytes)
{
    (void)context;
    if (bytes > ARENA - slabs_length || !take(HEAP_OBJECT_LEVEL, bytes + sizeof(heap_slab_t))) {
        return false;
    }
    slabs_length += bytes;
    return true;
}
static const heap_source_t source = {NULL, HEAP_INCREMENT, grow, grow_slabs};
#else
static const heap_source_t source = {NULL, HEAP_INCREMENT, grow};
#endif

static void fail(const char *what, size_t line)
{
    fprintf(stderr, "operation %zu: %s\n", line, what);
    exit(1);
}

static unsigned char *memory_of(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, ARENA_ALIGNMENT, bytes) != 0) {
        fail("no memory for the test", 0);
    }
    return memory;
}

static uint64_t offset_of(const void *place)
{
    const unsigned char *const byte = place;
#if HEAP_OBJECT_POOLS
    if (byte >= slabs && byte < slabs + ARENA) {
        return (UINT64_C(1) << 60) + (uint64_t)(byte - slabs);
    }
#endif
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        if (byte >= bases[pool] && byte < bases[pool] + ARENA) {
            return ((uint64_t)pool << 44) + (uint64_t)(byte - bases[pool]);
        }
    }
    return UINT64_MAX;
}

static unsigned char pattern(size_t id)
{
    return (unsigned char)(id * 167U + 13U);
}

static void verify(size_t id, size_t bytes, size_t line)
{
    const unsigned char *const byte = places[id];
    for (size_t at = 0; at < bytes; at += 1U) {
        if (byte[at] != pattern(id)) {
            fail("a block was overwritten", line);
        }
    }
    if (heap_requested_size(&heap, places[id]) != sizes[id] || usable[id] < sizes[id]
        || !heap_contains(&heap, places[id])) {
        fail("the record of a block is wrong", line);
    }
}

static void keep(size_t id, void *place, size_t size)
{
    places[id] = place;
    sizes[id] = size;
    usable[id] = heap_usable_size(&heap, place);
}

static void prepare(void)
{
    heap_prepare(&heap, SPAN, &source);
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        const size_t smallest = heap_smallest_region(&heap, pool);
        lengths[pool] = (smallest + HEAP_INCREMENT - 1U) / HEAP_INCREMENT * HEAP_INCREMENT;
        bases[pool] = memory_of(ARENA);
        if (!take(pool_levels[pool], lengths[pool])
            || heap_add_region(&heap, pool, bases[pool], lengths[pool]) != HEAP_OK) {
            fail("the first region was refused", 0);
        }
    }
#if HEAP_OBJECT_POOLS
    const size_t capacity = ARENA / HEAP_SLAB;
    slabs = memory_of(ARENA);
    heap_add_slabs(&heap, slabs, malloc(capacity * sizeof(heap_slab_t)),
                   malloc(capacity * HEAP_SLOTS * sizeof(uint16_t)), capacity);
#endif
#ifdef HEAP_COUNT
    memset(heap_counts, 0, sizeof(heap_counts));
#endif
}

static void operate(char operation, size_t id, size_t size, size_t align, size_t line)
{
    void *place = NULL;
    if (operation == 'a') {
        place = heap_allocate(&heap, size, align);
        if (place != NULL) {
            keep(id, place, size);
            memset(place, pattern(id), usable[id]);
        }
    } else if (operation == 'f') {
        if (places[id] != NULL) {
            verify(id, usable[id], line);
            heap_free(&heap, places[id]);
            places[id] = NULL;
        }
    } else if (places[id] != NULL) {
        place = heap_resize(&heap, places[id], size, align);
        if (place != NULL) {
            const size_t kept = sizes[id] < size ? sizes[id] : size;
            keep(id, place, size);
            verify(id, kept, line);
            memset(place, pattern(id), usable[id]);
        }
    }
    if (place == NULL) {
        printf("- %zu\n", heap_footprint(&heap));
    } else {
        if ((size_t)(uintptr_t)place % align != 0U) {
            fail("a block is not aligned", line);
        }
        printf("%" PRIu64 " %zu\n", offset_of(place), heap_footprint(&heap));
    }
}

int main(void)
{
    char operation = 0;
    size_t id = 0;
    size_t line = 0;
    prepare();
    while (scanf(" %c %zu", &operation, &id) == 2 && id < MOST) {
        size_t size = 0;
        size_t align = 1;
        line += 1U;
        if (operation != 'f' && scanf("%zu %zu", &size, &align) != 2) {
            fail("not an operation", line);
        }
        operate(operation, id, size, align, line);
        if (line % 97U == 0U && heap_check(&heap) != HEAP_SOUND) {
            fprintf(stderr, "heap_check returns %d\n", (int)heap_check(&heap));
            fail("heap_check found a fault", line);
        }
    }
    const heap_statistics_t s = heap_statistics(&heap);
    printf("check %d\n", (int)heap_check(&heap));
    printf("statistics %zu %zu %zu %zu %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
           " %zu %zu %zu %zu %zu\n",
           s.live, s.peak_live, s.blocks, s.peak_blocks, s.allocations, s.frees, s.resizes,
           s.failures, s.largest_free, s.free_blocks, s.free_bytes, s.footprint, s.record_bytes);
#ifdef HEAP_COUNT
    for (unsigned level = 0; level < HEAP_LEVELS; level += 1U) {
        printf("level %zu %" PRIu64 " %" PRIu64 "\n", heap_level_footprint(&heap, level),
               heap_counts[level].record_reads, heap_counts[level].record_writes);
    }
#endif
    return 0;
}
