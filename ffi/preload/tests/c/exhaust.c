/* Allocates until there is no memory, and then some more. Usage: exhaust SIZE.
   Prints how many bytes it got. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
    size_t size = count > 1 ? strtoul(arguments[1], NULL, 10) : 0, got = 0;
    void **last = NULL;
    for (;;) {
        errno = 0;
        void **block = malloc(size);
        if (block == NULL)
            break;
        *block = last;
        last = block;
        got += size;
    }
    if (errno != ENOMEM)
        return 1;
    char *block = malloc(10);
    if (block == NULL && errno != ENOMEM)
        return 1;
    free(block);
    while (last != NULL) {
        void **next = *last;
        free(last);
        last = next;
    }
    last = malloc(size);
    if (last == NULL)
        return 1;
    free(last);
    printf("%zu\n", got);
    return 0;
}
