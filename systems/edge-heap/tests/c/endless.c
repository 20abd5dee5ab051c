/* Asks for ever. */
#include <stdlib.h>

int main(void)
{
    for (;;) {
        char *volatile const block = malloc(10);
        free(block);
    }
}
