/* Device heaps of Metes for C: memory of a GPU that the host manages and never reads.
 *
 *     metes_device_heap *heap = metes_device_create_cuda(0, NULL);
 *     if (heap == NULL) { puts(metes_device_last_error()); return 1; }
 *     uint64_t address;
 *     if (metes_device_allocate(heap, 1 << 20, 256, 0, &address) != METES_DEVICE_OK) ...
 *     metes_device_free(heap, address);
 *     metes_device_destroy(heap);
 *
 * A heap reserves more addresses than it may use memory, and puts pages under blocks in use.
 * Frees are ordered by streams: a block may be freed while issued work uses it; the next request
 * of its stream gets it at once, others when that work is done. Streams are named as the driver
 * names them (a CUstream or cudaStream_t as a number; 0 is the default stream). A stream must not
 * be destroyed before metes_device_leave, or while blocks in use name it.
 *
 * A heap has one lock: any thread may call. After a fork the child's calls are refused. After a
 * heap was made, no call takes host memory but for lists of events, of what graphs keep, and the
 * backend's own books of its pages.
 */
#ifndef METES_DEVICE_H
#define METES_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct metes_device_heap metes_device_heap;

/* How a call ended; metes_device_last_error says why. */
typedef enum metes_device_status {
    METES_DEVICE_OK,
    METES_DEVICE_OUT_OF_MEMORY, /* and who holds it, in the text */
    METES_DEVICE_INVALID,       /* an argument */
    METES_DEVICE_BAD_FREE,      /* no block in use begins there; nothing happened */
    METES_DEVICE_STREAM,        /* the stream was destroyed or left, or is one too many */
    METES_DEVICE_CAPTURING,     /* the stream is being captured into a graph */
    METES_DEVICE_ASLEEP,
    METES_DEVICE_FORKED, /* the heap is of the process that this one was forked from */
    METES_DEVICE_DEVICE, /* the device or its driver refused */
    METES_DEVICE_BROKEN  /* an error of Metes; the heap is not used any more */
} metes_device_status;

/* How a heap is made; what is 0 is chosen. */
typedef struct metes_device_options {
    uint64_t cap;       /* most bytes of memory [what of the device is free] */
    uint64_t addresses; /* bytes of addresses [twice the cap] */
    uint64_t page;      /* a power of two [2 MiB, or the device's granularity] */
    uint64_t granule;   /* blocks are multiples of this power of two [512] */
    uint64_t moves;     /* most pages that one request may move [any number] */
    uint64_t blocks;    /* most blocks in use [262144] */
    uint32_t streams;   /* most streams at a time, up to 63 [63] */
    uint32_t batch;     /* streams are marked after so many frees [32] */
    uint32_t wait;      /* 0: memory that another stream still uses is handed over by ordering
                           the streams; else the host waits */
    uint32_t watch;     /* 1: others may look at the heap (`metes device watch`); 2: nobody; 0: nobody,
                           but at the heaps of devices that frameworks share. The environment variable
                           METES_DEVICE_WATCH, if it is set, decides for all heaps: 0 nobody */
} metes_device_options;

/* A quantity: what it is, has been at most, and by how much it rose and fell. */
typedef struct metes_device_count {
    uint64_t current, peak, added, removed;
} metes_device_count;

typedef struct metes_device_block_counts {
    metes_device_count blocks;
    metes_device_count allocated; /* bytes, in whole granules */
    metes_device_count requested; /* bytes */
} metes_device_block_counts;

typedef struct metes_device_statistics {
    metes_device_block_counts small; /* blocks of up to 1 MiB */
    metes_device_block_counts large;
    metes_device_block_counts all;
    metes_device_count reserved; /* bytes of the device's memory */
    uint64_t cap, addresses, page, granule;
    uint64_t live_pages;  /* under blocks in use */
    uint64_t idle_pages;  /* mapped, under none */
    uint64_t spare_pages; /* mapped nowhere */
    uint64_t mapped;      /* maps of new and spare pages */
    uint64_t moved;       /* moves of idle pages */
    uint64_t most_moved;  /* by one request */
    uint64_t marks;       /* events recorded for frees */
    uint64_t waits;       /* waits of the host for a stream */
    uint64_t orders;      /* streams ordered behind another */
    uint64_t streams;     /* followed now */
    uint64_t refusals;    /* for lack of memory */
    uint64_t retries;     /* after the callback gave memory back */
    uint64_t bad_frees;   /* refused */
    uint64_t asleep;      /* 0 or 1 */
} metes_device_statistics;

