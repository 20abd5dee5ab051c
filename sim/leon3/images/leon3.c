#include "leon3.h"

static handler *handlers[256];

u32 load(u32 address)
{
    return *(volatile u32 *)address;
}

void store(u32 address, u32 word)
{
    *(volatile u32 *)address = word;
}

void put(char c)
{
    while (!(load(UART + 4) & 4)) {
    }
    store(UART, (u8)c);
}

void print(const char *text)
{
    while (*text)
        put(*text++);
}

void hex(u32 word)
{
    for (int shift = 28; shift >= 0; shift -= 4)
        put("0123456789abcdef"[word >> shift & 15]);
}

void decimal(u32 number)
{
    char digits[10];
    int count = 0;
    do
        digits[count++] = '0' + number % 10;
    while (number /= 10);
    while (count)
        put(digits[--count]);
}

void line(const char *name, u32 word)
{
    print(name);
    print(" 0x");
    hex(word);
    put('\n');
}

void handle(u32 tt, handler *handler)
{
    handlers[tt] = handler;
}

void skip(struct frame *frame)
{
    frame->pc = frame->npc;
    frame->npc += 4;
}

/* Called by start.s. */
void on_trap(u32 tt, struct frame *frame)
{
    if (handlers[tt]) {
        handlers[tt](frame);
        return;
    }
    line("unexpected trap", tt);
    line("pc", frame->pc);
    halt();
}

u32 psr(void)
{
    u32 word;
    __asm__ volatile("rd %%psr, %0" : "=r"(word));
    return word;
}

/* A leaf, so that the window is the caller's and stays. */
__attribute__((noinline)) void set_psr(u32 word)
{
    word = (word & ~31u) | (psr() & 31);
    __asm__ volatile("wr %0, %%psr; nop; nop; nop" : : "r"(word) : "cc", "memory");
}

u32 level(u32 pil)
{
    u32 former = psr();
    set_psr((former & ~0xf00u) | pil << 8);
    return former >> 8 & 15;
}

void unmask(u32 cpu, u32 level)
{
    store(IRQMP + 0x40 + 4 * cpu, load(IRQMP + 0x40 + 4 * cpu) | 1u << level);
}

void force(u32 level)
{
    store(IRQMP + 0x80, 1u << level);
}

void sleep(void)
{
    __asm__ volatile("wr %%g0, %%asr19" : : : "memory");
}

u32 timer_level(u32 timer)
{
    u32 configuration = load(GPTIMER + 8);
    u32 base = configuration >> 3 & 31;
    return configuration & 0x100 ? base + timer : base;
}

u32 tick(u32 timer, u32 period)
{
    u32 at = GPTIMER + 0x10 + 0x10 * timer;
    store(GPTIMER + 4, 39); /* 40 MHz to 1 MHz, as the boot code has set it */
    store(at + 4, period - 1);
    store(at + 8, 0xf);     /* interrupts, load, restart, enable */
    return timer_level(timer);
}

void untick(u32 timer)
{
    store(GPTIMER + 0x18 + 0x10 * timer, 0);
}

u32 cpus(void)
{
    return CPUS > 16 ? CPUS : (load(IRQMP + 0x10) >> 28) + 1;
}

void start_others(void)
{
    if (CPUS > 16) {
        store(CPU_START, ~1u);
        if (CPUS > 32)
            store(CPU_START + 4, ~0u);
    } else {
        store(IRQMP + 0x10, 0xfffe);
    }
}

void rest(void)
{
    u32 id;
    __asm__ volatile("rd %%asr17, %0" : "=r"(id));
    if (CPUS > 16 ? load(CPU_ID) == 0 : id >> 28 == 0)
        halt();
    for (;;)
        sleep();
}

/* What the compiler calls by itself. */
void *memcpy(void *to, const void *from, unsigned size)
{
    u8 *t = to;
    const u8 *f = from;
    while (size--)
        *t++ = *f++;
    return to;
}

void *memset(void *to, int byte, unsigned size)
{
    u8 *t = to;
    while (size--)
        *t++ = (u8)byte;
    return to;
}
