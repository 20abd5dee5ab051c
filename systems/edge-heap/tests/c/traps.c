/* Asks for something, and traps. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    free(malloc(100));
    fprintf(stderr, "now\n");
    __builtin_trap();
}
