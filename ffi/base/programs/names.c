/* Takes blocks by every name of the malloc family, and gives them back by every other.
 * Linked with `other.c`, whose blocks are none of anybody else's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE ((size_t)100)
#define ALIGN ((size_t)64)

void *memalign(size_t, size_t);
void *valloc(size_t);
void *pvalloc(size_t);
void *reallocarray(void *, size_t, size_t);
void *reallocf(void *, size_t);
void *mallocx(size_t, int);
void *rallocx(void *, size_t, int);
size_t xallocx(void *, size_t, size_t, int);
size_t sallocx(const void *, int);
void dallocx(void *, int);
void sdallocx(void *, size_t, int);
size_t nallocx(size_t, int);
size_t malloc_usable_size(void *);
size_t malloc_size(const void *);
size_t malloc_good_size(size_t);
void cfree(void *);
void vfree(void *);
void free_sized(void *, size_t);
void free_aligned_sized(void *, size_t, size_t);
void *_Znwm(size_t);
void *_Znam(size_t);
void *_ZnwmSt11align_val_t(size_t, size_t);
void *_ZnamSt11align_val_t(size_t, size_t);
void *_ZnwmRKSt9nothrow_t(size_t, const void *);
void *_ZnamRKSt9nothrow_t(size_t, const void *);
void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *);
void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *);
void _ZdlPv(void *);
void _ZdaPv(void *);
void _ZdlPvm(void *, size_t);
void _ZdaPvm(void *, size_t);
void _ZdlPvSt11align_val_t(void *, size_t);
void _ZdaPvSt11align_val_t(void *, size_t);
void _ZdlPvmSt11align_val_t(void *, size_t, size_t);
void _ZdaPvmSt11align_val_t(void *, size_t, size_t);
void _ZdlPvRKSt9nothrow_t(void *, const void *);
void _ZdaPvRKSt9nothrow_t(void *, const void *);
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *, size_t, const void *);
void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *, size_t, const void *);

#define NEWS 18
#define DELETES 19

static void *take(int name)
{
    void *block = NULL;
    switch (name) {
    case 0: return malloc(SIZE);
    case 1: return calloc(1, SIZE);
    case 2: return realloc(NULL, SIZE);
    case 3: return memalign(ALIGN, SIZE);
    case 4: return aligned_alloc(ALIGN, 2 * ALIGN);
    case 5: return posix_memalign(&block, ALIGN, SIZE) == 0 ? block : NULL;
    case 6: return valloc(SIZE);
    case 7: return pvalloc(SIZE);
    case 8: return mallocx(SIZE, 64);
    case 9: return _Znwm(SIZE);
    case 10: return _Znam(SIZE);
    case 11: return _ZnwmSt11align_val_t(SIZE, ALIGN);
    case 12: return _ZnamSt11align_val_t(SIZE, ALIGN);
    case 13: return _ZnwmRKSt9nothrow_t(SIZE, &block);
    case 14: return _ZnamRKSt9nothrow_t(SIZE, &block);
    case 15: return _ZnwmSt11align_val_tRKSt9nothrow_t(SIZE, ALIGN, &block);
    case 16: return _ZnamSt11align_val_tRKSt9nothrow_t(SIZE, ALIGN, &block);
    default: return reallocarray(NULL, SIZE, 1);
    }
}

static void give(int name, void *block)
{
    switch (name) {
    case 0: free(block); break;
    case 1: cfree(block); break;
    case 2: vfree(block); break;
    case 3: dallocx(block, 0); break;
    case 4: sdallocx(block, SIZE, 0); break;
    case 5: free_sized(block, SIZE); break;
    case 6: free_aligned_sized(block, ALIGN, SIZE); break;
    case 7: _ZdlPv(block); break;
    case 8: _ZdaPv(block); break;
    case 9: _ZdlPvm(block, SIZE); break;
    case 10: _ZdaPvm(block, SIZE); break;
    case 11: _ZdlPvSt11align_val_t(block, ALIGN); break;
    case 12: _ZdaPvSt11align_val_t(block, ALIGN); break;
    case 13: _ZdlPvmSt11align_val_t(block, SIZE, ALIGN); break;
    case 14: _ZdaPvmSt11align_val_t(block, SIZE, ALIGN); break;
    case 15: _ZdlPvRKSt9nothrow_t(block, &block); break;
    case 16: _ZdaPvRKSt9nothrow_t(block, &block); break;
    case 17: _ZdlPvSt11align_val_tRKSt9nothrow_t(block, ALIGN, &block); break;
    default: _ZdaPvSt11align_val_tRKSt9nothrow_t(block, ALIGN, &block); break;
    }
}

static void demand(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "names: %s\n", what);
        exit(1);
    }
}

int main(void)
{
    for (int from = 0; from < NEWS; from += 1) {
        for (int to = 0; to < DELETES; to += 1) {
            void *block = take(from);
            demand(block != NULL, "a block");
            demand((uintptr_t)block % 16 == 0, "aligned");
            memset(block, 7, SIZE);
            demand(malloc_usable_size(block) >= SIZE && malloc_size(block) >= SIZE
                       && sallocx(block, 0) >= SIZE && xallocx(block, 2 * SIZE, 0, 0) >= SIZE,
                   "large enough");
            switch (to % 4) {
            case 0: block = realloc(block, 3 * SIZE); break;
            case 1: block = rallocx(block, 3 * SIZE, 7); break;
            case 2: block = reallocf(block, 3 * SIZE); break;
            default: block = rallocx(block, 3 * SIZE, 0); break;
            }
            demand(malloc_usable_size(block) >= 3 * SIZE && ((char *)block)[SIZE - 1] == 7,
                   "grown with its bytes");
            give(to, block);
        }
    }
    demand(nallocx(SIZE, 0) >= SIZE && malloc_good_size(SIZE) >= SIZE, "sizes");
    puts("every name");
    return 0;
}
