/* heap_pool.h: a general pool, which splits, merges and grows blocks over an index. Part of
 * heap.c, which includes it once for each pool, with HEAP_POOL the pool's number.
 *
 * Invariants, which pool_check verifies: the blocks of a region tile it and end at its sentinel; a
 * block is marked previous-free exactly when the block before it is free; a block is free or
 * retained exactly when one list holds it, once; where POOL_MERGES_ALL, no two free blocks are
 * neighbours.
 *
 * The index has, over `heap_pool_t *pool`:
 *
 *   pool_index_heads(span)           lists for blocks up to `span`; 0: no index is so large
 *   pool_block_size(need)            the block that serves where `need` bytes are needed
 *   pool_insert(pool, block, size)   a free block enters its list
 *   pool_remove(pool, block, size)   a free block leaves its list
 *   pool_take(pool, need, &found)    a free block of at least `need` bytes leaves its list
 *   pool_is_wilderness(pool, block)  whether the block is kept apart for growth
 *   pool_count(pool, limit, &count)  verifies the lists and counts their blocks
 */
#include "heap_pool_names.h"

/* Heads of the index: those of dedicated lists lie behind them. */
static inline size_t pool_index_lists(const heap_pool_t *pool)
{
#if POOL_DEDICATED > 0
    return pool->first_dedicated;
#else
    return pool->heads;
#endif
}

#if POOL_INDEX == HEAP_CLASSES
#include "heap_index_classes.h"
#elif POOL_INDEX == HEAP_LIST
#include "heap_index_list.h"
#elif POOL_INDEX == HEAP_KINGSLEY
#include "heap_index_kingsley.h"
#elif POOL_INDEX == HEAP_BUDDY
#include "heap_index_buddy.h"
#elif POOL_INDEX == HEAP_FIXED_SIZES
#include "heap_index_fixed.h"
#elif POOL_INDEX == HEAP_LEA
#include "heap_index_lea.h"
#elif POOL_INDEX == HEAP_TREE_INDEX
#include "heap_index_tree.h"
#else
#error "heap_config.h names an index that there is none of"
#endif
#if POOL_DEDICATED > 0
#include "heap_dedicated.h"
#endif

/* Writes a free block and hands it to the index. The block after it is marked. */
static inline void pool_make_free(heap_pool_t *pool, block_t *block, size_t size, size_t flags)
{
    HEAP_ASSERT(size >= MINIMUM && size % GRANULE == 0U && (flags & ~PREVIOUS_FREE) == 0U);
    COUNT(0U, 2U);
    block->header = size | flags | FREE;
    write_footer(block, size);
    pool_insert(pool, block, size);
}

#if POOL_HALVES
#include "heap_halving.h"
#else
#include "heap_merging.h"
#endif

/* Gives `need` bytes of a block taken from the index to the program. */
static inline void *pool_cut(heap_pool_t *pool, block_t *block, size_t found, size_t need,
                             size_t requested, size_t flags)
{
    HEAP_ASSERT(need <= found);
    const size_t size = pool_split(pool, block, found, need);
    if (size == found) {
        COUNT(1U, 1U);
        shifted(block, found)->header &= ~PREVIOUS_FREE;
    }
    return occupy(block, size, flags, requested);
}

/* Flags that a free block keeps when it is given out. */
static inline size_t pool_flags_of_free(const block_t *block)
{
#if POOL_MERGES_ALL
    /* A free block follows a used one. */
    (void)block;
    return 0;
#else
    COUNT(1U, 0U);
    return previous_free_flag(block);
#endif
}

static inline size_t pool_need(size_t size)
{
    const size_t need = block_for(size);
    return need == 0U ? 0U : pool_block_size(need);
}

#include "heap_growth.h"

static inline block_t *pool_take_or_grow(heap_pool_t *pool, size_t need,
                                         const heap_source_t *source, size_t *found)
{
    block_t *const block = pool_take(pool, need, found);
    return block != NULL ? block : pool_take_grown(pool, need, source, found);
}

