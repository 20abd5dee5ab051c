/* preload.c: the malloc family over heap.h, for LD_PRELOAD.
 *
 *   cc -O2 -shared -fPIC -o libheap.so preload.c heap.c
 *   LD_PRELOAD=$PWD/libheap.so PROGRAM
 *
 * METES_REPORT=PATH appends one JSON line to PATH (%p: the process) at exit:
 * what was measured, and two hashes over all events, with and without the
 * places of blocks, by which a run is compared with its prediction.
 *
 * METES_HEAP_ADDRESS=fixed puts the heap where it always is, as it is where the
 * process has a fixed address layout (setarch -R); else each process has another
 * place, unless METES_HEAP_ADDRESS=random says so of all.
 *
 * Each pool lies in one range of addresses and grows within it, so that where a
 * block lies in its range depends on the requests alone. Where HEAP_MAPPED, large
 * blocks have pages of their own instead. One lock guards the heap; the malloc
 * family never calls itself.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------- Parameters -- */

/* The span that indexes are prepared for, and that is reserved if it can be. */
#if SIZE_MAX > 0xFFFFFFFFU
#define SPAN ((size_t)1 << 36)
#else
#define SPAN ((size_t)1 << 27)
#endif

/* Where heaps may lie: far from the program's own mappings, which then lie as
 * they would without it, so that programs that sort or hash by address, as cc1
 * does with its pages, make the same requests; and where the kernel puts nothing
 * unasked, so that nothing has to be reserved. */
#define FIRST_PLACE (UINT64_C(16) << 40)
#define LAST_PLACE (UINT64_C(40) << 40)
/* Places that are tried before addresses are reserved wherever there are some. */
#define TRIES 8U
/* The least that is mapped at once. */
#define AHEAD ((size_t)1 << 20)
/* Ranges begin at a multiple of this, so that places do not depend on luck. */
#define ARENA_ALIGNMENT ((size_t)1 << 21)
/* Less than this is not worth a heap. */
#define SMALLEST_ARENA ((size_t)1 << 22)
/* What malloc guarantees. */
#define ALIGNMENT (2U * sizeof(size_t))
#define PAGE ((size_t)4096)
/* Zeroing at least so many bytes is left to the kernel. */
#define LARGE ((size_t)1 << 20)

/* ------------------------------------------------------------------ State -- */

/* A range: `length` bytes in use, `open` mapped, of `reserved` that it may have. */
typedef struct {
    unsigned char *base;
    size_t reserved;
    size_t length;
    size_t open;
} arena_t;

typedef enum { FRESH, READY, FAILED } state_t;

static heap_t heap;
static arena_t arenas[HEAP_POOLS];
#if HEAP_OBJECT_POOLS > 0
static arena_t slab_arena;
#endif

static state_t state = FRESH;

/* Events so far and their hashes. */
static uint64_t events;
static uint64_t placements_hash = UINT64_C(0xcbf29ce484222325);
static uint64_t requests_hash = UINT64_C(0xcbf29ce484222325);

/* The report's path, and the process that is to write it; 0: nobody. */
static char report_path[4096];
static pid_t report_pid;
/* Where the report lies once it is written, mapped: it is kept up to date,
 * because other libraries still free what they have when ours has reported. */
#define REPORT_LENGTH 1024U
static char *report_line;

/* ------------------------------------------------------------------- Lock --
 *
 * The word says whether the lock is held, whether a sleeper is being woken, and
 * how many sleep. Who holds the lock has the heap in its cache, and each look of
 * another core takes a part of it away: those that wait look ever more rarely,
 * then sleep. At most one sleeper at a time is being woken, as a call of the
 * system costs more than tens of operations.
 *
 * Metes checks it as a model (ffi/preload/models/lock.pml): one thread at a time
 * is inside, and nobody sleeps while the lock is free.
 */

#define LOCK_HELD 1U
#define LOCK_WAKING 2U
#define LOCK_SLEEPER 4U
/* Longest pause between two looks, and looks before sleeping. */
#define LOCK_LONGEST_PAUSE 256U
#define LOCK_LOOKS 12U

