/* Frees what must not be freed. Usage: misuse KIND */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int global[64];

int main(int count, char **arguments) {
    const char *kind = count > 1 ? arguments[1] : "";
    char *block = malloc(1000), *other = malloc(40), *small = malloc(24);
    memset(block, 0, 1000);
    void *volatile wrong = NULL;
    if (strcmp(kind, "twice") == 0) {
        free(block);
        wrong = block;
    } else if (strcmp(kind, "small-twice") == 0) {
        free(small);
        wrong = small;
    } else if (strcmp(kind, "global") == 0) {
        wrong = &global[16];
    } else if (strcmp(kind, "stack") == 0) {
        wrong = &kind;
    } else if (strcmp(kind, "inside") == 0) {
        wrong = block + 64;
    } else if (strcmp(kind, "misaligned") == 0) {
        wrong = block + 8;
    } else if (strcmp(kind, "overflow") == 0) {
        for (int i = 0; i < 16; i++)
            *(volatile char *)(block + 1000 + i) = 'x';
        wrong = block;
    } else if (strcmp(kind, "underflow") == 0) {
        *(volatile char *)(block - 1) += 1;
        wrong = block;
    } else if (strcmp(kind, "after-free") == 0) {
        /* In use, so that the freed one lies between blocks in use. */
        char *last = malloc(1000);
        free(block);
        for (int i = 0; i < 16; i++)
            *(volatile char *)(block + i) = 'x';
        wrong = malloc(1000);
        memset(last, 1, 1000);
    } else if (strcmp(kind, "guess") == 0) {
        /* A header inside a block, with one check after another. */
        for (unsigned long long check = 0; check < 3000; check++) {
            *(volatile unsigned long long *)(block + 56) = 512 | check << 40;
            free(*(void *volatile *)&(void *){block + 64});
        }
    } else if (strcmp(kind, "often") == 0) {
        for (int i = 0; i < 3000; i++)
            free(*(void *volatile *)&(void *){&kind});
    } else if (strcmp(kind, "realloc") == 0) {
        free(block);
        wrong = realloc(*(void *volatile *)&block, 2000);
    } else {
        fprintf(stderr, "misuse: what is %s?\n", kind);
        return 3;
    }
    free(wrong);
    free(other);
    puts("not noticed");
    return 0;
}
