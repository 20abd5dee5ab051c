/* Four threads of 100 blocks each, by the same calls. */
#include <pthread.h>
#include <stdlib.h>

__attribute__((noinline)) void *in_thread(void *none) {
    for (int i = 0; i < 100; i++) {
        void *block = malloc(123);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
    return none;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, in_thread, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
