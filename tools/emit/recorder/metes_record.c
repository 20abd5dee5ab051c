/* The ring of the recorder; what it is for, and what a target says of itself, stands in metes_record.h.
 *
 * Invariant: sent <= taken <= sent + METES_RECORD_EVENTS, modulo 2^32. The second word of an event is written last, and is 0
 * in events that are not between `sent` and `taken`. Nothing here waits, and no event is taken out for a later one: one that
 * finds no room is counted, and the time of the first of them kept. */
#include "metes_record.h"

#if METES_RECORD_EVENTS < 1 || METES_RECORD_EVENTS > 32768 || (METES_RECORD_EVENTS & (METES_RECORD_EVENTS - 1)) != 0
#error "METES_RECORD_EVENTS is a power of two of up to 32768"
#endif

#ifndef METES_RECORD_ENTER
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define METES_RECORD_ENTER(was) __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(was) : : "memory")
#define METES_RECORD_LEAVE(was) __asm__ volatile("msr primask, %0" : : "r"(was) : "memory")
#elif defined(__riscv)
#define METES_RECORD_ENTER(was) __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(was) : : "memory")
#define METES_RECORD_LEAVE(was) __asm__ volatile("csrs mstatus, %0" : : "r"((was) & 8u) : "memory")
#elif defined(__sparc__)
/* The level of the processor is raised to 15, and set back; a write of %psr takes three instructions. */
#define METES_RECORD_ENTER(was)                                                                       \
    do {                                                                                              \
        unsigned raised_;                                                                             \
        __asm__ volatile("rd %%psr, %0\n\tor %0, 0xf00, %1\n\twr %1, 0, %%psr\n\tnop\n\tnop\n\tnop"   \
                         : "=&r"(was), "=&r"(raised_)                                                 \
                         :                                                                            \
                         : "memory");                                                                 \
    } while (0)
#define METES_RECORD_LEAVE(was)                                                                       \
    do {                                                                                              \
        unsigned now_;                                                                                \
        __asm__ volatile("rd %%psr, %0\n\tandn %0, 0xf00, %0\n\tand %1, 0xf00, %1\n\t"                \
                         "or %0, %1, %0\n\twr %0, 0, %%psr\n\tnop\n\tnop\n\tnop"                      \
                         : "=&r"(now_), "+&r"(was)                                                    \
                         :                                                                            \
                         : "memory");                                                                 \
    } while (0)
#else
#error "say how others are kept out while an event is given its number: METES_RECORD_ENTER(was) and METES_RECORD_LEAVE(was)"
#endif
#endif

/* What must be seen in order by an interrupt on the same core, or a debugger. */
#define BARRIER() __asm__ volatile("" : : : "memory")

enum { ALLOCATED = 1, FREED, RESIZING, RESIZED, REFUSED, TOLD };
enum { MAGIC, VERSION, CAPACITY, TAKEN, SENT, LOST, LOST_FROM, FREQUENCY };
enum { COUNT = 2, FIRST, RESERVED };

#define RING_MAGIC 0x4d545252u
#define BATCH_MAGIC 0x4d545242u
#define LAYOUT 1u
#define BATCH_EVENTS 32u

struct metes_record_ring metes_record_ring;

unsigned char metes_record_depth[METES_RECORD_CONTEXTS];

/* One more event: its number, or none. */
static int take(uint32_t *number, uint32_t *now)
{
    volatile uint32_t *const header = metes_record_ring.header;
    unsigned was;
    int room;
    METES_RECORD_ENTER(was);
    *now = METES_RECORD_NOW();
    if (header[MAGIC] == 0) {
        header[VERSION] = LAYOUT;
        header[CAPACITY] = METES_RECORD_EVENTS;
        header[FREQUENCY] = METES_RECORD_FREQUENCY;
        header[MAGIC] = RING_MAGIC;
    }
    const uint32_t taken = header[TAKEN];
    room = taken - header[SENT] < METES_RECORD_EVENTS;
    if (room) {
        header[TAKEN] = taken + 1;
    } else {
        const uint32_t lost = header[LOST];
        if (lost == 0) {
            header[LOST_FROM] = *now;
        }
        if (lost != UINT32_MAX) {
            header[LOST] = lost + 1;
        }
    }
    METES_RECORD_LEAVE(was);
    *number = taken;
    return room;
}

