/* preload_mapped.h: blocks that are mappings of their own. Part of preload.c.
 *
 * Large blocks are mappings of their own, outside of all ranges: they grow by
 * pages, in place or by moving them to other addresses, without a copy, and
 * their memory goes back to the system when they are freed.
 *
 * - An allocation of at least MAPPED_FROM bytes is mapped, but a size of which a
 *   mapping was allocated and freed again (at most MAPPED_TRANSIENT bytes) comes
 *   and goes: from then on allocations that need no more pages than it are
 *   served by the pools.
 * - A block of a pool that is resized to at least MAPPED_FROM bytes and to more
 *   than it had is mapped.
 * - A mapped block stays one until it is resized to less than a quarter of that.
 * - There are at most MAPPED_BLOCKS; requests beyond are served by the pools.
 * - What the pools refuse is mapped, whatever its size.
 *
 * New pages cost more than what is written on them, so those of the block that
 * was freed last after having grown (at most MAPPED_TRANSIENT bytes) are kept:
 * the spare. The next block of a pool that grows enough takes its place and
 * grows into it. The spare is given back as soon as the heap would take more
 * with it than one part in MAPPED_SPARE_SHARE above the most that it needed
 * without it.
 *
 * What is decided and counted depends on the requests and on what the pools take
 * alone, never on addresses.
 */

#define MAPPED_FROM ((size_t)HEAP_MAPPED_FROM)
#define MAPPED_TRANSIENT ((size_t)HEAP_MAPPED_TRANSIENT)
#define MAPPED_BLOCKS ((size_t)HEAP_MAPPED_BLOCKS)
#define MAPPED_SPARE_SHARE ((size_t)HEAP_MAPPED_SPARE_SHARE)
/* Bytes counted for an entry of the table, and entries of the smallest table. */
#define MAPPED_ENTRY ((size_t)HEAP_MAPPED_ENTRY)
#define MAPPED_FEWEST_ENTRIES ((size_t)HEAP_MAPPED_FEWEST_ENTRIES)
/* Pools are laid out for no more. */
#define MAPPED_LARGEST (SPAN - PAGE)
/* Mappings of at least so many bytes begin at a multiple of it: whole page
 * tables move. */
#define MAPPED_TABLE_ALIGNMENT ((size_t)2 << 20)
#if SIZE_MAX > 0xFFFFFFFFU
/* Distance of the first mapping from the pools, and addresses used before they
 * are used again; beyond the last address lie those that few programs expect. */
#define MAPPED_FAR ((size_t)1 << 43)
#define MAPPED_RANGE ((size_t)1 << 43)
#define MAPPED_LAST_ADDRESS ((size_t)1 << 47)
#endif

/* An entry of the table of mapped blocks: a hash table by address, at most half
 * full, so that an address is looked up and never read. */
typedef struct {
    uintptr_t start;  /* 0: empty */
    uint64_t number;  /* in the order in which they were made, the same in every run */
    size_t size;      /* requested */
    size_t allocated; /* by the allocation that made it; 0 where a resize did */
} mapped_t;

typedef char mapped_entry_holds_mapped_t[sizeof(mapped_t) <= MAPPED_ENTRY ? 1 : -1];

static mapped_t *mapped_table;
static size_t mapped_entries;
/* Least bytes of an allocation that is mapped. */
static size_t mapped_from = MAPPED_FROM;
static size_t mapped_blocks;
/* Bytes of their pages. */
static size_t mapped_bytes;
static uint64_t mapped_next;
/* The spare: its bytes, where it begins, and the block that it lies behind, if
 * it does. */
static size_t spare_bytes;
static unsigned char *spare_place;
static bool spare_owned;
static uint64_t spare_owner;
/* Most bytes so far that pools, mapped blocks and table took together, and those
 * with the spare, as far as it was looked at. */
static size_t mapped_needed;
static size_t mapped_most;

static size_t pages_of(size_t size)
{
    return (size + PAGE - 1U) / PAGE * PAGE;
}

