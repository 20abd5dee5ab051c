/* A benchmark of processor kernels: a list that is searched, sorted and turned; products of small
   matrices; a machine that reads numbers; a cyclic redundancy check over all results. */
#include "leon3.h"

#ifndef ITERATIONS
#define ITERATIONS 2000
#endif

volatile u32 iterations = ITERATIONS;

static u16 crc(u16 sum, u32 word)
{
    for (int bit = 0; bit < 32; bit++) {
        u32 odd = (sum ^ word) & 1;
        sum >>= 1;
        word >>= 1;
        if (odd)
            sum ^= 0xa001;
    }
    return sum;
}

struct node {
    struct node *next;
    s16 key, value;
};
#define NODES 64
static struct node nodes[NODES];

/* Merges runs of 1, 2, 4, ... until one is left. */
static struct node *sort(struct node *head)
{
    for (u32 run = 1;; run *= 2) {
        struct node *rest = head, *made = 0, **end = &made;
        u32 merges = 0;
        while (rest) {
            struct node *left = rest, *right = rest;
            u32 lefts = 0, rights = run;
            merges++;
            while (right && lefts < run) {
                right = right->next;
                lefts++;
            }
            while (lefts || (rights && right)) {
                struct node *least;
                if (!lefts || (rights && right && right->key < left->key)) {
                    least = right;
                    right = right->next;
                    rights--;
                } else {
                    least = left;
                    left = left->next;
                    lefts--;
                }
                *end = least;
                end = &least->next;
            }
            rest = right;
        }
        *end = 0;
        head = made;
        if (merges <= 1)
            return head;
    }
}

static u16 list(u32 *state, u16 sum)
{
    struct node *head = 0;
    for (u32 i = 0; i < NODES; i++) {
        nodes[i] = (struct node){head, (s16)draw(state), (s16)i};
        head = &nodes[i];
    }
    for (u32 i = 0; i < 16; i++) {
        s16 value = (s16)(draw(state) % (NODES + 8));
        struct node *at = head;
        while (at && at->value != value)
            at = at->next;
        sum = crc(sum, at ? (u16)at->key : 0xffff);
    }
    head = sort(head);
    struct node *turned = 0;
    while (head) {
        struct node *next = head->next;
        sum = (u16)(sum + (u16)head->value * 3);
        head->next = turned;
        turned = head;
        head = next;
    }
    return crc(sum, (u16)turned->key);
}

#define SIDE 10
static s16 left[SIDE][SIDE], right[SIDE][SIDE];
static s32 product[SIDE][SIDE];

static u16 matrix(u32 *state, u16 sum)
{
    for (u32 i = 0; i < SIDE; i++) {
        for (u32 j = 0; j < SIDE; j++) {
            left[i][j] = (s16)draw(state);
            right[i][j] = (s16)(draw(state) & 0xfff);
        }
    }
    s32 trace = 0;
    for (u32 i = 0; i < SIDE; i++) {
        for (u32 j = 0; j < SIDE; j++) {
            s32 cell = 0;
            for (u32 k = 0; k < SIDE; k++)
                cell += left[i][k] * right[k][j];
            product[i][j] = cell;
        }
        trace += product[i][i] >> 3;
    }
    for (u32 i = 0; i < SIDE; i++)
        sum = crc(sum, (u32)(product[i][SIDE - 1 - i] ^ trace));
    return sum;
}

enum where { START, SIGN, WHOLE, POINT, FRACTION, EXPONENT, POWER, BAD, WHERES };

static enum where step(enum where at, char c)
{
    u32 digit = (u32)(c - '0') < 10;
    switch (at) {
    case START:
        return digit ? WHOLE : c == '+' || c == '-' ? SIGN : c == '.' ? POINT : BAD;
    case SIGN:
        return digit ? WHOLE : c == '.' ? POINT : BAD;
    case WHOLE:
        return digit ? WHOLE : c == '.' ? FRACTION : c == 'e' ? EXPONENT : BAD;
    case POINT:
    case FRACTION:
        return digit ? FRACTION : c == 'e' && at == FRACTION ? EXPONENT : BAD;
    case EXPONENT:
        return digit || c == '-' ? POWER : BAD;
    case POWER:
        return digit ? POWER : BAD;
    default:
        return BAD;
    }
}

static u16 machine(u32 *state, u16 sum)
{
    static const char letters[16] = "0123456789.+-e,,";
    u32 ends[WHERES] = {0}, steps[WHERES] = {0};
    enum where at = START;
    for (u32 i = 0; i < 400; i++) {
        char c = letters[draw(state) >> 28];
        if (c == ',') {
            ends[at]++;
            at = START;
        } else {
            at = step(at, c);
            steps[at]++;
        }
    }
    for (u32 i = 0; i < WHERES; i++)
        sum = crc(sum, ends[i] << 16 | steps[i]);
    return sum;
}

int main(u32 cpu)
{
    (void)cpu;
    u32 state = 6502;
    u16 sum = 0xffff;
    for (u32 i = 0; i < iterations; i++) {
        sum = list(&state, sum);
        sum = matrix(&state, sum);
        sum = machine(&state, sum);
    }
    line("kernel", sum);
    return 0;
}
