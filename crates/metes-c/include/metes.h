/* Metes for C: heaps with proven bounds in memory that you give.
 *
 *     static char memory[1 << 20];
 *     metes_error error;
 *     metes_heap *heap = metes_heap_create(memory, sizeof memory, "tlsf", &error);
 *     if (heap == NULL) { puts(error.message); return 1; }
 *     char *block = metes_heap_allocate(heap, 100);
 *     metes_heap_free(heap, block);
 *     metes_heap_destroy(heap);
 *
 * A heap lies wholly in its memory, its own state included: nothing is taken
 * from malloc or the system, and different heaps share nothing. A heap is not
 * locked: calls on one heap must not overlap.
 *
 * Every block is aligned to 16 bytes on 64-bit machines, to 8 on 32-bit ones.
 * A request for zero bytes is served as one for one byte.
 */
#ifndef METES_H
#define METES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A heap; lies at the beginning of its memory. */
typedef struct metes_heap metes_heap;

/* Why a call failed: one line, ended by a zero byte. Functions that take a
 * pointer to it also take NULL, and write to it only when they fail. */
typedef struct metes_error {
    char message[256];
} metes_error;

/* What a heap holds and has held: bytes and blocks. */
typedef struct metes_statistics {
    size_t live;          /* requested bytes now allocated */
    size_t peak_live;     /* largest live so far */
    size_t blocks;        /* blocks now allocated */
    size_t peak_blocks;   /* largest blocks so far */
    uint64_t allocations; /* successful allocations so far */
    uint64_t frees;       /* frees so far */
    uint64_t resizes;     /* successful resizes so far */
    uint64_t failures;    /* allocations and resizes refused so far */
    size_t largest_free;  /* capacity of the largest free block */
    size_t free_blocks;
    size_t free_bytes;    /* in free blocks, their records included */
    size_t footprint;     /* bytes of all regions, without this state */
    size_t record_bytes;  /* headers and control structure */
} metes_statistics;

/* A block as metes_heap_walk shows it. */
typedef struct metes_block {
    const void *address; /* what the program holds, or would hold */
    size_t size;         /* bytes from record to record */
    size_t requested;    /* bytes requested; 0 for a free block */
    bool used;
} metes_block;

/* Makes a heap in `length` bytes from `memory`, which must stay the heap's
 * until it is destroyed. `spec` is a name with or without parameters:
 *
 *     first-fit next-fit best-fit worst-fit exact-fit
 *         order=lifo|fifo|address depth=PERCENT max_fit=PERCENT
 *     segregated-fit   second_level=N probes=N|all
 *     half-fit
 *     tlsf             second_level=N (a power of two up to 32)
 *     buddy            order=lifo|address
 *     kingsley
 *
 * each also with store=hardened, which verifies its records: no bad free is
 * obeyed, and what overwrites a record is found (see metes_heap_fault). As in
 * "tlsf:second_level=8" or "best-fit:order=lifo,depth=50"; all but buddy
 * and kingsley also take coalesce_up_to=SIZE and split_down_to=SIZE. NULL, with
 * the reason, if the spec is not right or the memory too small. */
metes_heap *metes_heap_create(void *memory, size_t length, const char *spec, metes_error *error);

/* As metes_heap_create, for a heap that will be given further regions of up to
 * `largest_region` bytes. */
metes_heap *metes_heap_create_spanning(void *memory, size_t length, const char *spec,
                                       size_t largest_region, metes_error *error);

/* Adds memory. False, with the reason, if it is too small, larger than the heap
 * was prepared for, or the heap is a buddy system, which has one region only. */
bool metes_heap_add_region(metes_heap *heap, void *memory, size_t length, metes_error *error);

/* A block of at least `size` bytes, or NULL. */
void *metes_heap_allocate(metes_heap *heap, size_t size);

/* As metes_heap_allocate, aligned to `align`, a power of two. */
void *metes_heap_allocate_aligned(metes_heap *heap, size_t align, size_t size);

/* `count` times `size` bytes of zero, or NULL, also where the product overflows. */
void *metes_heap_allocate_zeroed(metes_heap *heap, size_t count, size_t size);

/* A block of the new size with the old contents: the same place if possible. If
 * there is no memory, or `block` is seen to be no block in use, NULL, and
 * `block` is as it was. NULL for `block` allocates. */
void *metes_heap_resize(metes_heap *heap, void *block, size_t size);

/* Frees a block; NULL is no block, and no fault. False if the block is seen not
 * to be in use: a pointer that is foreign or was freed; the heap is then
 * unchanged. (Not every such fault can be seen.) */
bool metes_heap_free(metes_heap *heap, void *block);

/* What was wrong with the block that was last freed or resized, or what the last
 * operation found overwritten; NULL if nothing was. A heap with store=hardened
 * refuses every bad free and what would rely on an overwritten record, and is then
 * unchanged; see the chapter Guarantees for what is found always, what with which
 * probability, and what not. */
const char *metes_heap_fault(const metes_heap *heap);

/* Bytes that may be used of a block in use; 0 for NULL and what is seen to be none. */
size_t metes_heap_usable_size(const metes_heap *heap, const void *block);

/* Calls `visit` with every block in the order of addresses, region by region,
 * until it returns false. It must not change the heap. False if the heap is
 * corrupt. Linear in the number of blocks. */
bool metes_heap_walk(const metes_heap *heap, bool (*visit)(void *context, const metes_block *block),
                     void *context);

/* Fills in the statistics. Linear in the number of blocks. */
void metes_heap_statistics(const metes_heap *heap, metes_statistics *statistics);

/* Verifies every invariant of the heap. False, with the reason, if one is
 * broken. Linear in the number of blocks; meant to be called in production too. */
bool metes_heap_check(const metes_heap *heap, metes_error *error);

/* Ends a heap: its memory is yours again. Blocks need not be freed before. */
void metes_heap_destroy(metes_heap *heap);

/* The version of the library, such as "0.1.0". */
const char *metes_version(void);

#ifdef __cplusplus
}
#endif

#endif
