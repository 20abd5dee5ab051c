/* A child that goes on in its parent's heap. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

int main(void) {
    void *mine = malloc(1111);
    pid_t child = fork();
    if (child == 0) {
        free(mine);
        kept = malloc(2222);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    kept = malloc(3333);
    free(mine);
    return 7;
}
