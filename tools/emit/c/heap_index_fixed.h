/* heap_index_fixed.h: a table of block sizes, without merging. Part of heap.c, in heap_pool.h.
 *
 * A request is rounded up to the next size of POOL_SIZES, above the largest to a power of two, and
 * served from the list of that size, else cut from the wilderness, the memory at the end that was
 * never given out.
 *
 * Invariant: list 0 holds what is too small for any request; list n, for n up to POOL_SIZES_COUNT,
 * blocks of the n-th size or more, less than the next; the lists behind, of the powers of two from
 * 2^POOL_FIRST_POWER_LOG2 on.
 */

static inline size_t pool_block_size(size_t need)
{
#define SERVES(number, bytes) \
    if (need <= (bytes)) {    \
        return bytes;         \
    }
    POOL_SIZES(SERVES)
#undef SERVES
    /* Half the address space stands for whatever is larger. */
    return need > SIZE_MAX / 2U ? SIZE_MAX / 2U + 1U : (size_t)2 << highest_bit(need - 1U);
}

/* The list of blocks of `size` bytes. */
static inline size_t pool_list_of(size_t size)
{
#define LIES_BELOW(number, bytes) \
    if (size < (bytes)) {         \
        return number;            \
    }
    POOL_SIZES(LIES_BELOW)
#undef LIES_BELOW
    if (size < (size_t)1 << POOL_FIRST_POWER_LOG2) {
        return POOL_SIZES_COUNT;
    }
    return (size_t)highest_bit(size) - POOL_FIRST_POWER_LOG2 + POOL_SIZES_COUNT + 1U;
}

static size_t pool_index_heads(size_t span)
{
    return pool_list_of(span) + 1U;
}

static inline void pool_insert(heap_pool_t *pool, block_t *block, size_t size)
{
    /* A size of zero behind the block: it is the last one of a region. */
    COUNT(pool->wilderness == NULL ? 2U : 1U, 0U);
    if (pool->wilderness == NULL && size_of_block(shifted(block, size)) == 0U) {
        COUNT(0U, 1U);
        pool->wilderness = block;
        return;
    }
    link_after(head_of(pool->first, pool_list_of(size)), block);
}

static inline void pool_remove(heap_pool_t *pool, block_t *block, size_t size)
{
    (void)size;
    COUNT(1U, 0U);
    if (pool->wilderness == block) {
        COUNT(0U, 1U);
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
    COUNT(block != NULL ? 2U : 1U, 0U);
    if (block == NULL || size_of_block(block) < need) {
        return NULL;
    }
    COUNT(0U, 1U);
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
