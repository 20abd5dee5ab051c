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
 *
 * What is given NULL for a heap does nothing and refuses: NULL, zero or false.
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
 * was prepared for, the heap's already (in part), or the heap is a buddy system, which has one region only. */
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
 * probability, and what not. The 1024th time that something was found forged or
 * overwritten closes such a heap: it frees and gives out nothing from then on. */
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
 * broken. Linear in the number of blocks; meant to be called in production too:
 * whatever was written over blocks, free memory and lists, it returns, and reads
 * nothing outside the heap's regions. (The heap itself, at the beginning of its
 * memory, is not verified.) */
bool metes_heap_check(const metes_heap *heap, metes_error *error);

/* Ends a heap: its memory is yours again. Blocks need not be freed before. */
void metes_heap_destroy(metes_heap *heap);

/* Compact-fit: a heap that moves its blocks
 *
 * Memory is divided into pages, a page into blocks of one size class. A free
 * that would leave more than kappa pages of its class neither full nor empty
 * moves one block into the place of the freed one, so that never more than
 * kappa pages of a class are partly used: neither time nor memory depends on
 * the history. Programs hold handles. Linked structures are linked by handles.
 *
 *     metes_compact *heap = metes_compact_create(memory, sizeof memory, NULL, &error);
 *     metes_compact_handle block;
 *     metes_compact_allocate(heap, sizeof node, 8, &block);
 *     metes_compact_write(heap, block, 0, &node, sizeof node);
 *     metes_compact_free(heap, block);
 *
 * Every function that returns a status detects every handle that is stale,
 * foreign or made up (an entry counts 2^24 - 1 blocks and is then retired), and
 * NULL where that must not be; the heap is then unchanged, and nothing is
 * written. Below, b is the bytes of a block. */

/* A heap that moves its blocks; lies at the beginning of its memory. */
typedef struct metes_compact metes_compact;

/* Names a block, wherever it lies. 0 is never one. */
typedef uint64_t metes_compact_handle;

/* A move under way, or 0. */
typedef uint64_t metes_compact_move;

/* How a call ended. */
typedef enum metes_compact_status {
    METES_COMPACT_OK = 0,
    METES_COMPACT_NULL,          /* a pointer is NULL that must not be */
    METES_COMPACT_FOREIGN,       /* the handle is of another heap, or of none */
    METES_COMPACT_STALE,         /* the block was freed */
    METES_COMPACT_PINNED,        /* the block is pinned: unpin it first */
    METES_COMPACT_NOT_PINNED,    /* the block is not pinned */
    METES_COMPACT_TOO_MANY_PINS, /* the block has 254 pins already */
    METES_COMPACT_OUTSIDE,       /* the access runs over the end of the block */
    METES_COMPACT_TOO_LARGE,     /* the request exceeds the largest size class */
    METES_COMPACT_ALIGNMENT,     /* no power of two, or no size class has it */
    METES_COMPACT_EXHAUSTED,     /* no page or no handle is left */
    METES_COMPACT_NO_MOVE,       /* the number is that of no move */
    METES_COMPACT_CORRUPT        /* something wrote past its block */
} metes_compact_status;

/* No bound: blocks never move. */
#define METES_COMPACT_NEVER UINT32_MAX

/* What decides how a heap is partitioned, and when blocks move. */
typedef struct metes_compact_options {
    size_t page;      /* bytes of a page: a power of two from 256 to 65536 */
    size_t smallest;  /* bytes of the smallest block, its record of 8 included */
    size_t largest;   /* largest request in bytes; with its record at most a page */
    size_t granule;   /* sizes are multiples of it: a power of two from 16 */
    uint32_t factor;  /* each class is as many thousandths of the one before */
    uint32_t kappa;   /* most partly used pages of a class, or METES_COMPACT_NEVER */
    size_t increment; /* bytes of a step of a move; 0: a move is one step */
} metes_compact_options;

/* Where the bytes of a heap go. */
typedef struct metes_compact_bytes {
    size_t live;                /* requested bytes of the blocks in use */
    size_t page_block_internal; /* what blocks have beyond that, records included */
    size_t page_internal;       /* ends of pages in which no block fits */
    size_t size_class;          /* free blocks of pages that are in use: bounded by kappa */
    size_t transient;           /* blocks that are left by moves under way */
    size_t spare;               /* pages that were used before, and are of no class now */
    size_t handles;             /* the table of handles */
    size_t records;             /* records of pages and classes */
} metes_compact_bytes;

