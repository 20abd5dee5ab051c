/* Counts the words of its input, all memory from a heap in one static array.
 *
 *     ./words tlsf < README.md
 *
 * Any heap of metes.h may be named; it then shows how that heap did. */
#include <ctype.h>
#include <metes.h>
#include <stdio.h>
#include <string.h>

enum { MEMORY = 16 << 10, MAP = 64 };

struct word {
    struct word *next;
    unsigned count;
    char text[];
};

static char memory[MEMORY];
static struct word *buckets[256];

/* Adds one to a word's count; false when the memory is used up. */
static bool count(metes_heap *heap, const char *text) {
    unsigned hash = 0;
    for (const char *c = text; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    struct word **bucket = &buckets[hash % 256];
    for (struct word *word = *bucket; word; word = word->next)
        if (strcmp(word->text, text) == 0)
            return ++word->count;
    struct word *word = metes_heap_allocate(heap, sizeof *word + strlen(text) + 1);
    if (word == NULL)
        return false;
    strcpy(word->text, text);
    word->count = 1;
    word->next = *bucket;
    *bucket = word;
    return true;
}

/* Forgets the words that came once only: holes for the map to show. */
static void forget_rare(metes_heap *heap) {
    for (size_t i = 0; i < 256; i++)
        for (struct word **link = &buckets[i]; *link;) {
            struct word *word = *link;
            if (word->count > 1) {
                link = &word->next;
            } else {
                *link = word->next;
                metes_heap_free(heap, word);
            }
        }
}

/* Marks the used cells of the map. */
static bool mark(void *map, const metes_block *block) {
    size_t first = ((const char *)block->address - memory) * MAP / MEMORY;
    size_t last = ((const char *)block->address + block->size - 1 - memory) * MAP / MEMORY;
    for (size_t i = first; block->used && i <= last && i < MAP; i++)
        ((char *)map)[i] = '#';
    return true;
}

int main(int arguments, char **argument) {
    const char *spec = arguments > 1 ? argument[1] : "tlsf";
    metes_error error;
    metes_heap *heap = metes_heap_create(memory, sizeof memory, spec, &error);
    if (heap == NULL) {
        fprintf(stderr, "words: %s\n", error.message);
        return 2;
    }
    char text[64];
    size_t length = 0;
    for (int c = 0; c != EOF;) {
        c = getchar();
        if (c != EOF && isalnum(c) && length < sizeof text - 1) {
            text[length++] = (char)tolower(c);
        } else if (length > 0) {
            text[length] = '\0';
            length = 0;
            if (!count(heap, text)) {
                fprintf(stderr, "words: %d bytes are too few for these words\n", MEMORY);
                return 1;
            }
        }
    }
    forget_rare(heap);

    struct word *most = NULL;
    for (size_t i = 0; i < 256; i++)
        for (struct word *word = buckets[i]; word; word = word->next)
            if (most == NULL || word->count > most->count)
                most = word;
    if (most != NULL)
        printf("most frequent: %s, %u times\n", most->text, most->count);

    metes_statistics s;
    metes_heap_statistics(heap, &s);
    char map[MAP + 1];
    memset(map, '.', MAP);
    map[MAP] = '\0';
    metes_heap_walk(heap, mark, map);
    printf("%s: live %zu bytes in %zu blocks, peak %zu, records %zu, %zu free blocks\n[%s]\n", spec,
           s.live, s.blocks, s.peak_live, s.record_bytes, s.free_blocks, map);
    if (!metes_heap_check(heap, &error)) {
        fprintf(stderr, "words: %s\n", error.message);
        return 1;
    }
    metes_heap_destroy(heap);
    return 0;
}
