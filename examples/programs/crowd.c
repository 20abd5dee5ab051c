/* Many requests with many blocks live at once: crowd REQUESTS LIVE
 *
 * Fills up to LIVE blocks, then frees one of them at random for each that it
 * allocates, and now and then resizes one. Sizes are those of a program with
 * objects, strings and buffers: mostly small, few large. The same arguments make
 * the same requests. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 1;

static uint32_t below(uint32_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % limit);
}

static size_t size(void) {
    switch (below(16)) {
    case 0: return 1 + below(4096);
    case 1: return 24 + 8 * below(30);
    case 2: case 3: return 1 + below(200);
    case 4: case 5: case 6: return 48;
    default: return 16 + 8 * below(8);
    }
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: %s REQUESTS LIVE\n", arguments[0]);
        return 2;
    }
    long requests = atol(arguments[1]);
    uint32_t live = (uint32_t)atol(arguments[2]);
    if (requests < 1 || live < 1) return 2;
    char **blocks = calloc(live, sizeof *blocks);
    uint64_t sum = 0;
    for (long made = 0; made < requests; ++made) {
        uint32_t at = below(live);
        if (blocks[at] == NULL) {
            blocks[at] = malloc(size());
            if (blocks[at] == NULL) return 1;
            *blocks[at] = (char)made;
        } else if (below(64) == 0) {
            char *grown = realloc(blocks[at], 64 + below(2000));
            if (grown == NULL) return 1;
            blocks[at] = grown;
        } else {
            sum += (unsigned char)*blocks[at];
            free(blocks[at]);
            blocks[at] = NULL;
            /* Mostly the next block is wanted at once. */
            if (below(1000) != 0 && made + 1 < requests) {
                blocks[at] = malloc(size());
                if (blocks[at] == NULL) return 1;
                *blocks[at] = (char)made;
                ++made;
            }
        }
    }
    printf("sum %llu\n", (unsigned long long)sum);
    return 0;
}
