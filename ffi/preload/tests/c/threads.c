/* What threads do to each other's blocks. Usage: threads KIND */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what) {
    fprintf(stderr, "threads: %s\n", what);
    _exit(1);
}

static void run(void *(*function)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, argument) != 0)
        die("no thread");
    pthread_join(thread, NULL);
}

static long peak_kibibytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

#define COUNT 4000
static unsigned char *blocks[COUNT];

static size_t size_of(int number) { return 1 + (size_t)number * 37 % 3000; }

static void *fill(void *argument) {
    (void)argument;
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = malloc(size_of(i));
        memset(blocks[i], i, size_of(i));
    }
    return NULL;
}

static void *empty(void *argument) {
    (void)argument;
    for (int i = 0; i < COUNT; i++) {
        for (size_t j = 0; j < size_of(i); j++)
            if (blocks[i][j] != (unsigned char)i)
                die("a block was overwritten");
        free(blocks[i]);
    }
    return NULL;
}

static void *free_one(void *block) {
    free(block);
    return NULL;
}

_Noreturn static void sleep_for_good(void) {
    for (;;)
        pause();
}

/* A destructor that goes on for as often as destructors are called. */
static pthread_key_t key;
static void late(void *block) {
    free(block);
    void *more = malloc(100);
    memset(more, 1, 100);
    free(realloc(more, 5000));
    pthread_setspecific(key, malloc(64));
}

static void *leave_late(void *argument) {
    (void)argument;
    pthread_setspecific(key, malloc(64));
    return NULL;
}

static void *sleep_with(void *barrier) {
    fill(NULL);
    pthread_barrier_wait(barrier);
    sleep_for_good();
}

int main(int count, char **arguments) {
    const char *kind = count > 1 ? arguments[1] : "";
    if (strcmp(kind, "churn") == 0) {
        /* Threads that end leave their pages to the next. */
        for (int i = 0; i < 20; i++) {
            run(fill, NULL);
            run(empty, NULL);
        }
        long before = peak_kibibytes();
        for (int i = 0; i < 2000; i++)
            run(i % 2 ? empty : fill, NULL);
        printf("%ld\n", peak_kibibytes() - before);
        return 0;
    }
    if (strcmp(kind, "asleep") == 0) {
        /* What a thread that sleeps had, and others freed, serves others. */
        pthread_barrier_t barrier;
        pthread_barrier_init(&barrier, NULL, 2);
        long first = 0;
        for (int i = 0; i < 16; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, sleep_with, &barrier);
            pthread_barrier_wait(&barrier);
            empty(NULL);
            if (i == 3)
                first = peak_kibibytes();
        }
        printf("%ld\n", peak_kibibytes() - first);
        fflush(stdout);
        _exit(0);
    }
    if (strcmp(kind, "late") == 0) {
        pthread_key_create(&key, late);
        for (int i = 0; i < 2000; i++)
            run(leave_late, NULL);
        puts("0");
        return 0;
    }
    if (strcmp(kind, "fork") == 0) {
        /* A child serves its own thread, takes blocks of the others, and starts threads. */
        pthread_barrier_t barrier;
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_t thread;
        pthread_create(&thread, NULL, sleep_with, &barrier);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 20; i++) {
            pid_t child = fork();
            if (child == 0) {
                empty(NULL);
                for (int j = 0; j < 5; j++) {
                    run(fill, NULL);
                    run(empty, NULL);
                }
                _exit(0);
            }
            int status = 0;
            waitpid(child, &status, 0);
            if (status != 0)
                die("a child failed");
        }
        puts("0");
        fflush(stdout);
        _exit(0);
    }
    void *block = malloc(100);
    if (strcmp(kind, "twice-by-another") == 0) {
        free(block);
        run(free_one, block);
    } else if (strcmp(kind, "twice-by-others") == 0) {
        run(free_one, block);
        run(free_one, block);
    } else if (strcmp(kind, "inside-by-another") == 0) {
        run(free_one, (char *)block + 16);
    } else {
        die("what is that?");
    }
    puts("not noticed");
    return 0;
}
