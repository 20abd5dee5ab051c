/* Sends what is recorded by semihosting into the file metes.record of the debugger's or emulator's directory: whenever half
 * of the ring waits (or METES_RECORD_SEND_AT events), and at the end, when
 * `metes_record_close` is called (at exit, where the C library has `atexit`): then with what heap and library say of themselves.
 *
 * A call of the host stops the core for as long as the host takes, with interrupts as they were. */
#include "metes_record.h"

#include <stdlib.h>

#ifndef METES_RECORD_SEND_AT
#define METES_RECORD_SEND_AT (METES_RECORD_EVENTS / 2)
#endif

enum { SYS_OPEN = 1, SYS_CLOSE = 2, SYS_WRITE = 5 };
enum { OPEN_FAILED = -1, NOT_OPEN = 0 };

#if defined(__arm__)
static int host(int operation, const void *parameters)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = parameters;
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory", "lr", "cc");
#elif defined(__thumb__)
    __asm__ volatile("svc 0xab" : "+r"(r0) : "r"(r1) : "memory", "lr", "cc");
#else
    __asm__ volatile("svc 0x123456" : "+r"(r0) : "r"(r1) : "memory", "lr", "cc");
#endif
    return r0;
}
#else
#error "this port is for Arm; send the ring by a line of your own: metes_record_send"
#endif

static int file = NOT_OPEN;
static unsigned char waiting[512];
static size_t held;

static void flush(void)
{
    if (file == NOT_OPEN) {
        const char name[] = "metes.record";
        const uintptr_t open[3] = {(uintptr_t)name, 5 /* "wb" */, sizeof(name) - 1};
        file = host(SYS_OPEN, open);
        if (file == NOT_OPEN) {
            file = OPEN_FAILED;
        }
    }
    if (file != OPEN_FAILED && held > 0) {
        const uintptr_t write[3] = {(uintptr_t)file, (uintptr_t)waiting, held};
        host(SYS_WRITE, write);
    }
    held = 0;
}

static void put(void *line, const void *bytes, size_t count)
{
    (void)line;
    for (size_t place = 0; place < count; place++) {
        if (held == sizeof(waiting)) {
            flush();
        }
        waiting[held] = ((const unsigned char *)bytes)[place];
        held += 1;
    }
}

static void send(void)
{
    while (metes_record_send(put, NULL) > 0) {
    }
    flush();
}

static void tell(uint32_t figure, uint32_t first, uint32_t second)
{
    metes_record_tell(figure, first, second);
    send();
}

/* Of a heap that Metes emitted (bare.c), and of a recorded C library. */
void metes_heap_state(size_t state[5]) __attribute__((weak));
void metes_record_libc_tell(void (*told)(uint32_t, uint32_t, uint32_t)) __attribute__((weak));

void metes_record_close(void)
{
    send();
    if (metes_heap_state != NULL) {
        size_t state[5];
        metes_heap_state(state);
        tell(METES_RECORD_MEMORY, (uint32_t)state[0], (uint32_t)state[1]);
        tell(METES_RECORD_TAKEN, (uint32_t)state[2], (uint32_t)state[3]);
        tell(METES_RECORD_TABLES, (uint32_t)state[4], 0);
    }
    if (metes_record_libc_tell != NULL) {
        metes_record_libc_tell(tell);
    }
    tell(METES_RECORD_END, 0, 0);
    if (file > NOT_OPEN) {
        const uintptr_t close[1] = {(uintptr_t)file};
        host(SYS_CLOSE, close);
    }
    file = OPEN_FAILED;
}

/* Called after each event. */
void metes_record_happened(void)
{
    static unsigned char sending;
    static unsigned char registered;
    if (sending) {
        return;
    }
    sending = 1;
    if (!registered) {
        registered = 1;
        atexit(metes_record_close);
    }
    if (metes_record_waiting() >= METES_RECORD_SEND_AT) {
        send();
    }
    sending = 0;
}
