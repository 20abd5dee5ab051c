/* asker.c: asks malloc for what a file says, and for nothing else.
 *
 * Argument: a file of four 64-bit words an operation (1 allocate, 2 free, 3
 * resize, 4 calloc; block; size; align, 0 for malloc).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MOST 100000

static void *places[MOST];

int main(int count, char **arguments)
{
    struct stat status;
    const int file = count == 2 ? open(arguments[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &status) != 0) {
        return 2;
    }
    const size_t bytes = (size_t)status.st_size;
    const uint64_t *const words = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (words == MAP_FAILED) {
        return 2;
    }
    for (size_t at = 0; at + 4 <= bytes / 8; at += 4) {
        void **const place = &places[words[at + 1] % MOST];
        const size_t size = words[at + 2];
        void *moved = NULL;
        switch (words[at]) {
        case 1:
            *place = words[at + 3] == 0 ? malloc(size) : memalign(words[at + 3], size);
            break;
        case 2:
            free(*place);
            *place = NULL;
            break;
        case 3:
            moved = realloc(*place, size);
            if (moved == NULL) {
                return 3;
            }
            *place = moved;
            break;
        default:
            *place = calloc(1, size);
            break;
        }
        if (*place == NULL && words[at] != 2) {
            return 3;
        }
    }
    return 0;
}
