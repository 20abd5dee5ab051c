/* The malloc family of a C library, recorded: newlib's and picolibc's, by the linker's --wrap. Link with
 *   @metes_record_newlib.options     newlib
 *   @metes_record_picolibc.options  picolibc
 * of this folder, or write the same -Wl,--wrap=... out.
 *
 * newlib calls itself by functions with a `struct _reent *`; those are recorded, too, where they are called from outside.
 *
 * Where there is a clock, the time in the functions is added up, from just before a call to just after it, and said at the
 * end (metes_record_libc_tell). What the library's functions ask of each other passes through here at the price of a look.
 *
 * Invariant: the program gets from each call exactly what the library gives, and a block is given up in the ring before
 * the library can give it to somebody else. */
#include "metes_record.h"

#include <stdlib.h>

#define ALIGN (2 * sizeof(void *))

/* What happens after an event: nothing, or what a port does to send them. */
void metes_record_happened(void) __attribute__((weak));

enum { ALLOCATION, FREE, RESIZE, OPERATIONS };

static struct {
    uint64_t ticks;
    uint32_t calls;
    uint32_t most;
} spent[OPERATIONS];

static uint32_t now(void)
{
    return METES_RECORD_NOW();
}

static void spend(int operation, uint32_t from)
{
    const uint32_t ticks = now() - from;
    spent[operation].ticks += ticks;
    spent[operation].calls += 1;
    if (ticks > spent[operation].most) {
        spent[operation].most = ticks;
    }
}

/* Tells the times, one after the other: `tell` is metes_record_tell, or what makes room for it. */
void metes_record_libc_tell(void (*tell)(uint32_t figure, uint32_t first, uint32_t second))
{
    for (uint32_t operation = 0; METES_RECORD_FREQUENCY != 0 && operation < OPERATIONS; operation++) {
        tell(METES_RECORD_TICKS + 2 * operation, (uint32_t)spent[operation].ticks,
             (uint32_t)(spent[operation].ticks >> 32));
        tell(METES_RECORD_CALLS + 2 * operation, spent[operation].calls, spent[operation].most);
    }
}

/* Whether the library asks itself. */
static inline int within(void)
{
    const unsigned context = METES_RECORD_CONTEXT() & 255u;
    return metes_record_depth[context < METES_RECORD_CONTEXTS ? context : 0] != 0;
}

static void happened(void)
{
    metes_record_end();
    if (metes_record_happened != NULL) {
        metes_record_happened();
    }
}

static void *allocated(void *block, size_t size, size_t align)
{
    metes_record_allocated(block, size, align);
    happened();
    return block;
}

/* Of what a realloc(block, size) begins with. */
static void resizing(const void *block, size_t size)
{
    if (block == NULL) {
        return;
    }
    if (size == 0) {
        metes_record_freed(block);
    } else {
        metes_record_resizing(block, size);
    }
}

/* `before` is the old block as a number, which is no pointer any more. */
static void *resized(uintptr_t before, void *block, size_t size)
{
    if (before == 0) {
        metes_record_allocated(block, size, ALIGN);
    } else if (size != 0) {
        metes_record_resized((const void *)before, block);
    } else if (block != NULL) {
        /* A block of no bytes in the place of the freed one. */
        metes_record_allocated(block, 0, ALIGN);
    }
    happened();
    return block;
}

/* Does `call` as the outermost one; what is around it is recorded beside, not in its time. */
#define TIMED(operation, call)              \
    do {                                    \
        const uint32_t from_ = now();       \
        call;                               \
        spend((operation), from_);          \
    } while (0)

#define ALLOCATES(call, size, align)                    \
    do {                                                \
        void *block_;                                   \
        if (within()) {                                 \
            return call;                                \
        }                                               \
        metes_record_begin();                           \
        TIMED(ALLOCATION, block_ = call);               \
        return allocated(block_, (size), (align));      \
    } while (0)

#define FREES(block, call)                  \
    do {                                    \
        if (within()) {                     \
            call;                           \
            return;                         \
        }                                   \
        metes_record_begin();               \
        if ((block) != NULL) {              \
            metes_record_freed(block);      \
        }                                   \
        TIMED(FREE, call);                  \
        happened();                         \
    } while (0)

#define RESIZES(block, size, call)                              \
    do {                                                        \
        const uintptr_t before_ = (uintptr_t)(block);           \
        void *moved_;                                           \
        if (within()) {                                         \
            return call;                                        \
        }                                                       \
        metes_record_begin();                                   \
        resizing((block), (size));                              \
        TIMED(RESIZE, moved_ = call);                           \
        return resized(before_, moved_, (size));                \
    } while (0)

#if defined(_NEWLIB_VERSION) && !defined(__PICOLIBC__)

#include <reent.h>

void *__real__malloc_r(struct _reent *reent, size_t size);
void *__real__calloc_r(struct _reent *reent, size_t count, size_t size);
void *__real__realloc_r(struct _reent *reent, void *block, size_t size);
void *__real__memalign_r(struct _reent *reent, size_t align, size_t size);
void __real__free_r(struct _reent *reent, void *block);

void *__wrap__malloc_r(struct _reent *reent, size_t size)
{
    ALLOCATES(__real__malloc_r(reent, size), size, ALIGN);
}

void *__wrap__calloc_r(struct _reent *reent, size_t count, size_t size)
{
    ALLOCATES(__real__calloc_r(reent, count, size), count * size, ALIGN);
}

void *__wrap__memalign_r(struct _reent *reent, size_t align, size_t size)
{
    ALLOCATES(__real__memalign_r(reent, align, size), size, align);
}

void __wrap__free_r(struct _reent *reent, void *block)
{
    FREES(block, __real__free_r(reent, block));
}

void *__wrap__realloc_r(struct _reent *reent, void *block, size_t size)
{
    RESIZES(block, size, __real__realloc_r(reent, block, size));
}

/* What the functions without one do: the same with the program's. */
#define REAL_MALLOC(size) __real__malloc_r(_REENT, (size))
#define REAL_CALLOC(count, size) __real__calloc_r(_REENT, (count), (size))
#define REAL_REALLOC(block, size) __real__realloc_r(_REENT, (block), (size))
#define REAL_MEMALIGN(align, size) __real__memalign_r(_REENT, (align), (size))
#define REAL_ALIGNED_ALLOC(align, size) __real__memalign_r(_REENT, (align), (size))
#define REAL_FREE(block) __real__free_r(_REENT, (block))
#else
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_memalign(size_t align, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *block);

#define REAL_MALLOC(size) __real_malloc(size)
#define REAL_CALLOC(count, size) __real_calloc((count), (size))
#define REAL_REALLOC(block, size) __real_realloc((block), (size))
#define REAL_MEMALIGN(align, size) __real_memalign((align), (size))
#define REAL_ALIGNED_ALLOC(align, size) __real_aligned_alloc((align), (size))
#define REAL_FREE(block) __real_free(block)
#endif

void *__wrap_malloc(size_t size)
{
    ALLOCATES(REAL_MALLOC(size), size, ALIGN);
}

void *__wrap_calloc(size_t count, size_t size)
{
    ALLOCATES(REAL_CALLOC(count, size), count * size, ALIGN);
}

void *__wrap_memalign(size_t align, size_t size)
{
    ALLOCATES(REAL_MEMALIGN(align, size), size, align);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    ALLOCATES(REAL_ALIGNED_ALLOC(align, size), size, align);
}

void __wrap_free(void *block)
{
    FREES(block, REAL_FREE(block));
}

void *__wrap_realloc(void *block, size_t size)
{
    RESIZES(block, size, REAL_REALLOC(block, size));
}
