/* Records who asks what of the heap of firmware, on the target itself: a ring of events in memory, which is sent over
 * whatever line there is, or read out by a debugger. `metes trace import` makes a trace of either.
 *
 * One C file, C99 and freestanding but for <stddef.h> and <stdint.h>. A target is described by macros, given to the compiler
 * or in a file that METES_RECORD_CONFIG names; each has a default:
 *
 *   METES_RECORD_EVENTS       events of the ring, a power of two of up to 32768; 16 bytes each           1024
 *   METES_RECORD_NOW()        the time in ticks, uint32_t, which may go on from 2^32 - 1 at 0             0
 *   METES_RECORD_FREQUENCY    ticks of a second; 0: there is no clock                                     0
 *   METES_RECORD_CONTEXT()    who asks, 0 to 255: the number of a task, say                               0
 *   METES_RECORD_CONTEXTS     how many of those there are                                                 1
 *   METES_RECORD_ENTER(was)   from here to LEAVE nobody else records; `was` is an unsigned variable       interrupts
 *   METES_RECORD_LEAVE(was)                                                                               as before
 *
 * ENTER and LEAVE are there for Cortex-M, RISC-V in machine mode and SPARC; other targets, and several cores, say their own.
 * Between them are a look at the clock and six reads and writes, whatever the ring holds.
 */
#ifndef METES_RECORD_H
#define METES_RECORD_H

#include <stddef.h>
#include <stdint.h>

#ifdef METES_RECORD_CONFIG
#include METES_RECORD_CONFIG
#endif

#ifndef METES_RECORD_EVENTS
#define METES_RECORD_EVENTS 1024
#endif
#ifndef METES_RECORD_FREQUENCY
#define METES_RECORD_FREQUENCY 0
#endif
#ifndef METES_RECORD_NOW
#define METES_RECORD_NOW() 0u
#endif
#ifndef METES_RECORD_CONTEXT
#define METES_RECORD_CONTEXT() 0u
#endif
#ifndef METES_RECORD_CONTEXTS
#define METES_RECORD_CONTEXTS 1
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A block of `size` bytes, aligned to `align`, is at `block`; NULL: the request was refused. */
void metes_record_allocated(const void *block, size_t size, size_t align);
/* The block is about to be freed. */
void metes_record_freed(const void *block);
/* The block is about to be given `size` bytes. */
void metes_record_resizing(const void *block, size_t size);
/* The block that was at `before` is at `block` now; NULL: that was refused, and it stays where it was. */
void metes_record_resized(const void *before, const void *block);

/* What is within a heap function of another one, its calls of other heap functions, is not recorded: the outermost
 * gets 1, and what is recorded in it is what it says itself. Not for interrupts. */
int metes_record_begin(void);
void metes_record_end(void);
extern unsigned char metes_record_depth[METES_RECORD_CONTEXTS];

/* Says something of the heap or of the recording itself, two words under a number of up to 31. */
void metes_record_tell(uint32_t figure, uint32_t first, uint32_t second);
enum {
    METES_RECORD_MEMORY, /* where the memory of the heap begins, its bytes */
    METES_RECORD_TAKEN,  /* bytes that the heap took, most bytes live at once */
    METES_RECORD_TICKS,  /* in heap functions, the low word first; of allocations */
    METES_RECORD_CALLS,  /* calls, most ticks of one; then both of frees, and both of resizes */
    METES_RECORD_TABLES = 8, /* bytes of the heap's tables beside its memory, nothing */
    METES_RECORD_END         /* nothing: all events are sent */
};

/* Hands the next events, up to 32, to `put` in pieces; how many. Events that are being written, and those after them,
 * wait. For one caller at a time, which what is recorded may interrupt. */
typedef void metes_record_put(void *line, const void *bytes, size_t count);
size_t metes_record_send(metes_record_put *put, void *line);
/* Events that wait to be sent, and those that found no room. */
uint32_t metes_record_waiting(void);
uint32_t metes_record_lost(void);

/* The ring, for debuggers: in gdb,
 *   dump binary value ring.bin metes_record_ring
 * gives the file that `metes trace import` takes. */
struct metes_record_ring {
    volatile uint32_t header[8];
    volatile uint32_t events[METES_RECORD_EVENTS][4];
};
extern struct metes_record_ring metes_record_ring;

#ifdef __cplusplus
}
#endif
#endif
