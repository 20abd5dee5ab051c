/* heap_index_kingsley.h: powers of two without merging (Kingsley). Part of heap.c, in heap_pool.h.
 *
 * A request is rounded up to a power of two and served from the list of that size, else cut from
 * the wilderness, the memory at the end that was never given out.
 *
 * Invariant: list k holds free blocks of 2^k bytes or more, less than twice that.
 */

static size_t pool_index_heads(size_t span)
{
    return (size_t)highest_bit(span | 1U) + 1U;
}

static inline size_t pool_block_size(size_t need)
{
    /* Half the address space stands for whatever is larger. */
    return need > SIZE_MAX / 2U ? SIZE_MAX / 2U + 1U : (size_t)2 << highest_bit(need - 1U);
}

/* The list of blocks of `size` bytes. */
static inline size_t pool_list_of(size_t size)
{
    return highest_bit(size);
}

static inline void pool_insert(heap_pool_t *pool, block_t *block, size_t size)
{
    /* A size of zero behind the block: it is the last one of a region. */
    COUNT(1U, 0U);
    if (pool->wilderness == NULL && size_of_block(shifted(block, size)) == 0U) {
        pool->wilderness = block;
        return;
    }
    link_after(head_of(pool->first, pool_list_of(size)), block);
}

static inline void pool_remove(heap_pool_t *pool, block_t *block, size_t size)
{
    (void)size;
    if (pool->wilderness == block) {
        pool->wilderness = NULL;
    } else {
        unlink_block(block);
    }
}

static inline block_t *pool_take(heap_pool_t *pool, size_t need, size_t *found)
{
    /* There are lists for blocks up to the span. */
    if (pool->base == NULL || need > pool->span) {
        return NULL;
    }
    block_t *const head = head_of(pool->first, pool_list_of(need));
    block_t *block = head->next;
    COUNT(1U, 0U);
    if (block != head) {
        COUNT(1U, 0U);
        unlink_block(block);
        *found = size_of_block(block);
        return block;
    }
    block = pool->wilderness;
    COUNT(block != NULL ? 1U : 0U, 0U);
    if (block == NULL || size_of_block(block) < need) {
        return NULL;
    }
    pool->wilderness = NULL;
    *found = size_of_block(block);
    return block;
}

static inline bool pool_is_wilderness(const heap_pool_t *pool, const block_t *block)
{
    return pool->wilderness == block;
}

/* Nothing says beside the lists which of them have a block. */
static bool pool_mark_is_right(const heap_pool_t *pool, size_t list, bool any)
{
    (void)pool;
    (void)list;
    (void)any;
    return true;
}
