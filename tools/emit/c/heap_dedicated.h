/* heap_dedicated.h: free lists for the sizes that a program asks for most. Part of heap.c, in
 * heap_pool.h.
 *
 * Blocks of the sizes in POOL_DEDICATED_SIZES, once freed, are kept for requests of the same size
 * and neither merged nor cut again. To their neighbours they stay in use. How a list is kept stands
 * in sets of lists, a bit each: POOL_FIFO those that blocks enter at the back, POOL_SORTED those in
 * the order of addresses, POOL_SINGLE_LINKS those whose blocks know only what follows them.
 * POOL_LIMITS says of lists that keep only so many blocks how many; others are merged as if there
 * were no list.
 */

/* Whether a list is in a set; without a look at the list where all are, or none is. */
#define POOL_LIST_IS(set, list) \
    ((set) == (1U << POOL_DEDICATED) - 1U || ((set) >> (list) & 1U) != 0U)

/* The list for blocks of `size`, counted from zero, or the number of lists. */
static inline size_t pool_dedicated(size_t size)
{
    switch (size) {
#define LIST_OF(list, bytes) \
    case bytes:              \
        return list;
        POOL_DEDICATED_SIZES(LIST_OF)
#undef LIST_OF
    default:
        return POOL_DEDICATED;
    }
}

#if POOL_LIMITED
/* Most blocks that a list keeps; SIZE_MAX: all. */
static inline size_t pool_limit(size_t list)
{
    switch (list) {
#define LIMIT_OF(list, most) \
    case list:               \
        return most;
        POOL_LIMITS(LIMIT_OF)
#undef LIMIT_OF
    default:
        return SIZE_MAX;
    }
}
#endif

/* Links a block into a list where the list's order says so. */
static inline void pool_enter(block_t *head, size_t list, block_t *block)
{
    block_t *before = head;
    if (POOL_LIST_IS(POOL_FIFO, list)) {
        COUNT(1U, 0U);
        before = head->previous;
    }
    if (POOL_LIST_IS(POOL_SORTED, list)) {
        before = before_in_order(head, block);
    }
    if (!POOL_LIST_IS(POOL_SINGLE_LINKS, list)) {
        link_after(before, block);
    } else if (POOL_LIST_IS(POOL_FIFO, list)) {
        /* What enters at the back is followed by the head. */
        COUNT(0U, 3U);
        block->next = head;
        before->next = block;
        head->previous = block;
    } else {
        COUNT(1U, 2U);
        block->next = before->next;
        before->next = block;
    }
}

/* Takes the first block out of a list. */
static inline void pool_leave(block_t *head, size_t list, block_t *block)
{
    if (!POOL_LIST_IS(POOL_SINGLE_LINKS, list)) {
        unlink_block(block);
        return;
    }
    block_t *const next = block->next;
    COUNT(1U, 1U);
    head->next = next;
    if (POOL_LIST_IS(POOL_FIFO, list) && next == head) {
        COUNT(0U, 1U);
        head->previous = head;
    }
}

/* Keeps a freed block, if there is a list for it. */
static inline bool pool_retain(heap_pool_t *pool, block_t *block, size_t size)
{
    const size_t list = pool_dedicated(size);
    if (list == POOL_DEDICATED) {
        return false;
    }
#if POOL_LIMITED
    if (pool_limit(list) != SIZE_MAX) {
        if (pool->retained[list] >= pool_limit(list)) {
            return false;
        }
        pool->retained[list] += 1U;
    }
#endif
    pool_enter(head_of(pool->first, pool->first_dedicated + list), list, block);
    return true;
}

/* A block kept for `need`, or NULL. */
static inline block_t *pool_recall(heap_pool_t *pool, size_t need)
{
    const size_t list = pool_dedicated(need);
    if (list == POOL_DEDICATED || pool->base == NULL) {
        return NULL;
    }
    block_t *const head = head_of(pool->first, pool->first_dedicated + list);
    block_t *const block = head->next;
    /* No list is looked at for what exceeds the span. */
    COUNT(need <= pool->span ? 1U : 0U, 0U);
    if (block == head) {
        return NULL;
    }
    pool_leave(head, list, block);
#if POOL_LIMITED
    if (pool_limit(list) != SIZE_MAX) {
        pool->retained[list] -= 1U;
    }
#endif
    return block;
}

/* Counts the blocks kept aside; false when a list is broken. */
static bool pool_count_retained(heap_pool_t *pool, size_t limit, size_t *count)
{
    for (size_t list = 0; list < POOL_DEDICATED; list += 1U) {
        const bool single = POOL_LIST_IS(POOL_SINGLE_LINKS, list);
        block_t *const head = head_of(pool->first, pool->first_dedicated + list);
        block_t *before = head;
#if POOL_LIMITED
        const size_t others = *count;
#endif
        while (before->next != head) {
            block_t *const block = before->next;
            *count += 1U;
            if (!LISTABLE(pool, block) || (!single && block->previous != before)
                || (block->header & RETAINED) == 0U || *count > limit
                || pool_dedicated(size_of_block(block)) != list) {
                return false;
            }
            before = block;
        }
#if POOL_LIMITED
        if (pool_limit(list) != SIZE_MAX && *count - others != pool->retained[list]) {
            return false;
        }
#endif
        /* Of a list of single links only one that blocks enter at the back knows its last. */
        if ((!single || POOL_LIST_IS(POOL_FIFO, list)) && head->previous != before) {
            return false;
        }
    }
    return true;
}
#undef POOL_LIST_IS
