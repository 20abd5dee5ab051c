/* Whatever is written over the memory of a heap, looking at the heap returns. */
#include "heap.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY ((size_t)1 << 19)
#define BLOCKS 400

#define DEMAND(condition)                                                    \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fprintf(stderr, "line %d: not %s\n", __LINE__, #condition);      \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static uint64_t state = 2026;

/* Xorshift (Marsaglia 2003). */
static uint64_t random_word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void use(heap_t *heap)
{
    static void *blocks[BLOCKS];
    for (unsigned round = 0; round < 6000; round += 1) {
        const size_t at = random_word() % BLOCKS;
        if (blocks[at] != NULL) {
            heap_free(heap, blocks[at]);
            blocks[at] = NULL;
        } else {
            const size_t size = random_word() % (random_word() % 8 == 0 ? 3000 : 200);
            blocks[at] = heap_allocate(heap, size, 8);
        }
    }
}

static void flip(unsigned char *memory, size_t bit)
{
    memory[bit / 8] ^= (unsigned char)(1U << bit % 8);
}

/* Looks at the heap with a bit flipped; whether damage was seen. */
static bool look(heap_t *heap, unsigned char *memory, size_t bit)
{
    flip(memory, bit);
    const bool seen = heap_check(heap) != HEAP_SOUND;
    (void)heap_statistics(heap);
    flip(memory, bit);
    return seen;
}

int main(void)
{
    static heap_t heap;
    unsigned char *const memory = malloc(MEMORY);
    unsigned char *const other = malloc(MEMORY / 8);
    size_t seen = 0;
    DEMAND(memory != NULL && other != NULL);
    memset(memory, 0, MEMORY);
    memset(other, 0, MEMORY / 8);
    DEMAND(heap_init(&heap, memory, MEMORY) == HEAP_OK);
    /* Buddies have one region. */
    (void)heap_add_region(&heap, HEAP_POOLS - 1, other, MEMORY / 8);
    use(&heap);
    DEMAND(heap_check(&heap) == HEAP_SOUND);
    for (unsigned round = 0; round < 3000; round += 1) {
        seen += look(&heap, memory, random_word() % (MEMORY * 8)) ? 1U : 0U;
        /* Control structures are at the beginning. */
        seen += look(&heap, memory, random_word() % 32768) ? 1U : 0U;
        seen += look(&heap, other, random_word() % 4096) ? 1U : 0U;
    }
    DEMAND(seen != 0);
    DEMAND(heap_check(&heap) == HEAP_SOUND);
    free(memory);
    free(other);
    return 0;
}
