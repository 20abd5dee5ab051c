/* heap_index_buddy.h: binary buddies. Part of heap.c, in heap_pool.h.
 *
 * Blocks are powers of two; one of 2^k bytes lies at a multiple of 2^k from the first block. The
 * smallest block that serves is taken, and of those the one freed last; where POOL_LOWEST, the
 * lowest address that serves.
 *
 * Invariant: bit k of `bits` is set exactly when list k, of blocks of 2^k bytes, has a block.
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

static inline void pool_insert(heap_pool_t *pool, block_t *block, size_t size)
{
    block_t *const head = head_of(pool->first, highest_bit(size));
    link_after(POOL_LOWEST ? before_in_order(head, block) : head, block);
    COUNT(1U, 1U);
    pool->bits |= size;
}

static inline void pool_remove(heap_pool_t *pool, block_t *block, size_t size)
{
    block_t *const before = block->previous;
    block_t *const next = block->next;
    unlink_block(block);
    if (next == before) {
        /* Both are the head: the list is empty. */
        COUNT(1U, 1U);
        pool->bits &= ~size;
    }
}

static inline block_t *pool_take(heap_pool_t *pool, size_t need, size_t *found)
{
#if POOL_DEDICATED > 0 && defined(HEAP_COUNT)
    /* Nothing is looked at for what exceeds the span; nothing would be found. */
    if (need > pool->span) {
        return NULL;
    }
#endif
    COUNT(1U, 0U);
    /* All sizes from `need` on: the bits from `need` itself upwards. */
    const size_t bits = pool->bits & ((size_t)0 - need);
    if (bits == 0U) {
        return NULL;
    }
    COUNT(1U, 0U);
    size_t size = lowest_alone(bits);
    block_t *block = head_of(pool->first, highest_bit(size))->next;
    if (POOL_LOWEST) {
        /* The lowest of all sizes that serve, not of the smallest. */
        for (size_t rest = bits & (bits - 1U); rest != 0U; rest &= rest - 1U) {
            const size_t wider = lowest_alone(rest);
            COUNT(1U, 0U);
            block_t *const other = head_of(pool->first, highest_bit(wider))->next;
            if (address_of(other) < address_of(block)) {
                block = other;
                size = wider;
            }
        }
    }
    pool_remove(pool, block, size);
    *found = size;
    return block;
}

/* The list of blocks of `size` bytes; none of a size that is no power of two. */
static size_t pool_list_of(size_t size)
{
    return is_power_of_two(size) ? highest_bit(size) : SIZE_MAX;
}

/* Whether the bitmap says rightly that a list has a block, or none. */
static bool pool_mark_is_right(const heap_pool_t *pool, size_t list, bool any)
{
    return any == ((pool->bits >> list & 1U) == 1U);
}
