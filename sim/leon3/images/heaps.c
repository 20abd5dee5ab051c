/* Heap calls from everywhere: within one another, as last deeds, far down the stack, from handlers of
   interrupts that come in the midst of others, and on all CPUs at once. */
#include "leon3.h"

#define APART __attribute__((noinline, noclone, used))
#define SLOTS 256
#define SLOT 64
#define ROUNDS 3000

typedef unsigned size_t;

/* Each CPU takes slots of its own. */
static u8 arena[CPUS][SLOTS][SLOT] __attribute__((aligned(8)));
static u8 taken[CPUS][SLOTS];

static u32 own(void)
{
    u32 word;
    __asm__("rd %%asr17, %0" : "=r"(word));
    return word >> 28;
}

/* Interrupts wait while a slot is looked for, and come before the call returns. */
APART void *malloc(size_t size)
{
    u32 cpu = own(), before = level(15);
    void *block = 0;
    for (u32 slot = 0; size <= SLOT && slot < SLOTS && !block; slot++) {
        if (!taken[cpu][slot]) {
            taken[cpu][slot] = 1;
            block = arena[cpu][slot];
        }
    }
    level(before);
    return block;
}

APART void free(void *block)
{
    u32 at = (u8 *)block - arena[0][0];
    if (block)
        taken[at / SLOT / SLOTS][at / SLOT % SLOTS] = 0;
}

/* Jumps to `malloc` as its last deed. */
APART void *aligned_alloc(size_t align, size_t size)
{
    return malloc((size + align - 1) & ~(align - 1));
}

/* More calls than there are windows, and then `malloc`. */
APART static void *down(u32 depth, size_t size)
{
    void *block = depth ? down(depth - 1, size) : malloc(size);
    __asm__ volatile("" : "+r"(block));
    return block;
}

APART void *calloc(size_t count, size_t size)
{
    u8 *block = down(count % 16, count * size);
    for (u32 i = 0; block && i < count * size; i++)
        block[i] = 0;
    return block;
}

APART void *realloc(void *block, size_t size)
{
    if (!block)
        return malloc(size);
    void *to = malloc(size);
    if (to)
        free(block);
    return to;
}

APART int posix_memalign(void **place, size_t align, size_t size)
{
    void *block = aligned_alloc(align, size);
    if (!block)
        return 12;
    *place = block;
    return 0;
}

static volatile u32 made[CPUS], freed[CPUS], refused[CPUS], done[CPUS], handled;

static void count(void *block)
{
    u32 cpu = own();
    if (block)
        made[cpu]++;
    else
        refused[cpu]++;
}

/* On CPU 0. Frees what the last one has taken, and takes another. */
static void tock(struct frame *frame)
{
    static void *held;
    (void)frame;
    u32 at = GPTIMER + 0x18;
    store(at, load(at) | 0x10);
    if (held) {
        free(held);
        freed[0]++;
        handled++;
    }
    u32 before = level(15);
    held = calloc(3, 4);
    made[0] += held != 0;
    refused[0] += !held;
    handled++;
    level(before);
}

static void work(u32 cpu)
{
    void *held[64] = {0};
    u32 state = 4711 + cpu;
    for (u32 round = 0; round < ROUNDS; round++) {
        u32 slot = draw(&state) & 63, kind = draw(&state) % 6, size = draw(&state) % 72;
        u32 before;
        void *block = 0;
        if (held[slot] && kind < 3) {
            free(held[slot]);
            held[slot] = 0;
            before = level(15);
            freed[cpu]++;
            level(before);
            continue;
        }
        if (held[slot]) {
            block = realloc(held[slot], size);
            if (block)
                held[slot] = block;
        } else {
            if (kind == 0)
                block = malloc(size);
            else if (kind == 1)
                block = calloc(size / 4 + 1, 4);
            else if (kind == 2)
                block = aligned_alloc(8, size);
            else if (kind == 3)
                block = realloc(0, size);
            else if (posix_memalign(&block, 16, size))
                block = 0;
            held[slot] = block;
        }
        before = level(15);
        count(block);
        level(before);
    }
    done[cpu] = 1;
}

int main(u32 cpu)
{
    u32 all = cpus();
    if (cpu) {
        work(cpu);
        rest();
    }
    handle(0x10 + timer_level(0), tock);
    unmask(0, timer_level(0));
    start_others();
    tick(0, 200);
    work(0);
    untick(0);
    for (u32 other = 1; other < all; other++)
        while (!done[other]) {
        }
    u32 sums[3] = {0};
    for (cpu = 0; cpu < all; cpu++) {
        sums[0] += made[cpu];
        sums[1] += freed[cpu];
        sums[2] += refused[cpu];
    }
    print("made ");
    decimal(sums[0]);
    print(" freed ");
    decimal(sums[1]);
    print(" refused ");
    decimal(sums[2]);
    print(" handled ");
    decimal(handled);
    put('\n');
    return 0;
}