static uint32_t lock_word;
/* How often a sleeper was woken: what they sleep on. */
static uint32_t lock_wakes;
/* This thread holds the lock across a fork and may allocate meanwhile. */
static __thread bool forking __attribute__((tls_model("initial-exec")));

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool change_lock(uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&lock_word, &from, to, true, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Takes the lock if it is free now, whoever sleeps. */
static bool look(void)
{
    const uint32_t word = __atomic_load_n(&lock_word, __ATOMIC_RELAXED);
    return (word & LOCK_HELD) == 0U && change_lock(word, word | LOCK_HELD);
}

/* Sleeps until woken, or finds the lock free before; whether it is taken. */
static bool sleep_or_take(void)
{
    /* Read before this thread counts as a sleeper: a wake after that is seen. */
    const uint32_t wakes = __atomic_load_n(&lock_wakes, __ATOMIC_ACQUIRE);
    uint32_t word;
    do {
        if (look()) {
            return true;
        }
        word = __atomic_load_n(&lock_word, __ATOMIC_RELAXED);
    } while ((word & LOCK_HELD) == 0U || !change_lock(word, word + LOCK_SLEEPER));
    while (__atomic_load_n(&lock_wakes, __ATOMIC_ACQUIRE) == wakes) {
        (void)syscall(SYS_futex, &lock_wakes, FUTEX_WAIT_PRIVATE, wakes, NULL, NULL, 0);
    }
    do {
        word = __atomic_load_n(&lock_word, __ATOMIC_RELAXED);
    } while (!change_lock(word, ((word - LOCK_SLEEPER) & ~LOCK_WAKING) | LOCK_HELD));
    return (word & LOCK_HELD) == 0U;
}

static void lock_slowly(void)
{
    const int saved = errno;
    bool taken = false;
    while (!taken) {
        unsigned pause = 1;
        for (unsigned looks = 0; looks < LOCK_LOOKS && !taken; looks += 1U) {
            taken = look();
            for (unsigned step = 0; step < pause && !taken; step += 1U) {
                pause_briefly();
            }
            pause = 2U * pause < LOCK_LONGEST_PAUSE ? 2U * pause : LOCK_LONGEST_PAUSE;
        }
        taken = taken || sleep_or_take();
    }
    errno = saved;
}

/* Wakes a sleeper, unless somebody holds the lock, who will do it then, or one
 * is being woken. */
static void wake_sleeper(void)
{
    uint32_t word;
    do {
        word = __atomic_load_n(&lock_word, __ATOMIC_RELAXED);
        if ((word & (LOCK_HELD | LOCK_WAKING)) != 0U || word < LOCK_SLEEPER) {
            return;
        }
    } while (!change_lock(word, word | LOCK_WAKING));
    (void)__atomic_fetch_add(&lock_wakes, 1U, __ATOMIC_RELEASE);
    const int saved = errno;
    (void)syscall(SYS_futex, &lock_wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

static inline void lock(void)
{
    uint32_t expected = 0;
    if (forking) {
        return;
    }
    if (!__atomic_compare_exchange_n(&lock_word, &expected, LOCK_HELD, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        lock_slowly();
    }
}

/* For those who cannot wait: a signal's handler that ends the process may
 * have interrupted the very thread that holds the lock. */
static bool lock_soon(void)
{
    for (unsigned attempt = 0; attempt < 10000U; attempt += 1U) {
        if (forking || look()) {
            return true;
        }
        (void)sched_yield();
    }
    return false;
}

static inline void unlock(void)
{
    if (forking) {
        return;
    }
    if (__atomic_fetch_sub(&lock_word, LOCK_HELD, __ATOMIC_RELEASE) != LOCK_HELD) {
        wake_sleeper();
    }
}

/* ----------------------------------------------------------------- Arenas -- */

#define UNCLAIMED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Ranges for which a place was found, of one span each: those of the pools
 and of
 * the slabs, if there are any. */
#define RANGES ((size_t)HEAP_POOLS + (HEAP_OBJECT_POOLS > 0 ? 1U : 0U))

/* Where the next range lies, and until where places were found free. */
static uint64_t next_place;
static uint64_t free_until;

/* Maps addresses, all of which must be free; false where that cannot be. */
static bool map_at(uint64_t place, size_t bytes, int protection)
{
    void *const wanted = (void *)(uintptr_t)place;
    void *const memory = mmap(wanted, bytes, protection, UNCLAIMED | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != MAP_FAILED && memory != wanted) {
        /* Old kernels take the place as a wish. */
        (void)munmap(memory, bytes);
        errno = EEXIST;
        return false;
    }
    return memory != MAP_FAILED;
}

static uint64_t random_number(void)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number)) {
        struct timespec now = {0, 0};
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        number = (uint64_t)(uintptr_t)&number * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)now.tv_nsec;
        number ^= number >> 29;
    }
    return number;
}

/* Whether the heap's address is to be the same each time. */
static bool is_fixed(void)
{
    const char *const wish = getenv("METES_HEAP_ADDRESS");
    if (wish != NULL && strcmp(wish, "fixed") == 0) {
        return true;
    }
    if (wish != NULL && strcmp(wish, "random") == 0) {
        return false;
    }
    const int personal = personality(0xffffffffU);
    return personal != -1 && (personal & ADDR_NO_RANDOMIZE) != 0;
}

/* Finds a place for all ranges; without one they are reserved wherever there
 * are addresses. */
