/* Interrupts: forced ones by level, masked by PIL and by IRQMP, nested, pending and cleared, and two
   timers at once. The timers' part prints what holds whenever the interrupts come. */
#include "leon3.h"

static u32 sum;
static volatile u32 count[16];
static volatile u32 depth, deepest;
static volatile u32 order;

static void note(struct frame *frame)
{
    u32 irq = frame->tt & 15;
    count[irq]++;
    if (++depth > deepest)
        deepest = depth;
    order = fold(order, irq);
    order = fold(order, depth);
    order = fold(order, psr() >> 8 & 15);
    depth--;
}

/* Forces three levels: one above its own is taken inside, the one below waits. */
static void nest(struct frame *frame)
{
    u32 irq = frame->tt & 15;
    count[irq]++;
    depth++;
    order = fold(order, irq | 0x100);
    force(irq - 1);
    force(irq + 1);
    if (irq + 4 < 15)
        force(irq + 4);
    order = fold(order, load(IRQMP + 0x80));
    order = fold(order, irq | 0x200);
    depth--;
}

static void told(const char *name)
{
    sum = fold(sum, order);
    print(name);
    for (u32 irq = 1; irq < 16; irq++) {
        put(' ');
        decimal(count[irq]);
        sum = fold(sum, count[irq]);
        count[irq] = 0;
    }
    print(" deepest ");
    decimal(deepest);
    line(" order", order);
    sum = fold(sum, deepest);
    order = deepest = 0;
}

static volatile u32 ticks[2];
static u32 irqs[2];

static void tock(struct frame *frame)
{
    u32 irq = frame->tt & 15;
    for (u32 timer = 0; timer < 2; timer++) {
        if (irq == irqs[timer]) {
            u32 at = GPTIMER + 0x18 + 0x10 * timer;
            if (!(load(at) & 0x10))
                print("no timer pends\n");
            store(at, load(at) | 0x10); /* what pends is cleared by a one */
            ticks[timer]++;
        }
    }
}

int main(u32 cpu)
{
    (void)cpu;
    for (u32 irq = 1; irq < 16; irq++)
        handle(0x10 + irq, note);
    order = fold(order, load(IRQMP));
    order = fold(order, load(IRQMP + 4));
    store(IRQMP + 0x40, 0);
    for (u32 irq = 1; irq < 16; irq++)
        force(irq);
    told("masked");
    order = fold(order, load(IRQMP + 0x80));
    store(IRQMP + 0x40, 0xfffe); /* all at once, the highest first */
    told("unmasked");

    for (u32 pil = 0; pil < 16; pil++) {
        level(pil);
        for (u32 irq = 1; irq < 16; irq++)
            force(irq);
        order = fold(order, load(IRQMP + 0x80));
        store(IRQMP + 0x80, 0xfffe0000); /* the upper half clears */
        order = fold(order, load(IRQMP + 0x80));
    }
    level(0);
    told("by level");

    level(15);
    for (u32 irq = 1; irq < 15; irq++)
        force(irq);
    store(IRQMP + 0xc, 0x00f0); /* clear register */
    order = fold(order, load(IRQMP + 4));
    level(0);
    told("cleared");

    store(IRQMP, 0x00aa); /* priority levels: odd ones first */
    level(15);
    for (u32 irq = 1; irq < 15; irq++)
        force(irq);
    level(0);
    told("two priorities");
    store(IRQMP, 0);

    handle(0x14, nest);
    handle(0x16, nest);
    force(4);
    force(6);
    told("nested");
    handle(0x14, note);
    handle(0x16, note);

    /* An interrupt between a set of PSR.ET and what follows it. */
    for (u32 i = 0; i < 8; i++) {
        u32 word = psr();
        __asm__ volatile("wr %0, 0x20, %%psr; nop; nop; nop; st %2, [%1 + 0x80]; nop; nop;"
                         "wr %0, %%psr; nop; nop; nop"
                         : : "r"(word), "r"(IRQMP), "r"(8) : "memory");
    }
    told("traps off");

    irqs[0] = tick(0, 100);
    irqs[1] = tick(1, 250);
    line("levels", irqs[0] << 4 | irqs[1]);
    handle(0x10 + irqs[0], tock);
    handle(0x10 + irqs[1], tock);
    while (ticks[1] < 40) {
    }
    untick(0);
    untick(1);
    level(15);
    print(ticks[0] >= 80 && ticks[0] <= 102 ? "timers in step\n" : "timers out of step\n");
    level(0);

    /* Sleep until a timer wakes. */
    ticks[0] = 0;
    tick(0, 50);
    for (u32 nap = 0; nap < 20; nap++) {
        u32 before = ticks[0];
        while (ticks[0] == before)
            sleep();
    }
    level(15);
    untick(0);
    print(ticks[0] >= 20 ? "slept\n" : "did not sleep\n");
    line("interrupts", sum);
    return 0;
}
