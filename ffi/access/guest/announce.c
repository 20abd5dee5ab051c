/* Announces the heap of a statically linked program to the access counter.
 *
 * Link it into the program, with the allocator's functions wrapped:
 *
 *   arm-linux-gnueabi-gcc -static program.c announce.c \
 *     -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free \
 *     -Wl,--wrap=memalign,--wrap=aligned_alloc,--wrap=posix_memalign
 *
 * and run it with `metes record --accesses -- ./program`. Without QEMU the
 * program behaves as ever: the system refuses the call of an unknown number.
 *
 * Wrapping sees the calls between object files, not those inside the C library.
 * A program without a C library announces by itself: number 0x4a5e, arguments
 * kind, address, size, log2 of the alignment.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

enum { ALLOC = 1, FREE, RESIZE_BEGIN, RESIZE_END, ENTER, LEAVE };

extern void *__real_malloc(size_t);
extern void *__real_calloc(size_t, size_t);
extern void *__real_realloc(void *, size_t);
extern void __real_free(void *);
extern void *__real_memalign(size_t, size_t) __attribute__((weak));

static void say(long kind, const void *block, size_t size, unsigned align) {
    unsigned log2 = 0;
    int kept = errno;
    while (align > 1u << log2 && log2 < 31) log2++;
    syscall(0x4a5e, kind, (long)(intptr_t)block, (long)size, (long)log2);
    errno = kept;
}

static void *made(void *block, size_t size, unsigned align) {
    say(block ? ALLOC : LEAVE, block, size, align);
    return block;
}

/* What malloc aligns to. */
#define USUAL (2 * sizeof(size_t))

void *__wrap_malloc(size_t size) {
    say(ENTER, 0, 0, 0);
    return made(__real_malloc(size), size, USUAL);
}

void *__wrap_calloc(size_t count, size_t size) {
    say(ENTER, 0, 0, 0);
    return made(__real_calloc(count, size), count * size, USUAL);
}

void __wrap_free(void *block) {
    if (!block) return;
    say(FREE, block, 0, 0);
    __real_free(block);
    say(LEAVE, 0, 0, 0);
}

void *__wrap_realloc(void *block, size_t size) {
    if (!block) return __wrap_malloc(size);
    if (!size) {
        __wrap_free(block);
        return NULL;
    }
    say(RESIZE_BEGIN, block, size, USUAL);
    void *moved = __real_realloc(block, size);
    say(RESIZE_END, moved, size, USUAL);
    return moved;
}

void *__wrap_memalign(size_t align, size_t size) {
    say(ENTER, 0, 0, 0);
    return made(__real_memalign(align, size), size, align);
}

void *__wrap_aligned_alloc(size_t align, size_t size) {
    return __wrap_memalign(align, size);
}

int __wrap_posix_memalign(void **place, size_t align, size_t size) {
    if (align & (align - 1) || align % sizeof(void *)) return EINVAL;
    void *block = __wrap_memalign(align, size);
    if (!block) return ENOMEM;
    *place = block;
    return 0;
}
