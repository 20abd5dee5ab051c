/* Takes each synchronous trap once or more and comes back from it. Prints what came, and a sum over
   type, place and state at each. */
#include "leon3.h"

static u32 sum, taken;
static u32 last;
static u8 scratch[16] __attribute__((aligned(16)));

static void note(struct frame *frame, u32 origin)
{
    taken++;
    last = frame->tt;
    sum = fold(sum, frame->tt);
    sum = fold(sum, frame->pc - origin);
    sum = fold(sum, frame->npc - frame->pc);
    sum = fold(sum, frame->psr & 0xf010f0); /* icc, EF, S, PS, ET; no window, no level */
}

u32 from; /* where the instruction that may trap stands; the assembly below sets it */
static u32 returns; /* from user mode */

static void pass(struct frame *frame)
{
    note(frame, from);
    skip(frame);
}

/* Turns floating point on and lets the instruction run again. */
static void enable(struct frame *frame)
{
    note(frame, from);
    frame->psr |= 0x1000;
}

/* Back to the mode before `user`. */
static void supervise(struct frame *frame)
{
    u32 before = last;
    note(frame, from);
    last = before;
    returns++;
    frame->psr |= 0x40;
    skip(frame);
}

static void told(const char *name, u32 tt)
{
    print(name);
    print(last == tt ? " " : " MISSED ");
    hex(last);
    put('\n');
    last = 0;
}

/* Runs `code` so that a handler knows where it stands. */
#define AT(code, ...) \
    __asm__ volatile( \
        "sethi %%hi(1f), %%g1; or %%g1, %%lo(1f), %%g1; sethi %%hi(from), %%g2; st %%g1, [%%g2 + %%lo(from)];" \
        "1: " code : : __VA_ARGS__ : "g1", "g2", "g3", "o0", "o1", "o2", "o3", "cc", "memory")

static void illegal(void)
{
    AT("unimp 0; nop", "r"(0));
    told("unimp", 2);
    AT("unimp 0x12345; nop", "r"(0));
    told("unimp with a number", 2);
    AT(".word 0x80480000; nop", "r"(0));
    told("arithmetic op3 0x09", 2);
    AT(".word 0x81680000; nop", "r"(0));
    told("arithmetic op3 0x2d", 2);
    AT(".word 0xc0400000; nop", "r"(0));
    told("memory op3 0x08", 2);
    /* rett with traps on is illegal in supervisor mode; privileged in user mode */
    AT("rett %%g0; nop", "r"(0));
    told("rett with traps on", 2);
    AT("mov %0, %%o0; .word 0xc61a0000; nop", "r"(scratch)); /* ldd [%%o0], %%g3 */
    told("ldd to an odd register", 2);
}

static void misaligned(void)
{
    AT("ld [%0], %%g3; nop", "r"(scratch + 1));
    told("ld, odd", 7);
    AT("ld [%0], %%g3; nop", "r"(scratch + 2));
    told("ld, half", 7);
    AT("lduh [%0], %%g3; nop", "r"(scratch + 1));
    told("lduh", 7);
    AT("ldsh [%0], %%g3; nop", "r"(scratch + 3));
    told("ldsh", 7);
    AT("ldd [%0], %%g2; nop", "r"(scratch + 4));
    told("ldd", 7);
    AT("st %%g3, [%0]; nop", "r"(scratch + 1));
    told("st", 7);
    AT("sth %%g3, [%0]; nop", "r"(scratch + 1));
    told("sth", 7);
    AT("std %%g2, [%0]; nop", "r"(scratch + 4));
    told("std", 7);
    AT("swap [%0], %%g3; nop", "r"(scratch + 2));
    told("swap", 7);
    AT("casa [%0] 0xb, %%g2, %%g3; nop", "r"(scratch + 2));
    told("casa", 7);
    AT("jmpl %0, %%g3; nop", "r"(scratch + 2));
    told("jmpl", 7);
    AT("ldstub [%0], %%g3; nop", "r"(scratch + 1));
    last = 0;
}

