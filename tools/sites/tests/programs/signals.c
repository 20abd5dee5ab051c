/* A handler asks for blocks: on the program's stack, then on one of its own, then while a timer interrupts requests
   of the program, and the walks of their stacks, some thousand times. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

void *kept[4];
static volatile int which;
static volatile int ticks;

__attribute__((noinline)) void handler(int signal) {
    (void)signal;
    kept[which] = malloc(900 + which);
    __asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) void tick(int signal) {
    (void)signal;
    ticks++;
}

__attribute__((noinline)) void raiser(int number) {
    which = number;
    raise(SIGUSR1);
    __asm__ volatile("" : : : "memory");
}

static void handle(int signal, void (*function)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = function;
    action.sa_flags = flags;
    sigaction(signal, &action, NULL);
}

__attribute__((noinline)) void busy(void) {
    for (int i = 0; i < 200000; i++) {
        void *block = malloc(555);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
}

int main(void) {
    static char own[65536];
    handle(SIGUSR1, handler, 0);
    raiser(0);
    stack_t stack = {.ss_sp = own, .ss_size = sizeof own};
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, handler, SA_ONSTACK);
    raiser(1);
    handle(SIGALRM, tick, SA_RESTART);
    struct itimerval often = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &often, NULL);
    busy();
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    raiser(2);
    return ticks > 0 ? 0 : 1;
}
