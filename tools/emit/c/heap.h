/* heap.h: a constant-time or searched allocator for one program, in C99.
 *
 * What kind of heap it is, and every parameter of it, stands in heap_config.h, which alone is
 * generated; everything else is the same for all heaps. Parameters are constants of the
 * preprocessor, so that the compiler leaves out what a heap does not need.
 *
 * Theory
 *
 * A heap has one to four general pools and, if configured, pools of equal objects.
 *
 * A general pool manages regions of memory that the caller gives it. Blocks tile a region: each
 * begins with a header of one word, its size, and ends where the next one begins. A free block
 * also has two links and, in its last word, a footer; so both neighbours of a block are found in
 * constant time, and free neighbours merge when a block is freed (boundary tags; Knuth, The Art
 * of Computer Programming 1, 2.5). heap_blocks.h has the records, heap_pool.h the operations of
 * a pool, over heap_merging.h or heap_halving.h, heap_growth.h and heap_verify.h.
 *
 * An index says which free block serves a request. It keeps lists of free blocks and nothing
 * else, so that all indexes share the code above:
 *
 *   heap_index_classes.h   size classes under a bitmap: TLSF (Masmano et al. 2004), half-fit
 *                          (Ogasawara 1995), segregated fit. Constant time but for probes.
 *   heap_index_list.h      one searched list: first, next, best, worst, exact fit. Linear.
 *   heap_index_buddy.h     binary buddies (Knowlton 1965). Logarithmic.
 *   heap_index_kingsley.h  powers of two, never merged. Constant time.
 *   heap_index_fixed.h     a table of block sizes, never merged. Constant time.
 *   heap_index_lea.h       sorted bins, small blocks merged late (Lea 1996). Linear.
 *   heap_index_tree.h      first fit in address order by a tree over addresses: steps that the
 *                          memory's size fixes, in a table of 1.6 % of it, 1.0 % by classes.
 *
 * Object pools (heap_objects.h) keep slots of one size in slabs of their own, with a bitmap
 * outside of them: no byte of overhead a block, and a bad free is always found.
 *
 * Requests go to the pool in whose range of sizes they lie, and from a pool that refuses to the
 * next one that takes their size.
 *
 * Use
 *
 * - heap_init makes a heap of memory of the caller; heap_prepare and heap_add_region make one
 *   whose pools lie apart or grow.
 * - A heap is used by one thread at a time. Nothing is allocated elsewhere, nothing is locked.
 * - Needs no library but memcpy and memset, hosted or freestanding; words of 32 or 64 bits.
 * - Preconditions are stated with each function. Where HEAP_ASSERT is defined, as by
 *   -DHEAP_ASSERT=assert -include assert.h, they and the invariants that code relies on are
 *   verified; otherwise nothing of that is compiled.
 *
 * Sizes are in bytes.
 */
#ifndef HEAP_H
#define HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap_config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    HEAP_OK,
    /* The region cannot hold the control structure and one block. */
    HEAP_TOO_SMALL,
    /* The region exceeds the span that the heap was prepared for. */
    HEAP_TOO_LARGE,
    /* This pool manages one contiguous region only. */
    HEAP_ONE_REGION_ONLY,
    /* There is no pool of that number. */
    HEAP_NO_SUCH_POOL
} heap_result_t;

/* What heap_check found. */
typedef enum {
    HEAP_SOUND,
    /* A block's size is too small or runs beyond its region. */
    HEAP_CORRUPT_SIZE,
    /* A block's mark or footer contradicts the block before it. */
    HEAP_CORRUPT_NEIGHBOUR,
    /* Two free neighbours that should have been merged. */
    HEAP_CORRUPT_UNCOALESCED,
    /* A list is broken, or holds a block that does not belong there. */
    HEAP_CORRUPT_LIST,
    /* The lists hold another number of blocks than are free. */
    HEAP_CORRUPT_UNLISTED,
    /* Live bytes or blocks differ from the statistics. */
    HEAP_CORRUPT_STATISTICS,
    /* What the memory says of where a region ends was overwritten. */
    HEAP_CORRUPT_REGION,
    /* A block's requested size is more than it holds. */
    HEAP_CORRUPT_REQUEST
} heap_corruption_t;

