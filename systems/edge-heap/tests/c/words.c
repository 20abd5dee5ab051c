/* Counts words of its input, and keeps each in a tree that is built, balanced and thrown away in turns: small
 * blocks, strings, tables that double, all freed in another order than they came. Prints what it finds, so that two
 * allocators can be compared by the output. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    struct word *next;
    char *text;
    unsigned count;
};

static struct word **table;
static size_t buckets, words;

static uint32_t hash(const char *text)
{
    uint32_t h = 2166136261U;
    for (; *text != 0; text++) {
        h = (h ^ (unsigned char)*text) * 16777619U;
    }
    return h;
}

static void grow(void)
{
    const size_t more = buckets == 0 ? 8 : buckets * 2;
    struct word **const wider = calloc(more, sizeof(*wider));
    for (size_t i = 0; i < buckets; i++) {
        for (struct word *w = table[i]; w != NULL;) {
            struct word *const next = w->next;
            struct word **const place = &wider[hash(w->text) % more];
            w->next = *place;
            *place = w;
            w = next;
        }
    }
    free(table);
    table = wider;
    buckets = more;
}

static void count(const char *text)
{
    if (words >= buckets) {
        grow();
    }
    struct word **place = &table[hash(text) % buckets];
    for (struct word *w = *place; w != NULL; w = w->next) {
        if (strcmp(w->text, text) == 0) {
            w->count++;
            return;
        }
    }
    struct word *const w = malloc(sizeof(*w));
    w->text = strdup(text);
    w->count = 1;
    w->next = *place;
    *place = w;
    words++;
}

static int by_text(const void *a, const void *b)
{
    return strcmp((*(struct word *const *)a)->text, (*(struct word *const *)b)->text);
}

static void report(void)
{
    struct word **all = NULL;
    size_t held = 0, room = 0;
    for (size_t i = 0; i < buckets; i++) {
        for (struct word *w = table[i]; w != NULL; w = w->next) {
            if (held == room) {
                room = room * 3 / 2 + 4;
                all = realloc(all, room * sizeof(*all));
            }
            all[held++] = w;
        }
    }
    qsort(all, held, sizeof(*all), by_text);
    for (size_t i = 0; i < held; i += held / 8 + 1) {
        printf("%s %u\n", all[i]->text, all[i]->count);
    }
    printf("%zu words\n", held);
    free(all);
}

static void forget(unsigned every)
{
    unsigned n = 0;
    for (size_t i = 0; i < buckets; i++) {
        for (struct word **place = &table[i]; *place != NULL;) {
            struct word *const w = *place;
            if (n++ % every == 0) {
                *place = w->next;
                free(w->text);
                free(w);
                words--;
            } else {
                place = &w->next;
            }
        }
    }
}

int main(int arguments, char **argument)
{
    const unsigned rounds = arguments > 1 ? (unsigned)atoi(argument[1]) : 3;
    size_t length = 0, room = 16;
    char *text = malloc(room);
    int byte;
    while ((byte = getchar()) != EOF) {
        if (length + 1 == room) {
            room *= 2;
            text = realloc(text, room);
        }
        text[length++] = (char)byte;
    }
    text[length] = 0;
    uint32_t state = 1;
    for (unsigned round = 0; round < rounds; round++) {
        char *const copy = aligned_alloc(64, (length + 64) / 64 * 64);
        if (((uintptr_t)copy & 63U) != 0) {
            puts("misaligned");
        }
        memcpy(copy, text, length + 1);
        for (char *word = strtok(copy, " \n\t"); word != NULL; word = strtok(NULL, " \n\t")) {
            count(word);
        }
        for (unsigned i = 0; i < 400; i++) {
            char made[24];
            state = state * 1664525U + 1013904223U;
            snprintf(made, sizeof(made), "w%u", (unsigned)(state >> 20));
            count(made);
        }
        free(copy);
        forget(round + 2);
    }
    report();
    forget(1);
    free(table);
    free(text);
    return 0;
}
