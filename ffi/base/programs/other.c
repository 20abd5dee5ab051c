/* An allocator of its own, as jemalloc is one: it exports the family under every name,
 * and ends the program that hands it a block of another. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x07e40a110ca70400)

struct head {
    uint64_t magic;
    size_t size;
};

static unsigned char memory[64 << 20] __attribute__((aligned(4096)));
static size_t used;

static struct head *head_of(const void *block)
{
    struct head *const head = (struct head *)(uintptr_t)block - 1;
    if ((unsigned char *)head < memory || (unsigned char *)head >= memory + sizeof(memory)
        || head->magic != MAGIC) {
        static const char what[] = "other: this is not my block\n";
        (void)!write(2, what, sizeof(what) - 1);
        abort();
    }
    return head;
}

static void *take(size_t align, size_t size)
{
    const size_t start = (used + sizeof(struct head) + align - 1) / align * align;
    if (start + size > sizeof(memory)) {
        return NULL;
    }
    used = start + size;
    struct head *const head = (struct head *)(void *)(memory + start) - 1;
    head->magic = MAGIC;
    head->size = size;
    return memory + start;
}

#define EXPORT __attribute__((visibility("default")))
EXPORT void *malloc(size_t n) { return take(16, n); }
EXPORT void *calloc(size_t m, size_t n) { return take(16, m * n); }
EXPORT void free(void *p) { if (p) head_of(p); }
EXPORT void *realloc(void *p, size_t n)
{
    void *const q = take(16, n);
    if (p) {
        const size_t size = head_of(p)->size;
        memcpy(q, p, size < n ? size : n);
    }
    return q;
}
EXPORT void *memalign(size_t a, size_t n) { return take(a < 16 ? 16 : a, n); }
EXPORT void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
EXPORT int posix_memalign(void **p, size_t a, size_t n) { *p = memalign(a, n); return 0; }
EXPORT void *valloc(size_t n) { return take(4096, n); }
EXPORT void *pvalloc(size_t n) { return take(4096, n); }
EXPORT size_t malloc_usable_size(void *p) { return p ? head_of(p)->size : 0; }
EXPORT size_t malloc_size(const void *p) { return head_of(p)->size; }
EXPORT size_t malloc_good_size(size_t n) { return n; }
EXPORT void cfree(void *p) { free(p); }
EXPORT void vfree(void *p) { free(p); }
EXPORT void *reallocf(void *p, size_t n) { return realloc(p, n); }
EXPORT void *reallocarray(void *p, size_t m, size_t n) { return realloc(p, m * n); }
EXPORT void free_sized(void *p, size_t n) { (void)n; free(p); }
EXPORT void free_aligned_sized(void *p, size_t a, size_t n) { (void)a; (void)n; free(p); }
EXPORT void *mallocx(size_t n, int f) { return take((size_t)16 << (f & 0), n); }
EXPORT void *rallocx(void *p, size_t n, int f) { (void)f; return realloc(p, n); }
EXPORT size_t xallocx(void *p, size_t n, size_t e, int f) { (void)n; (void)e; (void)f; return head_of(p)->size; }
EXPORT size_t sallocx(const void *p, int f) { (void)f; return head_of(p)->size; }
EXPORT void dallocx(void *p, int f) { (void)f; head_of(p); }
EXPORT void sdallocx(void *p, size_t n, int f) { (void)n; (void)f; head_of(p); }
EXPORT size_t nallocx(size_t n, int f) { (void)f; return n; }
EXPORT void *_Znwm(size_t n) { return take(16, n); }
EXPORT void *_Znam(size_t n) { return take(16, n); }
EXPORT void *_ZnwmSt11align_val_t(size_t n, size_t a) { return take(a, n); }
EXPORT void *_ZnamSt11align_val_t(size_t n, size_t a) { return take(a, n); }
EXPORT void *_ZnwmRKSt9nothrow_t(size_t n, const void *t) { (void)t; return take(16, n); }
EXPORT void *_ZnamRKSt9nothrow_t(size_t n, const void *t) { (void)t; return take(16, n); }
EXPORT void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t n, size_t a, const void *t) { (void)t; return take(a, n); }
EXPORT void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t n, size_t a, const void *t) { (void)t; return take(a, n); }
EXPORT void _ZdlPv(void *p) { free(p); }
EXPORT void _ZdaPv(void *p) { free(p); }
EXPORT void _ZdlPvm(void *p, size_t n) { (void)n; free(p); }
EXPORT void _ZdaPvm(void *p, size_t n) { (void)n; free(p); }
EXPORT void _ZdlPvSt11align_val_t(void *p, size_t a) { (void)a; free(p); }
EXPORT void _ZdaPvSt11align_val_t(void *p, size_t a) { (void)a; free(p); }
EXPORT void _ZdlPvmSt11align_val_t(void *p, size_t n, size_t a) { (void)n; (void)a; free(p); }
EXPORT void _ZdaPvmSt11align_val_t(void *p, size_t n, size_t a) { (void)n; (void)a; free(p); }
EXPORT void _ZdlPvRKSt9nothrow_t(void *p, const void *t) { (void)t; free(p); }
EXPORT void _ZdaPvRKSt9nothrow_t(void *p, const void *t) { (void)t; free(p); }
EXPORT void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *p, size_t a, const void *t) { (void)a; (void)t; free(p); }
EXPORT void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *p, size_t a, const void *t) { (void)a; (void)t; free(p); }
