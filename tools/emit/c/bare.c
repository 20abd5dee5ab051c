/* bare.c: malloc and its like over the heap of heap.h, in an image for a machine without an operating system.
 *
 * Linked into an image it is taken instead of the C library's malloc, newlib's `_malloc_r` and so on with it:
 *
 *     arm-none-eabi-gcc -mcpu=cortex-m3 -O2 -Ic program.c c/bare.c c/heap.c ... -o program.elf
 *
 * The memory of the heap is an array of fixed size among the data that begin as zeros, or wherever HEAP_PLACED says, a
 * declaration's attributes: -DHEAP_PLACED='__attribute__((section(".noinit")))'. It is not read before it is written. How
 * large it is stands in heap_config.h, in macros that a project may give otherwise. `sbrk` is not called.
 *
 * What keeps others out while the heap changes is HEAP_ENTER() and HEAP_LEAVE(): the library's own lock under newlib and
 * picolibc, which tasks of a kernel share if the library was told how; else nothing. Not for interrupts, as malloc is not.
 *
 * Blocks begin at multiples of two words. A request that is refused sets errno where there is a C library.
 *
 * Invariant: nothing here calls another function of the malloc family by its name, so that a linker's --wrap meets each
 * request once. */
#include "heap_ranges.h"

#if __STDC_HOSTED__
#include <errno.h>
#include <stdlib.h>
#endif

#if defined(__PICOLIBC__)
#include <sys/lock.h>
#ifndef HEAP_ENTER
#define HEAP_ENTER() __LIBC_LOCK()
#define HEAP_LEAVE() __LIBC_UNLOCK()
#endif
#elif defined(_NEWLIB_VERSION)
#include <malloc.h>
#include <reent.h>
#define BARE_NEWLIB
#ifndef HEAP_ENTER
#define HEAP_ENTER() __malloc_lock(_REENT)
#define HEAP_LEAVE() __malloc_unlock(_REENT)
#endif
#endif

#ifndef HEAP_ENTER
#define HEAP_ENTER() ((void)0)
#define HEAP_LEAVE() ((void)0)
#endif

#ifndef HEAP_PLACED
#define HEAP_PLACED
#endif

#ifdef ENOMEM
#define REFUSE(cause) (errno = (cause))
#else
enum { ENOMEM = 12, EINVAL = 22 };
#define REFUSE(cause) ((void)(cause))
#endif

HEAP_PLACED static unsigned char memory[RANGES_MEMORY] __attribute__((aligned(HEAP_BEGINNING)));

/* Where to look in the memory of the machine for what a run is compared by, for a simulator or a debugger: as many words, in
 * this order. What the heap took are the sum of `footprint` over the pools, `stride` bytes apart, and `slab` bytes for each
 * of the `slabs`. It is read here, so that a linker keeps it. */
struct metes_heap_map {
    unsigned char *memory;
    size_t bytes;
    size_t tables;
    const size_t *peak_live;
    size_t pools;
    const size_t *footprint;
    size_t stride;
    const size_t *slabs;
    size_t slab;
};
extern const volatile struct metes_heap_map metes_heap_map;
const volatile struct metes_heap_map metes_heap_map = {
    .memory = memory,
    .bytes = sizeof(memory),
    .tables = RANGES_TABLES,
    .peak_live = &heap.peak_live,
    .pools = HEAP_POOLS,
    .footprint = &heap.pools[0].footprint,
    .stride = sizeof(heap_pool_t),
#if HEAP_OBJECT_POOLS > 0
    .slabs = &heap.objects.extent,
    .slab = HEAP_SLAB + sizeof(heap_slab_t),
#endif
};

/* What blocks of malloc are aligned to. */
#define ALIGN (2U * sizeof(void *))

static bool is_settled;

__attribute__((noinline, cold)) static void settle(void)
{
    is_settled = true;
    settle_in(metes_heap_map.memory);
}

/* As everywhere, no block is of less than a byte. */
static inline void *allocate(size_t size, size_t align)
{
    HEAP_ENTER();
    if (!is_settled) {
        settle();
    }
    void *const place = heap_allocate(&heap, size == 0U ? 1U : size, align);
    HEAP_LEAVE();
    if (place == NULL) {
        REFUSE(ENOMEM);
    }
    return place;
}