/* An alignment above the granule. */
static void *pool_find_aligned(heap_pool_t *pool, size_t size, size_t align,
                               const heap_source_t *source)
{
    const size_t need = pool_need(size);
    size_t found = 0;
    if (!is_power_of_two(align) || need == 0U) {
        return NULL;
    }
#if POOL_HALVES
    /* A block of at least `align` bytes lies at a multiple of `align` from the
     * base, which is as aligned as the base is. */
    const size_t wide = need > align ? need : align;
    if (pool->base == NULL || misalignment(pool->base, align) != 0U) {
        return NULL;
    }
    block_t *const block = pool_take_or_grow(pool, wide, source, &found);
    if (block == NULL) {
        return NULL;
    }
    return pool_cut(pool, block, found, wide, size, pool_flags_of_free(block));
#else
    /* The block in front of the aligned payload becomes a free one of its own. */
    const size_t most = SIZE_MAX >> 2;
    if (need > most || align > most || need + align > most - MINIMUM) {
        return NULL;
    }
    const size_t wide = pool_block_size(need + align + MINIMUM);
#if POOL_INDEX == HEAP_LEA
    if (wide <= pool->span && pool_gathers(pool, wide)) {
        (void)pool_gather(pool);
    }
#endif
    block_t *block = pool_take_or_grow(pool, wide, source, &found);
    if (block == NULL) {
        return NULL;
    }
    size_t flags = pool_flags_of_free(block);
    size_t gap = misalignment(block, align);
    while (gap != 0U && gap < MINIMUM) {
        gap += align;
    }
    if (gap != 0U) {
        block_t *const second = shifted(block, gap);
        COUNT(0U, 1U);
        second->header = (found - gap) | PREVIOUS_FREE;
        pool_make_free(pool, block, gap, flags);
        flags = PREVIOUS_FREE;
        block = second;
        found -= gap;
    }
    return pool_cut(pool, block, found, need < found ? need : found, size, flags);
#endif
}

static inline void *pool_find(heap_pool_t *pool, size_t size, size_t align,
                              const heap_source_t *source)
{
    COUNT_LEVEL(POOL_LEVEL);
    if (align > GRANULE) {
        return pool_find_aligned(pool, size, align, source);
    }
    const size_t need = pool_need(size);
    if (need == 0U) {
        return NULL;
    }
#if POOL_DEDICATED > 0
    block_t *const kept = pool_recall(pool, need);
    if (kept != NULL) {
        COUNT(1U, 0U);
        return occupy(kept, size_of_block(kept), previous_free_flag(kept), size);
    }
#endif
#if POOL_INDEX == HEAP_LEA
    block_t *const reused = pool_reuse(pool, need);
    if (reused != NULL) {
        COUNT(1U, 0U);
        return occupy(reused, size_of_block(reused), previous_free_flag(reused), size);
    }
    if (need <= pool->span && pool_gathers(pool, need)) {
        (void)pool_gather(pool);
    }
#endif
    size_t found = 0;
    block_t *const block = pool_take_or_grow(pool, need, source, &found);
    if (block == NULL) {
        return NULL;
    }
    return pool_cut(pool, block, found, need, size, pool_flags_of_free(block));
}

/* Takes a used block back. */
static inline void pool_give_back(heap_pool_t *pool, block_t *block)
{
    const size_t size = size_of_block(block);
    const size_t flags = previous_free_flag(block);
    HEAP_ASSERT(is_in_use(block));
    COUNT_LEVEL(POOL_LEVEL);
    COUNT(1U, 0U);
#if POOL_DEDICATED > 0
    if (pool_retain(pool, block, size)) {
        COUNT(0U, 1U);
        block->header = size | flags | RETAINED;
        return;
    }
#endif
#if POOL_INDEX == HEAP_LEA
    if (pool_keep(pool, block, size)) {
        COUNT(0U, 1U);
        block->header = size | flags | RETAINED;
        return;
    }
#endif
    pool_release(pool, block, size, flags);
}

/* Resizes where the block lies; NULL when it must move. */
static void *pool_resize_in_place(heap_pool_t *pool, block_t *block, size_t size, size_t align)
{
    const size_t need = pool_need(size);
    if (need == 0U || !is_power_of_two(align) || misalignment(block, align) != 0U) {
        return NULL;
    }
    const size_t flags = previous_free_flag(block);
    size_t room = size_of_block(block);
    HEAP_ASSERT(is_in_use(block));
    COUNT_LEVEL(POOL_LEVEL);
    COUNT(1U, 0U);
    if (need > room) {
#if POOL_HALVES
        return NULL;
#else
        block_t *const after = shifted(block, room);
        const size_t other = size_of_block(after);
        COUNT(1U, 0U);
        if (!is_free(after) || room + other < need || room + other > POOL_COALESCE_UP_TO) {
            return NULL;
        }
        pool_remove(pool, after, other);
        room += other;
        /* As if the whole had been free: the cut sets the marks. The model also
         * writes the header, which the cut writes again. */
        COUNT(0U, 2U);
        shifted(block, room)->header |= PREVIOUS_FREE;
        return pool_cut(pool, block, room, need, size, flags);
#endif
    }
#if POOL_HALVES
    while (room / 2U >= need) {
        room /= 2U;
        block_t *const second = shifted(block, room);
        COUNT(0U, 1U);
        second->header = room;
        pool_release(pool, second, room, 0);
    }
#else
    if (room - need >= POOL_SPLIT_DOWN_TO) {
        pool_release(pool, shifted(block, need), room - need, 0);
        room = need;
    }
#endif
    return occupy(block, room, flags, size);
}

