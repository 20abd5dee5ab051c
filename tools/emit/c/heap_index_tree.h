/* heap_index_tree.h: first fit in address order by a tree over addresses. Part of heap.c, in
 * heap_pool.h.
 *
 * Memory is divided into groups of as many granules as a word has bits. A word for each group has a
 * bit for each granule that belongs to a free block which ends in the group: as free blocks are
 * never neighbours, a run of ones is a block, and only the lowest run may reach back into groups
 * before; its footer says how far. The summary of a group is its largest block, and above the
 * summaries stands a binary tree of maxima: below node n are 2n and 2n + 1. The root is the node
 * above all groups that ever had a block; the entries above it and beside it are larger than any
 * summary, so that ways up end there. A request goes down to the first group with a block that
 * serves, and within the group to the first such block, in steps whose number depends on the span
 * alone.
 *
 * POOL_BY_CLASS: a summary is the block's size class, of a byte, eight classes a power of two, and
 * requests are rounded up to the next class; else its size in granules. All lies in the room of the
 * list heads: the words, then the entries.
 *
 * When the largest block of a group leaves, its summary is left too large until the next request,
 * or until as large a block ends there again: at most two groups are so left, which are pending.
 * The block at the very end of the memory, the wilderness, is kept apart and serves last.
 *
 * Invariant: the summary of a group that is not pending is that of its largest block; each node from
 * the root down is the maximum of the two below it; groups that are not below it never had a block.
 * One region only.
 */

#ifndef HEAP_TREE
#define HEAP_TREE

/* No group. */
#define NO_GROUP SIZE_MAX
/* log2 of the size classes a power of two. */
#define TREE_CLASSES_LOG2 3U

/* Where a free block ends: its group, and its first and last granule there. */
typedef struct {
    size_t group;
    size_t granules;
    unsigned low;
    unsigned high;
} tree_place_t;

/* How many of the lowest bits are set. */
static inline unsigned trailing_ones(size_t word)
{
    return word == SIZE_MAX ? BITS : lowest_bit(~word);
}

/* The bits from `low` to `high`, both included. */
static inline size_t bits_between(unsigned low, unsigned high)
{
    HEAP_ASSERT(low <= high && high < BITS);
    return SIZE_MAX >> (BITS - 1U - (high - low)) << low;
}

/* Where the lowest run of at least `length` ones begins, or BITS. */
static inline unsigned first_run(size_t word, unsigned length)
{
    size_t starts = word;
    HEAP_ASSERT(length != 0U && length <= BITS);
    for (unsigned left = length; left > 1U; left -= left / 2U) {
        starts &= starts >> left / 2U;
    }
    return starts == 0U ? BITS : lowest_bit(starts);
}

/* The length of the longest run of ones. */
static inline unsigned longest_run(size_t word)
{
    /* Bits where 2^n ones begin. */
    size_t starts[7] = {word};
    unsigned doublings = 0;
    if (word == 0U) {
        return 0;
    }
    while ((2U << doublings) <= BITS) {
        const size_t next = starts[doublings] & starts[doublings] >> (1U << doublings);
        if (next == 0U) {
            break;
        }
        doublings += 1U;
        starts[doublings] = next;
    }
    size_t found = starts[doublings];
    unsigned length = 1U << doublings;
    while (doublings != 0U) {
        doublings -= 1U;
        /* A run of a whole word has no place for a further one. */
        const size_t longer = length < BITS ? found & starts[doublings] >> length : 0U;
        if (longer != 0U) {
            found = longer;
            length += 1U << doublings;
        }
    }
    return length;
}

/* The size class of so many granules, and the smallest size of a class. */
static inline size_t tree_class(size_t granules)
{
    const unsigned top = highest_bit(granules | (size_t)1 << TREE_CLASSES_LOG2);
    const unsigned shift = top - TREE_CLASSES_LOG2;
    return ((size_t)shift << TREE_CLASSES_LOG2) + (granules >> shift);
}

static inline size_t tree_class_base(size_t class_number)
{
    const size_t second = (size_t)1 << TREE_CLASSES_LOG2;
    if (class_number < 2U * second) {
        return class_number;
    }
    const size_t shift = (class_number >> TREE_CLASSES_LOG2) - 1U;
    return (class_number - (shift << TREE_CLASSES_LOG2)) << shift;
}

/* The least power of two that is at least `number`. */
static inline size_t power_from(size_t number)
{
    return number <= 1U ? 1U : (size_t)2 << highest_bit(number - 1U);
}

static inline size_t tree_groups(size_t span)
{
    return span / GRANULE / BITS + 1U;
}

