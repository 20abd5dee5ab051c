/* Threads that read lines and flush all streams while another forks. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;

static void *reads(void *argument) {
    const char *path = argument;
    while (!stop) {
        FILE *file = fopen(path, "r");
        char *line = NULL;
        size_t length = 0;
        if (file == NULL)
            _exit(2);
        while (getline(&line, &length, file) > 0) {
            free(line);
            line = NULL;
            length = 0;
        }
        free(line);
        fclose(file);
    }
    return NULL;
}

static void *flushes(void *argument) {
    while (!stop)
        fflush(NULL);
    return argument;
}

int main(void) {
    char path[] = "/tmp/metes-streams-XXXXXX";
    int file = mkstemp(path);
    pthread_t threads[4];
    if (file < 0)
        return 2;
    for (int i = 0; i < 200; i++)
        if (write(file, "some words of a line\n", 21) != 21)
            return 2;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, i < 2 ? reads : flushes, path) != 0)
            return 2;
    /* A fork that waits for ever is ended by the signal. */
    alarm(60);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            char *block = malloc(1000);
            memset(block, 1, 1000);
            free(block);
            _exit(0);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 3;
    }
    stop = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    unlink(path);
    puts("all forked");
    return 0;
}