/* A block in use. */
typedef struct metes_device_block {
    uint64_t address;
    uint64_t size; /* bytes, in whole granules */
    uint64_t requested;
    uint64_t stream;
} metes_device_block;

/* Blocks in use of a stream; UINT64_MAX: of streams that left;
 * UINT64_MAX - 1: of graphs. */
typedef struct metes_device_holder {
    uint64_t stream;
    uint64_t bytes; /* requested */
    uint64_t blocks;
} metes_device_holder;

typedef struct metes_device_range {
    uint64_t address;
    uint64_t bytes;
} metes_device_range;

typedef enum metes_device_action {
    METES_DEVICE_ALLOCATED,
    METES_DEVICE_FREED,
    METES_DEVICE_REFUSED /* for lack of memory */
} metes_device_action;

typedef struct metes_device_event {
    uint64_t address;
    uint64_t bytes; /* requested */
    uint64_t stream;
    uint64_t microseconds; /* since 1970 */
    metes_device_action action;
} metes_device_event;

/* Called without the heap's lock when memory is lacking for `bytes` bytes, by the thread that
 * asked for them: says whether it gave something back since, and whether to try again. */
typedef bool (*metes_device_reclaim)(void *context, uint64_t bytes);

/* What this thread's last call that failed said; stays until its next that fails. */
const char *metes_device_last_error(void);

/* A heap over a CUDA device's memory, by its driver's library, which is loaded now. NULL, with
 * the reason, without a driver or device. */
metes_device_heap *metes_device_create_cuda(uint32_t ordinal, const metes_device_options *options);

/* A heap over `total` bytes of addresses of this process that nothing may touch (on Linux): for
 * tests. Issued work counts as done. `granularity` is a power of two from 4096 on. */
metes_device_heap *metes_device_create_guarded(uint64_t total, uint64_t granularity,
                                               const metes_device_options *options);

/* A heap over offsets from 0 on, into whatever has `total` bytes; otherwise as the one before. */
metes_device_heap *metes_device_create_offsets(uint64_t total, uint64_t granularity,
                                               const metes_device_options *options);

/* Gives memory and addresses back; no work may be left that uses them. NULL is no heap. */
void metes_device_destroy(metes_device_heap *heap);

/* A block of `bytes` bytes at a multiple of `align` (a power of two; 0 is 1) for work of
 * `stream`. No bytes are address 0, and no block. */
metes_device_status metes_device_allocate(const metes_device_heap *heap, uint64_t bytes,
                                          uint64_t align, uint64_t stream, uint64_t *address);

/* Frees a block that work issued until now may still use. With METES_DEVICE_STREAM,
 * METES_DEVICE_CAPTURING and METES_DEVICE_DEVICE it is freed, and waits longer. */
metes_device_status metes_device_free(const metes_device_heap *heap, uint64_t address);

/* Work of `stream` uses the block beside the stream that it was allocated for. */
metes_device_status metes_device_use_on(const metes_device_heap *heap, uint64_t address,
                                        uint64_t stream);

/* Waits for the work that frees on the stream wait for, and follows it no longer: before it is
 * destroyed. */
metes_device_status metes_device_leave(const metes_device_heap *heap, uint64_t stream);

/* The stream was destroyed, and its work is over. */
metes_device_status metes_device_forget(const metes_device_heap *heap, uint64_t stream);

/* Gives memory under no block back until `keep` bytes of it are left; `given` may be NULL. */
metes_device_status metes_device_trim(const metes_device_heap *heap, uint64_t keep,
                                      uint64_t *given);

/* Gives all memory back. Blocks keep their addresses and lose what they hold; nothing may use
 * them before the heap is woken. Frees are served, requests refused. */
metes_device_status metes_device_sleep(const metes_device_heap *heap);
metes_device_status metes_device_wake(const metes_device_heap *heap);

/* Changes the cap, up to the one that the heap was made with. */
metes_device_status metes_device_limit(const metes_device_heap *heap, uint64_t cap);

/* Has `reclaim` called when memory is lacking; NULL has nobody. */
metes_device_status metes_device_on_out_of_memory(const metes_device_heap *heap,
                                                  metes_device_reclaim reclaim, void *context);

