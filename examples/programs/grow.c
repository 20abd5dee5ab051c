/* Buffers that grow by realloc, and blocks that come and go.
 *
 *   grow steps MOST STEP KEPT   one buffer grows to MOST bytes by STEP; between two steps KEPT
 *                               bytes are allocated and kept
 *   grow doubles TIMES MOST     TIMES buffers, one after the other, each doubled up to MOST
 *   grow comes TIMES SIZE       TIMES blocks of SIZE bytes, each written and freed again
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(const void *block)
{
    if (block == NULL) {
        fputs("grow: out of memory\n", stderr);
        exit(1);
    }
}

/* What is written is used, whatever a compiler thinks of it. */
static void use(void *block)
{
    __asm__ volatile("" : : "r"(block) : "memory");
}

static void steps(size_t most, size_t step, size_t kept)
{
    char *buffer = NULL;
    for (size_t size = step; size <= most; size += step) {
        buffer = realloc(buffer, size);
        need(buffer);
        memset(buffer + size - step, 1, step);
        use(buffer);
        if (kept != 0) {
            char *const block = malloc(kept);
            need(block);
            memset(block, 1, kept);
            use(block);
        }
    }
}

static void doubles(size_t times, size_t most)
{
    for (size_t time = 0; time < times; time += 1) {
        char *buffer = NULL;
        for (size_t size = 64, written = 0; size <= most; size *= 2) {
            buffer = realloc(buffer, size);
            need(buffer);
            memset(buffer + written, (int)time, size - written);
            use(buffer);
            written = size;
        }
        free(buffer);
    }
}

static void comes(size_t times, size_t size)
{
    for (size_t time = 0; time < times; time += 1) {
        char *const block = malloc(size);
        need(block);
        memset(block, (int)time, size);
        use(block);
        free(block);
    }
}

int main(int count, char **words)
{
    const size_t first = count > 2 ? strtoul(words[2], NULL, 10) : 0;
    const size_t second = count > 3 ? strtoul(words[3], NULL, 10) : 0;
    const size_t third = count > 4 ? strtoul(words[4], NULL, 10) : 0;
    if (count > 4 && strcmp(words[1], "steps") == 0 && second != 0) {
        steps(first, second, third);
    } else if (count > 3 && strcmp(words[1], "doubles") == 0) {
        doubles(first, second);
    } else if (count > 3 && strcmp(words[1], "comes") == 0) {
        comes(first, second);
    } else {
        fputs("usage: grow steps MOST STEP KEPT | doubles TIMES MOST | comes TIMES SIZE\n", stderr);
        return 2;
    }
    return 0;
}
