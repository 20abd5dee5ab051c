/* Prints where blocks lie. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    printf("%p %p %p\n", malloc(100), malloc(16), malloc(100000));
    return 0;
}
