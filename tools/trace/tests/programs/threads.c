/* Threads that free and resize each other's blocks, as fast as they can. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 20000, SLOTS = 8 };
static _Atomic(void *) slots[SLOTS];

static void *work(void *argument) {
    unsigned seed = (unsigned)(size_t)argument * 2654435761u + 1;
    for (int round = 0; round < ROUNDS; round++) {
        seed = seed * 1103515245u + 12345u;
        void *block = malloc(20 + seed / 65536 % 4);
        if (round % 3 == 0) block = realloc(block, 200 + seed / 65536 % 1000);
        block = atomic_exchange(&slots[seed / 65536 % SLOTS], block);
        if (block && round % 5 == 0) block = realloc(block, 24);
        free(block);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (size_t n = 0; n < THREADS; n++) pthread_create(&threads[n], NULL, work, (void *)n);
    for (size_t n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
    for (int n = 0; n < SLOTS; n++) free(slots[n]);
    return 0;
}