static inline void *allocate_aligned(size_t align, size_t size)
{
    if (align == 0U || (align & (align - 1U)) != 0U) {
        REFUSE(EINVAL);
        return NULL;
    }
    return allocate(size, align);
}

static inline void *allocate_zeroed(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        REFUSE(ENOMEM);
        return NULL;
    }
    void *const place = allocate(bytes, ALIGN);
    if (place != NULL) {
        __builtin_memset(place, 0, bytes);
    }
    return place;
}

static inline void give_back(void *place)
{
    if (place == NULL) {
        return;
    }
    HEAP_ENTER();
    heap_free(&heap, place);
    HEAP_LEAVE();
}

static inline void *resize(void *place, size_t size)
{
    if (place == NULL) {
        return allocate(size, ALIGN);
    }
    /* To no bytes: as the library has it whose programs these are, a free or another block; without a library a byte. */
#if defined(__PICOLIBC__) || defined(_NANO_MALLOC)
    if (size == 0U) {
        give_back(place);
        return NULL;
    }
#elif defined(BARE_NEWLIB)
    if (size == 0U) {
        give_back(place);
        return allocate(1, ALIGN);
    }
#endif
    HEAP_ENTER();
    void *const moved = heap_resize(&heap, place, size == 0U ? 1U : size, ALIGN);
    HEAP_LEAVE();
    if (moved == NULL) {
        REFUSE(ENOMEM);
    }
    return moved;
}

/* The bytes that were requested: more would not survive realloc. */
static inline size_t usable(void *place)
{
    return place == NULL ? 0U : heap_requested_size(&heap, place);
}

void *malloc(size_t size)
{
    return allocate(size, ALIGN);
}

void free(void *place)
{
    give_back(place);
}

void cfree(void *place);
void cfree(void *place)
{
    give_back(place);
}

void *calloc(size_t count, size_t size)
{
    return allocate_zeroed(count, size);
}

void *realloc(void *place, size_t size)
{
    return resize(place, size);
}

void *reallocf(void *place, size_t size);
void *reallocf(void *place, size_t size)
{
    void *const moved = resize(place, size);
    if (moved == NULL && size != 0U) {
        give_back(place);
    }
    return moved;
}

void *memalign(size_t align, size_t size);
void *memalign(size_t align, size_t size)
{
    return allocate_aligned(align, size);
}

void *aligned_alloc(size_t align, size_t size);
void *aligned_alloc(size_t align, size_t size)
{
    return allocate_aligned(align, size);
}

int posix_memalign(void **out, size_t align, size_t size);
int posix_memalign(void **out, size_t align, size_t size)
{
    if (align < sizeof(void *) || (align & (align - 1U)) != 0U) {
        return EINVAL;
    }
    void *const place = allocate(size, align);
    if (place == NULL) {
        return ENOMEM;
    }
    *out = place;
    return 0;
}

size_t malloc_usable_size(void *place);
size_t malloc_usable_size(void *place)
{
    return usable(place);
}

#ifdef BARE_NEWLIB

/* What newlib calls itself. */

void *_malloc_r(struct _reent *reent, size_t size)
{
    (void)reent;
    return allocate(size, ALIGN);
}

void _free_r(struct _reent *reent, void *place)
{
    (void)reent;
    give_back(place);
}

void *_calloc_r(struct _reent *reent, size_t count, size_t size)
{
    (void)reent;
    return allocate_zeroed(count, size);
}

void *_realloc_r(struct _reent *reent, void *place, size_t size)
{
    (void)reent;
    return resize(place, size);
}

void *_memalign_r(struct _reent *reent, size_t align, size_t size)
{
    (void)reent;
    return allocate_aligned(align, size);
}

size_t _malloc_usable_size_r(struct _reent *reent, void *place)
{
    (void)reent;
    return usable(place);
}

#endif

/* What a run is compared by: where the memory of the heap begins, its bytes; bytes that the heap took, records of slabs
 * included; most bytes live at once; bytes of the tables beside the memory. The recorder tells it at the end. */
void metes_heap_state(size_t state[5]);
void metes_heap_state(size_t state[5])
{
    state[0] = (size_t)(uintptr_t)memory;
    state[1] = sizeof(memory);
    state[2] = heap_footprint(&heap);
    state[3] = heap_statistics(&heap).peak_live;
    state[4] = RANGES_TABLES;
}
