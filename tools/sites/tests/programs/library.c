/* A library with one function, whose name NAME says. */
#include <stdlib.h>

__attribute__((noinline)) void *NAME(size_t size) {
    void *block = malloc(size);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}
