/* What callers may rely on with glibc's malloc family. Run over glibc itself
   first: an expectation that glibc does not meet is wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(condition)                                                     \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, \
                    errno);                                                   \
            failures++;                                                       \
        }                                                                     \
    } while (0)

static int aligned(const void *block, size_t align) {
    return ((uintptr_t)block & (align - 1)) == 0;
}

static int filled(const unsigned char *block, int byte, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (block[i] != (unsigned char)byte)
            return 0;
    return 1;
}

/* Kept from the compiler, which knows what these values do. */
static volatile size_t huge = SIZE_MAX, half = SIZE_MAX / 2 + 2, zero = 0;

static void zero_sizes(void) {
    void *a = malloc(zero), *b = malloc(zero);
    EXPECT(a != NULL && b != NULL && a != b);
    free(a);
    free(b);
    a = calloc(zero, 8);
    b = calloc(8, zero);
    EXPECT(a != NULL && b != NULL && a != b);
    a = realloc(a, zero);
    EXPECT(a == NULL);
    b = realloc(b, 100);
    EXPECT(b != NULL);
    free(b);
    a = realloc(NULL, zero);
    EXPECT(a != NULL);
    free(a);
    free(NULL);
    a = reallocarray(NULL, zero, 4);
    EXPECT(a != NULL);
    EXPECT(reallocarray(a, 4, zero) == NULL);
    void *c = NULL;
    EXPECT(posix_memalign(&c, 64, zero) == 0 && c != NULL && aligned(c, 64));
    free(c);
}

static void failing(void) {
    errno = 0;
    EXPECT(malloc(huge) == NULL && errno == ENOMEM);
    errno = 0;
    EXPECT(malloc(half) == NULL && errno == ENOMEM);
    errno = 0;
    EXPECT(calloc(half, 2) == NULL && errno == ENOMEM);
    errno = 0;
    EXPECT(calloc(2, half) == NULL && errno == ENOMEM);
    unsigned char *block = malloc(100);
    memset(block, 7, 100);
    errno = 0;
    EXPECT(realloc(block, huge) == NULL && errno == ENOMEM);
    EXPECT(filled(block, 7, 100));
    errno = 0;
    EXPECT(reallocarray(block, half, 2) == NULL && errno == ENOMEM);
    EXPECT(filled(block, 7, 100));
    free(block);
    void *place = &failures;
    EXPECT(posix_memalign(&place, 0, 8) == EINVAL);
    EXPECT(posix_memalign(&place, 4, 8) == EINVAL);
    EXPECT(posix_memalign(&place, 24, 8) == EINVAL);
    EXPECT(posix_memalign(&place, 16, huge) == ENOMEM && errno == ENOMEM);
    EXPECT(place == &failures);
    errno = 0;
    EXPECT(memalign(64, huge) == NULL && errno == ENOMEM);
    errno = 0;
    EXPECT(pvalloc(huge) == NULL && errno == ENOMEM);
    errno = 0;
    EXPECT(memalign(half, 8) == NULL && errno == EINVAL);
}

static void errno_stays(void) {
    errno = 12345;
    void *block = malloc(1000);
    block = realloc(block, 50000);
    free(block);
    free(NULL);
    block = calloc(3, 3000000);
    free(block);
    EXPECT(errno == 12345);
}

