/* heap_index_list.h: one searched list. Part of heap.c, in heap_pool.h.
 *
 * POOL_FIT says which block that is large enough serves: the first, the first behind the one that
 * served last (next), the smallest (best), the largest (worst), or one of exactly the size.
 * POOL_ORDER says where a block enters the list: at the front, at the back, or by address. A
 * search tries POOL_DEPTH percent of the list, and passes over blocks above POOL_MAX_FIT percent
 * of the need (0: none is too large). Where POOL_SINGLE, blocks have no link to the block before.
 *
 * The block at the very end of the memory, the wilderness, is kept apart and serves last, whatever
 * the limits: it is where the heap grows.
 *
 * Invariant: the rover is NULL or in the list: what the next search of next fit tries first, or,
 * where POOL_SINGLE, what lies before that.
 */

static size_t pool_index_heads(size_t span)
{
    (void)span;
    return 1;
}

static inline size_t pool_block_size(size_t need)
{
    return need;
}

/* What a block enters the list behind. */
static inline block_t *pool_place_of(block_t *head, const block_t *block)
{
    if (POOL_ORDER == HEAP_FIFO) {
        return head->previous;
    }
    return POOL_ORDER == HEAP_BY_ADDRESS ? before_in_order(head, block) : head;
}

#if POOL_SINGLE
static inline void pool_enter_single(heap_pool_t *pool, block_t *head, block_t *block)
{
    block_t *const before = pool_place_of(head, block);
    if (POOL_ORDER == HEAP_FIFO) {
        /* What enters at the back is followed by the head. */
        COUNT(1U, 3U);
        block->next = head;
        head->previous = block;
    } else {
        COUNT(1U, 2U);
        block->next = before->next;
    }
    before->next = block;
#if POOL_FIT == HEAP_NEXT_FIT
    if (pool->rover == before) {
        pool->rover = block;
    }
#else
    (void)pool;
#endif
}
#endif

static inline void pool_insert(heap_pool_t *pool, block_t *block, size_t size)
{
    /* A size of zero behind the block: it is the last one of a region. */
    COUNT(pool->wilderness == NULL ? 1U : 0U, 0U);
    if (pool->wilderness == NULL && size_of_block(shifted(block, size)) == 0U) {
        COUNT(1U, 1U);
        pool->wilderness = block;
        return;
    }
    block_t *const head = head_of(pool->first, 0);
#if POOL_SINGLE
    pool_enter_single(pool, head, block);
#else
    COUNT(POOL_ORDER == HEAP_FIFO ? 1U : 0U, 0U);
    link_after(pool_place_of(head, block), block);
#endif
    COUNT(1U, 1U);
    pool->length += 1U;
}

/* Takes a block, which lies behind `before`, out of the list. */
static inline void pool_take_out(heap_pool_t *pool, block_t *before, block_t *block)
{
#if POOL_SINGLE
    block_t *const head = head_of(pool->first, 0);
    block_t *const next = block->next;
    COUNT(1U + 2U, 1U + 1U);
    before->next = next;
    if (POOL_ORDER == HEAP_FIFO && next == head) {
        COUNT(0U, 1U);
        head->previous = before;
    }
#if POOL_FIT == HEAP_NEXT_FIT
    if (pool->rover == before) {
        pool->rover = next == head ? NULL : before;
    } else if (pool->rover == block) {
        pool->rover = before;
    }
#endif
#else
    (void)before;
#if POOL_FIT == HEAP_NEXT_FIT
    if (pool->rover == block) {
        pool->rover = block->next == head_of(pool->first, 0) ? NULL : block->next;
    }
#endif
    unlink_block(block);
    COUNT(2U, 1U);
#endif
    pool->length -= 1U;
}

static inline void pool_remove(heap_pool_t *pool, block_t *block, size_t size)
{
    (void)size;
    COUNT(1U, 0U);
    if (pool->wilderness == block) {
        COUNT(0U, 1U);
        pool->wilderness = NULL;
        return;
    }
    block_t *before = NULL;
#if POOL_SINGLE
    /* Only the way from the head says what precedes it. */
    before = head_of(pool->first, 0);
    while (COUNT(1U, 0U), before->next != block) {
        before = before->next;
    }
#endif
    pool_take_out(pool, before, block);
}

/* Blocks that one search may try. */
static inline size_t pool_tries(const heap_pool_t *pool)
{
    if (POOL_DEPTH == 100U) {
        return pool->length;
    }
    /* Divided first, so that no length overflows. */
    const size_t tries =
        pool->length / 100U * POOL_DEPTH + pool->length % 100U * POOL_DEPTH / 100U;
    if (tries == 0U) {
        return pool->length == 0U ? 0U : 1U;
    }
    return tries;
}