/* ---- What is counted. */

static size_t mapped_need(size_t pools)
{
    return pools + mapped_bytes + mapped_entries * MAPPED_ENTRY;
}

/* Most bytes that the heap took at once, where pools have taken so many. */
static size_t mapped_footprint(size_t pools)
{
    const size_t now = mapped_need(pools) + spare_bytes;
    return now > mapped_most ? now : mapped_most;
}

/* What pools take only grows, so the most is reached where mappings are about to
 * shrink, or at the end. */
static void mapped_look(void)
{
    const size_t need = mapped_need(heap_footprint(&heap));
    mapped_needed = need > mapped_needed ? need : mapped_needed;
    mapped_most = need + spare_bytes > mapped_most ? need + spare_bytes : mapped_most;
}

static size_t spare_of(const mapped_t *block)
{
    return spare_owned && spare_owner == block->number ? spare_bytes : 0U;
}

/* ---- Pages. */

/* Private pages at an address or elsewhere; NULL when the system refuses. */
static unsigned char *map_near(size_t wish, size_t length, int protection)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (protection == PROT_NONE ? MAP_NORESERVE : 0);
    void *const memory = mmap((void *)(uintptr_t)wish, length, protection, flags, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

/* Gives pages back. Where the system refuses, because a mapping too many would be
 * left, at least their contents. */
static void unmap_pages(unsigned char *place, size_t length)
{
    if (length != 0U && munmap(place, length) != 0) {
        (void)madvise(place, length, MADV_DONTNEED);
    }
}

/* Where a mapping of so many bytes is asked for: as much again is left free behind
 * it. 0: anywhere. */
static size_t mapping_wish(size_t length)
{
#if SIZE_MAX > 0xFFFFFFFFU
    static size_t first;
    static size_t next;
    size_t step = MAPPED_TABLE_ALIGNMENT / 8U;
    if (first == 0U) {
        first = (size_t)(uintptr_t)arenas[0].base + MAPPED_FAR;
        first = first / MAPPED_TABLE_ALIGNMENT * MAPPED_TABLE_ALIGNMENT;
        next = first;
    }
    while (step < 2U * length) {
        step *= 2U;
    }
    if (length >= MAPPED_TABLE_ALIGNMENT) {
        next = (next + MAPPED_TABLE_ALIGNMENT - 1U) / MAPPED_TABLE_ALIGNMENT
               * MAPPED_TABLE_ALIGNMENT;
    }
    if (next - first + step > MAPPED_RANGE) {
        next = first;
    }
    if (next + step > MAPPED_LAST_ADDRESS) {
        return 0;
    }
    next += step;
    return next - step;
#else
    (void)length;
    return 0;
#endif
}

/* New pages, all zero; NULL when the system refuses. Alignments above a page take
 * more addresses for a moment. */
static unsigned char *map_pages(size_t length, size_t align)
{
    const size_t more = align > PAGE ? align - PAGE : 0U;
    unsigned char *const memory =
        map_near(mapping_wish(length + more), length + more, PROT_READ | PROT_WRITE);
    if (memory == NULL || more == 0U) {
        return memory;
    }
    const size_t before = (0U - (size_t)(uintptr_t)memory) & (align - 1U);
    unmap_pages(memory, before);
    unmap_pages(memory + before + length, more - before);
    return memory + before;
}

/* Makes a mapping longer, in place or by moving its pages; NULL, and all as it
 * was, when the system refuses. */
static unsigned char *lengthen_mapping(unsigned char *place, size_t held, size_t wanted)
{
    void *moved = mremap(place, held, wanted, 0);
    if (moved != MAP_FAILED) {
        return moved;
    }
    /* The place is taken first, so that nothing else is replaced by what moves
     * there. */
    unsigned char *const target = map_near(mapping_wish(wanted), wanted, PROT_NONE);
    moved = target == NULL
                ? mremap(place, held, wanted, MREMAP_MAYMOVE)
                : mremap(place, held, wanted, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (moved != MAP_FAILED) {
        return moved;
    }
    if (target != NULL) {
        unmap_pages(target, wanted);
    }
    return NULL;
}

/* ---- The table. */

/* Where an address is looked for first. */
static size_t mapped_home(uintptr_t start)
{
    const uint64_t mix = (uint64_t)(start / PAGE) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(mix >> 32) & (mapped_entries - 1U);
}

/* The block at an address, or NULL. */
static mapped_t *find_mapped(const void *place)
{
    const uintptr_t start = (uintptr_t)place;
    if (mapped_entries == 0U || start == 0U) {
        return NULL;
    }
    size_t slot = mapped_home(start);
    while (mapped_table[slot].start != start) {
        if (mapped_table[slot].start == 0U) {
            return NULL;
        }
        slot = (slot + 1U) & (mapped_entries - 1U);
    }
    return &mapped_table[slot];
}

static void enter_mapped(const mapped_t *block)
{
    size_t slot = mapped_home(block->start);
    while (mapped_table[slot].start != 0U) {
        slot = (slot + 1U) & (mapped_entries - 1U);
    }
    mapped_table[slot] = *block;
}

/* Takes a block out; what was put behind it for want of room moves up. */
static void remove_mapped(const mapped_t *block)
{
    const size_t mask = mapped_entries - 1U;
    size_t hole = (size_t)(block - mapped_table);
    size_t slot = hole;
    for (;;) {
        slot = (slot + 1U) & mask;
        const mapped_t entry = mapped_table[slot];
        if (entry.start == 0U) {
            break;
        }
        if (((slot - mapped_home(entry.start)) & mask) >= ((slot - hole) & mask)) {
            mapped_table[hole] = entry;
            hole = slot;
        }
    }
    mapped_table[hole].start = 0;
}

/* Makes the table as long as one block more needs it. */
static bool make_mapped_room(void)
{
    const size_t before = mapped_entries;
    mapped_t *const old = mapped_table;
    size_t wanted = before > MAPPED_FEWEST_ENTRIES ? before : MAPPED_FEWEST_ENTRIES;
    while (wanted < 2U * (mapped_blocks + 1U)) {
        wanted *= 2U;
    }
    if (wanted == before) {
        return true;
    }
    void *const table = map_near(0, wanted * MAPPED_ENTRY, PROT_READ | PROT_WRITE);
    if (table == NULL) {
        return false;
    }
    mapped_table = table;
    mapped_entries = wanted;
    for (size_t slot = 0; slot < before; slot += 1U) {
        if (old[slot].start != 0U) {
            enter_mapped(&old[slot]);
        }
    }
    unmap_pages((unsigned char *)old, before * MAPPED_ENTRY);
    return true;
}

/* ---- The rule. */

static bool mapping_has_room(size_t size, size_t align)
{
    return size <= MAPPED_LARGEST && align <= MAPPED_LARGEST - size
           && mapped_blocks < MAPPED_BLOCKS;
}

/* Counts a new block on pages that are its own, and enters it. */
static mapped_t begin_mapped(const void *place, size_t size, size_t allocated)
{
    const mapped_t block = {(uintptr_t)place, mapped_next, size, allocated};
    mapped_next += 1U;
    mapped_blocks += 1U;
    mapped_bytes += pages_of(size);
    enter_mapped(&block);
    return block;
}

/* A new mapping; NULL when the system refuses. */
static void *map_block(size_t size, size_t align)
{
    unsigned char *const place = make_mapped_room() ? map_pages(pages_of(size), align) : NULL;
    if (place != NULL) {
        (void)begin_mapped(place, size, size);
    }
    return place;
}

/* A mapping for what a pool's block holds and more, on the spare where it lies
 * behind no block; NULL when the system refuses. */
static void *map_grown(size_t size)
{
    const size_t length = pages_of(size);
    const size_t spare = spare_owned ? 0U : spare_bytes;
    unsigned char *place = NULL;
    if (!make_mapped_room()) {
        return NULL;
    }
    if (spare == 0U) {
        place = map_pages(length, 1);
    } else {
        place = spare >= length ? spare_place : lengthen_mapping(spare_place, spare, length);
    }
    if (place == NULL) {
        return NULL;
    }
    const mapped_t block = begin_mapped(place, size, 0);
    if (spare != 0U) {
        spare_bytes = spare > length ? spare - length : 0U;
        spare_owned = spare_bytes != 0U;
        spare_owner = block.number;
        spare_place = place + length;
    }
    return place;
}

/* Resizes a mapped block that stays one; NULL, and the block as it was, when the
 * system refuses. */
static void *resize_mapping(mapped_t *entry, size_t size)
{
    mapped_t block = *entry;
    unsigned char *const place = (unsigned char *)block.start;
    const size_t before = pages_of(block.size);
    const size_t after = pages_of(size);
    const bool owner = spare_of(&block) != 0U;
    const size_t held = before + spare_of(&block);
    unsigned char *const moved = after > held ? lengthen_mapping(place, held, after) : place;
    size_t left = after;
    if (moved == NULL) {
        return NULL;
    }
    mapped_look();
    mapped_bytes = mapped_bytes - before + after;
    if (owner) {
        /* It grows into the spare, and what it leaves is spare. */
        spare_bytes = held > after ? held - after : 0U;
        spare_bytes = spare_bytes < MAPPED_TRANSIENT ? spare_bytes : MAPPED_TRANSIENT;
        spare_owned = spare_bytes != 0U;
        spare_place = moved + after;
        left += spare_bytes;
    }
    unmap_pages(moved + left, (held > after ? held : after) - left);
    block.size = size;
    block.start = (uintptr_t)moved;
    if (moved != place) {
        remove_mapped(entry);
        enter_mapped(&block);
    } else {
        *entry = block;
    }
    return moved;
}

/* After every request that may have made pools or mappings grow, and before a block
 * is freed, for which a pool may just have grown. */
static void settle_spare(void)
{
    const size_t need = mapped_need(heap_footprint(&heap));
    const size_t needed = need > mapped_needed ? need : mapped_needed;
    const int saved = errno;
    if (need + spare_bytes <= needed + needed / MAPPED_SPARE_SHARE) {
        mapped_most = need + spare_bytes > mapped_most ? need + spare_bytes : mapped_most;
        return;
    }
    unmap_pages(spare_place, spare_bytes);
    spare_bytes = 0;
    spare_owned = false;
    errno = saved;
}

static inline void settle(void)
{
    if (spare_bytes != 0U) {
        settle_spare();
    }
}

/* Gives a block's pages back, or keeps them as the spare. */
static void free_mapping(mapped_t *entry)
{
    settle();
    const mapped_t block = *entry;
    unsigned char *const place = (unsigned char *)block.start;
    const size_t pages = pages_of(block.size);
    const size_t allocated = pages_of(block.allocated);
    const size_t behind = spare_of(&block);
    const size_t held = pages + behind;
    size_t kept = 0;
    mapped_look();
    mapped_blocks -= 1U;
    mapped_bytes -= pages;
    if (block.allocated != 0U && allocated <= MAPPED_TRANSIENT && allocated >= mapped_from) {
        mapped_from = allocated + 1U;
    }
    if (pages > allocated) {
        /* It grew: its pages take the place of an earlier spare. */
        unmap_pages(spare_place, spare_bytes - behind);
        kept = held < MAPPED_TRANSIENT ? held : MAPPED_TRANSIENT;
        spare_place = place;
        spare_bytes = kept;
        spare_owned = false;
    }
    unmap_pages(place + kept, held - kept);
    remove_mapped(entry);
}

/* ---- The heap with mapped blocks: as heap_allocate, heap_free and heap_resize,
 * which count for all blocks. */

/* A block on pages of its own, all zero, which is told; NULL where it cannot have them. */
static void *allocate_mapped(size_t size, size_t align, bool *zero)
{
    const int saved = errno;
    void *const place = mapping_has_room(size, align) ? map_block(size, align) : NULL;
    errno = saved;
    if (place != NULL) {
        *zero = true;
        heap.allocations += 1U;
        heap.blocks += 1U;
        heap.peak_blocks = heap.blocks > heap.peak_blocks ? heap.blocks : heap.peak_blocks;
        heap.live += size;
        heap.peak_live = heap.live > heap.peak_live ? heap.live : heap.peak_live;
    }
    return place;
}

/* Whether the block is new pages, all zero, is told. */
static void *allocate_block(size_t size, size_t align, bool *zero)
{
    void *place = NULL;
    const bool large = size >= mapped_from;
    if (large) {
        place = allocate_mapped(size, align, zero);
    }
    if (place == NULL) {
        place = heap_allocate(&heap, size, align);
    }
    if (place == NULL && !large) {
        place = allocate_mapped(size, align, zero);
        /* It is served, though the pools refused. */
        heap.failures -= place != NULL ? 1U : 0U;
    }
    return place;
}

static void count_resize(size_t from, size_t to)
{
    heap.resizes += 1U;
    heap.live = heap.live - from + to;
    heap.peak_live = heap.live > heap.peak_live ? heap.live : heap.peak_live;
}

/* Frees a mapped block. */
static void free_mapped(mapped_t *block)
{
    const int saved = errno;
    heap.blocks -= 1U;
    heap.live -= block->size;
    free_mapping(block);
    errno = saved;
}

/* Moves a block of a pool to pages of its own; NULL, and the block as it was, where it cannot have
 * them, or is to grow and does not. */
static void *move_to_mapping(void *place, size_t size, bool to_grow)
{
    const size_t held = heap_requested_size(&heap, place);
    /* Nothing was requested for what is no block. */
    if (held == 0U || (to_grow && size <= held) || !mapping_has_room(size, 1)) {
        return NULL;
    }
    const int saved = errno;
    void *const moved = map_grown(size);
    errno = saved;
    if (moved != NULL) {
        memcpy(moved, place, held < size ? held : size);
        heap_free(&heap, place);
        heap.blocks += 1U;
        heap.live += held;
        count_resize(held, size);
    }
    return moved;
}

/* Resizes a block of a pool. */
static void *resize_pooled(void *place, size_t size)
{
    void *moved = size >= MAPPED_FROM ? move_to_mapping(place, size, true) : NULL;
    if (moved == NULL) {
        moved = heap_resize(&heap, place, size, ALIGNMENT);
    }
    if (moved == NULL) {
        moved = move_to_mapping(place, size, false);
        heap.failures -= moved != NULL ? 1U : 0U;
    }
    return moved;
}

/* Resizes a mapped block, which a pool takes over where it became small. */
static void *resize_mapped(mapped_t *block, size_t size)
{
    const int saved = errno;
    void *const place = (void *)block->start;
    const size_t held = block->size;
    void *moved = NULL;
    if (size >= MAPPED_FROM / 4U && size <= MAPPED_LARGEST) {
        moved = resize_mapping(block, size);
        errno = saved;
        if (moved != NULL) {
            count_resize(held, size);
            return moved;
        }
    }
    heap.blocks -= 1U;
    heap.live -= held;
    moved = heap_allocate(&heap, size, ALIGNMENT);
    if (moved == NULL) {
        /* What the pools refuse stays on pages. */
        heap.blocks += 1U;
        heap.live += held;
        moved = size <= MAPPED_LARGEST ? resize_mapping(block, size) : NULL;
        errno = saved;
        if (moved != NULL) {
            heap.failures -= 1U;
            count_resize(held, size);
        }
        return moved;
    }
    /* No allocation, but a resize. */
    heap.allocations -= 1U;
    heap.resizes += 1U;
    memcpy(moved, place, held < size ? held : size);
    free_mapping(block);
    errno = saved;
    return moved;
}
