/* wasi.c: malloc and its like over the heap of heap.h, in a WebAssembly module.
 *
 * Linked into a program it is taken instead of the C library's malloc:
 *
 *     clang --target=wasm32-wasi -O2 program.c c/wasi.c c/heap.c -o program.wasm
 *
 * Its pools lie behind data and stack, the slabs of object pools behind them; what of it the memory does not have from the
 * start is asked for once, with the first request. Compiled with -DWASI_JOINED, as a module of its own that imports its memory, it is what Metes puts
 * into a program that is linked already: then the memory has the pools from the start.
 *
 * One thread. Blocks begin at multiples of 16, as max_align_t needs, and have 32 bytes at the least. A request that is refused sets no errno. */
#include "heap_ranges.h"

#ifdef WASI_JOINED
#define EXPORT(name) __attribute__((export_name(#name)))
#else
#define EXPORT(name)
#endif

enum { NO_MEMORY = 48, INVALID = 28 };

#define WASM_PAGE ((size_t)65536)

extern unsigned char __heap_base[];

static unsigned char *base;

/* Whether the memory reaches so far, or could be made to. */
static bool reaches(uintptr_t end)
{
    const size_t pages = (end + WASM_PAGE - 1U) / WASM_PAGE;
    const size_t there = __builtin_wasm_memory_size(0);
    return pages <= there || __builtin_wasm_memory_grow(0, pages - there) != SIZE_MAX;
}

__attribute__((noinline, cold)) static void settle(void)
{
    const uintptr_t start = ((uintptr_t)__heap_base + HEAP_BEGINNING - 1U) & ~(HEAP_BEGINNING - 1U);
    base = (unsigned char *)start;
    if (reaches(start + RANGES_MEMORY)) {
        settle_in(base);
    }
}

static inline heap_t *settled(void)
{
    if (base == NULL) {
        settle();
    }
    return &heap;
}

/* As everywhere, no block is of less than a byte. */
static inline void *allocate(size_t size, size_t align)
{
    return heap_allocate(settled(), size == 0U ? 1U : size, align);
}

EXPORT(malloc) void *malloc(size_t size)
{
    return allocate(size, 1);
}

EXPORT(free) void free(void *place)
{
    heap_free(&heap, place);
}

EXPORT(calloc) void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    void *const place = allocate(bytes, 1);
    if (place != NULL) {
        __builtin_memset(place, 0, bytes);
    }
    return place;
}

EXPORT(realloc) void *realloc(void *place, size_t size)
{
    return place == NULL ? malloc(size) : heap_resize(&heap, place, size == 0U ? 1U : size, 1);
}

EXPORT(aligned_alloc) void *aligned_alloc(size_t align, size_t size)
{
    if (align == 0U || (align & (align - 1U)) != 0U) {
        return NULL;
    }
    return allocate(size, align);
}

EXPORT(posix_memalign) int posix_memalign(void **out, size_t align, size_t size)
{
    if (align < sizeof(void *) || (align & (align - 1U)) != 0U) {
        return INVALID;
    }
    void *const place = aligned_alloc(align, size);
    if (place == NULL) {
        return NO_MEMORY;
    }
    *out = place;
    return 0;
}

/* The bytes that were requested: more would not survive realloc. */
EXPORT(malloc_usable_size) size_t malloc_usable_size(void *place)
{
    return place == NULL ? 0U : heap_requested_size(&heap, place);
}

#ifdef WASI_JOINED

/* There is no C library: both are an operator each. */

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    return __builtin_memcpy(to, from, bytes);
}

void *memset(void *to, int byte, size_t bytes)
{
    return __builtin_memset(to, byte, bytes);
}

/* As Rust asks: of the global allocator, where malloc is not behind it. */

EXPORT(__rust_alloc) void *metes_rust_alloc(size_t size, size_t align)
{
    return allocate(size, align);
}

EXPORT(__rust_alloc_zeroed) void *metes_rust_alloc_zeroed(size_t size, size_t align)
{
    void *const place = allocate(size, align);
    if (place != NULL) {
        __builtin_memset(place, 0, size);
    }
    return place;
}

EXPORT(__rust_dealloc) void metes_rust_dealloc(void *place, size_t size, size_t align)
{
    (void)size;
    (void)align;
    heap_free(&heap, place);
}

EXPORT(__rust_realloc) void *metes_rust_realloc(void *place, size_t old, size_t align, size_t size)
{
    (void)old;
    return heap_resize(&heap, place, size, align);
}

/* What a run is compared by. */

EXPORT(metes_heap_base) uintptr_t metes_heap_base(void)
{
    return (uintptr_t)base;
}

EXPORT(metes_heap_footprint) size_t metes_heap_footprint(void)
{
    return heap_footprint(&heap);
}

EXPORT(metes_heap_peak_live) size_t metes_heap_peak_live(void)
{
    return heap_statistics(&heap).peak_live;
}

#endif