/* Entries, those above the root and beside the last leaf included. */
static inline size_t tree_entries(size_t groups)
{
    return power_from(groups) + round_up(groups, 2);
}
#endif

#undef TREE_ENTRY
#undef TREE_ABOVE
#undef TREE_LARGEST
#if POOL_BY_CLASS
#define TREE_ENTRY uint8_t
#define TREE_ABOVE UINT8_MAX
/* In granules: what has a class below that above the root; with narrow words there are fewer. */
#define TREE_LARGEST (BITS == 64U ? tree_class_base(UINT8_MAX) - 1U : SIZE_MAX >> 3)
#else
#define TREE_ENTRY uint32_t
#define TREE_ABOVE UINT32_MAX
#define TREE_LARGEST ((size_t)UINT32_MAX - 1U)
#endif

/* The summary of a block, the least one with which a block serves surely, and what a block that is
 * chosen has, in granules. */
static inline size_t pool_summary_of(size_t granules)
{
    return POOL_BY_CLASS ? tree_class(granules) : granules;
}

static inline size_t pool_wanted(size_t granules)
{
    return POOL_BY_CLASS ? tree_class(granules - 1U) + 1U : granules;
}

static inline size_t pool_served(size_t granules)
{
    return POOL_BY_CLASS ? tree_class_base(pool_wanted(granules)) : granules;
}

static size_t pool_index_heads(size_t span)
{
    const size_t groups = tree_groups(span);
    if (span / GRANULE > TREE_LARGEST) {
        return 0;
    }
    /* Two at least, as the model needs where records are elsewhere. */
    const size_t heads = (groups * WORD + tree_entries(groups) * sizeof(TREE_ENTRY) + HEAD - 1U) / HEAD;
    return heads < 2U ? 2U : heads;
}

static inline size_t pool_block_size(size_t need)
{
    return need;
}

static inline size_t *pool_words(const heap_pool_t *pool)
{
    return (size_t *)(void *)((unsigned char *)pool->first + PROLOGUE);
}

static inline TREE_ENTRY *pool_entries(const heap_pool_t *pool)
{
    return (TREE_ENTRY *)(void *)(pool_words(pool) + pool->groups);
}

/* Writes what ends ways up beside the root and above it. */
static inline void pool_fence(heap_pool_t *pool)
{
    pool_entries(pool)[pool->root ^ 1U] = TREE_ABOVE;
    pool_entries(pool)[pool->root / 2U] = TREE_ABOVE;
}

/* Makes the root one that is above a group: a step a level that it rises. */
static inline void pool_reach(heap_pool_t *pool, size_t group)
{
    TREE_ENTRY *const entries = pool_entries(pool);
    if (group < pool->reach) {
        return;
    }
    const TREE_ENTRY largest = entries[pool->root];
    COUNT(1U, 3U);
    entries[pool->root ^ 1U] = 0;
    while (group >= pool->reach) {
        pool->reach *= 2U;
        pool->root /= 2U;
        COUNT(0U, 1U);
        entries[pool->root] = largest;
    }
    pool_fence(pool);
}

/* Writes an empty tree in front of the first region's blocks. */
static void pool_attach(heap_pool_t *pool)
{
    pool->groups = tree_groups(pool->span);
    pool->leaves = power_from(pool->groups);
    /* Two groups at least, as what is beside the root is no summary. */
    pool->reach = pool->leaves < 2U ? 1U : 2U;
    pool->root = pool->leaves / pool->reach;
    pool->pending[0] = NO_GROUP;
    pool->pending[1] = NO_GROUP;
    memset(pool_words(pool), 0, pool->groups * WORD);
    memset(pool_entries(pool), 0, tree_entries(pool->groups) * sizeof(TREE_ENTRY));
    pool_fence(pool);
}

static inline tree_place_t pool_place(const heap_pool_t *pool, const block_t *block, size_t size)
{
    const size_t from = distance(pool->base, block) / GRANULE;
    const size_t granules = size / GRANULE;
    const size_t last = from + granules - 1U;
    const size_t begins = last & ~((size_t)BITS - 1U);
    const tree_place_t place = {last / BITS, granules,
                                (unsigned)(from > begins ? from - begins : 0U),
                                (unsigned)(last - begins)};
    HEAP_ASSERT(place.group < pool->groups);
    return place;
}

/* The block that ends with the `ones` lowest granules of a group, and its granules. */
static inline block_t *pool_lowest(const heap_pool_t *pool, size_t group, unsigned ones,
                                   size_t *granules)
{
    block_t *const behind = shifted(pool->base, (group * BITS + ones) * GRANULE);
    block_t *const block = block_before(behind);
    COUNT(1U, 0U);
    *granules = distance(block, behind) / GRANULE;
    return block;
}

