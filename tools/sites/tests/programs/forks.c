/* Parent and child ask by the same calls and by one of their own. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void *kept[64];

__attribute__((noinline)) void ask(int first, int count, int size) {
    for (int i = first; i < first + count; i++) kept[i] = malloc(size);
    __asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) void of_child(void) {
    ask(20, 3, 333);
    __asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) void of_parent(void) {
    ask(30, 4, 444);
    __asm__ volatile("" : : : "memory");
}

int main(void) {
    ask(0, 2, 222);
    pid_t child = fork();
    if (child == 0) {
        of_child();
        ask(10, 1, 111);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    of_parent();
    return status;
}
