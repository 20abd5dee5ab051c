/* Forks in a signal handler that interrupts malloc, hundreds of times; leaves
   by _exit in another. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t forked, wrong;

static void handle(int number) {
    (void)number;
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(5);
    if (waitpid(child, &status, 0) != child || status != 5 << 8)
        wrong = 1;
    forked++;
}

static void leave(int number) {
    (void)number;
    _exit(wrong ? 1 : 6);
}

int main(void) {
    signal(SIGALRM, handle);
    signal(SIGUSR1, leave);
    struct itimerval often = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &often, NULL);
    void *held[64] = {0};
    for (unsigned i = 0; forked < 400; i++) {
        unsigned n = i * 7919 % 64;
        free(held[n]);
        held[n] = malloc(i % 5000);
        if (held[n] == NULL)
            return 2;
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    /* Interrupted inside by a signal that never returns. */
    if (fork() == 0) {
        usleep(20000);
        kill(getppid(), SIGUSR1);
        _exit(0);
    }
    for (;;)
        free(malloc(rand() % 5000));
}
