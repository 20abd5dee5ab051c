/* A known list of requests, from the block of 1001 bytes on. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept;

static void at_exit(void) {
    kept = malloc(77);
    free(kept);
}

int main(void) {
    atexit(at_exit);
    char *a = malloc(1001);
    char *b = calloc(3, 67);
    char *c = realloc(NULL, 50);
    memset(a, 1, 1001);
    a = realloc(a, 100000);
    kept = realloc(c, 0);
    char *d = malloc(0);
    char *e = aligned_alloc(64, 128);
    void *f = NULL;
    if (posix_memalign(&f, 4096, 10) != 0) return 1;
    if (posix_memalign(&f, 3, 10) == 0) return 2;
    char *g = memalign(256, 1);
    char *h = valloc(3);
    char *i = pvalloc(5);
    b = reallocarray(b, 10, 10);
    volatile size_t huge = PTRDIFF_MAX;
    if (malloc(huge) || realloc(b, huge) || reallocarray(b, huge, 4) || calloc(huge, 4)) return 3;
    free(NULL);
    free(b);
    free(d);
    free(f);
    free(h);
    free(i);
    free(g);
    free(e);
    return a[1000] == 1 ? 0 : 4;
}
