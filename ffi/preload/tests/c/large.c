/* What a program may do wrong with a block that has pages of its own. Ends by the library. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int sound(void)
{
    char *block = malloc(1 << 20);
    memset(block, 7, 1 << 20);
    if (fork() == 0) {
        /* A child grows and frees a block of its own. */
        block = realloc(block, 3 << 20);
        if (block[(1 << 20) - 1] != 7) _exit(1);
        free(block);
        _exit(0);
    }
    int status = 1;
    if (wait(&status) < 0 || status != 0 || block[12345] != 7) return 1;
    struct rlimit limit = {64 << 20, 64 << 20};
    limit.rlim_cur = limit.rlim_max = (rlim_t)1 << 28;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    errno = 0;
    char *const none = realloc(block, (size_t)1 << 35);
    if (none != NULL || errno != ENOMEM || block[(1 << 20) - 1] != 7) return 3;
    errno = 0;
    if (malloc((size_t)1 << 35) != NULL || errno != ENOMEM) return 4;
    free(block);
    puts("sound");
    return 0;
}

int main(int count, char **words)
{
    volatile char *const own = malloc(300000);
    char *const block = (char *)own;
    if (count < 2) return sound();
    if (strcmp(words[1], "inside") == 0) free(block + 4096);
    if (strcmp(words[1], "twice") == 0) { free(block); free(block); }
    if (strcmp(words[1], "beyond") == 0) { own[300000] ^= 1; free(block); }
    if (strcmp(words[1], "resized") == 0) { free(block); (void)!realloc(block, 10); }
    return 0;
}
