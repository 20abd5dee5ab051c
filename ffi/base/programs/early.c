/* A library that allocates, starts a thread and forks before main: often enough
   for a fork to meet the thread inside the heap. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 20 };

static volatile int forked;

static long allocate(void) {
    long right = 0;
    for (int i = 1; i < 2000; i++) {
        char *block = malloc(i);
        memset(block, i, i);
        right += block[i - 1] == (char)i;
        free(block);
    }
    return right;
}

static void *keep_allocating(void *failed) {
    while (!forked)
        *(int *)failed |= allocate() != 1999;
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    int failed = 0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, keep_allocating, &failed) != 0)
        _exit(90);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(allocate() == 1999 ? 0 : 91);
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            _exit(92);
    }
    forked = 1;
    if (pthread_join(thread, NULL) != 0 || failed || allocate() != 1999)
        _exit(93);
}
