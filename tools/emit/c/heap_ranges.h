/* heap_ranges.h: the heap of heap.h in memory that it has from the start and that does not grow. Part of wasi.c and bare.c.
 *
 * The range of each general pool lies behind that of the one before, the slabs of object pools behind them all. A pool takes
 * of its range by increments, so that it decides as one that grows, and refuses where its range ends. */
#ifndef HEAP_RANGES_H
#define HEAP_RANGES_H

#include "heap.h"

#if HEAP_OBJECT_POOLS > 0
#define RANGES_MEMORY (HEAP_RANGES_BYTES + (size_t)HEAP_SLABS * HEAP_SLAB)
static heap_slab_t slab_records[HEAP_SLABS];
static uint16_t slab_slack[HEAP_SLABS * HEAP_SLACK_SLOTS];
#else
#define RANGES_MEMORY HEAP_RANGES_BYTES
#endif

static heap_t heap;
static const size_t ranges[HEAP_POOLS] = HEAP_RANGES;
static size_t taken[HEAP_POOLS];
static const heap_source_t source = {.increment = HEAP_INCREMENT};

/* Bytes beside the memory. */
#if HEAP_OBJECT_POOLS > 0
#define RANGES_TABLES (sizeof(heap) + sizeof(taken) + sizeof(slab_records) + sizeof(slab_slack))
#else
#define RANGES_TABLES (sizeof(heap) + sizeof(taken))
#endif

bool ranges_grow(unsigned pool, size_t bytes)
{
    if (bytes > ranges[pool] - taken[pool]) {
        return false;
    }
    taken[pool] += bytes;
    return true;
}

/* Makes the heap in RANGES_MEMORY bytes. Each pool begins with its smallest region. */
static void settle_in(unsigned char *memory)
{
    heap_prepare(&heap, HEAP_SPAN, &source);
    unsigned char *range = memory;
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        const size_t smallest = heap_smallest_region(&heap, pool);
        const size_t first = (smallest + HEAP_INCREMENT - 1U) / HEAP_INCREMENT * HEAP_INCREMENT;
        if (ranges_grow(pool, first)) {
            (void)heap_add_region(&heap, pool, range, first);
        }
        range += ranges[pool];
    }
#if HEAP_OBJECT_POOLS > 0
    heap_add_slabs(&heap, range, slab_records, slab_slack, HEAP_SLABS);
#endif
}

#endif
