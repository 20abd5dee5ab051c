/* What a heap with `pages` promises of large blocks that were freed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

/* Large enough that its size is not taken to come and go. */
enum { SIZE = 40 << 20, PAGE = 4096 };

static int is_zero(const char *block)
{
    for (size_t at = 0; at < SIZE; at += PAGE)
        if (block[at] != 0) return 0;
    return 1;
}

/* Frames of this process, in pages. */
static long resident(void)
{
    long all = 0;
    long own = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &own) != 2) exit(9);
    fclose(file);
    return own;
}

static int sound(void)
{
    for (int round = 0; round < 4; round += 1) {
        char *const cleared = calloc(1, SIZE);
        char *const block = malloc(SIZE + 1000);
        if (cleared == NULL || block == NULL || !is_zero(cleared)) return 1;
        memset(cleared, 1, SIZE);
        memset(block, 2, SIZE);
        char *const grown = realloc(block, 3 * (size_t)SIZE);
        if (grown == NULL || grown[SIZE - 1] != 2 || cleared[SIZE - 1] != 1) return 2;
        memset(grown, 3, 3 * (size_t)SIZE);
        const pid_t child = fork();
        if (child == 0) {
            free(grown);
            char *const again = calloc(1, SIZE);
            _exit(again == NULL || !is_zero(again) || cleared[5] != 1);
        }
        int status = 1;
        if (waitpid(child, &status, 0) != child || status != 0) return 3;
        char *const shrunk = realloc(grown, SIZE + 5);
        if (shrunk == NULL || shrunk[SIZE] != 3) return 4;
        free(cleared);
        free(shrunk);
    }
    puts("sound");
    return 0;
}

int main(int count, char **words)
{
    if (count < 2) return sound();
    volatile char *const block = malloc(SIZE);
    for (size_t at = 0; at < SIZE; at += PAGE) block[at] = 1;
    const long with = resident();
    free((void *)block);
    if (strcmp(words[1], "stale") == 0) {
        const pid_t child = fork();
        if (child == 0) {
            block[SIZE / 2] = 1;
            _exit(0);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child) return 1;
        puts(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? "trapped" : "unnoticed");
    }
    if (strcmp(words[1], "kept") == 0)
        puts(resident() > with - SIZE / PAGE / 2 ? "kept" : "returned");
    if (strcmp(words[1], "paid") == 0) {
        /* Each of these pays 64 pages. */
        for (int request = 0; request < SIZE / PAGE / 64 + 2; request += 1) {
            char *volatile const small = malloc(100);
            free(small);
        }
        puts(resident() > with - SIZE / PAGE / 2 ? "kept" : "returned");
    }
    if (strcmp(words[1], "trimmed") == 0) {
        malloc_trim(0);
        puts(resident() > with - SIZE / PAGE / 2 ? "kept" : "returned");
    }
    if (strcmp(words[1], "waited") == 0) {
        for (int look = 0; look < 100000; look += 1) {
            if (resident() <= with - SIZE / PAGE / 2) {
                puts("returned");
                return 0;
            }
            usleep(1000);
        }
        puts("kept");
    }
    return 0;
}
