/* What the images need of a LEON3: output, traps, interrupts, timers, CPUs. */
#ifndef LEON3_H
#define LEON3_H

#include "machine.h"

typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef short s16;
typedef unsigned u32;
typedef int s32;
typedef unsigned long long u64;

/* What a trap saved (start.s). A handler that changes pc and npc says where to go on, one that changes
   psr with which condition codes, level and mode (that of before the trap is PS, bit 6). */
struct frame {
    u32 psr, pc, npc, y, tt, g[7];
};
typedef void handler(struct frame *frame);

int main(u32 cpu);

void put(char c);
void print(const char *text);
void hex(u32 word);     /* eight digits */
void decimal(u32 number);
void line(const char *name, u32 word);  /* "name 0x01234567" */

__attribute__((noreturn)) void halt(void);
void rest(void);        /* ends CPU 0's program, and that of others without ending the run */

/* Handlers of traps, by tt: 0x10 + level is an interrupt, 0x80 + n is `ta n`. */
void handle(u32 tt, handler *handler);
void skip(struct frame *frame);  /* goes on after the instruction that trapped */

u32 load(u32 address);
void store(u32 address, u32 word);
u32 psr(void);
void set_psr(u32 psr);  /* but its window */
u32 level(u32 pil);     /* sets PIL; the former */
void unmask(u32 cpu, u32 level);
void force(u32 level);  /* on CPU 0 */
void sleep(void);       /* until an interrupt */

/* Interrupts every `period` microseconds by a timer; the level they come at. */
u32 tick(u32 timer, u32 period);
void untick(u32 timer);
u32 timer_level(u32 timer);

u32 cpus(void);
void start_others(void);

/* A sum that depends on each word and on their order. */
static inline u32 fold(u32 sum, u32 word)
{
    return (((sum << 5) | (sum >> 27)) ^ word) * 0x9e3779b1;
}

/* Numbers that look random: xorshift (Marsaglia 2003), from any state but 0. */
static inline u32 draw(u32 *state)
{
    u32 x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

#endif
