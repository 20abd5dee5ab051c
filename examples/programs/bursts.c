/* Bursts: every 1.5 seconds blocks are allocated, filled, used for 0.5 seconds and freed; between them little lives.
 *
 *     bursts large|small [COUNT]
 *
 * `large` takes six blocks of 40 MiB a burst, `small` a million of 16 to 481 bytes. After each burst, and once
 * more when it is over for a second, a few small requests are made, as programs do. Prints nothing;
 * scripts/bursts looks at the memory from outside. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGE = 6, LARGE_BYTES = 40 << 20, SMALL = 1000000 };

static void pause_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void take(void **blocks, size_t number, size_t bytes)
{
    blocks[number] = malloc(bytes);
    if (blocks[number] == NULL) {
        fputs("bursts: no memory is left: run with fewer at once\n", stderr);
        exit(2);
    }
    memset(blocks[number], (int)number, bytes);
}

/* Some requests, over a second. */
static void idle(void)
{
    for (int tick = 0; tick < 100; tick += 1) {
        void *volatile const block = malloc(100);
        free(block);
        pause_ms(10);
    }
}

int main(int count, char **words)
{
    const int large = count > 1 && strcmp(words[1], "large") == 0;
    const long bursts = count > 2 ? strtol(words[2], NULL, 10) : 4;
    if (count < 2 || (!large && strcmp(words[1], "small") != 0) || bursts < 1) {
        fputs("usage: bursts large|small [COUNT]: a count of at least 1\n", stderr);
        return 2;
    }
    const size_t number = large ? LARGE : SMALL;
    void **const blocks = calloc(number, sizeof *blocks);
    if (blocks == NULL) return 2;
    uint32_t state = 1;
    for (long burst = 0; burst < bursts; burst += 1) {
        for (size_t at = 0; at < number; at += 1) {
            state = state * 1664525u + 1013904223u;
            take(blocks, at, large ? LARGE_BYTES : 16 + (state >> 24) / 8 * 15);
        }
        pause_ms(500);
        for (size_t at = 0; at < number; at += 1) free(blocks[at]);
        idle();
    }
    free(blocks);
    return 0;
}