/* What a status means: one line. */
const char *metes_compact_error(int status);

/* Pages of 16 KiB, blocks from 32 bytes growing by an eighth, requests up to
 * half a page, kappa 1, moves in one step. */
metes_compact_options metes_compact_defaults(void);

/* Makes a heap in `length` bytes from `memory`, which must stay the heap's until
 * it is destroyed. NULL for `options` takes the defaults. NULL, with the reason,
 * if the options contradict each other or the memory is too small. O(pages).
 * A process can have 65,535 such heaps in all: no two have blocks of one handle. */
metes_compact *metes_compact_create(void *memory, size_t length,
                                    const metes_compact_options *options, metes_error *error);

/* Ends a heap: its memory is yours again, its handles are foreign to all others. */
void metes_compact_destroy(metes_compact *heap);

/* Allocates `size` bytes aligned to `align`, a power of two; 0 bytes are a block,
 * too. What it holds is undefined. O(1); with moves under way O(moves).
 * TOO_LARGE, ALIGNMENT, EXHAUSTED. */
metes_compact_status metes_compact_allocate(metes_compact *heap, size_t size, size_t align,
                                            metes_compact_handle *handle);

/* Frees a block and makes the move that may follow. O(1) without, else O(b).
 * FOREIGN, STALE, PINNED. */
metes_compact_status metes_compact_free(metes_compact *heap, metes_compact_handle handle);

/* As metes_compact_free, but the move, if `*move` is not 0, is made by
 * metes_compact_step; other calls may come between. O(1). FOREIGN, STALE, PINNED. */
metes_compact_status metes_compact_begin_free(metes_compact *heap, metes_compact_handle handle,
                                              metes_compact_move *move);

/* Makes one step of a move, at most the increment of the options; `*move` is 0
 * when none is left, and 0 is accepted. Moves never wait: whoever needs the
 * block at rest makes the steps that are left. O(increment). NO_MOVE. */
metes_compact_status metes_compact_step(metes_compact *heap, metes_compact_move *move);

/* Makes all steps of all moves under way: at most 16 moves, O(b) each. */
metes_compact_status metes_compact_finish(metes_compact *heap);

/* Changes the size of a block, whose handle stays good and whose contents stay as
 * far as both sizes reach. O(1) within the class, else O(b). FOREIGN, STALE,
 * TOO_LARGE, ALIGNMENT, EXHAUSTED; PINNED where the class changes. */
metes_compact_status metes_compact_resize(metes_compact *heap, metes_compact_handle handle,
                                          size_t size, size_t align);

/* The requested bytes of a block. O(1). FOREIGN, STALE. */
metes_compact_status metes_compact_size(metes_compact *heap, metes_compact_handle handle,
                                        size_t *size);

/* Copies bytes of a block out; `bytes` must not lie in the heap. O(length).
 * FOREIGN, STALE, OUTSIDE. */
metes_compact_status metes_compact_read(metes_compact *heap, metes_compact_handle handle,
                                        size_t offset, void *bytes, size_t length);

/* Copies bytes into a block; `bytes` must not lie in the heap. O(length).
 * FOREIGN, STALE, OUTSIDE. */
metes_compact_status metes_compact_write(metes_compact *heap, metes_compact_handle handle,
                                         size_t offset, const void *bytes, size_t length);

/* Pins a block: it stays at `*address` and cannot be freed until it is unpinned as
 * often as it was pinned. Pages with pinned blocks do not count towards kappa. A
 * move of the block is ended first. O(1), else O(b). FOREIGN, STALE,
 * TOO_MANY_PINS. */
metes_compact_status metes_compact_pin(metes_compact *heap, metes_compact_handle handle,
                                       void **address);

/* Takes a pin back; after the last one the address is void. O(1), or the moves that
 * were put off, each O(b). FOREIGN, STALE, NOT_PINNED. */
metes_compact_status metes_compact_unpin(metes_compact *heap, metes_compact_handle handle);

/* Fills in the statistics. O(classes x pages). */
metes_compact_status metes_compact_statistics(const metes_compact *heap,
                                              metes_statistics *statistics);

/* Fills in where the bytes go. O(classes x pages). */
metes_compact_status metes_compact_fragmentation(const metes_compact *heap,
                                                 metes_compact_bytes *bytes);

/* Verifies every invariant of the heap. O(classes x pages + blocks). CORRUPT. */
metes_compact_status metes_compact_check(const metes_compact *heap);