typedef struct {
    size_t live;          /* requested bytes now allocated */
    size_t peak_live;     /* largest `live` so far */
    size_t blocks;        /* blocks now allocated */
    size_t peak_blocks;   /* largest `blocks` so far */
    uint64_t allocations; /* successful ones so far */
    uint64_t frees;
    uint64_t resizes;     /* successful ones so far */
    uint64_t failures;    /* allocations and resizes refused so far */
    size_t largest_free;  /* the largest request that a free block could serve */
    size_t free_blocks;   /* those kept by dedicated lists included */
    size_t free_bytes;    /* without those kept by dedicated lists */
    size_t footprint;     /* bytes of all regions, slabs and records of slabs */
    size_t record_bytes;  /* headers, control structure, records of slabs */
} heap_statistics_t;

/* Where a heap gets more memory from. When a function returns true, the next
 * `bytes` bytes behind the last region of that general pool (or behind the
 * range of slabs) are the heap's. */
typedef struct {
    void *context;
    /* Memory of general pools comes in multiples of this, itself a multiple of
     * two words. */
    size_t increment;
    bool (*grow)(void *context, unsigned pool, size_t bytes);
#if HEAP_OBJECT_POOLS > 0
    /* Adds one slab. NULL: all slabs that heap_add_slabs named are there. */
    bool (*grow_slabs)(void *context, size_t bytes);
#endif
} heap_source_t;

/* How a pool asks its source. heap_config.h may name a function instead, for targets on which a call through a
 * pointer needs a table; then `grow` is not used. */
#ifndef HEAP_GROW
#define HEAP_GROW(source, pool, bytes) (source)->grow((source)->context, (pool), (bytes))
#endif
#ifndef HEAP_GROW_SLABS
#define HEAP_GROW_SLABS(source, bytes) \
    ((source)->grow_slabs == NULL || (source)->grow_slabs((source)->context, (bytes)))
#endif

/* The state of the heap. Private: use the functions below. */
struct heap_block;
struct heap_region;

/* A general pool, with what the indexes of this heap need. */
typedef struct {
    struct heap_region *first;
    struct heap_region *last;
    /* The first block of the first region; NULL: there is no memory yet. */
    struct heap_block *base;
    /* No block is larger; the index has lists for blocks up to it. */
    size_t span;
    size_t heads;
    size_t footprint;
    /* Of those the bytes behind the end of the last region. */
    size_t reserve;
#if HEAP_USES_DEDICATED
    size_t first_dedicated;
#endif
#if HEAP_USES_LIMITS
    /* Blocks in the dedicated lists that have a limit. */
    size_t retained[HEAP_LISTS];
#endif
#if HEAP_USES_LIST
    size_t length;
#endif
#if HEAP_USES_NEXT_FIT
    struct heap_block *rover;
#endif
#if HEAP_USES_CLASSES
    size_t top;
#endif
#if HEAP_USES_LEA
    size_t kept;
#endif
#if HEAP_USES_WORDS
    uint32_t words[HEAP_WORDS];
#endif
#if HEAP_USES_BUDDY
    size_t bits;
#endif
#if HEAP_USES_TREE
    size_t groups;
    size_t leaves;
    /* The node above all groups that ever had a block, and how many groups are below it. */
    size_t root;
    size_t reach;
    size_t pending[2];
#endif
#if HEAP_USES_WILDERNESS
    struct heap_block *wilderness;
#endif
} heap_pool_t;

#if HEAP_OBJECT_POOLS > 0
/* Words of the bitmap of a slab. */
#define HEAP_BITMAP ((HEAP_SLOTS + sizeof(size_t) * 8U - 1U) / (sizeof(size_t) * 8U))

/* The record of one slab, outside of it. */
typedef struct {
#if HEAP_SLABS_SUMMARISED
    size_t summary; /* bit set: that word has a free slot */
#endif
    size_t free[HEAP_BITMAP]; /* bit set: the slot is free */
    uint32_t next;
    uint32_t previous;
    uint16_t used;
    uint8_t pool;
} heap_slab_t;