static void find_place(void)
{
    const size_t bytes = RANGES * SPAN;
    const bool fixed = is_fixed();
    const uint64_t choices = (LAST_PLACE - FIRST_PLACE - bytes) / ARENA_ALIGNMENT + 1U;
    next_place = FIRST_PLACE;
    if (sizeof(void *) < 8U) {
        return;
    }
    for (unsigned attempt = 0; attempt < TRIES; attempt += 1U) {
        const uint64_t choice = fixed ? attempt * (bytes / ARENA_ALIGNMENT) : random_number();
        const uint64_t place = FIRST_PLACE + choice % choices * ARENA_ALIGNMENT;
        size_t looked = bytes;
        bool found = map_at(place, looked, PROT_NONE);
        if (!found && errno != EEXIST) {
            /* A limit forbids to look at the whole: the beginning must do. */
            looked = ARENA_ALIGNMENT;
            found = map_at(place, looked, PROT_NONE);
        }
        if (found) {
            (void)munmap((void *)(uintptr_t)place, looked);
            next_place = place;
            free_until = place + bytes;
            return;
        }
    }
}

/* Maps a whole range, aligned; less than asked for where limits forbid more. */
static bool reserve_whole(arena_t *arena, size_t bytes)
{
    bool full = true;
    while (bytes >= SMALLEST_ARENA) {
        void *const memory = mmap((void *)(uintptr_t)next_place, bytes + ARENA_ALIGNMENT,
                                  PROT_READ | PROT_WRITE, UNCLAIMED, -1, 0);
        if (memory != MAP_FAILED) {
            if (!full) {
                /* Leave as much to the program as the heap takes. */
                full = true;
                (void)munmap(memory, bytes + ARENA_ALIGNMENT);
                bytes /= 2U;
                continue;
            }
            const size_t address = (size_t)(uintptr_t)memory;
            const size_t skip = (0U - address) & (ARENA_ALIGNMENT - 1U);
            arena->base = (unsigned char *)memory + skip;
            arena->reserved = bytes;
            arena->open = bytes;
            next_place += (bytes / ARENA_ALIGNMENT + 2U) * ARENA_ALIGNMENT;
            return true;
        }
        full = false;
        bytes /= 2U;
    }
    return false;
}

/* A range of up to a span, which grows where it lies. */
static bool make_arena(arena_t *arena)
{
    if (next_place >= free_until) {
        return reserve_whole(arena, SPAN);
    }
    arena->base = (unsigned char *)(uintptr_t)next_place;
    arena->reserved = SPAN;
    next_place += SPAN;
    return true;
}

/* Maps more of a range, so that it has `length` bytes. */
static bool open_arena(arena_t *arena, size_t length)
{
    const int saved = errno;
    const uint64_t end = (uint64_t)(uintptr_t)arena->base + arena->open;
    const size_t ahead = arena->open / 8U > AHEAD ? arena->open / 8U : AHEAD;
    /* Ahead of need, so that few calls are made, if limits do not forbid it. */
    size_t wanted = length > arena->open + ahead ? length : arena->open + ahead;
    for (unsigned attempt = 0; attempt < 2U; attempt += 1U) {
        wanted = (wanted + PAGE - 1U) / PAGE * PAGE;
        wanted = wanted < arena->reserved ? wanted : arena->reserved;
        if (map_at(end, wanted - arena->open, PROT_READ | PROT_WRITE)) {
            arena->open = wanted;
            break;
        }
        wanted = length;
    }
    errno = saved;
    return length <= arena->open;
}

static bool grow_arena(arena_t *arena, size_t bytes)
{
    if (bytes > arena->reserved - arena->length) {
        return false;
    }
    if (bytes > arena->open - arena->length && !open_arena(arena, arena->length + bytes)) {
        return false;
    }
    arena->length += bytes;
    return true;
}

#if HEAP_LEVELS_LIMITED
static const size_t level_sizes[HEAP_LEVELS] = HEAP_LEVEL_SIZES;
static size_t level_taken[HEAP_LEVELS];

/* Whether a memory level has as much left. */
static bool level_has(unsigned level, size_t bytes)
{
    return bytes <= level_sizes[level] - level_taken[level];
}

#endif

static bool grow(void *context, unsigned pool, size_t bytes)
{
    (void)context;
#if HEAP_LEVELS_LIMITED
    static const unsigned char levels[HEAP_POOLS] = HEAP_POOL_LEVELS;
    if (!level_has(levels[pool], bytes) || !grow_arena(&arenas[pool], bytes)) {
        return false;
    }
    level_taken[levels[pool]] += bytes;
    return true;
#else
    return grow_arena(&arenas[pool], bytes);
#endif
}

#if HEAP_OBJECT_POOLS > 0
static bool grow_slabs(void *context, size_t bytes)
{
    (void)context;
#if HEAP_LEVELS_LIMITED
    /* A slab comes with its record. */
    const size_t whole = bytes + sizeof(heap_slab_t);
    if (!level_has(HEAP_OBJECT_LEVEL, whole) || !grow_arena(&slab_arena, bytes)) {
        return false;
    }
    level_taken[HEAP_OBJECT_LEVEL] += whole;
    return true;
#else
    return grow_arena(&slab_arena, bytes);
#endif
}
#endif
#if HEAP_OBJECT_POOLS > 0
static const heap_source_t source = {NULL, HEAP_INCREMENT, grow, grow_slabs};
#else
static const heap_source_t source = {NULL, HEAP_INCREMENT, grow};
#endif