/* The summary of the largest block of a group. */
static inline size_t pool_largest(const heap_pool_t *pool, size_t group)
{
    const size_t word = pool_words(pool)[group];
    /* Without the lowest run, which may reach back. */
    size_t most = longest_run((word & 1U) != 0U ? word & (word + 1U) : word);
    COUNT(1U, 0U);
    if ((word & 1U) != 0U) {
        size_t granules = 0;
        (void)pool_lowest(pool, group, trailing_ones(word), &granules);
        most = granules > most ? granules : most;
    }
    return most == 0U ? 0U : pool_summary_of(most);
}

/* Raises the summary of a group, and the nodes above it that are below. */
static inline void pool_raise(heap_pool_t *pool, size_t group, size_t summary)
{
    TREE_ENTRY *const entries = pool_entries(pool);
    HEAP_ASSERT(group < pool->reach);
    /* Ends above the root at the latest. */
    for (size_t node = pool->leaves + group; entries[node] < summary; node /= 2U) {
        COUNT(1U, 1U);
        entries[node] = (TREE_ENTRY)summary;
    }
    COUNT(1U, 0U);
}

/* Lowers the summary of a group, and the nodes above it that it alone held up. */
static inline void pool_lower(heap_pool_t *pool, size_t group, size_t summary)
{
    TREE_ENTRY *const entries = pool_entries(pool);
    size_t node = pool->leaves + group;
    const size_t before = entries[node];
    COUNT(1U, 0U);
    if (summary == before) {
        return;
    }
    for (;;) {
        COUNT(1U, 1U);
        entries[node] = (TREE_ENTRY)summary;
        const size_t beside = entries[node ^ 1U];
        if (beside >= before) {
            /* It alone holds up what is above, or this is the root. */
            return;
        }
        summary = beside > summary ? beside : summary;
        node /= 2U;
    }
}

/* Makes the summaries above the older pending group right. */
static inline void pool_settle(heap_pool_t *pool)
{
    const size_t group = pool->pending[0];
    if (group == NO_GROUP) {
        return;
    }
    pool->pending[0] = pool->pending[1];
    pool->pending[1] = NO_GROUP;
    pool_lower(pool, group, pool_largest(pool, group));
}

static inline void pool_insert(heap_pool_t *pool, block_t *block, size_t size)
{
    /* A size of zero behind the block: it is the last one of the memory. */
    COUNT(pool->wilderness == NULL ? 1U : 0U, 0U);
    if (pool->wilderness == NULL && size_of_block(shifted(block, size)) == 0U) {
        COUNT(1U, 1U);
        pool->wilderness = block;
        return;
    }
    const tree_place_t place = pool_place(pool, block, size);
    const size_t summary = pool_summary_of(place.granules);
    pool_reach(pool, place.group);
    const size_t before = pool_entries(pool)[pool->leaves + place.group];
    COUNT(2U, 1U);
    pool_words(pool)[place.group] |= bits_between(place.low, place.high);
    if (summary >= before) {
        /* Whatever it was, this is the largest now. */
        if (pool->pending[1] == place.group) {
            pool->pending[1] = NO_GROUP;
        } else if (pool->pending[0] == place.group) {
            pool->pending[0] = pool->pending[1];
            pool->pending[1] = NO_GROUP;
        }
        if (summary > before) {
            pool_raise(pool, place.group, summary);
        }
    }
    if (pool->pending[1] != NO_GROUP) {
        pool_settle(pool);
    }
}

/* Takes a block out of its group, whose summary may be too large then. */
static inline void pool_take_out(heap_pool_t *pool, tree_place_t place)
{
    COUNT(2U, 1U);
    pool_words(pool)[place.group] &= ~bits_between(place.low, place.high);
    if (pool_entries(pool)[pool->leaves + place.group] != pool_summary_of(place.granules)
        || pool->pending[0] == place.group || pool->pending[1] == place.group) {
        /* Another one is as large or larger, or that is not known already. */
        return;
    }
    if (pool->pending[1] != NO_GROUP) {
        pool_settle(pool);
    }
    pool->pending[pool->pending[0] == NO_GROUP ? 0 : 1] = place.group;
}

static inline void pool_remove(heap_pool_t *pool, block_t *block, size_t size)
{
    COUNT(1U, 0U);
    if (pool->wilderness == block) {
        COUNT(0U, 1U);
        pool->wilderness = NULL;
        return;
    }
    pool_take_out(pool, pool_place(pool, block, size));
}

