/* Asks a heap for more than it is laid out for. Prints that all blocks were served and kept what was written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 3000

static unsigned char *blocks[BLOCKS];
static size_t sizes[BLOCKS];

/* Whether the first `size` bytes of a block are as they were written. */
static int holds(int at, size_t size)
{
    for (size_t byte = 0; byte < size; byte += 1)
        if (blocks[at][byte] != (unsigned char)(at + 1)) return 0;
    return 1;
}

static void take(int at, void *block, size_t size)
{
    blocks[at] = block;
    sizes[at] = size;
    memset(block, at + 1, size);
}

int main(void)
{
    /* Many small blocks, more than enough. */
    for (int at = 0; at < BLOCKS; at += 1) {
        const size_t size = 100 + (size_t)at % 700;
        unsigned char *const block = at % 3 == 0 ? calloc(1, size) : malloc(size);
        if (block == NULL) return 1;
        if (at % 3 == 0 && (block[0] != 0 || block[size - 1] != 0)) return 2;
        take(at, block, size);
    }
    /* All of them grow, shrink, and grow again beyond a page. */
    for (int round = 0; round < 3; round += 1) {
        for (int at = round; at < BLOCKS; at += 7) {
            const size_t size = round == 0 ? sizes[at] + 300 : round == 1 ? 40 : 5000;
            unsigned char *const block = realloc(blocks[at], size);
            if (block == NULL) return 3;
            blocks[at] = block;
            if (!holds(at, size < sizes[at] ? size : sizes[at])) return 4;
            take(at, block, size);
        }
    }
    void *aligned = NULL;
    if (posix_memalign(&aligned, 4096, 300) != 0 || (size_t)aligned % 4096 != 0) return 5;
    free(aligned);
    for (int at = 0; at < BLOCKS; at += 1) {
        if (!holds(at, sizes[at])) return 6;
        free(blocks[at]);
    }
    /* What has gone back serves again. */
    for (int at = 0; at < BLOCKS; at += 1) {
        if ((blocks[at] = malloc(64)) == NULL) return 7;
    }
    for (int at = 0; at < BLOCKS; at += 1) free(blocks[at]);
    puts("served");
    return 0;
}