/* Makes the heap of empty arenas. Each pool begins with the smallest region. */
static bool make_heap(void)
{
    find_place();
    heap_prepare(&heap, SPAN, &source);
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        arena_t *const arena = &arenas[pool];
        const size_t smallest = heap_smallest_region(&heap, pool);
        const size_t first = (smallest + HEAP_INCREMENT - 1U) / HEAP_INCREMENT * HEAP_INCREMENT;
        if (!make_arena(arena) || !grow(NULL, pool, first)
            || heap_add_region(&heap, pool, arena->base, first) != HEAP_OK) {
            return false;
        }
    }
#if HEAP_OBJECT_POOLS > 0
    /* Records and slack are reserved for all slabs; only what is used is touched. */
    arena_t records = {NULL, 0, 0, 0};
    arena_t slack = {NULL, 0, 0, 0};
    if (!make_arena(&slab_arena)
        || !reserve_whole(&records,
                          slab_arena.reserved / HEAP_SLAB * sizeof(heap_slab_t) + SMALLEST_ARENA)
        || !reserve_whole(&slack,
                          slab_arena.reserved / HEAP_SLAB * HEAP_SLOTS * sizeof(uint16_t)
                              + SMALLEST_ARENA)) {
        return false;
    }
    size_t capacity = slab_arena.reserved / HEAP_SLAB;
    const size_t described = records.reserved / sizeof(heap_slab_t);
    const size_t measured = slack.reserved / (HEAP_SLOTS * sizeof(uint16_t));
    capacity = described < capacity ? described : capacity;
    capacity = measured < capacity ? measured : capacity;
    heap_add_slabs(&heap, slab_arena.base, (heap_slab_t *)(void *)records.base,
                   (uint16_t *)(void *)slack.base, capacity);
#endif
#ifdef HEAP_COUNT
    /* What setting up touched is not the program's. */
    memset(heap_counts, 0, sizeof(heap_counts));
#endif
    return true;
}

static void before_fork(void);
static void after_fork_in_parent(void);
static void after_fork_in_child(void);

/* Under the lock, by the first caller: the process has one thread, because to
 * start another allocates. Forks are watched for from now on, not from our
 * constructor on: those of other libraries may come first, start threads and
 * fork. To watch may allocate, so the lock is given back meanwhile. */
static void begin_heap(void)
{
    const int saved = errno;
    state = make_heap() ? READY : FAILED;
    errno = saved;
    unlock();
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    lock();
}

/* Under the lock. */
static inline bool ready(void)
{
    if (state == FRESH) {
        begin_heap();
    }
    return state == READY;
}

static inline bool arena_contains(const arena_t *arena, const void *place)
{
    return (size_t)((uintptr_t)place - (uintptr_t)arena->base) < arena->length;
}

/* Whether the heap gave a block out: others come from before it was loaded. */
static inline bool is_ours(const void *place)
{
#if HEAP_OBJECT_POOLS > 0
    if (arena_contains(&slab_arena, place)) {
        return true;
    }
#endif
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        if (arena_contains(&arenas[pool], place)) {
            return true;
        }
    }
    return false;
}

#if HEAP_MAPPED
#include "preload_mapped.h"
#endif

/* ----------------------------------------------------------------- Report -- */

typedef struct {
    char text[REPORT_LENGTH];
    size_t length;
} line_t;

static void put(line_t *line, const char *text)
{
    while (*text != '\0' && line->length < sizeof(line->text)) {
        line->text[line->length] = *text;
        line->length += 1U;
        text += 1;
    }
}

/* Digits of a number, at least `least` of them. */
static void put_number(line_t *line, uint64_t number, unsigned base, unsigned least)
{
    char digits[24];
    unsigned at = sizeof(digits) - 1U;
    digits[at] = '\0';
    while (number != 0U || least != 0U) {
        at -= 1U;
        digits[at] = "0123456789abcdef"[number % base];
        number /= base;
        least -= least != 0U ? 1U : 0U;
    }
    put(line, &digits[at]);
}

static void put_field(line_t *line, const char *name, uint64_t number)
{
    put(line, name);
    put_number(line, number, 10, 1);
}

static void put_hash(line_t *line, const char *name, uint64_t hash)
{
    put(line, name);
    put_number(line, hash, 16, 16);
    put(line, "\"");
}

/* The report's path with %p replaced; false when it does not fit. */
static bool expand_path(char *path, size_t room)
{
    line_t process = {{0}, 0};
    size_t length = 0;
    put_number(&process, (uint64_t)report_pid, 10, 1);
    for (const char *from = report_path; *from != '\0'; from += 1) {
        if (from[0] == '%' && from[1] == 'p') {
            if (length + process.length >= room) {
                return false;
            }
            memcpy(path + length, process.text, process.length);
            length += process.length;
            from += 1;
        } else {
            path[length] = *from;
            length += 1U;
        }
        if (length >= room) {
            return false;
        }
    }
    path[length] = '\0';
    return true;
}

