/* Recursion of random depth under timer interrupts: register windows overflow and underflow all the
   time. Prints a sum that interrupts must not change. */
#include "leon3.h"

#ifndef ROUNDS
#define ROUNDS 198000
#endif
#ifndef WORK
#define WORK 5
#endif

volatile u32 rounds = ROUNDS;
static volatile u32 ticks;
static u32 state = 2463534242u;

static void count(struct frame *frame)
{
    (void)frame;
    ticks++;
}

/* Calls itself `depth` times, with work on the way down and on the way up. */
__attribute__((noinline)) static u32 descend(u32 depth, u32 sum)
{
    for (u32 i = 0; i < WORK; i++)
        sum = fold(sum, depth + i);
    if (depth == 0)
        return sum;
    u32 below = descend(depth - 1, sum + depth);
    return fold(sum, below);
}

int main(u32 cpu)
{
    (void)cpu;
    u32 irq = tick(0, 1000);
    handle(0x10 + irq, count);
    unmask(0, irq);
    u32 sum = 0;
    for (u32 round = 0; round < rounds; round++) {
        u32 depth = draw(&state) >> 27;
        sum = fold(sum, descend(depth, sum));
    }
    level(15);
    print("ticks ");
    decimal(ticks);
    line("\ndeep", sum);
    return 0;
}
