/* heap_blocks.h: blocks, their records and the regions they lie in. Part of heap.c.
 *
 * A region of memory, in words of the target:
 *
 *   | next region | length | head 0 next | head 0 previous | head 1 next | ... | pad |
 *   | header | payload ....... | header | payload ....... | header (sentinel) |
 *             ^ aligned to two words
 *
 * A free payload is | next | previous | ... | footer |, the footer being the
 * address of the block's header. A used block gives its last word to the
 * program, so that the record of a used block is one word. Lists are rings
 * through their heads. A region's length, from its first word to behind its
 * sentinel, has a check of both its words in the bits above it.
 */

#define STATIC_ASSERT(condition, name) typedef char static_assert_##name[(condition) ? 1 : -1]

#define WORD sizeof(size_t)
#define BITS ((unsigned)(sizeof(size_t) * 8U))
/* Block sizes are multiples of this, and so are the places of payloads: two words, unless the target's strictest
 * alignment needs more. */
#ifdef HEAP_GRANULE
#define GRANULE HEAP_GRANULE
#else
#define GRANULE (2U * WORD)
#endif
/* The smallest block: two links and a footer beside its header, and a granule of payload. */
#define MINIMUM (2U * GRANULE)
#define HEADER WORD
#define PROLOGUE (2U * WORD)
#define HEAD (2U * WORD)
#define SENTINEL WORD

/* Alignment of the first block of large buddy heaps. */
#define PAGE ((size_t)4096)

/* Flags in the bits that a multiple of the granule leaves free. */
#define FREE ((size_t)1)
#define PREVIOUS_FREE ((size_t)2)
#define RETAINED ((size_t)4)
#define FLAGS ((size_t)7)

/* The slack, capacity minus requested bytes, stands in the header's top bits.
 * One that does not fit puts the requested size into the last payload word. */
#define SLACK_BITS (sizeof(size_t) == 8U ? 16U : 4U)
#define SLACK_SHIFT (BITS - SLACK_BITS)
#define SLACK_ELSEWHERE (((size_t)1 << SLACK_BITS) - 1U)
/* A larger region could hold a block whose size runs into the slack, and its
 * length would run into its check. */
#define LARGEST (((size_t)1 << SLACK_SHIFT) - 1U)

STATIC_ASSERT(sizeof(uint8_t) == 1, bytes_are_octets);
STATIC_ASSERT(sizeof(size_t) == 8 || sizeof(size_t) == 4, words_of_64_or_32_bits);
STATIC_ASSERT(sizeof(void *) == sizeof(size_t), a_pointer_is_a_word);
STATIC_ASSERT(FLAGS < GRANULE, flags_fit_below_the_granule);
STATIC_ASSERT(GRANULE % (2U * WORD) == 0U, a_granule_is_of_pairs_of_words);
STATIC_ASSERT(MINIMUM >= 4U * WORD, header_two_links_and_footer_fit);
STATIC_ASSERT(SLACK_ELSEWHERE >= WORD, a_slack_kept_elsewhere_has_a_word);

/* What a block looks like to its neighbours. A list head is read through this
 * type as well: as the block that begins one word before its links. */
struct heap_block {
    size_t header;
    struct heap_block *next;
    struct heap_block *previous;
};

/* Words 0 and 1 of a region. */
struct heap_region {
    struct heap_region *next;
    size_t length;
};

STATIC_ASSERT(offsetof(struct heap_block, next) == WORD, the_forward_link_is_word_one);
STATIC_ASSERT(sizeof(struct heap_region) == 2U * WORD, the_prologue_begins_with_two_words);

typedef struct heap_block block_t;
typedef struct heap_region region_t;

/* With -DHEAP_COUNT, record words read and written are counted for the memory
 * level of the pool at work. A read counts where the algorithm needs the word
 * anew, once, whatever the compiler keeps in registers or the code below reads
 * again; setting up counts like the rest. So the counts are those of the model
 * that predicts them. */
#ifdef HEAP_COUNT
heap_count_t heap_counts[HEAP_LEVELS];
static heap_count_t *counting = heap_counts;
#define COUNT_LEVEL(level) (counting = &heap_counts[level])
#define COUNT(reads, writes) \
    (counting->record_reads += (reads), counting->record_writes += (writes))
#else
#define COUNT_LEVEL(level) ((void)0)
#define COUNT(reads, writes) ((void)0)
#endif

/* Position of the highest bit set; `word` is not zero. */
static inline unsigned highest_bit(size_t word)
{
    HEAP_ASSERT(word != 0U);
#if defined(__GNUC__) || defined(__clang__)
    if (sizeof(size_t) == sizeof(unsigned long)) {
        return BITS - 1U - (unsigned)__builtin_clzl((unsigned long)word);
    }
    return 63U - (unsigned)__builtin_clzll((unsigned long long)word);
#else
    unsigned bit = 0;
    for (unsigned half = BITS / 2U; half != 0U; half /= 2U) {
        if (word >> half != 0U) {
            word >>= half;
            bit += half;
        }
    }
    return bit;
#endif
}

