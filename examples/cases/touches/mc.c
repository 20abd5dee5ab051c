/* Counts, for one input stream after the other, how often each element occurs. argv: streams, elements of a
 * stream, values that occur in it.
 *
 * An element has 22 bits. Which of a stream's values it is is looked up in a table as large as that, which is
 * never initialised: an entry is valid if the list of values that it points into points back to it (Briggs and
 * Torczon, "An efficient representation for sparse sets", 1993). So a stream touches few pages of a large
 * table. What was counted of it is kept until the end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 1 << 22 };

struct counted {
    uint32_t value, count;
};

/* What a stream has, in the order of first occurrence. */
struct result {
    struct counted *list;
    uint32_t used, room;
};

static uint64_t state = 88172645463325252;

static uint32_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 40);
}

static void count(struct result *result, uint32_t *place, uint32_t value) {
    uint32_t at = place[value];
    if (at < result->used && result->list[at].value == value) {
        result->list[at].count++;
        return;
    }
    if (result->used == result->room) {
        result->room = result->room ? 2 * result->room : 16;
        result->list = realloc(result->list, result->room * sizeof *result->list);
        if (!result->list) exit(3);
    }
    place[value] = result->used;
    result->list[result->used++] = (struct counted){value, 1};
}

int main(int argc, char **arguments) {
    uint32_t streams = argc > 1 ? (uint32_t)atoi(arguments[1]) : 10;
    uint32_t elements = argc > 2 ? (uint32_t)atoi(arguments[2]) : 1000;
    uint32_t values = argc > 3 ? (uint32_t)atoi(arguments[3]) : 100;
    struct result *results = calloc(streams, sizeof *results);
    uint32_t *drawn = malloc(values * sizeof *drawn), distinct = 0;
    uint64_t sum = 0;
    if (!results || !drawn || !values) return 2;
    for (uint32_t s = 0; s < streams; s++) {
        uint32_t *place = malloc(VALUES * sizeof *place);
        if (!place) return 3;
        for (uint32_t i = 0; i < values; i++) drawn[i] = draw() % VALUES;
        for (uint32_t i = 0; i < elements; i++) count(&results[s], place, drawn[draw() % values]);
        free(place);
    }
    for (uint32_t s = 0; s < streams; s++) {
        distinct += results[s].used;
        for (uint32_t i = 0; i < results[s].used; i++) sum += results[s].list[i].count;
        free(results[s].list);
    }
    free(drawn), free(results);
    printf("%u streams, %u values, %llu elements\n", streams, distinct, (unsigned long long)sum);
    return sum == (uint64_t)streams * elements ? 0 : 1;
}
