/* heap_index_lea.h: best fit in sorted bins with deferred merging (after Lea). Part of heap.c, in
 * heap_pool.h.
 *
 * Small blocks have a list of their very size, larger ones four lists to a doubling, sorted by
 * size, oldest first among equals. The block at the very end, the wilderness, serves last. Blocks
 * of up to POOL_KEEP_UP_TO bytes are kept aside when freed, and merged when a large block is asked for or
 * nothing serves. To their neighbours they stay in use until then.
 *
 * Invariant: bit l % 32 of word l / 32 is set exactly when list l has a block; `kept` blocks are
 * kept aside, in one list a size behind the others, linked in one direction.
 */

/* Lists of one exact size: blocks of fewer granules than this. */
#define LEA_EXACT ((size_t)64)
#define LEA_WORDS ((size_t)8)
/* Lists of kept blocks, behind the others. */
#define LEA_KEPT_LISTS (POOL_KEEP_UP_TO / GRANULE + 1U)

/* The list of blocks of `size` bytes. */
static inline size_t pool_list_of(size_t size)
{
    const size_t granules = size / GRANULE;
    if (granules < LEA_EXACT) {
        return granules;
    }
    const unsigned shift = highest_bit(granules) - 2U;
    /* The class of 64 granules is 20. */
    return LEA_EXACT + ((size_t)shift << 2) + (granules >> shift) - 20U;
}

/* Zero when there are no lists for so large a span. */
static size_t pool_index_heads(size_t span)
{
    const size_t last = pool_list_of(span);
    const size_t bins = (last < LEA_EXACT ? LEA_EXACT : last) + 1U;
    return bins > LEA_WORDS * 32U ? 0U : bins + LEA_KEPT_LISTS;
}

/* The number of the first list of kept blocks. */
static inline size_t pool_bins(const heap_pool_t *pool)
{
    return pool_index_lists(pool) - LEA_KEPT_LISTS;
}

static inline size_t pool_block_size(size_t need)
{
    return need;
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
    const size_t list = pool_list_of(size);
    block_t *const head = head_of(pool->first, list);
    block_t *before = head->previous;
    COUNT(1U, 0U);
    if (before == head) {
        COUNT(1U, 1U);
        pool->words[list / 32U] |= (uint32_t)1 << (list % 32U);
    }
    if (size / GRANULE >= LEA_EXACT) {
        /* Sorted, from the largest down; behind the last of its size. */
        while (before != head && (COUNT(1U, 0U), size_of_block(before) > size)) {
            COUNT(1U, 0U);
            before = before->previous;
        }
    }
    link_after(before, block);
}

/* Takes a block out of its list. */
static inline void pool_take_out(heap_pool_t *pool, block_t *block)
{
    block_t *const before = block->previous;
    block_t *const next = block->next;
    unlink_block(block);
    if (next == before) {
        /* Both are the head: the list is empty. */
        const size_t list = head_number(pool->first, before);
        COUNT(1U, 1U);
        pool->words[list / 32U] &= ~((uint32_t)1 << (list % 32U));
    }
}

static inline void pool_remove(heap_pool_t *pool, block_t *block, size_t size)
{
    (void)size;
    COUNT(1U, 0U);
    if (pool->wilderness == block) {
        COUNT(0U, 1U);
        pool->wilderness = NULL;
    } else {
        pool_take_out(pool, block);
    }
}

/* The first list from `list` on that has a block, or SIZE_MAX. */
static inline size_t pool_first_from(const heap_pool_t *pool, size_t list)
{
    size_t word = list / 32U;
    if (word >= LEA_WORDS) {
        return SIZE_MAX;
    }
    COUNT(1U, 0U);
    uint32_t bits = pool->words[word] & UINT32_MAX << (list % 32U);
    while (bits == 0U) {
        word += 1U;
        if (word >= LEA_WORDS) {
            return SIZE_MAX;
        }
        COUNT(1U, 0U);
        bits = pool->words[word];
    }
    return word * 32U + lowest_bit(bits);
}