static void alignments(void) {
    for (size_t size = 1; size < 3000; size += 7) {
        void *block = malloc(size);
        EXPECT(block != NULL && aligned(block, 16));
        EXPECT(malloc_usable_size(block) >= size);
        memset(block, 1, malloc_usable_size(block));
        free(block);
    }
    for (size_t align = sizeof(void *); align <= 4096; align *= 2) {
        void *block = NULL;
        EXPECT(posix_memalign(&block, align, 100) == 0 && aligned(block, align));
        memset(block, 1, 100);
        void *other = memalign(align, 3 * align + 1);
        EXPECT(other != NULL && aligned(other, align));
        memset(other, 2, 3 * align + 1);
        void *third = aligned_alloc(align, align);
        EXPECT(third != NULL && aligned(third, align));
        memset(third, 3, align);
        EXPECT(filled(block, 1, 100) && filled(other, 2, 3 * align + 1));
        other = realloc(other, 10 * align);
        EXPECT(other != NULL && filled(other, 2, 3 * align + 1));
        free(block);
        free(other);
        free(third);
    }
    void *block = memalign(24, 10);
    EXPECT(block != NULL && aligned(block, 32));
    free(block);
    block = valloc(10);
    EXPECT(block != NULL && aligned(block, 4096));
    free(block);
    block = pvalloc(10);
    EXPECT(block != NULL && aligned(block, 4096) && malloc_usable_size(block) >= 4096);
    free(block);
    EXPECT(malloc_usable_size(NULL) == 0);
}

static void zeroed(void) {
    size_t sizes[] = {1, 100, 5000, 200000, 1 << 20, (3 << 20) + 123, 40 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int round = 0; round < 2; round++) {
            unsigned char *block = calloc(1, sizes[i]);
            EXPECT(block != NULL && filled(block, 0, sizes[i]));
            memset(block, 255, sizes[i]);
            free(block);
        }
}

static void resizing(void) {
    unsigned char *block = malloc(1);
    block[0] = 42;
    size_t size = 1;
    for (int round = 0; round < 3; round++) {
        for (; size < 3000000; size = size * 3 / 2 + 1) {
            memset(block, 42, size);
            block = realloc(block, size * 3 / 2 + 1);
            EXPECT(block != NULL && filled(block, 42, size));
        }
        for (; size > 10; size = size * 2 / 3) {
            memset(block, 42, size);
            block = realloc(block, size * 2 / 3);
            EXPECT(block != NULL && filled(block, 42, size * 2 / 3));
        }
    }
    free(block);
}

static void reports(void) {
    void *block = malloc(100000);
    struct mallinfo2 info = mallinfo2();
    EXPECT(info.uordblks >= 100000 && info.arena + info.hblkhd >= info.uordblks);
    EXPECT(mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1);
    malloc_trim(0);
    free(block);
    FILE *file = tmpfile();
    EXPECT(file != NULL && malloc_info(0, file) == 0 && ftell(file) > 20);
    if (file != NULL)
        fclose(file);
    EXPECT(malloc_info(1, stderr) != 0);
    /* To the stream that the program has for errors, in lines that programs look for. */
    char text[4096] = "";
    FILE *const errors = stderr;
    file = tmpfile();
    EXPECT(file != NULL);
    if (file != NULL) {
        stderr = file;
        malloc_stats();
        stderr = errors;
        rewind(file);
        EXPECT(fread(text, 1, sizeof(text) - 1, file) > 20);
        fclose(file);
        EXPECT(strstr(text, "in use bytes     =") != NULL && strstr(text, "max mmap bytes   =") != NULL);
    }
}

/* glibc's own names, which old programs use. */
void *__libc_malloc(size_t size);
void __libc_free(void *block);
static void other_names(void) {
    char *block = __libc_malloc(100);
    memset(block, 1, 100);
    block = realloc(block, 200);
    EXPECT(filled((unsigned char *)block, 1, 100));
    free(block);
    __libc_free(malloc(10));
}

/* Before main, and before this file's constructors. */
static void *early;
static void begin(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    early = malloc(77);
    memset(early, 9, 77);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(
    int, char **, char **) = begin;
static void *constructed;
__attribute__((constructor)) static void construct(void) { constructed = calloc(5, 5); }

int main(void) {
    EXPECT(early != NULL && filled(early, 9, 77));
    EXPECT(constructed != NULL && filled(constructed, 0, 25));
    free(early);
    free(constructed);
    zero_sizes();
    failing();
    errno_stays();
    alignments();
    zeroed();
    resizing();
    other_names();
    reports();
    if (failures == 0)
        puts("as glibc");
    return failures != 0;
}