/* Bytes taken from the system, of which pools have taken so many. */
static size_t footprint(size_t pools)
{
#if HEAP_MAPPED
    return mapped_footprint(pools);
#else
    return pools;
#endif
}

/* The part of each memory level: where blocks are mapped, there is one. */
static void put_levels(line_t *line)
{
    put(line, ",\"levels\":[");
    for (unsigned level = 0; level < HEAP_LEVELS; level += 1U) {
        put_field(line, level == 0U ? "{\"footprint\":" : ",{\"footprint\":",
                  state == READY ? footprint(heap_level_footprint(&heap, level)) : 0U);
#ifdef HEAP_COUNT
        put_field(line, ",\"record_reads\":", heap_counts[level].record_reads);
        put_field(line, ",\"record_writes\":", heap_counts[level].record_writes);
#endif
        put(line, "}");
    }
    put(line, "]");
#ifdef HEAP_COUNT
    heap_count_t all = {0, 0};
    for (unsigned level = 0; level < HEAP_LEVELS; level += 1U) {
        all.record_reads += heap_counts[level].record_reads;
        all.record_writes += heap_counts[level].record_writes;
    }
    put_field(line, ",\"record_reads\":", all.record_reads);
    put_field(line, ",\"record_writes\":", all.record_writes);
#endif
}

/* The report as one line of REPORT_LENGTH bytes, blanks before its end. */
static void compose(line_t *line)
{
    put_field(line, "{\"pid\":", (uint64_t)report_pid);
    put_field(line, ",\"allocations\":", heap.allocations);
    put_field(line, ",\"frees\":", heap.allocations - heap.blocks);
    put_field(line, ",\"resizes\":", heap.resizes);
    put_field(line, ",\"failures\":", heap.failures);
    put_field(line, ",\"peak_live\":", heap.peak_live);
    put_field(line, ",\"live\":", heap.live);
    put_field(line, ",\"footprint\":", state == READY ? footprint(heap_footprint(&heap)) : 0U);
    put_hash(line, ",\"placements\":\"", placements_hash);
    put_hash(line, ",\"requests\":\"", requests_hash);
    put_field(line, ",\"events\":", events);
    put_levels(line);
    put(line, "}");
    memset(line->text + line->length, ' ', REPORT_LENGTH - line->length);
    line->text[REPORT_LENGTH - 1U] = '\n';
    line->length = REPORT_LENGTH;
}

/* Maps the line just appended to the file, to be rewritten in place. */
static void keep_mapped(int file)
{
    const off_t end = lseek(file, 0, SEEK_CUR);
    if (end < (off_t)REPORT_LENGTH) {
        return;
    }
    const off_t start = end - (off_t)REPORT_LENGTH;
    const off_t page = start - start % (off_t)PAGE;
    char *const mapped = mmap(NULL, (size_t)(end - page), PROT_READ | PROT_WRITE, MAP_SHARED,
                              file, page);
    if (mapped != MAP_FAILED) {
        report_line = mapped + (start - page);
    }
}

static void refresh(void)
{
    line_t line = {{0}, 0};
    compose(&line);
    memcpy(report_line, line.text, REPORT_LENGTH);
}

/* Writes the report, once. A child that shares the memory of its parent
 * (vfork) is not the process that is to write it. */
static void report(void)
{
    const int saved = errno;
    char path[sizeof(report_path) + 32U];
    line_t line = {{0}, 0};
    if (!lock_soon()) {
        return;
    }
    if (report_pid != 0 && report_pid == getpid() && report_line == NULL
        && expand_path(path, sizeof(path))) {
        const int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        compose(&line);
        if (file >= 0 && write(file, line.text, line.length) == (ssize_t)line.length) {
            keep_mapped(file);
        }
        if (file >= 0) {
            (void)close(file);
        }
        if (report_line == NULL) {
            /* It cannot be kept up to date; it is not to be written again. */
            report_pid = 0;
        }
    }
    unlock();
    errno = saved;
}

/* ----------------------------------------------------------------- Events -- */

/* A place as a number that does not depend on where the ranges lie. */
static inline uint64_t offset_of(const void *place)
{
#if HEAP_OBJECT_POOLS > 0
    if (arena_contains(&slab_arena, place)) {
        return (UINT64_C(1) << 60) + ((uintptr_t)place - (uintptr_t)slab_arena.base);
    }
#endif
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        if (arena_contains(&arenas[pool], place)) {
            return ((uint64_t)pool << 44) + ((uintptr_t)place - (uintptr_t)arenas[pool].base);
        }
    }
#if HEAP_MAPPED
    const mapped_t *const block = find_mapped(place);
    if (block != NULL) {
        return (UINT64_C(1) << 61) + block->number;
    }
#endif
    return UINT64_MAX;
}

static inline uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

