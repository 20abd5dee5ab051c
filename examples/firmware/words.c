/* Firmware that uses its heap as many do: telegrams come in, are taken apart into words, counted in a table that grows, and
 * thrown away again. It says at the end what it asked for. */
#include "board.h"

#include <stdlib.h>
#include <string.h>

static uint32_t calls;
static uint32_t asked;

static void *give(size_t size)
{
    calls += 1;
    asked += size;
    void *const block = malloc(size);
    if (block == NULL) {
        board_print("out of memory\n");
        exit(4);
    }
    return block;
}

static void *grow(void *block, size_t size)
{
    calls += 1;
    asked += size;
    void *const grown = realloc(block, size);
    if (grown == NULL) {
        board_print("out of memory\n");
        exit(4);
    }
    return grown;
}

static void drop(void *block)
{
    calls += 1;
    free(block);
}

struct word {
    char *text;
    uint16_t *places;
    uint16_t count;
    uint16_t room;
};

static struct word *table;
static size_t used;
static size_t room;

static uint32_t state = 1;

static uint32_t drawn(uint32_t end)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % end;
}

static void see(const char *text, uint16_t place)
{
    struct word *word = table;
    while (word != table + used && strcmp(word->text, text) != 0) {
        word += 1;
    }
    if (word == table + used) {
        if (used == room) {
            room = room == 0 ? 8 : room + room / 2;
            table = grow(table, room * sizeof(*table));
        }
        word = &table[used];
        used += 1;
        *word = (struct word){.text = give(strlen(text) + 1)};
        strcpy(word->text, text);
    }
    if (word->count == word->room) {
        word->room = (uint16_t)(word->room + 4);
        word->places = grow(word->places, word->room * sizeof(*word->places));
    }
    word->places[word->count] = place;
    word->count += 1;
}

/* What was seen least goes. */
static void forget(void)
{
    for (size_t place = 0; place < used;) {
        if (table[place].count > 1) {
            place += 1;
            continue;
        }
        drop(table[place].text);
        drop(table[place].places);
        used -= 1;
        table[place] = table[used];
    }
}

static void telegram(uint16_t number)
{
    const size_t words = 3 + drawn(12);
    char *const text = give(words * 12 + 1);
    char *end = text;
    for (size_t word = 0; word < words; word++) {
        const uint32_t length = 1 + drawn(10);
        const uint32_t letter = drawn(5);
        for (uint32_t place = 0; place < length; place++) {
            *end = (char)('a' + (letter * 5 + place * 3) % 26);
            end += 1;
        }
        *end = ' ';
        end += 1;
    }
    *end = 0;
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        see(word, number);
    }
    drop(text);
}

static void print(const char *name, uint32_t value)
{
    char text[12];
    char *digit = &text[11];
    *digit = 0;
    do {
        digit -= 1;
        *digit = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    board_print(name);
    board_print(digit);
    board_print("\n");
}

int main(void)
{
    for (uint16_t number = 0; number < 400; number++) {
        telegram(number);
        if (number % 50 == 49) {
            forget();
        }
    }
    print("calls ", calls);
    print("bytes ", asked);
    print("ticks ", METES_RECORD_NOW());
    return 0;
}