/* The first group with a summary of at least `wanted`, or NO_GROUP. A step a level. */
static inline size_t pool_first_group(const heap_pool_t *pool, size_t wanted)
{
    const TREE_ENTRY *const entries = pool_entries(pool);
    size_t node = pool->root;
    COUNT(1U, 0U);
    if (entries[node] < wanted) {
        return NO_GROUP;
    }
    while (node < pool->leaves) {
        node *= 2U;
        COUNT(1U, 0U);
        node += entries[node] < wanted ? 1U : 0U;
    }
    return node - pool->leaves;
}

/* The first block of a group with at least `served` granules, which it has. */
static inline block_t *pool_first_block(const heap_pool_t *pool, size_t group, size_t served,
                                        tree_place_t *place)
{
    const size_t word = pool_words(pool)[group];
    COUNT(1U, 0U);
    place->group = group;
    if ((word & 1U) != 0U) {
        const unsigned ones = trailing_ones(word);
        block_t *const block = pool_lowest(pool, group, ones, &place->granules);
        if (place->granules >= served) {
            place->low = 0;
            place->high = ones - 1U;
            return block;
        }
    }
    HEAP_ASSERT(served <= BITS);
    const unsigned low = first_run(word, (unsigned)served);
    const unsigned ones = trailing_ones(word >> low);
    place->granules = ones;
    place->low = low;
    place->high = low + ones - 1U;
    return shifted(pool->base, (group * BITS + low) * GRANULE);
}

static inline block_t *pool_take(heap_pool_t *pool, size_t need, size_t *found)
{
    if (pool->base == NULL || need > pool->span) {
        return NULL;
    }
    while (pool->pending[0] != NO_GROUP) {
        pool_settle(pool);
    }
    const size_t granules = need / GRANULE;
    const size_t group = pool_first_group(pool, pool_wanted(granules));
    if (group != NO_GROUP) {
        tree_place_t place;
        block_t *const block = pool_first_block(pool, group, pool_served(granules), &place);
        pool_take_out(pool, place);
        *found = place.granules * GRANULE;
        return block;
    }
    block_t *const block = pool->wilderness;
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

/* Verifies the blocks of a group and counts them; `most` is the largest summary. */
static bool pool_count_group(heap_pool_t *pool, size_t group, size_t limit, size_t *count,
                             size_t *most)
{
    const size_t room = distance(pool->base, sentinel_of(pool->first));
    const size_t begins = group * BITS;
    size_t word = pool_words(pool)[group];
    unsigned at = 0;
    while (word != 0U) {
        const unsigned gap = lowest_bit(word);
        const unsigned ones = trailing_ones(word >> gap);
        at += gap;
        const size_t end = begins + at + ones;
        if (end > room / GRANULE) {
            return false;
        }
        block_t *block = shifted(pool->base, (begins + at) * GRANULE);
        if (at == 0U) {
            /* It may reach back, as far as its footer says. */
            block_t *const behind = shifted(pool->base, end * GRANULE);
            block = block_before(behind);
            if (!LISTABLE(pool, block) || address_of(block) >= address_of(behind)
                || distance(pool->base, block) / GRANULE > begins) {
                return false;
            }
        }
        const size_t granules = end - distance(pool->base, block) / GRANULE;
        *count += 1U;
        if (!is_listed(pool, block, *count, limit) || size_of_block(block) != granules * GRANULE) {
            return false;
        }
        *most = pool_summary_of(granules) > *most ? pool_summary_of(granules) : *most;
        at += ones;
        word = gap + ones < BITS ? word >> gap >> ones : 0U;
    }
    return true;
}

/* Counts the blocks that the index holds; false when the tree is wrong. */
static bool pool_count(heap_pool_t *pool, size_t limit, size_t *count)
{
    const TREE_ENTRY *const entries = pool_entries(pool);
    if (!wilderness_is_sound(pool, count)) {
        return false;
    }
    for (size_t group = 0; group < pool->groups; group += 1U) {
        size_t most = 0;
        if (!pool_count_group(pool, group, limit, count, &most)) {
            return false;
        }
        const size_t summary = entries[pool->leaves + group];
        const bool pending = group == pool->pending[0] || group == pool->pending[1];
        if (pending ? summary < most : summary != most) {
            return false;
        }
    }
    /* Level by level below the root. */
    for (size_t first = pool->root, width = 1; first < pool->leaves; first *= 2U, width *= 2U) {
        for (size_t node = first; node < first + width; node += 1U) {
            size_t most = 0;
            if (2U * node + 1U < tree_entries(pool->groups)) {
                most = entries[2U * node] > entries[2U * node + 1U] ? entries[2U * node]
                                                                   : entries[2U * node + 1U];
            }
            if (entries[node] != most) {
                return false;
            }
        }
    }
    return entries[pool->root ^ 1U] == TREE_ABOVE && entries[pool->root / 2U] == TREE_ABOVE;
}
