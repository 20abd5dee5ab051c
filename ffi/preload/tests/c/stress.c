/* Threads that allocate, check, resize and free each other's blocks, and fork
   while the others go on. Usage: stress THREADS ROUNDS FORKS */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 1024

struct slot {
    pthread_mutex_t lock;
    unsigned char *block;
    size_t size;
    unsigned char fill;
};

static struct slot slots[SLOTS];
static int rounds, forks;

static void die(const char *what) {
    fprintf(stderr, "stress: %s\n", what);
    _exit(1);
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t some_size(uint64_t *state) {
    uint64_t r = next(state);
    switch (r % 64) {
    case 0: return (r >> 8) % 300000;
    case 1: return 0;
    case 2: case 3: case 4: case 5: return (r >> 8) % 8000;
    default: return (r >> 8) % 300;
    }
}

static void check(const unsigned char *block, size_t size, unsigned char fill) {
    for (size_t i = 0; i < size; i++)
        if (block[i] != fill)
            die("a block was overwritten");
}

static void put(struct slot *slot, uint64_t *state) {
    size_t size = some_size(state);
    unsigned char *block;
    switch (next(state) % 8) {
    case 0:
        block = calloc(1, size);
        if (block)
            check(block, size, 0);
        break;
    case 1: {
        size_t align = (size_t)8 << next(state) % 10;
        void *place = NULL;
        if (posix_memalign(&place, align, size) != 0)
            die("posix_memalign failed");
        block = place;
        if ((uintptr_t)block % align != 0)
            die("misaligned");
        break;
    }
    default: block = malloc(size);
    }
    if (block == NULL)
        die("no memory");
    if (malloc_usable_size(block) < size)
        die("usable size too small");
    slot->fill = (unsigned char)next(state);
    memset(block, slot->fill, size);
    slot->block = block;
    slot->size = size;
}

static void step(uint64_t *state) {
    struct slot *slot = &slots[next(state) % SLOTS];
    pthread_mutex_lock(&slot->lock);
    if (slot->block == NULL) {
        put(slot, state);
    } else if (next(state) % 4 == 0) {
        size_t size = some_size(state) + 1;
        check(slot->block, slot->size, slot->fill);
        unsigned char *block = realloc(slot->block, size);
        if (block == NULL)
            die("realloc failed");
        check(block, size < slot->size ? size : slot->size, slot->fill);
        memset(block, slot->fill, size);
        slot->block = block;
        slot->size = size;
    } else {
        check(slot->block, slot->size, slot->fill);
        free(slot->block);
        slot->block = NULL;
    }
    pthread_mutex_unlock(&slot->lock);
}

/* The child may use neither the slots, which others had locked, nor stdio. */
static void child(uint64_t state) {
    unsigned char *own[64] = {0};
    for (int i = 0; i < 2000; i++) {
        int n = next(&state) % 64;
        free(own[n]);
        size_t size = some_size(&state);
        own[n] = malloc(size);
        if (own[n] == NULL)
            _exit(2);
        memset(own[n], n, size);
    }
    for (int n = 0; n < 64; n++)
        free(own[n]);
    _exit(0);
}

static void fork_once(uint64_t *state) {
    pid_t pid = fork();
    if (pid == 0)
        child(next(state));
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        die("a forked child failed");
}

static void *work(void *argument) {
    uint64_t state = 88172645463325252u + 7919 * (uintptr_t)argument;
    for (int i = 0; i < rounds; i++) {
        step(&state);
        if (forks > 0 && i % (rounds / forks + 1) == rounds / forks / 2)
            fork_once(&state);
    }
    return NULL;
}

/* Fork handlers that allocate, as libraries have them. */
static __thread void *held;
static void before(void) { held = malloc(123); }
static void after(void) {
    free(held);
    free(malloc(321));
}

int main(int count, char **arguments) {
    if (count != 4)
        die("usage: stress THREADS ROUNDS FORKS");
    int threads = atoi(arguments[1]);
    rounds = atoi(arguments[2]);
    forks = atoi(arguments[3]);
    pthread_atfork(before, after, after);
    for (int i = 0; i < SLOTS; i++)
        pthread_mutex_init(&slots[i].lock, NULL);
    pthread_t *ids = calloc(threads, sizeof *ids);
    for (intptr_t i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, work, (void *)i) != 0)
            die("no thread");
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].block)
            check(slots[i].block, slots[i].size, slots[i].fill);
        free(slots[i].block);
    }
    puts("sound");
    return 0;
}
