/* asker.c: asks malloc for what a file says, and for nothing else. What is in the
 * blocks is verified.
 *
 * Argument: a file of four 64-bit words an operation (1 allocate, 2 free, 3
 * resize, 4 calloc; block; size; align, 0 for malloc).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 100000

static void *places[MOST];
static size_t sizes[MOST];

/* Every 64th byte of a block is what it is to be. */
static void verify(size_t block, size_t size, unsigned char what)
{
    const unsigned char *const bytes = places[block];
    for (size_t at = 0; at < size; at += 64) {
        if (bytes[at] != what) {
            _exit(4);
        }
    }
}

static unsigned char mark(size_t block)
{
    return (unsigned char)(block % 255 + 1);
}

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
        const size_t block = words[at + 1] % MOST;
        const size_t size = words[at + 2];
        const size_t align = words[at + 3];
        const size_t before = sizes[block];
        void *place = NULL;
        if (words[at] == 2 || words[at] == 3) {
            verify(block, before, mark(block));
            /* Its last byte, too. */
            if (((unsigned char *)places[block])[before - 1] != mark(block)) {
                _exit(5);
            }
        }
        switch (words[at]) {
        case 1:
            place = align == 0 ? malloc(size) : memalign(align, size);
            break;
        case 2:
            free(places[block]);
            continue;
        case 3:
            place = realloc(places[block], size);
            break;
        default:
            place = calloc(1, size);
            break;
        }
        if (place == NULL || (align != 0 && (uintptr_t)place % align != 0)) {
            return 3;
        }
        places[block] = place;
        sizes[block] = size;
        if (words[at] == 3) {
            verify(block, before < size ? before : size, mark(block));
        } else if (words[at] == 4) {
            verify(block, size, 0);
        }
        memset(place, mark(block), size);
    }
    return 0;
}