/* A larger block for the one to be resized, or that one, made larger at the end of the
 * memory: as the memory may grow only where no hole serves, they are looked for first. */
static void *pool_find_larger(heap_pool_t *pool, block_t *block, size_t size, size_t align,
                              const heap_source_t *source)
{
#if POOL_HALVES
    (void)block;
#else
    COUNT_LEVEL(POOL_LEVEL);
    const size_t need = source == NULL ? 0U : pool_grows_at_end(pool, block, size, align);
    if (need != 0U) {
        void *const hole = pool_find(pool, size, align, NULL);
        if (hole != NULL) {
            return hole;
        }
        const size_t room = pool_grow_in_place(pool, block, need, source);
        if (room != 0U) {
            return pool_cut(pool, block, room, need, size, previous_free_flag(block));
        }
    }
#endif
    return pool_find(pool, size, align, source);
}

/* The alignment of the first payload of a region. */
static size_t pool_alignment(size_t span)
{
#if POOL_HALVES
    /* Buddies are as aligned as the first block is, so where there is room to
     * spare it is aligned to a page. */
    return span >= 256U * PAGE ? PAGE : GRANULE;
#else
    (void)span;
    return GRANULE;
#endif
}

/* List heads for such a span, or zero when the index has no classes for it. */
static size_t pool_heads(size_t span)
{
    const size_t heads = pool_index_heads(span);
    return heads == 0U ? 0U : heads + POOL_DEDICATED;
}

/* Bytes of the smallest first region: control structure and one block. */
static size_t pool_smallest(size_t span)
{
    const size_t widest = span > MINIMUM ? span : MINIMUM;
    if (pool_heads(widest) == 0U) {
        return SIZE_MAX;
    }
    return first_block_offset(pool_heads(widest), pool_alignment(widest)) + SENTINEL + MINIMUM;
}

/* Adds a region. The first one carries the list heads. */
static heap_result_t pool_add_region(heap_pool_t *pool, void *memory, size_t length)
{
    const bool is_first = pool->base == NULL;
    if (length > LARGEST) {
        return HEAP_TOO_LARGE;
    }
    if (is_first) {
        pool->span = pool->span > length ? pool->span : length;
        pool->heads = pool_heads(pool->span);
        if (pool->heads == 0U) {
            return HEAP_TOO_LARGE;
        }
#if POOL_DEDICATED > 0
        pool->first_dedicated = pool_index_heads(pool->span);
#endif
#if POOL_HALVES || POOL_INDEX == HEAP_TREE_INDEX
    } else {
        return HEAP_ONE_REGION_ONLY;
    }
#else
    } else if (length > pool->span) {
        return HEAP_TOO_LARGE;
    }
    if (pool->reserve != 0U) {
        /* What lies behind the region that was the last. */
        (void)pool_release_reserve(pool);
    }
#endif
    const size_t align = pool_alignment(pool->span);
    const size_t heads = is_first ? pool->heads : 0U;
    const size_t skip = ((size_t)0 - address_of(memory)) & (align - 1U);
    const size_t offset = first_block_offset(heads, align);
    if (length < skip + offset + SENTINEL + MINIMUM) {
        return HEAP_TOO_SMALL;
    }
    const size_t size = (length - skip - offset - SENTINEL) & ~(POOL_UNIT - 1U);
    region_t *const region = (region_t *)(void *)((unsigned char *)memory + skip);
    block_t *const first = (block_t *)(void *)((unsigned char *)region + offset);
    write_region(region, NULL, offset + size + SENTINEL);
    if (is_first) {
        pool->first = region;
        pool->base = first;
        for (size_t number = 0; number < heads; number += 1U) {
            block_t *const head = head_of(region, number);
            head->next = head;
            head->previous = head;
        }
#if POOL_INDEX == HEAP_TREE_INDEX
        /* In the room of the heads that are not those of dedicated lists. */
        pool_attach(pool);
#endif
    } else {
        write_region(pool->last, region, length_of(pool->last));
    }
    pool->last = region;
    pool->footprint += skip + offset + size + SENTINEL;
    sentinel_of(region)->header = 0;
    first->header = size;
    pool_release_room(pool, first, size);
    return HEAP_OK;
}

#include "heap_verify.h"
