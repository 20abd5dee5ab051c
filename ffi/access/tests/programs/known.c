/* Blocks with known accesses: prints "size reads writes bytes-read bytes-written"
 * for each, in words of argv[1] bytes, if the environment has SAY. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "patterns.h"

static void *make(u32 size) { return malloc(size); }
static void drop(void *block) { free(block); }

static u32 word;

static void say(u32 size, u32 reads, u32 writes, u32 read, u32 written) {
    if (getenv("SAY")) dprintf(1, "%u %u %u %u %u\n", size, reads, writes, read, written);
}

static void write_longs(void *block, u32 n) {
    for (u32 i = 0; i < n; i++) ((volatile u64 *)block)[i] = i;
}

static void read_longs(void *block, u32 n) {
    u64 sum = 0;
    for (u32 i = 0; i < n; i++) sum += ((volatile u64 *)block)[i];
    sink = (u32)sum;
}

static u32 *shared;

static void *thread(void *argument) {
    u32 number = (u32)(size_t)argument;
    void *own = malloc(30000 + number);
    for (u32 i = 0; i < 500; i++) {
        write_longs(own, 2);
#ifdef __x86_64__
        __atomic_fetch_add(shared, 1, __ATOMIC_SEQ_CST);
#endif
        if (i % 50 == 0) free(malloc(31000 + number));
    }
    free(own);
    return NULL;
}

int main(int count, char **arguments) {
    word = count > 1 && arguments[1][0] == '8' ? 8 : 4;
    patterns();
    for (u32 k = 0; k < 100; k++) {
        struct counts c = expected(k, word);
        say(SIZE(k), c.reads, c.writes, c.read_bytes, c.write_bytes);
    }
    /* These alone. */
    if (count > 2) return 0;
    u32 longs = 8 / word;

    /* The allocator's own zeroing and copying is not the program's. */
    void *zeroed = calloc(11, 2001);
    read_longs(zeroed, 3);
    free(zeroed);
    say(22011, 3 * longs, 0, 24, 0);

    void *grown = malloc(22012);
    write_longs(grown, 5);
    grown = realloc(grown, 400012);
    read_longs(grown, 4);
    grown = realloc(grown, 22013);
    write_longs(grown, 1);
    free(grown);
    say(22012, 0, 5 * longs, 0, 40);
    say(400012, 4 * longs, 0, 32, 0);
    say(22013, 0, longs, 0, 8);

    void *aligned = NULL;
    if (posix_memalign(&aligned, 4096, 22014)) return 1;
    write_longs(aligned, 9);
    free(aligned);
    say(22014, 0, 9 * longs, 0, 72);

    /* The same memory again, most likely: the counts are not. */
    for (u32 i = 0; i < 3; i++) {
        void *again = malloc(22015 + i);
        write_longs(again, i);
        free(again);
        say(22015 + i, 0, i * longs, 0, i * 8);
    }

    /* Past the end of a block is none of it. */
    char *odd = malloc(22019);
    *(volatile u32 *)(odd + 22016) = 1;
    free(odd);
    say(22019, 0, 1, 0, 3);

    shared = calloc(1, 22020);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread, (void *)i);
    for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    free(shared);
#ifdef __x86_64__
    say(22020, 2000, 2000, 8000, 8000);
#else
    say(22020, 0, 0, 0, 0);
#endif
    for (u32 i = 0; i < 4; i++) say(30000 + i, 0, 1000 * longs, 0, 8000);

    /* Never freed. */
    void *kept = malloc(22021);
    write_longs(kept, 7);
    say(22021, 0, 7 * longs, 0, 56);
    return 0;
}
