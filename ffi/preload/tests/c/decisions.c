/* Allocates, resizes and frees blocks of random sizes, large ones among them, and prints a sum over where
 * they lay. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 400

static uint64_t state = 7;

static unsigned chance(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static size_t size(void) {
    switch (chance(50)) {
    case 0: return 100000 + chance(400000);
    case 1: return 4000 + chance(40000);
    default: return chance(600);
    }
}

int main(void) {
    static void *blocks[BLOCKS];
    uint64_t sum = 0;
    for (int i = 0; i < 40000; i++) {
        void **const block = &blocks[chance(BLOCKS)];
        switch (chance(6)) {
        case 0: {
            void *const moved = realloc(*block, size() + 1);
            if (moved != NULL) {
                *block = moved;
            }
            break;
        }
        case 1:
            free(*block);
            *block = calloc(1, size());
            break;
        case 2:
            free(*block);
            *block = aligned_alloc(256, size());
            break;
        default:
            free(*block);
            *block = malloc(size());
        }
        sum = (sum ^ (uintptr_t)*block) * 0x100000001b3u;
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
