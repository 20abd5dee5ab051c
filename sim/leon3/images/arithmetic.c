/* Every integer instruction over operands at the edges: results, condition codes, Y, and traps where
   there are any, folded into one sum per group. */
#include "leon3.h"

static const u32 edges[] = {
    0, 1, 2, 3, 4, 31, 32, 33, 0x7ffe, 0x7fff, 0x8000, 0xffff, 0x10000, 0x12345678, 0x55555555, 0x7ffffffe,
    0x7fffffff, 0x80000000, 0x80000001, 0xaaaaaaaa, 0xcafebabe, 0xfffffffc, 0xfffffffe, 0xffffffff,
};
#define EDGES (sizeof edges / sizeof edges[0])
static const u32 ys[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
#define YS (sizeof ys / sizeof ys[0])

static u32 sum, traps;

static void pass(struct frame *frame)
{
    traps++;
    sum = fold(sum, frame->tt);
    skip(frame);
}

static void told(const char *name)
{
    line(name, sum);
    sum = 0;
}

struct result {
    u32 value, psr, y;
};

static void take(struct result *r)
{
    sum = fold(sum, r->value);
    sum = fold(sum, r->psr >> 20 & 15);
    sum = fold(sum, r->y);
}

/* An instruction with carry and Y set before it. The result is in a register that holds what it held
   when the instruction traps. */
#define RUN(instruction, one, other, carry, before) \
    ({ \
        struct result r = {0xdeadbeef, 0, 0}; \
        __asm__ volatile( \
            "wr %[y], %%y; subcc %%g0, %[c], %%g0; nop; nop;" instruction ";" \
            "rd %%psr, %[p]; rd %%y, %[z]" \
            : [r] "+&r"(r.value), [p] "=&r"(r.psr), [z] "=&r"(r.y) \
            : [a] "r"(one), [b] "r"(other), [y] "r"(before), [c] "r"(carry) : "cc", "memory"); \
        take(&r); \
    })

/* Two registers; a register and a number; once with carry. */
#define TWO(name) \
    for (u32 i = 0; i < EDGES; i++) { \
        for (u32 j = 0; j < EDGES; j++) { \
            RUN(#name " %[a], %[b], %[r]", edges[i], edges[j], 0, edges[j]); \
            RUN(#name " %[a], %[b], %[r]", edges[i], edges[j], 1, edges[i]); \
        } \
        RUN(#name " %[a], -4096, %[r]", edges[i], 0, 0, 0); \
        RUN(#name " %[a], -1, %[r]", edges[i], 0, 1, 0); \
        RUN(#name " %[a], 0, %[r]", edges[i], 0, 1, 0); \
        RUN(#name " %[a], 1, %[r]", edges[i], 0, 0, 1); \
        RUN(#name " %[a], 4095, %[r]", edges[i], 0, 1, 1); \
        RUN(#name " %[a], %[b], %%g0", edges[i], 7, 1, 0); \
    } \
    told(#name);

/* Those to which Y matters: with each Y. */
#define THREE(name) \
    for (u32 i = 0; i < EDGES; i++) { \
        for (u32 j = 0; j < EDGES; j++) { \
            for (u32 k = 0; k < YS; k++) { \
                RUN(#name " %[a], %[b], %[r]", edges[i], edges[j], k & 1, ys[k]); \
                RUN(#name " %[a], -3, %[r]", edges[i], 0, k & 1, ys[k]); \
                RUN("subcc %%g0, %[b], %%g0;" #name " %[a], 5, %[r]", edges[i], edges[j], 0, ys[k]); \
            } \
        } \
    } \
    told(#name);

#define SHIFT(name) \
    for (u32 i = 0; i < EDGES; i++) { \
        for (u32 j = 0; j < EDGES; j++) \
            RUN(#name " %[a], %[b], %[r]", edges[i], edges[j], 1, 0); \
        RUN(#name " %[a], 0, %[r]", edges[i], 0, 0, 0); \
        RUN(#name " %[a], 1, %[r]", edges[i], 0, 0, 0); \
        RUN(#name " %[a], 31, %[r]", edges[i], 0, 0, 0); \
    } \
    told(#name);

static void arithmetic(void)
{
    TWO(add) TWO(addcc) TWO(addx) TWO(addxcc)
    TWO(sub) TWO(subcc) TWO(subx) TWO(subxcc)
}

static void logic(void)
{
    TWO(and) TWO(andcc) TWO(andn) TWO(andncc)
    TWO(or) TWO(orcc) TWO(orn) TWO(orncc)
    TWO(xor) TWO(xorcc) TWO(xnor) TWO(xnorcc)
    SHIFT(sll) SHIFT(srl) SHIFT(sra)
}

static void tagged(void)
{
    TWO(taddcc) TWO(tsubcc) TWO(taddcctv) TWO(tsubcctv)
}

static void products(void)
{
    TWO(umul) TWO(umulcc) TWO(smul) TWO(smulcc)
    THREE(mulscc)
    /* A whole product by steps, as a compiler for V7 makes it. */
    for (u32 i = 0; i < EDGES; i++) {
        for (u32 j = 0; j < EDGES; j++) {
            u32 high = 0, low;
            __asm__ volatile(
                "wr %[a], %%y; nop; nop; andcc %%g0, %%g0, %[h];"
                ".rept 32; mulscc %[h], %[b], %[h]; .endr; mulscc %[h], %%g0, %[h]; rd %%y, %[l]"
                : [h] "=&r"(high), [l] "=&r"(low) : [a] "r"(edges[i]), [b] "r"(edges[j]) : "cc");
            sum = fold(fold(sum, high), low);
        }
    }
    told("a product by steps");
}

static void quotients(void)
{
    THREE(udiv) THREE(udivcc) THREE(sdiv) THREE(sdivcc)
}

/* Each condition with each of the 16 codes: the branch, the branch with its slot annulled, the trap. */
#define CONDITION(name) \
    for (u32 icc = 0; icc < 16; icc++) { \
        u32 way = 0; \
        u32 base = psr() & ~0xf00000u; \
        __asm__ volatile( \
            "wr %[p], %%psr; nop; nop; nop;" \
            "b" #name " 1f; or %[w], 1, %[w]; or %[w], 2, %[w]; 1:" \
            "b" #name ",a 2f; or %[w], 4, %[w]; or %[w], 8, %[w]; 2:" \
            "t" #name " 9; or %[w], 16, %[w]" \
            : [w] "+r"(way) : [p] "r"(base | icc << 20) : "cc", "memory"); \
        sum = fold(sum, way); \
    } \
    told("condition " #name);

static void conditions(void)
{
    CONDITION(a) CONDITION(n) CONDITION(ne) CONDITION(e) CONDITION(g) CONDITION(le) CONDITION(ge)
    CONDITION(l) CONDITION(gu) CONDITION(leu) CONDITION(cc) CONDITION(cs) CONDITION(pos) CONDITION(neg)
    CONDITION(vc) CONDITION(vs)
}

static u8 bytes[64] __attribute__((aligned(8)));

static void fill(void)
{
    u32 state = 99;
    for (u32 i = 0; i < sizeof bytes; i++)
        bytes[i] = (u8)draw(&state);
}

static void take_bytes(void)
{
    for (u32 i = 0; i < sizeof bytes; i += 4)
        sum = fold(sum, load((u32)bytes + i));
}

#define LOAD(name, step) \
    for (u32 at = 0; at < 32; at += step) { \
        u32 word; \
        __asm__ volatile(#name " [%1 + %2], %0" : "=r"(word) : "r"(bytes), "r"(at) : "memory"); \
        sum = fold(sum, word); \
        __asm__ volatile(#name " [%1 + 8], %0" : "=r"(word) : "r"(bytes + at) : "memory"); \
        sum = fold(sum, word); \
        __asm__ volatile(#name "a [%1] 0xb, %0" : "=r"(word) : "r"(bytes + at) : "memory"); \
        sum = fold(sum, word); \
        __asm__ volatile(#name "a [%1 + %2] 0xa, %0" : "=r"(word) : "r"(bytes), "r"(at) : "memory"); \
        sum = fold(sum, word); \
    } \
    told(#name);

#define STORE(name, step) \
    fill(); \
    for (u32 at = 0; at < 24; at += step) { \
        u32 word = edges[at % EDGES] ^ 0x5a96c33c; \
        __asm__ volatile(#name " %0, [%1 + %2]" : : "r"(word), "r"(bytes), "r"(at) : "memory"); \
        take_bytes(); \
        __asm__ volatile(#name " %0, [%1 + 8]" : : "r"(word), "r"(bytes + at) : "memory"); \
        take_bytes(); \
        __asm__ volatile(#name "a %0, [%1] 0xb" : : "r"(~word), "r"(bytes + at) : "memory"); \
        take_bytes(); \
    } \
    told(#name);

static void memory(void)
{
    fill();
    LOAD(ld, 4) LOAD(ldub, 1) LOAD(ldsb, 1) LOAD(lduh, 2) LOAD(ldsh, 2)
    STORE(st, 4) STORE(stb, 1) STORE(sth, 2)
    fill();
    for (u32 at = 0; at < 32; at += 8) {
        register u32 high __asm__("g2") = edges[at / 2];
        register u32 low __asm__("g3") = ~edges[at / 8];
        __asm__ volatile("std %0, [%2 + %3]; ldd [%2 + 16], %0; stda %0, [%2 + %3] 0xb; ldda [%2] 0xb, %0"
                         : "+r"(high), "+r"(low) : "r"(bytes), "r"(at) : "memory");
        sum = fold(fold(sum, high), low);
        take_bytes();
    }
    told("doublewords");
    for (u32 at = 0; at < 16; at++) {
        u32 word;
        __asm__ volatile("ldstub [%1 + %2], %0" : "=r"(word) : "r"(bytes), "r"(at) : "memory");
        sum = fold(sum, word);
        __asm__ volatile("ldstuba [%1] 0xb, %0" : "=r"(word) : "r"(bytes + at + 16) : "memory");
        sum = fold(sum, word);
        take_bytes();
    }
    told("ldstub");
    fill();
    for (u32 at = 0; at < 16; at += 4) {
        u32 word = edges[at];
        __asm__ volatile("swap [%1 + %2], %0" : "+r"(word) : "r"(bytes), "r"(at) : "memory");
        sum = fold(sum, word);
        __asm__ volatile("swapa [%1] 0xb, %0" : "+r"(word) : "r"(bytes + at + 16) : "memory");
        sum = fold(sum, word);
        take_bytes();
    }
    told("swap");
    for (u32 at = 0; at < 16; at += 4) {
        u32 there = load((u32)bytes + at), word = edges[at];
        __asm__ volatile("casa [%1] 0xb, %2, %0" : "+r"(word) : "r"(bytes + at), "r"(there) : "memory");
        sum = fold(sum, word);
        word = edges[at + 1];
        __asm__ volatile("casa [%1] 0xa, %2, %0" : "+r"(word) : "r"(bytes + at), "r"(there) : "memory");
        sum = fold(sum, word);
        take_bytes();
    }
    told("casa");
}

/* save and restore add, with operands of one window and a result in another. */
static void windows(void)
{
    for (u32 i = 0; i < EDGES; i++) {
        for (u32 j = 0; j < EDGES; j++) {
            u32 result;
            __asm__ volatile(
                "mov %1, %%o0; mov %2, %%o1; save %%sp, -96, %%sp; add %%i0, %%i1, %%l0;"
                "restore %%l0, %%i1, %%o0; save %%o0, %%o1, %%l1; restore %%l1, 77, %%o2; xor %%o0, %%o2, %0"
                : "=r"(result) : "r"(edges[i]), "r"(edges[j]) : "o0", "o1", "o2", "memory");
            sum = fold(sum, result);
        }
    }
    told("save, restore");
    u32 high;
    __asm__("sethi 0x3fffff, %0" : "=r"(high));
    sum = fold(sum, high);
    __asm__("sethi 0, %0" : "=r"(high));
    sum = fold(sum, high);
    told("sethi");
}

int main(u32 cpu)
{
    (void)cpu;
    handle(0x0a, pass);
    handle(0x2a, pass);
    handle(0x89, pass);
    arithmetic();
    logic();
    tagged();
    products();
    quotients();
    conditions();
    memory();
    windows();
    print("traps ");
    decimal(traps);
    put('\n');
    return 0;
}
