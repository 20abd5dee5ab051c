/* heap_objects.h: object pools: equal slots found by find-first-set, without a record a block. Part
 * of heap.c.
 *
 * A slab belongs to one pool at a time. Which of its slots are free stands in a bitmap outside of
 * it, so that a bad free is always detected. The pools have slots of some few sizes, found by a
 * switch, or, where HEAP_PARTITION, of many size classes, found in tables (a slab is a page then,
 * a slot a page-block).
 *
 * Invariant: a slab with free and used slots is in its pool's list; one without used slots is in
 * the list of empty ones, which all pools share; a full one is in none.
 */

#define NO_SLAB UINT32_MAX
#define NO_POOL ((uint8_t)UINT8_MAX)
#define OBJECT_GRANULE ((size_t)16)
#define OBJECT_LARGEST ((size_t)HEAP_OBJECT_LARGEST)

STATIC_ASSERT(sizeof(((heap_slab_t *)0)->free) * 8U >= HEAP_SLOTS, a_bit_for_every_slot);
#if HEAP_SLABS_SUMMARISED
STATIC_ASSERT(HEAP_BITMAP <= sizeof(size_t) * 8U, a_bit_for_every_word_raise_the_smallest_block);
#endif

/* A used slot, or `found` false: no slot in use begins at the address. */
typedef struct {
    bool found;
    size_t number;
    size_t slot;
    size_t size;
} slot_t;

#if HEAP_PARTITION
/* A size class: bytes and number of the page-blocks of a page, and what finds
 * the page-block at an offset by one multiplication: the quotient of 2^32 and the
 * bytes, rounded up, which is exact for pages of up to 2^16 bytes. */
typedef struct {
    uint32_t size;
    uint32_t slots;
    uint64_t reciprocal;
} class_t;

static const class_t classes[HEAP_OBJECT_POOLS] = HEAP_OBJECT_CLASSES;

/* The class that serves a request, by its size in granules, rounded up. */
static const uint8_t class_of[(HEAP_OBJECT_LARGEST + 15U) / 16U + 1U] = HEAP_OBJECT_CLASS_OF;

static inline size_t objects_size(uint8_t pool)
{
    return classes[pool].size;
}

static inline size_t objects_slots(uint8_t pool)
{
    return classes[pool].slots;
}

static inline size_t objects_slot(uint8_t pool, size_t within)
{
    return (size_t)((uint64_t)within * classes[pool].reciprocal >> 32);
}

/* The class that serves a request, or NO_POOL. */
static inline uint8_t objects_pool(size_t size, size_t align)
{
    if (size > OBJECT_LARGEST || align > OBJECT_GRANULE) {
        return NO_POOL;
    }
    return class_of[(size + OBJECT_GRANULE - 1U) / OBJECT_GRANULE];
}
#else
/* Slot size of a pool. */
static inline size_t objects_size(uint8_t pool)
{
    switch (pool) {
#define SIZE(label, number, bytes) \
    label:                         \
        return bytes;
        HEAP_OBJECT_SIZES(SIZE)
#undef SIZE
    }
}

/* Slots in a slab of a pool. */
static inline size_t objects_slots(uint8_t pool)
{
    switch (pool) {
#define SLOTS(label, number, bytes) \
    label:                          \
        return HEAP_SLAB / (bytes);
        HEAP_OBJECT_SIZES(SLOTS)
#undef SLOTS
    }
}

/* The number of the slot at an offset; a division by a constant each. */
static inline size_t objects_slot(uint8_t pool, size_t within)
{
    switch (pool) {
#define SLOT(label, number, bytes) \
    label:                         \
        return within / (bytes);
        HEAP_OBJECT_SIZES(SLOT)
#undef SLOT
    }
}

/* The pool that serves a request, or NO_POOL. */
static inline uint8_t objects_pool(size_t size, size_t align)
{
    if (size > OBJECT_LARGEST || align > OBJECT_GRANULE) {
        return NO_POOL;
    }
#define SERVES(label, number, bytes) \
    if (size <= (bytes)) {           \
        return number;               \
    }
    HEAP_OBJECT_SIZES(SERVES)
#undef SERVES
    return HEAP_OBJECT_POOLS - 1U;
}
#endif

static void objects_link(heap_objects_t *objects, uint32_t number)
{
    heap_slab_t *const slab = &objects->records[number];
    const uint32_t first = objects->partly[slab->pool];
    slab->next = first;
    slab->previous = NO_SLAB;
    if (first != NO_SLAB) {
        objects->records[first].previous = number;
    }
    objects->partly[slab->pool] = number;
}

static void objects_unlink(heap_objects_t *objects, uint32_t number)
{
    const heap_slab_t *const slab = &objects->records[number];
    if (slab->next != NO_SLAB) {
        objects->records[slab->next].previous = slab->previous;
    }
    if (slab->previous == NO_SLAB) {
        objects->partly[slab->pool] = slab->next;
    } else {
        objects->records[slab->previous].next = slab->next;
    }
}