static void record(uint32_t kind, uint32_t align_log2, const void *address, uint32_t last)
{
    uint32_t number;
    uint32_t now;
    if (!take(&number, &now)) {
        return;
    }
    volatile uint32_t *const event = metes_record_ring.events[number & (METES_RECORD_EVENTS - 1u)];
    event[0] = now;
    event[2] = (uint32_t)(uintptr_t)address;
    event[3] = last;
    BARRIER();
    event[1] = kind | align_log2 << 3 | (uint32_t)(METES_RECORD_CONTEXT() & 255u) << 8 | (number & 0xffffu) << 16;
}

static uint32_t log2_of(size_t align)
{
    uint32_t log2 = 0;
    while (align > 1 && log2 < 31) {
        align >>= 1;
        log2 += 1;
    }
    return log2;
}

static uint32_t narrow(size_t size)
{
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

void metes_record_allocated(const void *block, size_t size, size_t align)
{
    record(block != NULL ? ALLOCATED : REFUSED, log2_of(align), block, narrow(size));
}

void metes_record_freed(const void *block)
{
    record(FREED, 0, block, 0);
}

void metes_record_resizing(const void *block, size_t size)
{
    record(RESIZING, log2_of(2 * sizeof(void *)), block, narrow(size));
}

void metes_record_resized(const void *before, const void *block)
{
    record(RESIZED, 0, block, (uint32_t)(uintptr_t)before);
}

void metes_record_tell(uint32_t figure, uint32_t first, uint32_t second)
{
    record(TOLD, figure & 31u, (const void *)(uintptr_t)first, second);
}

static unsigned char *own(void)
{
    const unsigned context = METES_RECORD_CONTEXT() & 255u;
    return &metes_record_depth[context < METES_RECORD_CONTEXTS ? context : 0];
}

int metes_record_begin(void)
{
    unsigned char *const depth = own();
    *depth += 1;
    return *depth == 1;
}

void metes_record_end(void)
{
    *own() -= 1;
}

uint32_t metes_record_waiting(void)
{
    return metes_record_ring.header[TAKEN] - metes_record_ring.header[SENT];
}

uint32_t metes_record_lost(void)
{
    return metes_record_ring.header[LOST];
}

/* CRC-32 of words as bytes from the lowest on. */
static uint32_t checksum(uint32_t before, uint32_t word)
{
    uint32_t rest = ~before ^ word;
    for (int bit = 0; bit < 32; bit++) {
        rest = (rest & 1u) != 0 ? rest >> 1 ^ 0xedb88320u : rest >> 1;
    }
    return ~rest;
}

static uint32_t put_word(metes_record_put *put, void *line, uint32_t sum, uint32_t word)
{
    put(line, &word, sizeof(word));
    return checksum(sum, word);
}

size_t metes_record_send(metes_record_put *put, void *line)
{
    volatile uint32_t *const header = metes_record_ring.header;
    const uint32_t first = header[SENT];
    const uint32_t waiting = metes_record_waiting();
    uint32_t count = 0;
    while (count < waiting && count < BATCH_EVENTS &&
           metes_record_ring.events[(first + count) & (METES_RECORD_EVENTS - 1u)][1] != 0) {
        count += 1;
    }
    if (count == 0) {
        return 0;
    }
    BARRIER();
    const uint32_t head[8] = {BATCH_MAGIC, LAYOUT, count, first, 0, header[LOST], header[LOST_FROM], METES_RECORD_FREQUENCY};
    uint32_t sum = 0;
    for (int word = 0; word < 8; word++) {
        sum = put_word(put, line, sum, head[word]);
    }
    for (uint32_t number = first; number != first + count; number++) {
        volatile uint32_t *const event = metes_record_ring.events[number & (METES_RECORD_EVENTS - 1u)];
        for (int word = 0; word < 4; word++) {
            sum = put_word(put, line, sum, event[word]);
        }
        event[1] = 0;
    }
    put(line, &sum, sizeof(sum));
    /* Only now are the places somebody else's. */
    BARRIER();
    header[SENT] = first + count;
    return count;
}
