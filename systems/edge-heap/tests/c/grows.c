/* Takes memory past its allocator, and uses that. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    void *const block = malloc(100);
    const size_t page = __builtin_wasm_memory_grow(0, 1);
    unsigned char *const own = (unsigned char *)(page << 16);
    own[10] = 7;
    printf("%d\n", own[10] + (block == NULL));
    free(block);
    return 0;
}