/* Virtual memory in constant time: what an operating system keeps of an address space, so that
 * making a region, freeing it with all its frames, a page fault and an access each take a bounded
 * number of instructions, whatever the region's size (docs/pages.md). Pages and frames are numbers;
 * what memory they stand for is the caller's.
 *
 *     void *memory = calloc(1, metes_pages_size(4096));
 *     metes_pages *pages = metes_pages_create(memory, metes_pages_size(4096), 4096, 0);
 *     metes_pages_map(pages, 100, 2000, true);
 *     // at a page fault:
 *     metes_mapped mapped;
 *     if (metes_pages_map_page(pages, page, frames, &mapped) == METES_PAGES_OK && mapped.clear)
 *         clear(mapped.frame);
 *     metes_pages_unmap(pages, 100, frames);
 */
typedef struct metes_pages metes_pages;
typedef struct metes_frames metes_frames;

/* What a call met; nothing is changed unless it is OK. */
typedef enum metes_pages_status {
    METES_PAGES_OK,
    METES_PAGES_EMPTY,    /* a region of no pages */
    METES_PAGES_BEYOND,   /* beyond the space */
    METES_PAGES_OVERLAP,  /* pages of the region are allocated already */
    METES_PAGES_UNMAPPED, /* no allocated region there; to unmap: none that begins there */
    METES_PAGES_RIGHTS,   /* the region does not allow the access */
    METES_PAGES_ABSENT,   /* a page fault: allocated, not mapped yet */
    METES_PAGES_PRESENT,  /* mapped already */
    METES_PAGES_NO_FRAME, /* all frames are used */
    METES_PAGES_MEMORY    /* a null pointer */
} metes_pages_status;

/* A page that was just mapped. */
typedef struct metes_mapped {
    uint32_t frame;
    bool clear; /* the frame may hold what another domain wrote: clear it */
} metes_mapped;

/* Bytes that a space of so many pages takes; 0 if there are none or more than 2^24. */
size_t metes_pages_size(uint32_t pages);

/* A space in memory that is all zero, aligned to 8 bytes. Spaces of one domain, below 64, may see
 * what each other left in frames. NULL if the memory does not suffice. O(1). */
metes_pages *metes_pages_create(void *memory, size_t bytes, uint32_t pages, uint8_t domain);

/* Bytes that so many frames take. */
size_t metes_frames_size(uint32_t frames);

/* Frames that spaces share, in memory of any content, aligned to 8 bytes. NULL if it does not
 * suffice. O(1). */
metes_frames *metes_frames_create(void *memory, size_t bytes, uint32_t frames);

/* Frames that no page is mapped to. O(1). */
uint32_t metes_frames_available(const metes_frames *frames);

/* Makes `count` pages from `start` a region, to be read or also written. Takes no frame. O(1).
 * EMPTY, BEYOND, OVERLAP. */
metes_pages_status metes_pages_map(metes_pages *pages, uint32_t start, uint32_t count, bool write);

/* Frees the region that begins at `start`, all of its pages and frames. O(1). BEYOND, UNMAPPED. */
metes_pages_status metes_pages_unmap(metes_pages *pages, uint32_t start, metes_frames *frames);

/* Maps a page to a frame, at a page fault. O(1). BEYOND, UNMAPPED, PRESENT, NO_FRAME. */
metes_pages_status metes_pages_map_page(metes_pages *pages, uint32_t page, metes_frames *frames,
                                        metes_mapped *mapped);

/* The frame of a page. O(1). BEYOND, UNMAPPED, RIGHTS, ABSENT. */
metes_pages_status metes_pages_access(metes_pages *pages, uint32_t page, bool write,
                                      uint32_t *frame);

/* One heap over many nodes: each has a heap of its own in memory that all reach, and is served by the others' when that is full;
 * any node frees any block, without a lock; a node may die at any instruction, and nothing is lost (docs/mesh.md). Nodes are threads,
 * processes that have the memory at the same address, or cores.
 *
 *     size_t align, size = metes_mesh_size(4, 65536, &align);
 *     void *memory = aligned_alloc(align, size);
 *     memset(memory, 0, size);
 *     metes_mesh_create(memory, size, 4, 65536);
 *     // in each node:
 *     metes_mesh_node *node = metes_mesh_join(malloc(metes_mesh_node_size()), memory, size, 4, 65536, number, &status);
 *     void *block = metes_mesh_allocate(node, 100, 8, &status);
 *     metes_mesh_free(node, block);
 */
