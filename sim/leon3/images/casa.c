/* Every CPU counts up a word by compare-and-swap, and another under a lock made of it. */
#include "leon3.h"

#ifndef TURNS
#define TURNS 2000
#endif

volatile u32 turns = TURNS;
/* Apart, so that no two lie in one line of a cache. */
static volatile u32 counter __attribute__((aligned(64)));
static volatile u32 lock __attribute__((aligned(64)));
static volatile u32 held __attribute__((aligned(64)));
static volatile u32 ended __attribute__((aligned(64)));
static volatile u32 seen[64];

static u32 casa(volatile u32 *word, u32 expected, u32 replacement)
{
    __asm__ volatile("casa [%1] 0xb, %2, %0" : "+r"(replacement) : "r"(word), "r"(expected) : "memory");
    return replacement;
}

static void add(volatile u32 *word)
{
    u32 was;
    do
        was = *word;
    while (casa(word, was, was + 1) != was);
}

static void work(u32 cpu)
{
    for (u32 i = turns; i; i--)
        add(&counter);
    for (u32 i = turns; i; i--) {
        while (lock || casa(&lock, 0, cpu + 1)) {
        }
        held++;
        __asm__ volatile("" : : : "memory");
        lock = 0;
        seen[cpu]++;
    }
    add(&ended);
}

int main(u32 cpu)
{
    if (cpu != 0) {
        work(cpu);
        return 0;
    }
    u32 count = cpus();
    start_others();
    work(0);
    while (ended != count) {
    }
    u32 locked = 0;
    for (u32 i = 0; i < count; i++)
        locked += seen[i];
    print("CPUs ");
    decimal(count);
    print("\ncounted ");
    decimal(counter);
    print("\nunder the lock ");
    decimal(held);
    print(counter == count * turns && held == counter && locked == held ? "\nequal\n" : "\nLOST\n");
    return 0;
}
