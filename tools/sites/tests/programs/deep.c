/* A block from a recursion of 200 calls, and one from 20. */
#include <stdlib.h>

void *kept[2];

__attribute__((noinline)) int deep(int more, int which) {
    if (more == 0) {
        kept[which] = malloc(77);
        return 1;
    }
    int below = deep(more - 1, which);
    __asm__ volatile("" : : : "memory");
    return below + 1;
}

int main(void) {
    return deep(199, 0) == 200 && deep(19, 1) == 20 ? 0 : 1;
}