/* Gives an empty or a new slab to a pool; NO_SLAB when there is none. */
static uint32_t objects_fresh(heap_objects_t *objects, uint8_t pool, const heap_source_t *source)
{
    uint32_t number = objects->empty;
    if (number != NO_SLAB) {
        objects->empty = objects->records[number].next;
    } else {
        if (objects->extent >= objects->capacity
            || (source != NULL && !HEAP_GROW_SLABS(source, HEAP_SLAB))) {
            return NO_SLAB;
        }
        number = (uint32_t)objects->extent;
        objects->extent += 1U;
    }
    heap_slab_t *const slab = &objects->records[number];
    const size_t slots = objects_slots(pool);
#if HEAP_SLABS_SUMMARISED
    const size_t words = (slots + BITS - 1U) / BITS;
    slab->summary = SIZE_MAX >> (BITS - words);
#else
    const size_t words = HEAP_BITMAP;
#endif
    for (size_t word = 0; word < words; word += 1U) {
        const size_t left = slots > word * BITS ? slots - word * BITS : 0U;
        slab->free[word] = left >= BITS ? SIZE_MAX : ((size_t)1 << left) - 1U;
    }
    slab->used = 0;
    slab->pool = pool;
    objects_link(objects, number);
    return number;
}

static inline void *objects_allocate(heap_objects_t *objects, size_t size, size_t align,
                                     const heap_source_t *source)
{
    const uint8_t pool = objects_pool(size, align);
    if (pool == NO_POOL) {
        return NULL;
    }
    uint32_t number = objects->partly[pool];
    if (number == NO_SLAB) {
        number = objects_fresh(objects, pool, source);
        if (number == NO_SLAB) {
            return NULL;
        }
    }
    heap_slab_t *const slab = &objects->records[number];
    /* A slab in its pool's list has a free slot. */
#if HEAP_SLABS_SUMMARISED
    const size_t word = lowest_bit(slab->summary);
#else
    size_t word = 0;
    while (slab->free[word] == 0U) {
        word += 1U;
    }
#endif
    const size_t slot = word * BITS + lowest_bit(slab->free[word]);
    COUNT_LEVEL(HEAP_OBJECT_LEVEL);
#if HEAP_SLABS_SUMMARISED
    /* The table of sizes, the class's list, the summary, a word, the count; the
     * record of a fresh page is taken, written and linked. */
    COUNT(5U, 3U);
    COUNT(slab->used == 0U ? 3U : 0U,
          slab->used == 0U ? 7U + (objects_slots(pool) + BITS - 1U) / BITS : 0U);
    slab->free[word] &= slab->free[word] - 1U;
    slab->summary &= ~((size_t)(slab->free[word] == 0U) << word);
#else
    /* The table of sizes, the pool's list, the bitmap up to the slot, the count;
     * a fresh slab is taken, written whole and linked. */
    COUNT(4U + word, 2U);
    COUNT(slab->used == 0U ? 3U : 0U, slab->used == 0U ? 4U + HEAP_BITMAP + 2U : 0U);
    slab->free[word] &= slab->free[word] - 1U;
#endif
    slab->used = (uint16_t)(slab->used + 1U);
    if (slab->used == objects_slots(pool)) {
        COUNT(1U, 2U);
        objects_unlink(objects, number);
    }
    if (objects->slack != NULL) {
        objects->slack[(size_t)number * HEAP_SLACK_SLOTS + slot] =
            (uint16_t)(objects_size(pool) - size);
    }
    return objects->slabs + (size_t)number * HEAP_SLAB + slot * objects_size(pool);
}

/* Whether an address lies in the range of slabs. */
static inline bool objects_contain(const heap_objects_t *objects, const void *address)
{
    return objects->extent != 0U
        && address_of(address) - address_of(objects->slabs) < objects->extent * HEAP_SLAB;
}

static inline slot_t objects_resolve(const heap_objects_t *objects, const void *place)
{
    slot_t slot = {false, 0, 0, 0};
    const size_t offset = address_of(place) - address_of(objects->slabs);
    const size_t number = offset / HEAP_SLAB;
    if (number >= objects->extent || objects->records[number].pool == NO_POOL) {
        return slot;
    }
    const heap_slab_t *const slab = &objects->records[number];
    const size_t within = offset % HEAP_SLAB;
    slot.number = number;
    slot.size = objects_size(slab->pool);
    slot.slot = objects_slot(slab->pool, within);
    slot.found = slot.slot * slot.size == within && slot.slot < objects_slots(slab->pool)
        && (slab->free[slot.slot / BITS] >> slot.slot % BITS & 1U) == 0U;
    return slot;
}

