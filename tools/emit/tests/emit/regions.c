/* regions.c: heaps of memory that the program hands over itself. */
#include "heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEMAND(condition) demand((condition), #condition, __LINE__)
#define MEMORY ((size_t)1 << 18)
#define HALF (MEMORY / 2)

static void demand(int holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "line %d: %s\n", line, what);
        exit(1);
    }
}

/* Takes all that the heap has in pieces of a size; returns how many. */
static size_t drain(heap_t *heap, void **places, size_t most, size_t size)
{
    size_t count = 0;
    while (count < most && (places[count] = heap_allocate(heap, size, 16)) != NULL) {
        memset(places[count], (int)count, size);
        count += 1;
    }
    DEMAND(heap_check(heap) == HEAP_SOUND);
    return count;
}

static void refill(heap_t *heap, void **places, size_t count)
{
    for (size_t at = 0; at < count; at += 1) {
        heap_free(heap, places[at]);
    }
    DEMAND(heap_check(heap) == HEAP_SOUND);
    DEMAND(heap_statistics(heap).live == 0);
}

static void in_one_piece(unsigned char *memory)
{
    static void *places[20000];
    static heap_t heap;
    DEMAND(heap_init(&heap, memory, 64) == HEAP_TOO_SMALL);
    DEMAND(heap_allocate(&heap, 1, 1) == NULL && heap_statistics(&heap).failures == 1);
    /* Not aligned: the heap aligns itself. */
    DEMAND(heap_init(&heap, memory + 3, MEMORY - 3) == HEAP_OK);
    for (size_t size = 1; size < 5000; size = size * 3 + 1) {
        const size_t count = drain(&heap, places, 20000, size);
        DEMAND(count > 0);
        refill(&heap, places, count);
    }
    DEMAND(heap_footprint(&heap) <= MEMORY);
    DEMAND(heap_add_region(&heap, HEAP_POOLS, memory, MEMORY) == HEAP_NO_SUCH_POOL);
    DEMAND(!heap_extend(&heap, HEAP_POOLS, 16) && !heap_extend(&heap, 0, 7));
#if HEAP_OBJECT_POOLS
    /* A slot freed twice is not obeyed. */
    void *const slot = heap_allocate(&heap, 32, 16);
    heap_free(&heap, slot);
    heap_free(&heap, slot);
    DEMAND(heap_check(&heap) == HEAP_SOUND && heap_statistics(&heap).blocks == 0);
#endif
}

static void by_and_by(unsigned char *memory, unsigned char *other)
{
    static void *places[20000];
    static heap_t heap;
    const size_t size = 6000;
    const unsigned last = HEAP_POOLS - 1;
    heap_prepare(&heap, MEMORY, NULL);
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1) {
        DEMAND(heap_smallest_region(&heap, pool) < HALF);
    }
    DEMAND(heap_add_region(&heap, last, memory, HALF) == HEAP_OK);
    const size_t small = drain(&heap, places, 20000, size);
    refill(&heap, places, small);
    /* Less than a block: the heap takes it whole or not at all. */
    if (!heap_extend(&heap, last, 16)) {
        DEMAND(!heap_extend(&heap, last, 48));
    }
    DEMAND(heap_check(&heap) == HEAP_SOUND);
    /* The memory behind the region becomes the heap's. */
    DEMAND(heap_extend(&heap, last, 32768));
    const size_t larger = drain(&heap, places, 20000, size);
    DEMAND(larger > small);
    refill(&heap, places, larger);
    const heap_result_t result = heap_add_region(&heap, last, other, MEMORY);
    if (result == HEAP_ONE_REGION_ONLY) {
        return;
    }
    DEMAND(result == HEAP_OK);
    const size_t most = drain(&heap, places, 20000, size);
    DEMAND(most > larger);
    DEMAND(heap_contains(&heap, places[0]) && heap_contains(&heap, places[most - 1]));
    refill(&heap, places, most);
    DEMAND(heap_add_region(&heap, last, other, 2 * MEMORY) == HEAP_TOO_LARGE);
}

int main(void)
{
    unsigned char *const memory = malloc(MEMORY);
    unsigned char *const other = malloc(MEMORY);
    DEMAND(memory != NULL && other != NULL);
    in_one_piece(memory);
    by_and_by(memory, other);
    free(memory);
    free(other);
    return 0;
}
