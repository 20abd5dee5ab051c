/* heap_index_classes.h: size classes under a two-level bitmap: TLSF, half-fit, segregated fit. Part
 * of heap.c, in heap_pool.h.
 *
 * Blocks are filed by what they can hold, in granules, which maps to classes as a small
 * floating-point number: 2^POOL_LOG2 classes to a power of two. The map is continuous, so that
 * rounding up to the next class carries into the exponent by itself and small sizes are no special
 * case. Any block of a class above that of the request suffices, and the bitmap finds the first
 * class that has one in constant time. Before that, POOL_PROBES blocks of the request's own class
 * are tried (TLSF and half-fit: none; segregated fit: all).
 *
 * Invariant: bit c of word w is set exactly when class (w << POOL_LOG2) + c has a block, and bit w
 * of `top` exactly when word w is not zero. Where POOL_LOG2 is 0, `top` alone is the bitmap.
 */

#if POOL_LOG2 > 0
/* The classes of a power of two are the bits of a word. */
#define CLASS_IN_WORD (((size_t)1 << POOL_LOG2) - 1U)
#endif

/* Granules that a block of `size` bytes can hold, by which it is filed: by size
 * with its header, a power of two would lie a granule above a class boundary, and
 * no block that held one would serve the next. */
static inline size_t pool_payload(size_t size)
{
    return (size - HEADER) / GRANULE;
}

/* The class of blocks of `size` bytes, rounding down. */
static inline size_t pool_list_of(size_t size)
{
    const size_t granules = pool_payload(size);
    /* The `|` only lifts the exponent of sizes below the second level to its own. */
    const unsigned shift = highest_bit(granules | (size_t)1 << POOL_LOG2) - POOL_LOG2;
    return ((size_t)shift << POOL_LOG2) + (granules >> shift);
}

/* The last class some of whose blocks are too small for `granules` (one or
 * more): the classes above it suffice. */
static inline size_t pool_class_below(size_t granules)
{
    const unsigned shift = highest_bit(granules | (size_t)1 << POOL_LOG2) - POOL_LOG2;
    return ((size_t)shift << POOL_LOG2) + ((granules - 1U) >> shift);
}

/* Zero when there are no classes for so large a span. */
static size_t pool_index_heads(size_t span)
{
    const size_t last = pool_list_of(span < MINIMUM ? MINIMUM : span);
    return last >> POOL_LOG2 < BITS ? last + 1U : 0U;
}

static inline size_t pool_block_size(size_t need)
{
    return need;
}

/* The list of a class has a block now. */
static inline void pool_set(heap_pool_t *pool, size_t class)
{
#if POOL_LOG2 > 0
    const size_t word = class >> POOL_LOG2;
    COUNT(2U, 2U);
    pool->words[word] |= (uint32_t)1 << (class & CLASS_IN_WORD);
    pool->top |= (size_t)1 << word;
#else
    COUNT(1U, 1U);
    pool->top |= (size_t)1 << class;
#endif
}

/* The list of a class is empty now. */
static inline void pool_clear(heap_pool_t *pool, size_t class)
{
#if POOL_LOG2 > 0
    const size_t word = class >> POOL_LOG2;
    COUNT(1U, 1U);
    pool->words[word] &= ~((uint32_t)1 << (class & CLASS_IN_WORD));
    if (pool->words[word] == 0U) {
        COUNT(1U, 1U);
        pool->top &= ~((size_t)1 << word);
    }
#else
    COUNT(1U, 1U);
    pool->top &= ~((size_t)1 << class);
#endif
}

/* The first class above `class` that has a block, or SIZE_MAX. */
static inline size_t pool_first_above(const heap_pool_t *pool, size_t class)
{
    const size_t word = class >> POOL_LOG2;
    if (word >= BITS) {
        return SIZE_MAX;
    }
#if POOL_LOG2 > 0
    COUNT(1U, 0U);
    const uint32_t bits = pool->words[word] & (UINT32_MAX - 1U) << (class & CLASS_IN_WORD);
    if (bits != 0U) {
        return (word << POOL_LOG2) + lowest_bit(bits);
    }
#endif
    COUNT(1U, 0U);
    const size_t later = pool->top & (SIZE_MAX - 1U) << word;
    if (later == 0U) {
        return SIZE_MAX;
    }
#if POOL_LOG2 > 0
    const size_t next = lowest_bit(later);
    COUNT(1U, 0U);
    return (next << POOL_LOG2) + lowest_bit(pool->words[next]);
#else
    return lowest_bit(later);
#endif
}

static inline void pool_insert(heap_pool_t *pool, block_t *block, size_t size)
{
    const size_t class = pool_list_of(size);
    block_t *const head = head_of(pool->first, class);
    const bool empty = head->next == head;
    link_after(head, block);
    if (empty) {
        pool_set(pool, class);
    }
}

static inline void pool_remove(heap_pool_t *pool, block_t *block, size_t size)
{
    (void)size;
    block_t *const before = block->previous;
    block_t *const next = block->next;
    unlink_block(block);
    if (next == before) {
        /* Both are the head: the list is empty. */
        pool_clear(pool, head_number(pool->first, before));
    }
}

#if POOL_PROBES > 0
/* A block of the request's own class that suffices, among the first few, or NULL. */
static inline block_t *pool_probe(heap_pool_t *pool, size_t need, size_t *found)
{
    block_t *const own = head_of(pool->first, pool_list_of(need));
    block_t *tried = own->next;
    COUNT(1U, 0U);
    for (size_t left = POOL_PROBES; left != 0U && tried != own; left -= 1U) {
        const size_t size = size_of_block(tried);
        COUNT(1U, 0U);
        if (size >= need) {
            pool_remove(pool, tried, size);
            *found = size;
            return tried;
        }
        COUNT(1U, 0U);
        tried = tried->next;
    }
    return NULL;
}
#endif

static inline block_t *pool_take(heap_pool_t *pool, size_t need, size_t *found)
{
    const size_t granules = pool_payload(need);
#if POOL_PROBES > 0
    /* There are lists for blocks up to the span. */
    if (pool->base == NULL || need > pool->span) {
        return NULL;
    }
    block_t *const probed = pool_probe(pool, need, found);
    if (probed != NULL) {
        return probed;
    }
#elif POOL_DEDICATED > 0 && defined(HEAP_COUNT)
    /* Nothing is looked at for what exceeds the span; nothing would be found. */
    if (need > pool->span) {
        return NULL;
    }
#endif
    /* Every block of the classes above fits: take the first of the first. */
    const size_t class = pool_first_above(pool, pool_class_below(granules));
    if (class == SIZE_MAX) {
        return NULL;
    }
    block_t *const head = head_of(pool->first, class);
    block_t *const block = head->next;
    block_t *const next = block->next;
    COUNT(2U + 1U, 2U);
    head->next = next;
    next->previous = head;
    if (next == head) {
        pool_clear(pool, class);
    }
    *found = size_of_block(block);
    return block;
}

static inline bool pool_is_wilderness(const heap_pool_t *pool, const block_t *block)
{
    (void)pool;
    (void)block;
    return false;
}

/* Whether the bitmap says rightly that a list has a block, or none. */
static bool pool_mark_is_right(const heap_pool_t *pool, size_t class, bool any)
{
    const size_t word = class >> POOL_LOG2;
    const bool top = (pool->top >> word & 1U) == 1U;
#if POOL_LOG2 > 0
    const bool marked = (pool->words[word] >> (class & CLASS_IN_WORD) & 1U) == 1U;
    return marked == any && top == (pool->words[word] != 0U);
#else
    return top == any;
#endif
}

#undef CLASS_IN_WORD
