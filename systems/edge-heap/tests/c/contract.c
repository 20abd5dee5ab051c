/* What C says of its allocator, tried: prints what does not hold, and "ok" at the end. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t malloc_usable_size(void *);

static int wrong;

static void must(int holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s\n", what);
        wrong = 1;
    }
}

static void aligned_blocks(void)
{
    for (size_t size = 0; size < 600; size++) {
        unsigned char *const block = malloc(size);
        must(block != NULL, "malloc of little");
        must((uintptr_t)block % _Alignof(max_align_t) == 0, "alignment of malloc");
        must(malloc_usable_size(block) >= size, "usable size");
        memset(block, 0xa5, malloc_usable_size(block));
        if (size % 3 != 0) {
            free(block);
        }
    }
    for (size_t align = 4; align <= 65536; align *= 2) {
        void *place = NULL;
        must(posix_memalign(&place, align, 100) == 0, "posix_memalign");
        must((uintptr_t)place % align == 0, "alignment of posix_memalign");
        void *const other = aligned_alloc(align, align);
        must((uintptr_t)other % align == 0, "alignment of aligned_alloc");
        free(place);
        free(other);
    }
}

static void refusals(void)
{
    errno = 0;
    must(malloc(SIZE_MAX) == NULL && errno == ENOMEM, "malloc of everything");
    errno = 0;
    must(malloc(SIZE_MAX / 2) == NULL && errno == ENOMEM, "malloc of half of everything");
    errno = 0;
    must(calloc(SIZE_MAX / 2, 4) == NULL && errno == ENOMEM, "calloc that overflows");
    void *const block = malloc(50);
    memset(block, 7, 50);
    errno = 0;
    must(realloc(block, SIZE_MAX - 8) == NULL && errno == ENOMEM, "realloc to everything");
    must(((unsigned char *)block)[49] == 7, "a block whose realloc was refused");
    free(block);
    void *place = &place;
    must(posix_memalign(&place, 24, 8) == EINVAL && place == &place, "posix_memalign to 24");
    must(posix_memalign(&place, 1 << 20, SIZE_MAX / 2) == ENOMEM && place == &place, "posix_memalign of everything");
    free(NULL);
}

static void contents(void)
{
    unsigned char *block = NULL;
    size_t size = 0;
    uint32_t state = 7;
    for (int round = 0; round < 2000; round++) {
        state = state * 1664525U + 1013904223U;
        const size_t next = (state >> 8) % 5000;
        unsigned char *const moved = realloc(block, next);
        must(moved != NULL, "realloc");
        for (size_t i = 0; i < (size < next ? size : next); i++) {
            if (moved[i] != (unsigned char)(i * 7)) {
                must(0, "bytes kept by realloc");
                break;
            }
        }
        block = moved;
        size = next;
        for (size_t i = 0; i < size; i++) {
            block[i] = (unsigned char)(i * 7);
        }
        unsigned char *const zeros = calloc(1 + next % 17, 31);
        for (size_t i = 0; i < (1 + next % 17) * 31; i++) {
            if (zeros[i] != 0) {
                must(0, "zeros of calloc");
                break;
            }
        }
        memset(zeros, 0xff, (1 + next % 17) * 31);
        free(zeros);
    }
    free(block);
}

/* Everything is given back: the largest block can be had again and again. */
static void whole_again(void)
{
    size_t most = 0;
    for (size_t step = (size_t)1 << 24; step >= 1024; step /= 2) {
        void *const block = malloc(most + step);
        if (block != NULL) {
            most += step;
            free(block);
        }
    }
    for (int i = 0; i < 10; i++) {
        void *const all = malloc(most);
        must(all != NULL, "the whole pool, again");
        free(all);
        void *small[100];
        for (int j = 0; j < 100; j++) {
            small[j] = malloc((size_t)j * 13);
        }
        for (int j = 0; j < 100; j++) {
            free(small[(j * 37) % 100]);
        }
    }
}

int main(void)
{
    refusals();
    contents();
    whole_again();
    aligned_blocks();
    puts(wrong ? "not ok" : "ok");
    return wrong;
}
