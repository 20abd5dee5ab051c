/* 300 000 blocks of 48 bytes: several chunks of recording, with all unknown
   descriptors closed (c) or the size of files limited (l). */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void *volatile kept;

int main(int count, char **words) {
    if (count > 1 && words[1][0] == 'c')
        for (int n = 3; n < 1024; n++) close(n);
    if (count > 1 && words[1][0] == 'l') {
        struct rlimit limit = {2 << 20, 2 << 20};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    int first = dup(0);
    for (int n = 0; n < 300000; n++) {
        kept = malloc(48);
        free(kept);
    }
    return dup(0) == first + 1 ? 0 : 1;
}
