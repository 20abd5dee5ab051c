/* Sets limits on its own addresses, and locks its memory, when the heap is there already. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *nothing(void *argument) { return argument; }

int main(void) {
    struct rlimit limit = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    pthread_t thread;
    free(malloc(100));
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        die("setrlimit");
    if (mmap(NULL, 10 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        die("mmap");
    char *block = malloc(300 << 20);
    if (block == NULL)
        die("malloc");
    memset(block, 1, 1000);
    free(block);
    if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
        die("pthread_create");
    /* Who may lock everything needs no limit; else it is one gigabyte or less. */
    limit.rlim_cur = limit.rlim_max = (rlim_t)1 << 30;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 && mlockall(MCL_CURRENT | MCL_ONFAULT) != 0)
        die("mlockall");
    puts("within limits");
    return 0;
}
