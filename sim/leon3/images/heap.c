/* A first-fit heap and a load on it: what a recorder of heap calls is tried on. Functions have the
   names of the C library and stay functions. With HEAP_ELSEWHERE they are another file's. */
#include "leon3.h"

#ifndef CALLS
#define CALLS 20000
#endif
#define APART __attribute__((noinline, noclone, used))

typedef unsigned size_t;
void *malloc(size_t size);
void free(void *block);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);

#ifndef HEAP_ELSEWHERE

/* Blocks follow one another; a header has the size with it, and whether it is taken. */
struct block {
    u32 size;
    u32 taken;
};

static u8 arena[256 * 1024] __attribute__((aligned(8)));
static int ready;

static struct block *after(struct block *block)
{
    return (struct block *)((u8 *)block + block->size);
}

static int inside(struct block *block)
{
    return (u8 *)block < arena + sizeof arena;
}

APART void *malloc(size_t size)
{
    if (!ready) {
        *(struct block *)arena = (struct block){sizeof arena, 0};
        ready = 1;
    }
    if (size > sizeof arena)
        return 0;
    u32 need = ((size ? size : 1) + sizeof(struct block) + 7) & ~7u;
    for (struct block *at = (struct block *)arena; inside(at); at = after(at)) {
        if (at->taken)
            continue;
        while (inside(after(at)) && !after(at)->taken)
            at->size += after(at)->size;
        if (at->size < need)
            continue;
        if (at->size - need >= sizeof(struct block) + 8) {
            struct block *rest = (struct block *)((u8 *)at + need);
            *rest = (struct block){at->size - need, 0};
            at->size = need;
        }
        at->taken = 1;
        return at + 1;
    }
    return 0;
}

APART void free(void *block)
{
    if (block)
        ((struct block *)block - 1)->taken = 0;
}

APART void *calloc(size_t count, size_t size)
{
    u64 bytes = (u64)count * size;
    if (bytes > sizeof arena)
        return 0;
    u8 *block = malloc((u32)bytes);
    for (u32 i = 0; block && i < bytes; i++)
        block[i] = 0;
    return block;
}

APART void *realloc(void *block, size_t size)
{
    if (!block)
        return malloc(size);
    u32 old = ((struct block *)block - 1)->size - sizeof(struct block);
    u8 *to = malloc(size);
    if (!to)
        return 0;
    for (u32 i = 0; i < (old < size ? old : size); i++)
        to[i] = ((u8 *)block)[i];
    free(block);
    return to;
}
#else
/* Places are told from here on. */
static u8 arena[1];

/* What the compiler asks of its library, of which there is none for 32 bits. */
int __clzsi2(u32 word);
int __clzsi2(u32 word)
{
    int zeros = 0;
    for (u32 bits = 16; bits; bits >>= 1)
        if (!(word >> (32 - bits))) {
            word <<= bits;
            zeros += (int)bits;
        }
    return word ? zeros : 32;
}
#endif

volatile u32 calls = CALLS;
static struct {
    u8 *at;
    u32 size, mark;
} held[128];

/* Each block is filled by its mark, and looked at before it goes. */
static u32 check(u32 slot)
{
    u32 wrong = 0;
    for (u32 i = 0; i < held[slot].size; i++)
        wrong += held[slot].at[i] != (u8)(held[slot].mark + i);
    return wrong;
}

static void mark(u32 slot, u32 from)
{
    for (u32 i = from; i < held[slot].size; i++)
        held[slot].at[i] = (u8)(held[slot].mark + i);
}

int main(u32 cpu)
{
    (void)cpu;
    u32 state = 20011, sum = 0, refused = 0, wrong = 0, made = 0, live = 0, peak = 0;
    for (u32 call = 0; call < calls; call++) {
        u32 slot = draw(&state) & 127, kind = draw(&state) >> 28, size = draw(&state) & 0x3ff;
        size >>= draw(&state) & 7;
        if (held[slot].at && kind >= 3) {
            wrong += check(slot);
            sum = fold(sum, (u32)(held[slot].at - arena));
            free(held[slot].at);
            live -= held[slot].size;
            held[slot].at = 0;
            continue;
        }
        u8 *block;
        u32 from = 0;
        if (held[slot].at) {
            wrong += check(slot);
            block = realloc(held[slot].at, size);
            if (block) {
                from = held[slot].size < size ? held[slot].size : size;
                live -= held[slot].size;
            }
        } else if (kind == 15) {
            size = (size / 4 + 1) * 4;
            block = calloc(size / 4, 4);
            for (u32 i = 0; block && i < size; i++)
                wrong += block[i] != 0;
            held[slot].mark = call;
        } else {
            block = malloc(size);
            held[slot].mark = call;
        }
        sum = fold(sum, block ? (u32)(block - arena) : 1);
        if (!block) {
            refused++;
            continue;
        }
        held[slot].at = block;
        held[slot].size = size;
        mark(slot, from);
        made++;
        live += size;
        if (live > peak)
            peak = live;
    }
    print("made ");
    decimal(made);
    print(" refused ");
    decimal(refused);
    print(" wrong ");
    decimal(wrong);
    print(" peak ");
    decimal(peak);
    line("\nheap", sum);
    return 0;
}
