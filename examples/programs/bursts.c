/* Bursts: every 1.5 seconds blocks are allocated, filled, used for 0.5 seconds and freed; between them little lives.
 *
 *     bursts large|small [COUNT]
 *
 * `large` takes six blocks of 40 MiB a burst, `small` a million of 16 to 481 bytes. After each burst, for a
 * second, a few small requests are made, as programs do; then the resident KiB are printed. scripts/bursts
 * looks at the memory from outside all the time. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* Without a request to the heap. */
static void say_resident(void)
{
    static char text[4096];
    const int file = open("/proc/self/smaps_rollup", O_RDONLY);
    const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[length < 0 ? 0 : length] = 0;
    const char *const line = strstr(text, "Rss:");
    if (line == NULL) exit(2);
    dprintf(1, "%ld\n", strtol(line + 4, NULL, 10));
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
        say_resident();
    }
    free(blocks);
    return 0;
}
