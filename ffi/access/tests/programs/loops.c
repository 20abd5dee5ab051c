/* Reads and writes a block for a while: argv[1] says how it ends. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
    const char *end = count > 1 ? arguments[1] : "";
    volatile unsigned *block = malloc(12345);
    for (int i = 0; i < 321; i++) block[i] = i;
    if (!strcmp(end, "kill")) raise(SIGKILL);
    if (!strcmp(end, "fault")) *(volatile int *)8 = 1;
    if (!strcmp(end, "exec")) execl("/bin/true", "true", (char *)NULL);
    if (!strcmp(end, "noexec")) execl("/no/such/program", "no", (char *)NULL);
    if (!strcmp(end, "fork")) {
        for (int child = 0; child < 2; child++) {
            if (fork() == 0) {
                for (int i = 0; i < 1000; i++) block[i] = i;
                if (child) execl("/bin/true", "true", (char *)NULL);
                _exit(0);
            }
            wait(NULL);
        }
    }
    free((void *)block);
    return !strcmp(end, "seven") ? 7 : 0;
}