static inline size_t objects_requested(const heap_objects_t *objects, slot_t slot)
{
    if (objects->slack == NULL) {
        return slot.size;
    }
    return slot.size - objects->slack[slot.number * HEAP_SLACK_SLOTS + slot.slot];
}

static inline void objects_free(heap_objects_t *objects, slot_t slot)
{
    heap_slab_t *const slab = &objects->records[slot.number];
    const uint32_t number = (uint32_t)slot.number;
    const bool full = slab->used == objects_slots(slab->pool);
    COUNT_LEVEL(HEAP_OBJECT_LEVEL);
#if HEAP_SLABS_SUMMARISED
    /* The page's class, its size, the bitmap and its summary, the count. */
    COUNT(5U, 3U);
    slab->summary |= (size_t)1 << slot.slot / BITS;
#else
    /* The slab's pool, its slot size, the bitmap, the count. */
    COUNT(4U, 2U);
#endif
    slab->free[slot.slot / BITS] |= (size_t)1 << slot.slot % BITS;
    slab->used = (uint16_t)(slab->used - 1U);
    if (slab->used != 0U) {
        if (full) {
            COUNT(1U, 4U);
            objects_link(objects, number);
        }
        return;
    }
    COUNT(1U, 3U);
    if (!full) {
        COUNT(1U, 2U);
        objects_unlink(objects, number);
    }
    slab->pool = NO_POOL;
    slab->next = objects->empty;
    objects->empty = number;
}

/* Resizes within the slot; false when another pool or none would serve. */
static inline bool objects_resize(heap_objects_t *objects, slot_t slot, size_t size, size_t align)
{
    if (objects_pool(size, align) != objects->records[slot.number].pool) {
        return false;
    }
    if (objects->slack != NULL) {
        objects->slack[slot.number * HEAP_SLACK_SLOTS + slot.slot] = (uint16_t)(slot.size - size);
    }
    return true;
}

static void objects_prepare(heap_objects_t *objects)
{
    objects->empty = NO_SLAB;
    for (size_t pool = 0; pool < HEAP_OBJECT_POOLS; pool += 1U) {
        objects->partly[pool] = NO_SLAB;
    }
}

/* Bytes of the slabs so far and of their records. */
static size_t objects_footprint(const heap_objects_t *objects)
{
    return objects->extent * (HEAP_SLAB + sizeof(heap_slab_t));
}

/* Counts used slots and free ones of a slab. */
static void objects_count(const heap_objects_t *objects, size_t number, heap_walk_t *walk,
                          size_t *free_slots)
{
    const heap_slab_t *const slab = &objects->records[number];
    *free_slots = 0;
    for (size_t index = 0; index < objects_slots(slab->pool); index += 1U) {
        if ((slab->free[index / BITS] >> index % BITS & 1U) != 0U) {
            *free_slots += 1U;
            continue;
        }
        const slot_t slot = {true, number, index, objects_size(slab->pool)};
        walk->blocks += 1U;
        walk->live += objects_requested(objects, slot);
    }
}

/* Verifies bitmaps against counts and lists. Linear in slots. */
static heap_corruption_t objects_check(const heap_objects_t *objects, heap_walk_t *walk)
{
    size_t partly = 0;
    size_t empty = 0;
    for (size_t number = 0; number < objects->extent; number += 1U) {
        const heap_slab_t *const slab = &objects->records[number];
        if (slab->pool == NO_POOL) {
            empty += 1U;
            continue;
        }
        size_t free_slots = 0;
        if (slab->pool >= HEAP_OBJECT_POOLS) {
            return HEAP_CORRUPT_LIST;
        }
        objects_count(objects, number, walk, &free_slots);
        if (slab->used == 0U || free_slots + slab->used != objects_slots(slab->pool)) {
            return HEAP_CORRUPT_LIST;
        }
        partly += free_slots != 0U ? 1U : 0U;
    }
    for (uint32_t number = objects->empty; number != NO_SLAB;
         number = objects->records[number].next) {
        if (number >= objects->extent || empty == 0U || objects->records[number].pool != NO_POOL) {
            return HEAP_CORRUPT_LIST;
        }
        empty -= 1U;
    }
    for (size_t pool = 0; pool < HEAP_OBJECT_POOLS; pool += 1U) {
        uint32_t before = NO_SLAB;
        for (uint32_t number = objects->partly[pool]; number != NO_SLAB;
             number = objects->records[number].next) {
            if (number >= objects->extent || partly == 0U || objects->records[number].pool != pool
                || objects->records[number].previous != before) {
                return HEAP_CORRUPT_LIST;
            }
            partly -= 1U;
            before = number;
        }
    }
    return partly == 0U && empty == 0U ? HEAP_SOUND : HEAP_CORRUPT_LIST;
}