typedef struct metes_mesh_node metes_mesh_node;

/* What a call met. */
typedef enum metes_mesh_status {
    METES_MESH_OK,
    METES_MESH_FULL,       /* every heap was looked into, and none has room */
    METES_MESH_BUSY,       /* others held a heap all the time: there may be room, try again */
    METES_MESH_EXPELLED,   /* this node was taken for dead: what it had is others' */
    METES_MESH_OUTSIDE,    /* the address is outside of every heap */
    METES_MESH_NOT_IN_USE, /* no block in use begins there: freed twice, or never given out */
    METES_MESH_INVALID,    /* no such node, too many of them, too many bytes, or no power of two */
    METES_MESH_MEMORY,     /* a null pointer, misaligned memory, or too little */
    METES_MESH_NOT_CREATED /* no such mesh was created in the memory, or not yet */
} metes_mesh_status;

/* What a node has done. */
typedef struct metes_mesh_counts {
    uint64_t local;      /* requests that its own heap served */
    uint64_t remote;     /* requests that another heap served */
    uint64_t full;       /* requests refused as FULL */
    uint64_t busy;       /* requests refused as BUSY */
    uint64_t visits;     /* heaps looked into */
    uint64_t skips;      /* heaps passed over, as another node held them */
    uint64_t longest;    /* most of both for one request */
    uint64_t parked;     /* blocks freed without a lock */
    uint64_t taken_over; /* locks taken over of dead nodes */
} metes_mesh_counts;

/* Bytes that a mesh of `nodes` heaps of `bytes` bytes each takes, and in `align`, unless it is NULL, what its address must be a
 * multiple of: heaps lie as far apart as the power of two that holds one. 0 if there can be none. */
size_t metes_mesh_size(uint32_t nodes, size_t bytes, size_t *align);

/* Makes a mesh in `size` bytes that are all zero; once, before any node joins. O(nodes). INVALID, MEMORY. */
metes_mesh_status metes_mesh_create(void *memory, size_t size, uint32_t nodes, size_t bytes);

/* Bytes of a node's own state. */
size_t metes_mesh_node_size(void);

/* Node `node` of the mesh in `memory`, its state in `storage`, which is as aligned as what malloc gives, and stays where it is.
 * NULL, with the reason in `failed` unless that is NULL: INVALID, MEMORY, NOT_CREATED. A node is one at a time. O(1). */
metes_mesh_node *metes_mesh_join(void *storage, void *memory, size_t size, uint32_t nodes, size_t bytes,
                                 uint32_t node, metes_mesh_status *failed);

/* A block of `size` bytes aligned to `align`, a power of two: of the own heap, or another's. NULL, with the reason in `failed`
 * unless that is NULL: FULL, BUSY, EXPELLED, INVALID, MEMORY. */
void *metes_mesh_allocate(metes_mesh_node *node, size_t size, size_t align, metes_mesh_status *failed);

/* Frees a block of whichever heap; any address may be tried, NULL is OK. OUTSIDE, NOT_IN_USE, EXPELLED, MEMORY. */
metes_mesh_status metes_mesh_free(metes_mesh_node *node, void *block);

/* Takes another node for dead: its heap serves no more, its locks are taken over. Whoever says so is sure that it takes no
 * further step. O(1). INVALID, MEMORY. */
metes_mesh_status metes_mesh_declare_dead(metes_mesh_node *node, uint32_t dead);

/* Makes the blocks of a dead node this one's and tells each. Linear in all heaps. BUSY (call again; nothing is told twice),
 * EXPELLED, INVALID, MEMORY. */
metes_mesh_status metes_mesh_adopt(metes_mesh_node *node, uint32_t dead,
                                   void (*adopted)(void *block, void *context), void *context);

/* Takes a dead node back, whose blocks were adopted: its heap is rebuilt from blocks in use, and it may join again. Linear in its
 * heap. FULL (it cannot be rebuilt), BUSY, EXPELLED, INVALID, MEMORY. */
metes_mesh_status metes_mesh_readmit(metes_mesh_node *node, uint32_t dead);

/* Fills in what the node has done. O(1). MEMORY. */
metes_mesh_status metes_mesh_count(metes_mesh_node *node, metes_mesh_counts *counts);

/* The version of the library, such as "0.1.0". */
const char *metes_version(void);

#ifdef __cplusplus
}
#endif

#endif