static void arithmetic(void)
{
    AT("wr %%g0, %%y; nop; nop; nop", "r"(0));
    AT("udiv %0, %%g0, %%g3; nop", "r"(5));
    told("udiv by 0", 0x2a);
    AT("sdivcc %0, %%g0, %%g3; nop", "r"(5));
    told("sdivcc by 0", 0x2a);
    AT("taddcctv %0, 1, %%g3; nop", "r"(4));
    told("taddcctv, a tag", 0xa);
    AT("tsubcctv %0, %1, %%g3; nop", "r"(0x80000000), "r"(4));
    told("tsubcctv, overflow", 0xa);
    AT("taddcctv %0, 4, %%g3; nop", "r"(8));
    sum = fold(sum, last);
}

static void software(void)
{
    AT("ta 1; nop", "r"(0));
    told("ta 1", 0x81);
    AT("ta 127; nop", "r"(0));
    told("ta 127", 0xff);
    AT("ta %0 + 3; nop", "r"(0x40));
    told("ta by a register", 0xc3);
    AT("ta %0; nop", "r"(0xffffff85)); /* seven bits count */
    told("ta by a large register", 0x85);
    AT("ta 0; nop", "r"(0));
    told("ta 0 with traps on", 0x80);
    AT("subcc %%g0, 1, %%g0; tne 2; nop", "r"(0));
    told("tne", 0x82);
    AT("subcc %%g0, %%g0, %%g0; tne 2; nop", "r"(0));
    told("tne, equal", 0);
    AT("tn 2; nop", "r"(0));
    told("tn", 0);
    /* In the delay slot of a branch: npc is the target. */
    __asm__ volatile(
        "sethi %%hi(1f), %%g1; or %%g1, %%lo(1f), %%g1; sethi %%hi(from), %%g2; st %%g1, [%%g2 + %%lo(from)];"
        "ba 2f; 1: ta 4; mov 1, %%g3; 2: nop" : : : "g1", "g2", "g3", "memory");
    told("ta 4 in a delay slot", 0x84);
}

/* User mode: every privileged instruction, then back by a software trap. */
static void privileged(void)
{
#define USER(code) \
    __asm__ volatile( \
        "sethi %%hi(1f), %%g1; or %%g1, %%lo(1f), %%g1; sethi %%hi(from), %%g2; st %%g1, [%%g2 + %%lo(from)];" \
        "rd %%psr, %%g1; andn %%g1, 0x80, %%g1; wr %%g1, %%psr; nop; nop; nop;" \
        "1: " code "; nop; ta 10; nop" : : "r"(scratch) : "g1", "g2", "g3", "cc", "memory"); \
    told(code, 3);
    USER("rd %%psr, %%g3")
    USER("rd %%wim, %%g3")
    USER("rd %%tbr, %%g3")
    USER("wr %%g0, %%psr")
    USER("wr %%g0, %%wim")
    USER("wr %%g0, %%tbr")
    USER("rett %%g0")
    USER("lda [%0] 0xb, %%g3")
    USER("sta %%g3, [%0] 0xb")
    USER("casa [%0] 0xb, %%g2, %%g3")
    line("ways back", returns);
}

int main(u32 cpu)
{
    (void)cpu;
    for (u32 tt = 1; tt < 256; tt++)
        handle(tt, pass);
    handle(5, 0);
    handle(6, 0);
    handle(4, enable);
    handle(0x8a, supervise);
    illegal();
    misaligned();
    arithmetic();
    software();
    privileged();
    set_psr(psr() & ~0x1000u);
    AT("fmovs %%f0, %%f1; nop", "r"(0));
    told("fmovs, disabled", 4);
    set_psr(psr() & ~0x1000u);
    AT("ld [%0], %%f2; nop", "r"(scratch));
    told("ld to a float, disabled", 4);
    set_psr(psr() & ~0x1000u);
    AT("fbne 3f; nop; 3: nop", "r"(0));
    told("fbne, disabled", 4);
    AT(".word 0x81b00000; nop", "r"(0));
    told("cpop1", 0x24);
    print("taken ");
    decimal(taken);
    line("\ntraps", sum);
    return 0;
}
