/* Asks for 4000 + n bytes, n below 1000, and dies by the signal given. */
#include <signal.h>
#include <stdlib.h>

static void *volatile kept;

int main(int count, char **words) {
    for (size_t n = 0; n < 1000; n++) kept = malloc(4000 + n);
    raise(count > 1 ? atoi(words[1]) : SIGKILL);
    return 0;
}
