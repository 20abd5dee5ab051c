/* Two-level segregated fit (Masmano et al. 2004) without loops: 32 classes by 8, in an arena of 64 KiB.
   Beside it functions of other shapes. Everything here but main is called by the tests. */
#include "leon3.h"

#define APART __attribute__((noinline, noclone, used))

struct block {
    struct block *before; /* in memory */
    u32 size;             /* bytes of the payload; bit 0: free */
    struct block *next, *previous;
};
#define HEADER 8
#define ARENA 65536

static u8 arena[ARENA] __attribute__((aligned(8)));
static u32 first_level, second_level[32];
static struct block *lists[32][8];

/* Number of the highest bit that is set. */
static inline u32 highest(u32 word)
{
    u32 bit = 0;
    if (word >> 16) { bit += 16; word >>= 16; }
    if (word >> 8) { bit += 8; word >>= 8; }
    if (word >> 4) { bit += 4; word >>= 4; }
    if (word >> 2) { bit += 2; word >>= 2; }
    return bit + (word >> 1);
}

static inline u32 lowest(u32 word)
{
    return highest(word & -word);
}

static inline u32 bytes(struct block *block)
{
    return block->size & ~1u;
}

static inline struct block *after(struct block *block)
{
    return (struct block *)((u8 *)block + HEADER + bytes(block));
}

static APART void insert(struct block *block)
{
    u32 size = bytes(block), first = highest(size), second = size >> (first - 3) & 7;
    struct block *next = lists[first][second];
    block->next = next;
    block->previous = 0;
    if (next)
        next->previous = block;
    lists[first][second] = block;
    first_level |= 1u << first;
    second_level[first] |= 1u << second;
    block->size |= 1;
}

static APART void take(struct block *block)
{
    u32 size = bytes(block), first = highest(size), second = size >> (first - 3) & 7;
    if (block->next)
        block->next->previous = block->previous;
    if (block->previous)
        block->previous->next = block->next;
    else {
        lists[first][second] = block->next;
        if (!block->next) {
            second_level[first] &= ~(1u << second);
            if (!second_level[first])
                first_level &= ~(1u << first);
        }
    }
    block->size &= ~1u;
}

void clear(void)
{
    first_level = 0;
    for (u32 i = 0; i < 32; i++) {
        second_level[i] = 0;
        for (u32 j = 0; j < 8; j++)
            lists[i][j] = 0;
    }
    struct block *all = (struct block *)arena;
    all->before = 0;
    all->size = ARENA - 2 * HEADER;
    struct block *end = after(all);
    end->before = all;
    end->size = 0;
    insert(all);
}

APART void *tlsf_malloc(u32 size)
{
    if (size > ARENA)
        return 0;
    size = size < 16 ? 16 : (size + 7) & ~7u;
    u32 up = size + (1u << (highest(size) - 3)) - 1;
    u32 first = highest(up), second = up >> (first - 3) & 7;
    u32 found = second_level[first] & ~0u << second;
    if (!found) {
        u32 levels = first_level & ~1u << first;
        if (!levels)
            return 0;
        first = lowest(levels);
        found = second_level[first];
    }
    struct block *block = lists[first][lowest(found)];
    take(block);
    if (bytes(block) >= size + HEADER + 16) {
        struct block *rest = (struct block *)((u8 *)block + HEADER + size);
        rest->before = block;
        rest->size = bytes(block) - size - HEADER;
        after(rest)->before = rest;
        block->size = size;
        insert(rest);
    }
    return (u8 *)block + HEADER;
}

APART void tlsf_free(void *payload)
{
    if (!payload)
        return;
    struct block *block = (struct block *)((u8 *)payload - HEADER), *next = after(block), *before = block->before;
    if (next->size & 1) {
        take(next);
        block->size += HEADER + bytes(next);
    }
    if (before && before->size & 1) {
        take(before);
        before->size += HEADER + bytes(block);
        block = before;
    }
    after(block)->before = block;
    insert(block);
}

/* A chain of calls, each with a window. */
volatile u32 word;
#define LINK(name, inner) static APART u32 name(u32 x) { u32 y = inner(x + 1); return word + x + y; }
static APART u32 chain0(u32 x) { return x * 3; }
LINK(chain1, chain0) LINK(chain2, chain1) LINK(chain3, chain2) LINK(chain4, chain3)
LINK(chain5, chain4) LINK(chain6, chain5) LINK(chain7, chain6) LINK(chain8, chain7)
LINK(chain9, chain8) LINK(chain10, chain9)

APART u32 chains(u32 x)
{
    return chain3(x) + chain3(x + 1) + chain1(x);
}

/* A loop: as many rounds as there are bits. */
APART u32 bits(u32 x)
{
    u32 count = 0;
    while (x) {
        x &= x - 1;
        count++;
    }
    return count;
}

struct pair { u32 quotient, rest; double ratio; };
APART struct pair divide(u32 a, u32 b)
{
    struct pair pair = {a / (b | 1), a % (b | 1), (double)(s32)a / ((b & 255) + 1)};
    return pair;
}

APART u32 uses_pair(u32 a, u32 b)
{
    struct pair pair = divide(a, b);
    return pair.quotient ^ pair.rest ^ (u32)(s32)pair.ratio;
}

/* A last call. */
APART u32 last(u32 a, u32 b)
{
    if (a & 1)
        return uses_pair(a + b, b);
    return chain2(b);
}

APART u32 factorial(u32 n)
{
    return n < 2 ? 1 : word + n * factorial(n - 1);
}

typedef u32 function(u32);
APART u32 through(function *function, u32 x)
{
    return function(x) + 1;
}

int main(u32 cpu)
{
    clear();
    (void)tlsf_malloc(cpu);
    tlsf_free(0);
    return (int)(chain10(1) + chains(2) + last(3, 4) + bits(word) + factorial(5) + through(chain0, 1));
}
