/* The malloc family of a C library, recorded: newlib's and picolibc's, by the linker's --wrap. Link with
 *   @metes_record_newlib.options     newlib
 *   @metes_record_picolibc.options  picolibc
 * of this folder, or write the same -Wl,--wrap=... out.
 *
 * newlib calls itself by functions with a `struct _reent *`; those are recorded, too, where they are called from outside.
 *
 * Invariant: the program gets from each call exactly what the library gives, and a block is given up in the ring before
 * the library can give it to somebody else. */
#include "metes_record.h"

#include <stdlib.h>

#define ALIGN (2 * sizeof(void *))

/* What happens after an event: nothing, or what a port does to send them. */
void metes_record_happened(void) __attribute__((weak));

static void happened(void)
{
    metes_record_end();
    if (metes_record_happened != NULL) {
        metes_record_happened();
    }
}

static void *allocated(int outermost, void *block, size_t size, size_t align)
{
    if (outermost) {
        metes_record_allocated(block, size, align);
    }
    happened();
    return block;
}

static void freed(int outermost, const void *block)
{
    if (outermost && block != NULL) {
        metes_record_freed(block);
    }
}

/* Of what a realloc(block, size) begins with. */
static void resizing(int outermost, const void *block, size_t size)
{
    if (!outermost || block == NULL) {
        return;
    }
    if (size == 0) {
        metes_record_freed(block);
    } else {
        metes_record_resizing(block, size);
    }
}

/* `before` is the old block as a number, which is no pointer any more. */
static void *resized(int outermost, uintptr_t before, void *block, size_t size)
{
    if (outermost && before == 0) {
        metes_record_allocated(block, size, ALIGN);
    } else if (outermost && size != 0) {
        metes_record_resized((const void *)before, block);
    } else if (outermost && block != NULL) {
        /* A block of no bytes in the place of the freed one. */
        metes_record_allocated(block, 0, ALIGN);
    }
    happened();
    return block;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_memalign(size_t align, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *block);

void *__wrap_malloc(size_t size)
{
    const int outermost = metes_record_begin();
    return allocated(outermost, __real_malloc(size), size, ALIGN);
}

void *__wrap_calloc(size_t count, size_t size)
{
    const int outermost = metes_record_begin();
    return allocated(outermost, __real_calloc(count, size), count * size, ALIGN);
}

void *__wrap_memalign(size_t align, size_t size)
{
    const int outermost = metes_record_begin();
    return allocated(outermost, __real_memalign(align, size), size, align);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    const int outermost = metes_record_begin();
    return allocated(outermost, __real_aligned_alloc(align, size), size, align);
}

void __wrap_free(void *block)
{
    freed(metes_record_begin(), block);
    __real_free(block);
    happened();
}

void *__wrap_realloc(void *block, size_t size)
{
    const int outermost = metes_record_begin();
    const uintptr_t before = (uintptr_t)block;
    resizing(outermost, block, size);
    return resized(outermost, before, __real_realloc(block, size), size);
}

#if defined(_NEWLIB_VERSION) && !defined(__PICOLIBC__)
struct _reent;
void *__real__malloc_r(struct _reent *reent, size_t size);
void *__real__calloc_r(struct _reent *reent, size_t count, size_t size);
void *__real__realloc_r(struct _reent *reent, void *block, size_t size);
void *__real__memalign_r(struct _reent *reent, size_t align, size_t size);
void __real__free_r(struct _reent *reent, void *block);

void *__wrap__malloc_r(struct _reent *reent, size_t size)
{
    const int outermost = metes_record_begin();
    return allocated(outermost, __real__malloc_r(reent, size), size, ALIGN);
}

void *__wrap__calloc_r(struct _reent *reent, size_t count, size_t size)
{
    const int outermost = metes_record_begin();
    return allocated(outermost, __real__calloc_r(reent, count, size), count * size, ALIGN);
}

void *__wrap__memalign_r(struct _reent *reent, size_t align, size_t size)
{
    const int outermost = metes_record_begin();
    return allocated(outermost, __real__memalign_r(reent, align, size), size, align);
}

void __wrap__free_r(struct _reent *reent, void *block)
{
    freed(metes_record_begin(), block);
    __real__free_r(reent, block);
    happened();
}

void *__wrap__realloc_r(struct _reent *reent, void *block, size_t size)
{
    const int outermost = metes_record_begin();
    const uintptr_t before = (uintptr_t)block;
    resizing(outermost, block, size);
    return resized(outermost, before, __real__realloc_r(reent, block, size), size);
}
#endif