/* Bytes that were asked for, of a block in use. */
metes_device_status metes_device_requested(const metes_device_heap *heap, uint64_t address,
                                           uint64_t *requested);

metes_device_status metes_device_get_statistics(const metes_device_heap *heap,
                                                metes_device_statistics *statistics);

/* Bytes of the device. */
metes_device_status metes_device_capacity(const metes_device_heap *heap, uint64_t *free,
                                          uint64_t *total);

/* Peaks are what is now; sums, refusals and retries count from now. */
metes_device_status metes_device_reset_peaks(const metes_device_heap *heap);
metes_device_status metes_device_reset_totals(const metes_device_heap *heap);

/* Each writes up to `most` of what there is, and how many there are to `count`. Holders and
 * blocks in no order, ranges with memory in that of their addresses. */
metes_device_status metes_device_holders(const metes_device_heap *heap,
                                         metes_device_holder *holders, size_t most, size_t *count);
metes_device_status metes_device_blocks(const metes_device_heap *heap, metes_device_block *blocks,
                                        size_t most, size_t *count);
metes_device_status metes_device_mapped(const metes_device_heap *heap, metes_device_range *ranges,
                                        size_t most, size_t *count);

/* Forgets all events and keeps the last `most` from now on; 0 keeps none. */
metes_device_status metes_device_record(const metes_device_heap *heap, size_t most);
metes_device_status metes_device_events(const metes_device_heap *heap, metes_device_event *events,
                                        size_t most, size_t *count);

/* Verifies every invariant; linear. */
metes_device_status metes_device_check(const metes_device_heap *heap);

/* Allocators of frameworks know the number of a CUDA device, and no heap. So each device has one
 * heap in a process, made at the first use and never given back. */

/* How heaps of devices are made; refused once one is. NULL: as chosen. */
metes_device_status metes_devices_configure(const metes_device_options *options);

/* As metes_device_on_out_of_memory, for the heaps of all devices. */
metes_device_status metes_devices_on_out_of_memory(metes_device_reclaim reclaim, void *context);

/* As metes_device_record, for the heaps of all devices. */
metes_device_status metes_devices_record(size_t most);

/* The heap of a device: NULL if there is none; the other makes it, NULL with the reason. */
const metes_device_heap *metes_devices_known(int device);
const metes_device_heap *metes_devices_heap(int device);

/* PyTorch: functions for its pluggable allocator (`stream` is a cudaStream_t). malloc and the
 * hooks throw exceptions of C++: PyTorch's own out-of-memory error, or std::runtime_error; in a
 * process without C++ they return, malloc NULL. free throws nothing. try_malloc returns NULL
 * instead, for pools of PyTorch's own allocator. */

/* Whether PyTorch, which must be loaded, exports its out-of-memory error. */
bool metes_torch_prepare(void);
void *metes_torch_malloc(ssize_t size, int device, void *stream);
void *metes_torch_try_malloc(ssize_t size, int device, void *stream);
void metes_torch_free(void *block, size_t size, int device, void *stream);
void metes_torch_record_stream(void *block, void *stream); /* set_record_stream_fn */
void metes_torch_reset(void);                              /* set_reset_fn: empties the cache */
void metes_torch_memory_fraction(double fraction, int device); /* set_memory_fraction_fn */

/* Pools of graphs: set_begin_allocate_to_pool, set_end_allocate_to_pool_fn and set_release_pool.
 * What a captured stream allocates between the first two is its pool's, and stays it when it is
 * freed, until the pool was released as often as it was begun. `filter` is not used. */
typedef struct metes_torch_pool {
    uint64_t first, second;
} metes_torch_pool;
void metes_torch_begin_pool(int device, metes_torch_pool pool, void *filter);
void metes_torch_end_pool(int device, metes_torch_pool pool);
void metes_torch_release_pool(int device, metes_torch_pool pool);

/* RMM: functions for its callback_memory_resource; `device` is the number of the device. NULL is
 * a failure. */
void *metes_rmm_allocate(size_t bytes, void *stream, void *device);
void metes_rmm_deallocate(void *block, size_t bytes, void *stream, void *device);

/* CuPy: functions for cupy.cuda.CFunctionAllocator, which knows no stream: all is of the default
 * one. NULL is a failure. */
void *metes_cupy_malloc(void *parameter, size_t bytes, int device);
void metes_cupy_free(void *parameter, void *block, int device);

#ifdef __cplusplus
}
#endif

#endif
