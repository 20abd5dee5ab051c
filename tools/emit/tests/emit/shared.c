/* shared.c: threads allocate, resize and free blocks that they share; what is in them is verified.
 * A request that fails leaves the block as it was. A child after a fork goes on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 64
#define THREADS 4
#define STEPS 16000

typedef struct {
    pthread_mutex_t lock;
    unsigned char *bytes;
    size_t size;
    unsigned char mark;
} shared_t;

static shared_t blocks[BLOCKS];

static uint64_t draw(uint64_t *state, uint64_t most)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 20) % most;
}

static size_t size_of(uint64_t *state)
{
    switch (draw(state, 4)) {
    case 0:
        return 1 + draw(state, 500);
    case 1:
        return 1 + draw(state, 20000);
    case 2:
        return 30000 + draw(state, 6000);
    default:
        return 1 + draw(state, 700000);
    }
}

static void verify(const shared_t *block, size_t size, unsigned char what)
{
    for (size_t at = 0; at < size; at += 509) {
        if (block->bytes[at] != what) {
            _exit(4);
        }
    }
}

static void step(shared_t *block, uint64_t *state)
{
    const size_t size = size_of(state);
    unsigned char *bytes = NULL;
    errno = 77;
    if (block->bytes == NULL) {
        const int zero = draw(state, 2) == 0;
        bytes = zero ? calloc(1, size) : malloc(size);
        if (bytes == NULL) {
            return;
        }
        block->bytes = bytes;
        if (zero) {
            verify(block, size, 0);
        }
    } else if (draw(state, 3) == 0) {
        verify(block, block->size, block->mark);
        free(block->bytes);
        block->bytes = NULL;
        block->size = 0;
        if (errno != 77) {
            _exit(6);
        }
        return;
    } else {
        const size_t kept = block->size < size ? block->size : size;
        bytes = realloc(block->bytes, size);
        if (bytes == NULL) {
            verify(block, block->size, block->mark);
            return;
        }
        block->bytes = bytes;
        verify(block, kept, block->mark);
    }
    if (errno != 77 || malloc_usable_size(bytes) < size) {
        _exit(5);
    }
    block->size = size;
    block->mark = (unsigned char)(1 + draw(state, 255));
    memset(bytes, block->mark, size);
}

static void *work(void *number)
{
    uint64_t state = UINT64_C(88172645463325252) + (uintptr_t)number;
    for (unsigned count = 0; count < STEPS; count += 1) {
        shared_t *const block = &blocks[draw(&state, BLOCKS)];
        (void)pthread_mutex_lock(&block->lock);
        step(block, &state);
        (void)pthread_mutex_unlock(&block->lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t small;
    uint64_t state = 12345;
    int status = 0;
    for (unsigned at = 0; at < BLOCKS; at += 1) {
        (void)pthread_mutex_init(&blocks[at].lock, NULL);
    }
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 65536);
    for (uintptr_t at = 0; at < THREADS; at += 1) {
        if (pthread_create(&threads[at], &small, work, (void *)at) != 0) {
            return 3;
        }
    }
    for (unsigned at = 0; at < THREADS; at += 1) {
        (void)pthread_join(threads[at], NULL);
    }
    const pid_t child = fork();
    if (child == 0) {
        for (unsigned count = 0; count < 1000; count += 1) {
            step(&blocks[draw(&state, BLOCKS)], &state);
        }
        (void)execl("/bin/true", "true", (char *)NULL);
        _exit(7);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        return 8;
    }
    for (unsigned at = 0; at < BLOCKS; at += 1) {
        verify(&blocks[at], blocks[at].size, blocks[at].mark);
        free(blocks[at].bytes);
    }
    return 0;
}