/* The largest block that qualifies for `need`. */
static inline size_t pool_largest(size_t need)
{
#if POOL_MAX_FIT > 0
    const size_t hundreds = need / 100U;
    const size_t rest = need % 100U * POOL_MAX_FIT / 100U;
    if (hundreds > SIZE_MAX / POOL_MAX_FIT || hundreds * POOL_MAX_FIT > SIZE_MAX - rest) {
        return SIZE_MAX;
    }
    return hundreds * POOL_MAX_FIT + rest;
#else
    (void)need;
    return SIZE_MAX;
#endif
}

/* Whether a block that qualifies ends the search. */
static inline bool pool_suffices(size_t size, size_t need)
{
    const bool searched_whole = POOL_FIT == HEAP_BEST_FIT || POOL_FIT == HEAP_EXACT_FIT;
    return POOL_FIT != HEAP_WORST_FIT && (!searched_whole || size == need);
}

/* Whether a block that qualifies is the best so far, the best being of `best` bytes. */
static inline bool pool_is_better(size_t size, size_t best)
{
    return POOL_FIT == HEAP_BEST_FIT ? size < best : POOL_FIT == HEAP_WORST_FIT && size > best;
}

/* The block of the list that serves `need`, still in the list, or NULL. `preceding` is what lies
 * before it, where POOL_SINGLE. */
static inline block_t *pool_search(const heap_pool_t *pool, size_t need, block_t **preceding)
{
    const size_t largest = pool_largest(need);
    block_t *const head = head_of(pool->first, 0);
    block_t *before = head;
    block_t *block = head->next;
    block_t *found = NULL;
    size_t found_size = 0;
    COUNT(1U, 0U);
#if POOL_FIT == HEAP_NEXT_FIT
    if (pool->rover != NULL) {
        COUNT(POOL_SINGLE ? 1U : 0U, 0U);
        before = pool->rover;
        block = POOL_SINGLE ? before->next : before;
    }
#endif
    for (size_t tries = pool_tries(pool); tries != 0U; tries -= 1U) {
        if (POOL_FIT == HEAP_NEXT_FIT && block == head) {
            /* The search began in the middle and comes round. */
            before = head;
            block = head->next;
        }
        const size_t size = size_of_block(block);
        COUNT(1U, 0U);
        if (size >= need && size <= largest) {
            if (pool_suffices(size, need)) {
                *preceding = before;
                return block;
            }
            if (POOL_KEEPS_BEST && (found == NULL || pool_is_better(size, found_size))) {
                *preceding = before;
                found = block;
                found_size = size;
            }
        }
        before = block;
        COUNT(1U, 0U);
        block = block->next;
    }
    return found;
}

static inline block_t *pool_take(heap_pool_t *pool, size_t need, size_t *found)
{
    block_t *before = NULL;
    if (pool->base == NULL || need > pool->span) {
        return NULL;
    }
    COUNT(2U, 0U);
    block_t *block = pool_search(pool, need, &before);
    if (block != NULL) {
#if POOL_FIT == HEAP_NEXT_FIT
        /* The next search goes on behind the block that served. */
        pool->rover = POOL_SINGLE ? before : block;
#endif
        pool_take_out(pool, before, block);
        *found = size_of_block(block);
        return block;
    }
    block = pool->wilderness;
    COUNT(block != NULL ? 1U : 0U, 0U);
    if (block == NULL || size_of_block(block) < need) {
        return NULL;
    }
    COUNT(1U, 1U);
    pool->wilderness = NULL;
    *found = size_of_block(block);
    return block;
}

static inline bool pool_is_wilderness(const heap_pool_t *pool, const block_t *block)
{
    return pool->wilderness == block;
}

/* Counts the blocks that the index holds; false when a list is broken. */
static bool pool_count(heap_pool_t *pool, size_t limit, size_t *count)
{
    if (!wilderness_is_sound(pool, count)) {
        return false;
    }
    block_t *const head = head_of(pool->first, 0);
    block_t *before = head;
    size_t length = 0;
    while (before->next != head) {
        block_t *const block = before->next;
        length += 1U;
        if (!is_listed(pool, block, length, limit)
            || (!POOL_SINGLE && block->previous != before)) {
            return false;
        }
        if (POOL_ORDER == HEAP_BY_ADDRESS && length > 1U
            && address_of(before) >= address_of(block)) {
            return false;
        }
        before = block;
    }
    *count += length;
    if ((!POOL_SINGLE || POOL_ORDER == HEAP_FIFO) && head->previous != before) {
        return false;
    }
    return length == pool->length;
}
