/* A handler of a signal asks for memory and gives it back, until it has interrupted the heap. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static void *kept[64];

static void handle(int signal) {
    (void)signal;
    free(malloc(64));
}

int main(void) {
    struct itimerval often = {{0, 50}, {0, 50}};
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned long i = 0; i < 2000000000UL; i++) {
        free(kept[i % 64]);
        kept[i % 64] = malloc(1 + i * 7919 % 3000);
    }
    return 0;
}