/* The lowest bit set, alone. Unsigned negation is defined to wrap. */
static inline size_t lowest_alone(size_t word)
{
    return word & ((size_t)0 - word);
}

/* Position of the lowest bit set; `word` is not zero. */
static inline unsigned lowest_bit(size_t word)
{
    return highest_bit(lowest_alone(word));
}

static inline bool is_power_of_two(size_t number)
{
    return number != 0U && (number & (number - 1U)) == 0U;
}

/* `number` up to the next multiple of the power of two `unit`; must not wrap. */
static inline size_t round_up(size_t number, size_t unit)
{
    HEAP_ASSERT(is_power_of_two(unit) && number <= SIZE_MAX - (unit - 1U));
    return (number + unit - 1U) & ~(unit - 1U);
}

/* The next multiple of any `unit`, which is not zero, or zero when that wraps (or is zero). */
static inline size_t multiple_from(size_t number, size_t unit)
{
    HEAP_ASSERT(unit != 0U);
    const size_t over = number % unit;
    if (over == 0U) {
        return number;
    }
    return number > SIZE_MAX - (unit - over) ? 0U : number + (unit - over);
}

static inline size_t address_of(const void *pointer)
{
    return (size_t)(uintptr_t)pointer;
}

static inline block_t *shifted(block_t *block, size_t bytes)
{
    return (block_t *)(void *)((unsigned char *)block + bytes);
}

static inline size_t distance(const block_t *first, const block_t *second)
{
    return address_of(second) - address_of(first);
}

/* The size in a header word: neither flags nor slack. */
static inline size_t size_in(size_t word)
{
    return word & LARGEST & ~(GRANULE - 1U);
}

static inline size_t size_of_block(const block_t *block)
{
    return size_in(block->header);
}

static inline bool is_free(const block_t *block)
{
    return (block->header & FREE) != 0U;
}

/* Whether the program has the block: what was freed twice shows, unless it was merged since. */
static inline bool is_in_use(const block_t *block)
{
    return (block->header & (FREE | RETAINED)) == 0U && size_of_block(block) >= MINIMUM;
}

static inline size_t previous_free_flag(const block_t *block)
{
    return block->header & PREVIOUS_FREE;
}

static inline void *payload_of(block_t *block)
{
    return (unsigned char *)block + HEADER;
}

static inline block_t *block_at(void *place)
{
    HEAP_ASSERT(place != NULL && address_of(place) % GRANULE == 0U);
    return (block_t *)(void *)((unsigned char *)place - HEADER);
}

/* The free block before `block`: its footer is the word before the header. */
static inline block_t *block_before(block_t *block)
{
    return *(block_t **)(void *)((unsigned char *)block - WORD);
}

static inline void write_footer(block_t *block, size_t size)
{
    *(block_t **)(void *)((unsigned char *)block + size - WORD) = block;
}

static inline size_t *last_word(block_t *block, size_t size)
{
    return (size_t *)(void *)((unsigned char *)block + size - WORD);
}

/* Requested bytes of a used block. */
static inline size_t requested_of(block_t *block)
{
    const size_t size = size_of_block(block);
    const size_t slack = block->header >> SLACK_SHIFT;
    return slack < SLACK_ELSEWHERE ? size - HEADER - slack : *last_word(block, size);
}

/* Bytes of a used block that hold no record: at least those requested. */
static inline size_t usable_of(const block_t *block)
{
    const bool elsewhere = block->header >> SLACK_SHIFT == SLACK_ELSEWHERE;
    return size_of_block(block) - HEADER - (elsewhere ? WORD : 0U);
}

/* Marks a block used by the program and gives out its payload. */
static inline void *occupy(block_t *block, size_t size, size_t flags, size_t requested)
{
    HEAP_ASSERT(size >= MINIMUM && size % GRANULE == 0U && requested <= size - HEADER);
    const size_t slack = size - HEADER - requested;
    COUNT(0U, 1U);
    if (slack < SLACK_ELSEWHERE) {
        block->header = size | flags | slack << SLACK_SHIFT;
    } else {
        /* The slack is at least a word, so the word is not the program's. */
        block->header = size | flags | SLACK_ELSEWHERE << SLACK_SHIFT;
        *last_word(block, size) = requested;
    }
    return payload_of(block);
}

/* Sums of one walk over all blocks. */
typedef struct {
    size_t live;
    size_t blocks;
    size_t free_blocks;
    size_t free_bytes;
    size_t largest_free;
    size_t record_bytes;
    size_t regions;
} heap_walk_t;

/* How a pool grows: what its source is asked for, in whole increments, and by what
 * the end of its memory moves. */
typedef struct {
    size_t asked;
    size_t bytes;
} growth_t;

/* The block that a request needs, or zero when it exceeds every memory. */
static inline size_t block_for(size_t size)
{
    /* No object is larger, and the sums here cannot wrap. */
    if (size > SIZE_MAX >> 1) {
        return 0;
    }
    const size_t rounded = round_up(size + HEADER, GRANULE);
    return rounded < MINIMUM ? MINIMUM : rounded;
}

