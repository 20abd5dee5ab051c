/* A main around that of a kernel: KERNEL SIZE RUNS. Prints a checksum, of which there is none, and the nanoseconds of
 * each run, as every suite's programs do. Compiled together with the kernel, whose main is renamed on the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#undef main

#ifdef NOTHING
static int kernel_main(int count, char **words) {
    (void)count, (void)words;
    return 0;
}
#else
int kernel_main(int count, char **words);
#endif

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **words) {
    if (count != 4) {
        fputs("usage: KERNEL SIZE RUNS\n", stderr);
        return 2;
    }
    long runs = strtol(words[3], NULL, 10);
    long long *times = calloc(runs > 0 ? (size_t)runs : 1, sizeof *times);
    if (times == NULL) return 1;
#ifdef NOTHING
    runs = 0;
#endif
    for (long run = 0; run < runs; run++) {
        long long begin = now();
        int status = kernel_main(1, words);
        times[run] = now() - begin;
        if (status != 0) return status;
    }
    printf("%016x\n", 0);
    for (long run = 0; run < runs; run++) printf("%lld\n", times[run]);
    free(times);
    return 0;
}