static inline block_t *pool_take(heap_pool_t *pool, size_t need, size_t *found)
{
    if (pool->base == NULL || need > pool->span) {
        return NULL;
    }
    const size_t own = pool_list_of(need);
    size_t list = pool_first_from(pool, own);
    while (list != SIZE_MAX) {
        block_t *const head = head_of(pool->first, list);
        block_t *block = head->next;
        /* In the list of the request itself blocks may be too small. */
        COUNT(2U, 0U);
        while (block != head && size_of_block(block) < need) {
            block = block->next;
            COUNT(block != head ? 2U : 1U, 0U);
        }
        if (block != head) {
            pool_take_out(pool, block);
            *found = size_of_block(block);
            return block;
        }
        list = pool_first_from(pool, own + 1U);
    }
    block_t *const block = pool->wilderness;
    COUNT(block != NULL ? 2U : 1U, 0U);
    if (block == NULL || size_of_block(block) < need) {
        return NULL;
    }
    COUNT(0U, 1U);
    pool->wilderness = NULL;
    *found = size_of_block(block);
    return block;
}

/* Keeps a freed block aside if it is small. To its neighbours it stays in use. */
static inline bool pool_keep(heap_pool_t *pool, block_t *block, size_t size)
{
    if (size > POOL_KEEP_UP_TO) {
        return false;
    }
    block_t *const head = head_of(pool->first, pool_bins(pool) + size / GRANULE);
    COUNT(2U, 3U);
    block->next = head->next;
    head->next = block;
    pool->kept += 1U;
    return true;
}

/* The block kept last in a list, or NULL. */
static inline block_t *pool_pop_kept(heap_pool_t *pool, size_t granules)
{
    block_t *const head = head_of(pool->first, pool_bins(pool) + granules);
    block_t *const block = head->next;
    COUNT(1U, 0U);
    if (block == head) {
        return NULL;
    }
    COUNT(1U, 1U);
    head->next = block->next;
    pool->kept -= 1U;
    return block;
}

/* A kept block of exactly this size, or NULL. */
static inline block_t *pool_reuse(heap_pool_t *pool, size_t need)
{
    if (need > POOL_KEEP_UP_TO || pool->base == NULL || need > pool->span) {
        return NULL;
    }
    block_t *const block = pool_pop_kept(pool, need / GRANULE);
    COUNT(block != NULL ? 1U : 0U, block != NULL ? 1U : 0U);
    return block;
}

/* Whether kept blocks are merged before a block of `need` is looked for. */
static inline bool pool_gathers(const heap_pool_t *pool, size_t need)
{
    COUNT(need / GRANULE >= LEA_EXACT ? 1U : 0U, 0U);
    return need / GRANULE >= LEA_EXACT && pool->kept != 0U;
}

/* Gives a kept block back to be merged, the largest first, or NULL. */
static inline block_t *pool_relinquish(heap_pool_t *pool)
{
    COUNT(1U, 0U);
    if (pool->kept == 0U) {
        return NULL;
    }
    for (size_t granules = LEA_KEPT_LISTS; granules != 0U; granules -= 1U) {
        block_t *const block = pool_pop_kept(pool, granules - 1U);
        if (block != NULL) {
            COUNT(0U, 1U);
            return block;
        }
    }
    return NULL;
}

static inline bool pool_is_wilderness(const heap_pool_t *pool, const block_t *block)
{
    return pool->wilderness == block;
}

/* Whether the bitmap says rightly that a list has a block, or none. */
static bool pool_mark_is_right(const heap_pool_t *pool, size_t list, bool any)
{
    return any == ((pool->words[list / 32U] >> (list % 32U) & 1U) == 1U);
}

/* Counts the blocks kept aside; false when a list is broken. */
static bool pool_count_kept(heap_pool_t *pool, size_t limit, size_t *count)
{
    size_t kept = 0;
    for (size_t granules = 0; granules < LEA_KEPT_LISTS; granules += 1U) {
        block_t *const head = head_of(pool->first, pool_bins(pool) + granules);
        for (block_t *block = head->next; block != head; block = block->next) {
            kept += 1U;
            *count += 1U;
            if (!LISTABLE(pool, block) || (block->header & RETAINED) == 0U || *count > limit
                || size_of_block(block) / GRANULE != granules) {
                return false;
            }
        }
    }
    return kept == pool->kept;
}
