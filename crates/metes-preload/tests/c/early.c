/* A library that allocates, starts a thread and forks before main. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *allocate(void *sum) {
    for (int i = 1; i < 2000; i++) {
        char *block = malloc(i);
        memset(block, i, i);
        *(long *)sum += block[i - 1] == (char)i;
        free(block);
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    long first = 0, second = 0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate, &first) != 0)
        _exit(90);
    pid_t child = fork();
    allocate(&second);
    if (child == 0)
        _exit(second == 1999 ? 0 : 91);
    int status;
    if (pthread_join(thread, NULL) != 0 || waitpid(child, &status, 0) != child || status != 0)
        _exit(92);
    if (first != 1999 || second != 1999)
        _exit(93);
}