enum { ALLOCATED = 1, FREED = 2, RESIZED = 3 };

/* Under the lock, when the heap has done what is noted. */
static inline void note(uint64_t operation, const void *place, size_t size)
{
    events += 1U;
    placements_hash = mixed(mixed(mixed(placements_hash, operation), offset_of(place)), size);
    requests_hash = mixed(mixed(requests_hash, operation), size);
    if (report_line != NULL) {
        refresh();
    }
}

/* ---------------------------------------------------------- Life and death -- */

/* glibc's lock of the list of all streams, which a fork takes after its handlers.
 * Threads that hold it wait for streams whose holders may wait for the heap: so it
 * comes before the heap's. It may be taken twice. */
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));

static bool has_list_lock(void)
{
    return _IO_list_lock != NULL && _IO_list_unlock != NULL && _IO_list_resetlock != NULL;
}

static void before_fork(void)
{
    if (has_list_lock()) {
        _IO_list_lock();
    }
    lock();
    forking = true;
}

static void after_fork_in_parent(void)
{
    forking = false;
    unlock();
    if (has_list_lock()) {
        _IO_list_unlock();
    }
}

static void after_fork_in_child(void)
{
    forking = false;
    /* Whoever waited for the lock is not in this process. */
    __atomic_store_n(&lock_word, 0U, __ATOMIC_RELEASE);
    if (has_list_lock()) {
        _IO_list_resetlock();
    }
    if (report_line != NULL) {
        /* That line is the parent's, which has reported already. */
        report_line = NULL;
        report_pid = 0;
    }
    if (report_pid != 0) {
        report_pid = getpid();
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *const path = getenv("METES_REPORT");
    if (path != NULL && *path != '\0' && strlen(path) < sizeof(report_path)) {
        memcpy(report_path, path, strlen(path) + 1U);
        report_pid = getpid();
    }
}

__attribute__((destructor)) static void end(void)
{
    report();
}

/* Programs that leave without running destructors report all the same. */
__attribute__((noreturn)) static void leave(int status)
{
    report();
    for (;;) {
        (void)syscall(SYS_exit_group, status);
    }
}

void _exit(int status)
{
    leave(status);
}

void _Exit(int status)
{
    leave(status);
}

/* ----------------------------------------------------------- malloc family -- */

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* Requests of no bytes are served as one, so that places differ. Whether the
 * block is new pages, all zero, is told. */
static void *allocate_told(size_t size, size_t align, bool *zero)
{
    const size_t bytes = size != 0U ? size : 1U;
    void *place = NULL;
    *zero = false;
    lock();
    if (ready()) {
#if HEAP_MAPPED
        place = allocate_block(bytes, align, zero);
        settle();
#else
        place = heap_allocate(&heap, bytes, align);
#endif
        if (place != NULL) {
            note(ALLOCATED, place, bytes);
        }
    }
    unlock();
    return place != NULL ? place : out_of_memory();
}

static void *allocate(size_t size, size_t align)
{
    bool zero = false;
    return allocate_told(size, align, &zero);
}

/* Zeroes a block. Whole pages of a large one are left to the kernel, which has
 * them zeroed when they are used again, if ever. */
static void clear(unsigned char *place, size_t size)
{
    const size_t before = (0U - (size_t)(uintptr_t)place) & (PAGE - 1U);
    const int saved = errno;
    if (size >= LARGE) {
        const size_t pages = (size - before) / PAGE * PAGE;
        /* Locked memory is refused. */
        if (madvise(place + before, pages, MADV_DONTNEED) == 0) {
            memset(place, 0, before);
            place += before + pages;
            size -= before + pages;
        }
        errno = saved;
    }
    memset(place, 0, size);
}

static void *allocate_zeroed(size_t size, size_t align)
{
    bool zero = false;
    void *const place = allocate_told(size, align, &zero);
    if (place != NULL && !zero) {
        clear(place, size);
    }
    return place;
}

void *malloc(size_t size)
{
    return allocate(size, ALIGNMENT);
}

void free(void *place)
{
    if (place == NULL) {
        return;
    }
    lock();
    if (is_ours(place)) {
        heap_free(&heap, place);
        note(FREED, place, 0);
#if HEAP_MAPPED
    } else {
        mapped_t *const block = find_mapped(place);
        if (block != NULL) {
            note(FREED, place, 0);
            free_mapped(block);
        }
#endif
    }
    unlock();
}

void *calloc(size_t count, size_t size)
{
    if (size != 0U && count > SIZE_MAX / size) {
        return out_of_memory();
    }
    return allocate_zeroed(count * size, ALIGNMENT);
}

void *realloc(void *place, size_t size)
{
    if (place == NULL) {
        return allocate(size, ALIGNMENT);
    }
    if (size == 0U) {
        free(place);
        return NULL;
    }
    void *moved = NULL;
    lock();
#if HEAP_MAPPED
    if (is_ours(place)) {
        moved = resize_pooled(place, size);
    } else {
        mapped_t *const block = find_mapped(place);
        moved = block != NULL ? resize_mapped(block, size) : NULL;
    }
    settle();
    if (moved != NULL) {
        note(RESIZED, moved, size);
    }
#else
    if (is_ours(place)) {
        moved = heap_resize(&heap, place, size, ALIGNMENT);
        if (moved != NULL) {
            note(RESIZED, moved, size);
        }
    }
#endif
    unlock();
    return moved != NULL ? moved : out_of_memory();
}

void *reallocarray(void *place, size_t count, size_t size)
{
    if (size != 0U && count > SIZE_MAX / size) {
        return out_of_memory();
    }
    return realloc(place, count * size);
}

static bool is_power_of_two(size_t number)
{
    return number != 0U && (number & (number - 1U)) == 0U;
}

int posix_memalign(void **place, size_t align, size_t size)
{
    if (!is_power_of_two(align) || align % sizeof(void *) != 0U) {
        return EINVAL;
    }
    void *const block = allocate(size, align);
    if (block == NULL) {
        /* As in glibc, errno says so, too. */
        return ENOMEM;
    }
    *place = block;
    return 0;
}

void *memalign(size_t align, size_t size)
{
    /* As in the C library: an alignment that is none is rounded up to one. */
    size_t power = ALIGNMENT;
    if (align > SIZE_MAX / 2U + 1U) {
        errno = EINVAL;
        return NULL;
    }
    while (power < align) {
        power *= 2U;
    }
    return allocate(size, power);
}

void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

void *valloc(size_t size)
{
    return allocate(size, PAGE);
}

void *pvalloc(size_t size)
{
    if (size > SIZE_MAX - PAGE) {
        return out_of_memory();
    }
    return allocate((size + PAGE - 1U) / PAGE * PAGE, PAGE);
}

/* The bytes that were requested: more would not survive realloc. */
size_t malloc_usable_size(void *place)
{
    size_t bytes = 0;
    lock();
    if (place != NULL && is_ours(place)) {
        bytes = heap_requested_size(&heap, place);
#if HEAP_MAPPED
    } else {
        const mapped_t *const block = find_mapped(place);
        bytes = block != NULL ? block->size : 0U;
#endif
    }
    unlock();
    return bytes;
}

/* ------------------------------------------------------------- Other names --
 *
 * A program that is linked with another allocator finds there what is not here,
 * and would hand it a block of this heap: so here is whatever glibc, jemalloc,
 * tcmalloc and mimalloc export of the family. Arenas and caches of jemalloc's
 * own functions are its own matter; xallocx never resizes, as it may.
 */

#define EXPORTED __attribute__((visibility("default"), noinline))
/* No header declares these. */
#define DECLARED(result, name, parameters) EXPORTED result name parameters; result name parameters

DECLARED(void, cfree, (void *place))
{
    free(place);
}

DECLARED(void, vfree, (void *place))
{
    free(place);
}

DECLARED(void, free_sized, (void *place, size_t size))
{
    (void)size;
    free(place);
}

DECLARED(void, free_aligned_sized, (void *place, size_t align, size_t size))
{
    (void)align;
    (void)size;
    free(place);
}

DECLARED(void *, reallocf, (void *place, size_t size))
{
    void *const moved = realloc(place, size);
    if (moved == NULL && size != 0U) {
        free(place);
    }
    return moved;
}

DECLARED(size_t, malloc_size, (const void *place))
{
    return malloc_usable_size((void *)(uintptr_t)place);
}

DECLARED(size_t, malloc_good_size, (size_t size))
{
    return size;
}

DECLARED(size_t, nallocx, (size_t size, int flags))
{
    (void)flags;
    return size;
}

static size_t align_of_flags(int flags)
{
    const unsigned log2 = (unsigned)flags & 63U;
    return log2 < 5U || log2 >= sizeof(size_t) * 8U ? ALIGNMENT : (size_t)1 << log2;
}

DECLARED(void *, mallocx, (size_t size, int flags))
{
    const size_t align = align_of_flags(flags);
    return (flags & 64) != 0 ? allocate_zeroed(size, align) : allocate(size, align);
}

DECLARED(void *, rallocx, (void *place, size_t size, int flags))
{
    const size_t align = align_of_flags(flags);
    const size_t bytes = size != 0U ? size : 1U;
    const size_t before = malloc_usable_size(place);
    unsigned char *moved;
    if (align <= ALIGNMENT) {
        moved = realloc(place, bytes);
    } else {
        moved = allocate(bytes, align);
        if (moved != NULL) {
            memcpy(moved, place, before < bytes ? before : bytes);
            free(place);
        }
    }
    if (moved != NULL && (flags & 64) != 0 && bytes > before) {
        memset(moved + before, 0, bytes - before);
    }
    return moved;
}

DECLARED(size_t, xallocx, (void *place, size_t size, size_t extra, int flags))
{
    (void)size;
    (void)extra;
    (void)flags;
    return malloc_usable_size(place);
}

DECLARED(size_t, sallocx, (const void *place, int flags))
{
    (void)flags;
    return malloc_size(place);
}

DECLARED(void, dallocx, (void *place, int flags))
{
    (void)flags;
    free(place);
}

DECLARED(void, sdallocx, (void *place, size_t size, int flags))
{
    (void)size;
    (void)flags;
    free(place);
}

#if SIZE_MAX > 0xFFFFFFFFU
/* The operators of C++ (Itanium ABI). Those that the standard defines by others
 * call the others by name: a program may have replaced some. */

typedef void (*handler_t)(void);
extern handler_t _ZSt15get_new_handlerv(void) __attribute__((weak));
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

/* A block, or NULL where nobody can make memory. */
static void *new_block(size_t size, size_t align)
{
    for (;;) {
        void *const place = allocate(size, align < ALIGNMENT ? ALIGNMENT : align);
        const handler_t handler =
            place == NULL && _ZSt15get_new_handlerv != NULL ? _ZSt15get_new_handlerv() : NULL;
        if (handler == NULL) {
            return place;
        }
        handler();
    }
}

static void *new_or_throw(size_t size, size_t align)
{
    void *const place = new_block(size, align);
    if (place == NULL) {
        if (_ZSt17__throw_bad_allocv != NULL) {
            _ZSt17__throw_bad_allocv();
        }
        abort();
    }
    return place;
}

DECLARED(void *, _Znwm, (size_t size))
{
    return new_or_throw(size, ALIGNMENT);
}

DECLARED(void *, _ZnwmSt11align_val_t, (size_t size, size_t align))
{
    return new_or_throw(size, align);
}

DECLARED(void *, _Znam, (size_t size))
{
    return _Znwm(size);
}

DECLARED(void *, _ZnamSt11align_val_t, (size_t size, size_t align))
{
    return _ZnwmSt11align_val_t(size, align);
}

/* Our own, whatever the program has of that name. */
extern void *own_new(size_t size) __attribute__((alias("_Znwm"), visibility("hidden")));
extern void *own_new_aligned(size_t size, size_t align)
    __attribute__((alias("_ZnwmSt11align_val_t"), visibility("hidden")));

DECLARED(void *, _ZnwmRKSt9nothrow_t, (size_t size, const void *tag))
{
    void *(*volatile const called)(size_t) = _Znwm;
    void *(*volatile const own)(size_t) = own_new;
    (void)tag;
    return called != own ? called(size) : new_block(size, ALIGNMENT);
}

DECLARED(void *, _ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag))
{
    void *(*volatile const called)(size_t, size_t) = _ZnwmSt11align_val_t;
    void *(*volatile const own)(size_t, size_t) = own_new_aligned;
    (void)tag;
    return called != own ? called(size, align) : new_block(size, align);
}

