/* 200 threads, one after the other; thread n asks for 5000 + n bytes. */
#include <pthread.h>
#include <stdlib.h>

static void *volatile kept;

static void *work(void *argument) {
    kept = malloc(5000 + (size_t)argument);
    free(kept);
    return NULL;
}

int main(void) {
    for (size_t n = 0; n < 200; n++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, (void *)n);
        pthread_join(thread, NULL);
    }
    return 0;
}