/* Bytes by which a block's payload misses the next multiple of `align`. */
static inline size_t misalignment(const block_t *block, size_t align)
{
    return ((size_t)0 - (address_of(block) + HEADER)) & (align - 1U);
}

/* Links `block` directly behind `before`, which may be a head. What follows
 * may be the head, whose links take the write: no branch is needed. */
static inline void link_after(block_t *before, block_t *block)
{
    block_t *const next = before->next;
    HEAP_ASSERT(next->previous == before);
    COUNT(1U, 4U);
    block->next = next;
    block->previous = before;
    next->previous = block;
    before->next = block;
}

/* What a block is linked behind in a ring in the order of addresses. Linear. */
static inline block_t *before_in_order(block_t *head, const block_t *block)
{
    block_t *before = head;
    while (COUNT(1U, 0U), before->next != head && address_of(before->next) < address_of(block)) {
        before = before->next;
    }
    return before;
}

static inline void unlink_block(block_t *block)
{
    HEAP_ASSERT(block->next->previous == block && block->previous->next == block);
    COUNT(2U, 2U);
    block->next->previous = block->previous;
    block->previous->next = block->next;
}

/* The pseudo-block that list `number` of the control structure in `region`
 * begins and ends with; it links to itself when the list is empty. */
static inline block_t *head_of(region_t *region, size_t number)
{
    return (block_t *)(void *)((unsigned char *)region + WORD + number * HEAD);
}

/* The number of the list that `head` is the pseudo-block of. */
static inline size_t head_number(const region_t *region, const block_t *head)
{
    return (address_of(head) - address_of(region) - WORD) / HEAD;
}

/* The check of a region's words: any odd number of bits changed shows. */
static size_t check_of(const region_t *next, size_t length)
{
    const size_t words = address_of(next) ^ length;
    size_t sum = 5;
    for (unsigned shift = 0; shift < BITS; shift += SLACK_BITS) {
        sum ^= words >> shift;
    }
    return sum << SLACK_SHIFT;
}

static void write_region(region_t *region, region_t *next, size_t length)
{
    region->next = next;
    region->length = length | check_of(next, length);
}

/* Bytes from a region's first word to behind its sentinel. */
static inline size_t length_of(const region_t *region)
{
    return region->length & LARGEST;
}

/* Whether a region's words are as they were written; `last` has none behind it. */
static bool region_is_sound(const region_t *region, const region_t *last)
{
    return region->length == (length_of(region) | check_of(region->next, length_of(region)))
        && (region->next == NULL) == (region == last);
}

static inline block_t *sentinel_of(const region_t *region)
{
    return (block_t *)(void *)((unsigned char *)(uintptr_t)region + length_of(region) - SENTINEL);
}

/* Offset of the first block behind so many heads; its payload is aligned. */
static inline size_t first_block_offset(size_t heads, size_t align)
{
    return round_up(PROLOGUE + heads * HEAD + HEADER, align) - HEADER;
}

/* Whether a link may name this block: it begins where one can, and is no larger
 * than what is left of its region. Regions behind the first, whose first block
 * is `base`, have no heads. To verify only. */
static bool can_be_listed(const region_t *region, const region_t *last, const block_t *base,
                          const block_t *block)
{
    size_t first = address_of(base);
    while (region != NULL && region_is_sound(region, last)) {
        const size_t room = address_of(sentinel_of(region)) - first;
        /* In front of the first block this is more than any room. */
        const size_t offset = address_of(block) - first;
        if (offset < room && offset % GRANULE == 0U) {
            return size_of_block(block) >= MINIMUM && size_of_block(block) <= room - offset;
        }
        region = region->next;
        first = address_of(region) + first_block_offset(0, GRANULE);
    }
    return false;
}

#define LISTABLE(pool, block) \
    can_be_listed((pool)->first, (pool)->last, (pool)->base, (block))

/* Whether a used block of valid size holds what it says was requested. */
static bool request_is_sound(const block_t *block)
{
    const size_t capacity = size_of_block(block) - HEADER;
    const size_t slack = block->header >> SLACK_SHIFT;
    const size_t kept = slack < SLACK_ELSEWHERE
        ? slack
        : capacity - *(const size_t *)(const void *)((const unsigned char *)block + capacity);
    return kept <= capacity;
}

/* Whether a block that a list names is a free one, and not one too many. */
static bool is_listed(const heap_pool_t *pool, const block_t *block, size_t count, size_t limit)
{
    return LISTABLE(pool, block) && is_free(block) && count <= limit;
}

#if HEAP_USES_WILDERNESS
/* Counts the wilderness, if there is one; false when it is not free. */
static bool wilderness_is_sound(const heap_pool_t *pool, size_t *count)
{
    if (pool->wilderness != NULL) {
        if (!is_free(pool->wilderness)) {
            return false;
        }
        *count += 1U;
    }
    return true;
}
#endif