typedef struct {
    unsigned char *slabs;
    heap_slab_t *records;
    uint16_t *slack;
    size_t capacity;
    size_t extent;
    uint32_t empty;
    uint32_t partly[HEAP_OBJECT_POOLS];
} heap_objects_t;
#endif

typedef struct {
    size_t live;
    size_t peak_live;
    size_t blocks;
    size_t peak_blocks;
    uint64_t allocations;
    uint64_t resizes;
    uint64_t failures;
    const heap_source_t *source;
    heap_pool_t pools[HEAP_POOLS];
#if HEAP_OBJECT_POOLS > 0
    heap_objects_t objects;
#endif
} heap_t;

/* Makes a heap in `length` bytes of memory that stay its own. Its pools, and the object pools as
 * one, get equal shares; to share otherwise, use heap_prepare. On failure the heap has no memory
 * and every allocation fails.
 *
 * Requires `heap`, and `memory` of `length` bytes that nothing else uses. */
heap_result_t heap_init(heap_t *heap, void *memory, size_t length);

/* Makes a heap without memory, for blocks of up to `span` bytes. `source`, or NULL, must live as
 * long as the heap; its increment is a multiple of two words and not zero. */
void heap_prepare(heap_t *heap, size_t span, const heap_source_t *source);

/* Bytes of the smallest first region of a general pool of a prepared heap. */
size_t heap_smallest_region(const heap_t *heap, unsigned pool);

/* Adds `length` bytes of memory to a general pool, counted from zero. It stays the heap's,
 * and what a source adds to that pool later lies directly behind it. */
heap_result_t heap_add_region(heap_t *heap, unsigned pool, void *memory, size_t length);

/* Tells that `bytes` bytes (a multiple of two words) directly behind the last
 * region of a general pool are the heap's now. False, and they are not, where the
 * index cannot take them: a buddy heap takes multiples of its smallest block. */
bool heap_extend(heap_t *heap, unsigned pool, size_t bytes);

#if HEAP_OBJECT_POOLS > 0
/* Gives the object pools a range of `capacity` slabs, aligned to 16, with a
 * record each, and room for HEAP_SLACK_SLOTS numbers each in `slack`, or NULL: then
 * the requested size of a slot is taken for the slot's. */
void heap_add_slabs(heap_t *heap, void *slabs, heap_slab_t *records, uint16_t *slack,
                    size_t capacity);
#endif

/* Allocates `size` bytes at a multiple of `align`, a power of two, or NULL. */
void *heap_allocate(heap_t *heap, size_t size, size_t align);

/* Frees a block in use, or NULL, which does nothing. Any other address is a fault of the caller,
 * found in object pools alone. */
void heap_free(heap_t *heap, void *place);

/* Resizes a block in use; where it must move, its bytes move with it. NULL
 * when that cannot be: then the block is as it was. */
void *heap_resize(heap_t *heap, void *place, size_t size, size_t align);

/* Bytes that the program may use at a block in use: at least what it requested.
 * heap_resize keeps only what was requested of them. */
size_t heap_usable_size(const heap_t *heap, const void *place);

/* Bytes that the program requested for a block in use. */
size_t heap_requested_size(const heap_t *heap, const void *place);

/* Whether an address lies in the memory of the heap. */
bool heap_contains(const heap_t *heap, const void *address);

/* Bytes taken from the system: regions, slabs, records of slabs. */
size_t heap_footprint(const heap_t *heap);

/* That of the pools in one memory level. */
size_t heap_level_footprint(const heap_t *heap, unsigned level);

#ifdef HEAP_COUNT
/* Words of records read and written so far, by all heaps, in each memory level.
 * Compile heap.c and whoever reads this with -DHEAP_COUNT. */
typedef struct {
    uint64_t record_reads;
    uint64_t record_writes;
} heap_count_t;
extern heap_count_t heap_counts[HEAP_LEVELS];
#endif

/* What the heap holds and has held. Linear: it walks the blocks. */
heap_statistics_t heap_statistics(const heap_t *heap);

/* Verifies every invariant of the heap. Linear in blocks. Whatever was written
 * over the heap's memory, it returns, and reads nothing outside. */
heap_corruption_t heap_check(heap_t *heap);

#ifdef __cplusplus
}
#endif

#endif
