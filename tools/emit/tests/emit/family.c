/* family.c: the whole malloc family, from threads, and across fork and vfork. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEMAND(condition) demand((condition), #condition, __LINE__)

static void demand(int holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "line %d: %s\n", line, what);
        exit(1);
    }
}

static void *churn(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    unsigned char *blocks[64] = {0};
    size_t sizes[64] = {0};
    for (int round = 0; round < 5000; round += 1) {
        state = state * 1664525U + 1013904223U;
        const unsigned slot = state >> 26;
        const size_t size = state >> 8 & 1023U;
        for (size_t at = 0; at < sizes[slot]; at += 1) {
            DEMAND(blocks[slot][at] == (unsigned char)(slot + 1U));
        }
        if (round % 3 == 0) {
            free(blocks[slot]);
            blocks[slot] = malloc(size);
        } else if (size == 0) {
            /* realloc to nothing frees. */
            DEMAND(blocks[slot] == NULL || realloc(blocks[slot], 0) == NULL);
            blocks[slot] = NULL;
        } else {
            blocks[slot] = realloc(blocks[slot], size);
        }
        sizes[slot] = blocks[slot] == NULL ? 0 : size;
        DEMAND(size == 0 || blocks[slot] != NULL);
        if (blocks[slot] != NULL) {
            memset(blocks[slot], (int)slot + 1, size);
        }
    }
    for (int slot = 0; slot < 64; slot += 1) {
        free(blocks[slot]);
    }
    return NULL;
}

static void family(void)
{
    void *place = NULL;
    volatile size_t huge = SIZE_MAX;
    free(NULL);
    unsigned char *zeroed = malloc(3000);
    memset(zeroed, 255, 3000);
    free(zeroed);
    zeroed = calloc(30, 100);
    for (int at = 0; at < 3000; at += 1) {
        DEMAND(zeroed[at] == 0);
    }
    free(zeroed);
    errno = 0;
    DEMAND(malloc(huge) == NULL && errno == ENOMEM);
    errno = 0;
    DEMAND(calloc(huge / 2, 4) == NULL && errno == ENOMEM);
    place = malloc(10);
    errno = 0;
    DEMAND(reallocarray(place, huge / 2, 4) == NULL && errno == ENOMEM);
    DEMAND(realloc(place, huge) == NULL && errno == ENOMEM);
    /* What may be used is what realloc keeps. */
    const size_t usable = malloc_usable_size(place);
    DEMAND(usable >= 10);
    memset(place, 0x5a, usable);
    place = realloc(place, 100000);
    for (size_t at = 0; at < usable; at += 1U) {
        DEMAND(((unsigned char *)place)[at] == 0x5a);
    }
    free(place);
    DEMAND(posix_memalign(&place, 3, 10) == EINVAL);
    DEMAND(posix_memalign(&place, 4, 10) == EINVAL);
    for (size_t align = sizeof(void *); align <= 65536; align *= 2) {
        DEMAND(posix_memalign(&place, align, 100) == 0 && (uintptr_t)place % align == 0);
        memset(place, 1, 100);
        free(place);
    }
    place = aligned_alloc(64, 640);
    DEMAND(place != NULL && (uintptr_t)place % 64 == 0);
    free(place);
    place = memalign(4096, 1);
    DEMAND(place != NULL && (uintptr_t)place % 4096 == 0);
    free(place);
    place = valloc(1);
    DEMAND(place != NULL && (uintptr_t)place % 4096 == 0);
    free(place);
    place = pvalloc(1);
    DEMAND(malloc_usable_size(place) >= 4096);
    free(place);
    void *first = malloc(0);
    void *second = malloc(0);
    DEMAND(first != NULL && second != NULL && first != second);
    DEMAND((uintptr_t)first % 16 == 0);
    free(first);
    free(second);
}

int main(void)
{
    pthread_t threads[4];
    family();
    for (uintptr_t number = 0; number < 4; number += 1) {
        DEMAND(pthread_create(&threads[number], NULL, churn, (void *)(number + 1)) == 0);
    }
    /* While the threads hold and leave the lock. */
    const pid_t child = fork();
    if (child == 0) {
        churn((void *)(uintptr_t)99);
        churn((void *)(uintptr_t)100);
        _exit(7);
    }
    int status = 0;
    DEMAND(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    for (int number = 0; number < 4; number += 1) {
        DEMAND(pthread_join(threads[number], NULL) == 0);
    }
    const pid_t other = vfork();
    if (other == 0) {
        execl("/nonexistent/program", "program", (char *)NULL);
        _exit(127);
    }
    DEMAND(waitpid(other, &status, 0) == other && WEXITSTATUS(status) == 127);
    puts("done");
    return 0;
}
