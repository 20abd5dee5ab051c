/* Asks for a block and gives it back, ARGUMENT times (15 million), and does nothing else: what a recorder costs at worst. */
#include <stdlib.h>

static void *volatile kept;

int main(int count, char **words) {
    long pairs = count > 1 ? atol(words[1]) : 15000000;
    for (long n = 0; n < pairs; n++) {
        kept = malloc(16 + n % 500);
        free(kept);
    }
    return 0;
}
