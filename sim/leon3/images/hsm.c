/* A heap over the nodes of a mesh, as Koutras, Anagnostopoulos, Bartzas and Soudris describe it (IEEE Embedded Systems
   Letters, 2016, section II), in C over the command registers of each node's controller: addresses of the heap space
   map are a shift and a mask; the own heap first, then all others, and one whose lock is taken is passed over; to free
   is a message to the node that an address names. What a node does is a list of steps, which whoever starts it has
   written. */
#include "leon3.h"

#define APART __attribute__((noinline, noclone, used))

/* The registers (sim/leon3-mesh, controller.rs), and commands by the upper byte of their word. */
#define CONTROLLER 0x70000000
enum { COMMAND = 0, OPERAND = 4, RESULT = 8, SELF = 12, NODES = 16, SHIFT = 20, SPACE = 24 };
enum { LOCK = 1, TRY, UNLOCK, TAKE, GIVE, ALLOCATE, FREE, SEND, RECEIVE, MARK };
#define NOTHING 0xffffffff

/* Steps: the kind in the upper byte, a number in the others. */
enum { END, COMPUTE, GET, PUT, PASS, ACCEPT, TELL };
#define STEPS 65536
#define BLOCKS 4096
__attribute__((section(".data"))) u32 steps[STEPS] = {0};
/* Who serves requests. */
enum { BY_CODE, BY_PLATFORM, BY_NOBODY };
__attribute__((section(".data"))) u32 managed = BY_CODE;
/* Whether each request is between two marks. */
__attribute__((section(".data"))) u32 marked = 0;

static struct {
    u32 self, nodes, shift, space;
} map;
static void *blocks[BLOCKS];

static inline u32 reg(u32 offset)
{
    return *(volatile u32 *)(CONTROLLER + offset);
}

/* Has the controller begin. */
static inline void order(u32 command, u32 node, u32 operand)
{
    *(volatile u32 *)(CONTROLLER + OPERAND) = operand;
    *(volatile u32 *)(CONTROLLER + COMMAND) = command << 24 | node;
}

/* The same, and waits for the answer. */
static inline u32 ask(u32 command, u32 node, u32 operand)
{
    order(command, node, operand);
    return reg(RESULT);
}

static void begin(void)
{
    map.self = reg(SELF);
    map.nodes = reg(NODES);
    map.shift = reg(SHIFT);
    map.space = reg(SPACE);
}

/* A block of a node's heap, whose lock is had, and given back. */
static inline void *take(u32 node, u32 size)
{
    u32 offset = ask(TAKE, node, size);
    order(UNLOCK, node, 0);
    return offset == NOTHING ? 0 : (void *)(map.space + (node << map.shift) + offset);
}

APART void *malloc(u32 size)
{
    u32 node = map.self;
    ask(LOCK, node, 0);
    void *block = take(node, size);
    while (!block) {
        if (++node == map.nodes)
            node = 0;
        if (node == map.self)
            break;
        if (ask(TRY, node, 0))
            block = take(node, size);
    }
    return block;
}

APART void free(void *block)
{
    u32 offset = (u32)block - map.space;
    if (block)
        order(GIVE, offset >> map.shift, offset & ((1u << map.shift) - 1));
}

/* A call in which nothing is done, to be compared with. */
APART void *nothing(u32 size)
{
    (void)size;
    return 0;
}

static void *get(u32 size)
{
    if (managed == BY_CODE)
        return malloc(size);
    if (managed == BY_NOBODY)
        return nothing(size);
    u32 address = ask(ALLOCATE, 0, size);
    return address == NOTHING ? 0 : (void *)address;
}

static void put_back(void *block)
{
    if (managed == BY_CODE)
        free(block);
    else if (managed == BY_NOBODY)
        nothing((u32)block);
    else if (block)
        ask(FREE, 0, (u32)block);
}

static inline void mark(u32 word)
{
    if (marked)
        order(MARK, 0, word);
}

/* So many instructions, to the next three. */
static void compute(u32 instructions)
{
    if (instructions)
        __asm__ volatile("1: subcc %0, 3, %0; bg 1b; nop" : "+r"(instructions) : : "cc");
}

static void **block(u32 number)
{
    if (number >= BLOCKS) {
        line("no block", number);
        halt();
    }
    return &blocks[number];
}

int main(u32 cpu)
{
    (void)cpu;
    begin();
    for (u32 at = 0; at < STEPS;) {
        u32 step = steps[at++], number = step & 0xffffff;
        void **place;
        switch (step >> 24) {
        case COMPUTE:
            compute(number);
            break;
        case GET: /* size */
            place = block(number);
            mark(0);
            *place = get(steps[at]);
            mark((u32)*place);
            at++;
            break;
        case PUT:
            place = block(number);
            mark(0);
            put_back(*place);
            mark(0);
            *place = 0;
            break;
        case PASS: /* to a node, a block */
            place = block(steps[at++]);
            ask(SEND, number, (u32)*place);
            *place = 0;
            break;
        case ACCEPT:
            place = block(number);
            *place = (void *)ask(RECEIVE, 0, 0);
            break;
        case TELL:
            order(MARK, 0, number);
            break;
        default:
            return 0;
        }
    }
    return 0;
}