DECLARED(void *, _ZnamRKSt9nothrow_t, (size_t size, const void *tag))
{
    return _ZnwmRKSt9nothrow_t(size, tag);
}

DECLARED(void *, _ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag))
{
    return _ZnwmSt11align_val_tRKSt9nothrow_t(size, align, tag);
}

DECLARED(void, _ZdlPv, (void *place))
{
    free(place);
}

DECLARED(void, _ZdlPvSt11align_val_t, (void *place, size_t align))
{
    (void)align;
    free(place);
}

DECLARED(void, _ZdaPv, (void *place))
{
    _ZdlPv(place);
}

DECLARED(void, _ZdaPvSt11align_val_t, (void *place, size_t align))
{
    _ZdlPvSt11align_val_t(place, align);
}

DECLARED(void, _ZdlPvm, (void *place, size_t size))
{
    (void)size;
    _ZdlPv(place);
}

DECLARED(void, _ZdaPvm, (void *place, size_t size))
{
    (void)size;
    _ZdaPv(place);
}

DECLARED(void, _ZdlPvmSt11align_val_t, (void *place, size_t size, size_t align))
{
    (void)size;
    _ZdlPvSt11align_val_t(place, align);
}

DECLARED(void, _ZdaPvmSt11align_val_t, (void *place, size_t size, size_t align))
{
    (void)size;
    _ZdaPvSt11align_val_t(place, align);
}

DECLARED(void, _ZdlPvRKSt9nothrow_t, (void *place, const void *tag))
{
    (void)tag;
    _ZdlPv(place);
}

DECLARED(void, _ZdaPvRKSt9nothrow_t, (void *place, const void *tag))
{
    (void)tag;
    _ZdaPv(place);
}

DECLARED(void, _ZdlPvSt11align_val_tRKSt9nothrow_t, (void *place, size_t align, const void *tag))
{
    (void)tag;
    _ZdlPvSt11align_val_t(place, align);
}

DECLARED(void, _ZdaPvSt11align_val_tRKSt9nothrow_t, (void *place, size_t align, const void *tag))
{
    (void)tag;
    _ZdaPvSt11align_val_t(place, align);
}
#endif
