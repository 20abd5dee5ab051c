/* Blocks touched at known offsets, each of a size that no library asks for: prints its touches, the size
 * in place of the block's number, if the environment has SAY. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct unaligned {
    uint64_t value;
} __attribute__((packed));

#define SAY(...)                                                                                     \
    do {                                                                                             \
        if (getenv("SAY")) dprintf(1, __VA_ARGS__);                                                  \
    } while (0)

static void put(char *block, size_t offset) { *(volatile char *)(block + offset) = 1; }
static void get(char *block, size_t offset) { (void)*(volatile char *)(block + offset); }
static void put_long(char *block, size_t offset) {
    ((volatile struct unaligned *)(block + offset))->value = 1;
}

static char *shared;

static void *thread(void *argument) {
    put(shared, 8000);
    put(shared, 100);
    return argument;
}

int main(void) {
    /* The first of each slice alone, read or written. */
    char *block = malloc(20001);
    SAY("a,20001,20001\n");
    put(block, 9), put(block, 4095), get(block, 0);
    SAY("w,20001,9\n");
    get(block, 12288), put(block, 12288), put(block, 5000);
    SAY("r,20001,12288\nw,20001,5000\n");
    /* The last slice, which is short. */
    put(block, 20000);
    SAY("w,20001,20000\n");

    /* One access to two slices is the first of either. */
    char *across = malloc(20002);
    SAY("a,20002,20002\n");
    put_long(across, 4092), put_long(across, 4088), put_long(across, 8185);
    SAY("w,20002,4092\nw,20002,4096\nw,20002,8192\n");
    /* What lies beyond the end is none of the block. */
    put_long(across, 19998);
    SAY("w,20002,19998\n");
    free(block), free(across);
    SAY("f,20001\nf,20002\n");

    /* The allocator's own zeroing is not the program's. */
    char *zeroed = calloc(20003, 1);
    SAY("a,20003,20003\n");
    get(zeroed, 16384);
    SAY("r,20003,16384\n");
    free(zeroed);
    SAY("f,20003\n");

    /* Resized: a new block, the copying of what both have, the free of the old. */
    char *grown = malloc(20004);
    SAY("a,20004,20004\n");
    put(grown, 4100);
    SAY("w,20004,4100\n");
    grown = realloc(grown, 65004);
    SAY("a,65004,65004\nr,20004,0\nw,65004,0\nw,65004,4096\nr,20004,8192\nw,65004,8192\n"
        "r,20004,12288\nw,65004,12288\nr,20004,16384\nw,65004,16384\nf,20004\n");
    put(grown, 20003), get(grown, 65003), put(grown, 100);
    SAY("r,65004,65003\n");
    /* One that fails changes nothing. */
    volatile size_t most = PTRDIFF_MAX;
    if (realloc(grown, most)) return 1;
    put(grown, 4096);
    grown = realloc(grown, 20005);
    SAY("a,20005,20005\nw,20005,0\nw,20005,4096\nw,20005,8192\nw,20005,12288\nw,20005,16384\nf,65004\n");
    put(grown, 1);
    free(grown);
    SAY("f,20005\n");

    char *aligned = NULL;
    if (posix_memalign((void **)&aligned, 8192, 20006)) return 1;
    put(aligned, 4096);
    free(aligned);
    SAY("a,20006,20006,8192\nw,20006,4096\nf,20006\n");

    /* Memory that was another block's is untouched. */
    for (int i = 0; i < 3; i++) {
        char *again = malloc(20007);
        put(again, 5);
        free(again);
        SAY("a,20007,20007\nw,20007,5\nf,20007\n");
    }

    /* Of two threads, the first. */
    shared = malloc(20008);
    put(shared, 7);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    get(shared, 9000), get(shared, 8001);
    SAY("a,20008,20008\nw,20008,7\nw,20008,8000\nr,20008,9000\n");
    return 0;
}
