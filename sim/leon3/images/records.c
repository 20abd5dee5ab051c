/* A benchmark of what systems programs do: records that are copied and compared, strings, calls
   through many small procedures and through pointers, decisions by kind. */
#include "leon3.h"

#ifndef ITERATIONS
#define ITERATIONS 20000
#endif
#define APART __attribute__((noinline))

volatile u32 iterations = ITERATIONS;

enum kind { TELEMETRY, COMMAND, EVENT, REPORT, KINDS };

struct record {
    struct record *link;
    enum kind kind;
    s32 number;
    union {
        struct {
            u8 channel;
            s16 sample[4];
        } telemetry;
        struct {
            char verb[16];
            u32 argument;
        } command;
    } body;
    char name[32];
};

static struct record records[8], spare;
static s32 table[32];
static s32 grid[16][16];
static char flag;

APART static u32 length(const char *text)
{
    const char *at = text;
    while (*at)
        at++;
    return (u32)(at - text);
}

APART static int compare(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return (u8)*a - (u8)*b;
}

APART static void copy(char *to, const char *from)
{
    while ((*to++ = *from++)) {
    }
}

APART static enum kind next_kind(enum kind kind, s32 by)
{
    switch (kind) {
    case TELEMETRY:
        return by > 100 ? EVENT : COMMAND;
    case COMMAND:
        return by & 1 ? REPORT : EVENT;
    case EVENT:
        return REPORT;
    default:
        return TELEMETRY;
    }
}

APART static s32 weigh(s32 a, s32 b, s32 *out)
{
    s32 c = a + 2;
    *out = b * c - a;
    return *out / (c | 1);
}

APART static void spread(s32 *row, s32 at, s32 value)
{
    s32 place = (at + 5) & 31;
    row[place] = value;
    row[(place + 1) & 31] = row[place];
    row[(place + 17) & 31] = place;
    for (s32 i = place & 15; i <= (place & 15) + 1; i++)
        grid[place & 15][i & 15] = place;
    grid[(place + 3) & 15][(place - 1) & 15]++;
}

APART static int alike(const struct record *a, const struct record *b)
{
    if (a->kind != b->kind)
        return 0;
    if (compare(a->name, b->name) > 0) {
        flag = a->name[0];
        return 1;
    }
    return length(a->name) == length(b->name);
}

typedef s32 action(struct record *record, s32 turn);

APART static s32 on_telemetry(struct record *record, s32 turn)
{
    s32 sum = 0;
    record->body.telemetry.channel = (u8)turn;
    for (u32 i = 0; i < 4; i++) {
        record->body.telemetry.sample[i] = (s16)(turn * (s32)(i + 3));
        sum += record->body.telemetry.sample[i];
    }
    return sum;
}

APART static s32 on_command(struct record *record, s32 turn)
{
    copy(record->body.command.verb, turn & 2 ? "OPEN VALVE" : "CLOSE VALVE");
    record->body.command.argument = (u32)turn * 7;
    return (s32)length(record->body.command.verb) + (s32)record->body.command.argument;
}

APART static s32 on_event(struct record *record, s32 turn)
{
    spare = *record;
    spare.number = turn;
    *record = spare;
    return record->number;
}

APART static s32 on_report(struct record *record, s32 turn)
{
    s32 out;
    s32 part = weigh(record->number & 0xff, turn & 0x3ff, &out);
    return part + out;
}

static action *const actions[KINDS] = {on_telemetry, on_command, on_event, on_report};

int main(u32 cpu)
{
    (void)cpu;
    u32 sum = 0;
    for (u32 i = 0; i < 8; i++) {
        records[i].link = &records[(i + 1) & 7];
        records[i].kind = (enum kind)(i & 3);
        copy(records[i].name, i & 1 ? "SPACECRAFT RECORD, 1'ST" : "SPACECRAFT RECORD, 2'ND");
    }
    struct record *at = records;
    for (u32 turn = 0; turn < iterations; turn++) {
        s32 result = actions[at->kind](at, (s32)turn);
        at->kind = next_kind(at->kind, result);
        spread(table, result, (s32)turn);
        if (alike(at, at->link)) {
            char name[32];
            copy(name, at->name);
            name[19] = (char)('1' + (turn & 7));
            copy(at->link->name, name);
            sum = fold(sum, (u32)flag);
        }
        sum = fold(sum, (u32)result);
        at = at->link;
    }
    for (u32 i = 0; i < 32; i++)
        sum = fold(sum, (u32)table[i]);
    for (u32 i = 0; i < 256; i++)
        sum = fold(sum, (u32)grid[i / 16][i % 16]);
    line("records", sum);
    return 0;
}
