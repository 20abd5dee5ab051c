/* heap_merging.h: how blocks of any size are cut and merged. Part of heap.c, in heap_pool.h.
 *
 * Invariant: where POOL_MERGES_ALL, no two free blocks are neighbours; so the block before a free
 * one is in use, and its flag need not be read.
 */

/* Merges a block with its free neighbours and hands it to the index. */
static inline void pool_release(heap_pool_t *pool, block_t *block, size_t size, size_t flags)
{
    if (flags != 0U) {
        block_t *const before = block_before(block);
        const size_t other = size_of_block(before);
        COUNT(2U, 0U);
        if (size + other <= POOL_COALESCE_UP_TO) {
            pool_remove(pool, before, other);
#if POOL_MERGES_ALL
            /* A free block follows a used one. */
            flags = 0;
#else
            flags = previous_free_flag(before);
#endif
            block = before;
            size += other;
        }
    }
    block_t *const after = shifted(block, size);
    const size_t other = size_of_block(after);
    COUNT(1U, 0U);
    if (is_free(after) && size + other <= POOL_COALESCE_UP_TO) {
        /* What follows the merged block is marked already. */
        pool_remove(pool, after, other);
        size += other;
    } else {
        COUNT(0U, 1U);
        after->header |= PREVIOUS_FREE;
    }
    pool_make_free(pool, block, size, flags);
}

/* Cuts what is not needed off, if it is worth a block; returns the size kept. */
static inline size_t pool_split(heap_pool_t *pool, block_t *block, size_t found, size_t need)
{
    const size_t rest = found - need;
    if (rest < POOL_SPLIT_DOWN_TO) {
        return found;
    }
    pool_make_free(pool, shifted(block, need), rest, 0);
    return need;
}

static void pool_release_room(heap_pool_t *pool, block_t *room, size_t size)
{
    COUNT(1U, 0U);
    pool_release(pool, room, size, previous_free_flag(room));
}

#if POOL_INDEX == HEAP_LEA

/* Merges all kept blocks; whether there were any. */
static bool pool_gather(heap_pool_t *pool)
{
    bool any = false;
    for (block_t *block = pool_relinquish(pool); block != NULL; block = pool_relinquish(pool)) {
        COUNT(1U, 0U);
        pool_release(pool, block, size_of_block(block), previous_free_flag(block));
        any = true;
    }
    return any;
}
#endif
