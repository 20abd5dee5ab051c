/* A call tree whose requests are known: path_one 10 x 100 bytes freed, path_two 5 x 200 bytes kept,
   path_three one block of 10 bytes that becomes 1000, and one call that is inlined: 3 x 50 bytes kept. */
#include <stdlib.h>

#define CALL __attribute__((noinline))
/* Nothing is a tail call, and no block is optimised away. */
#define KEEP(block) __asm__ volatile("" : : "r"(block) : "memory")

void *kept[16];

CALL void *leaf(size_t size) {
    void *block = malloc(size);
    KEEP(block);
    return block;
}

CALL void path_one(void) {
    for (int i = 0; i < 10; i++) {
        void *block = leaf(100);
        KEEP(block);
        free(block);
    }
}

CALL void path_two(void) {
    for (int i = 0; i < 5; i++) {
        kept[i] = leaf(200);
        KEEP(kept);
    }
}

CALL void path_three(void) {
    void *block = leaf(10);
    block = realloc(block, 1000);
    KEEP(block);
    free(block);
}

static inline __attribute__((always_inline)) void *inlined(size_t size) {
    void *block = malloc(size);
    KEEP(block);
    return block;
}

CALL void around(void) {
    for (int i = 5; i < 8; i++) {
        kept[i] = inlined(50);
        KEEP(kept);
    }
}

/* A frame whose size is not known beforehand, and one that is aligned anew. */
CALL void varying(int count) {
    char place[count * 64];
    KEEP(place);
    free(leaf(30));
    KEEP(place);
}

CALL void aligned(void) {
    char place[64] __attribute__((aligned(64)));
    KEEP(place);
    free(leaf(40));
    KEEP(place);
}

int main(int argc, char **argv) {
    (void)argv;
    path_one();
    path_two();
    path_three();
    around();
    varying(argc);
    aligned();
    return 0;
}
