/* bare.c: the driver without a C library, for words of 32 bits on Linux.
 *
 * Standard input: four 32-bit words an operation (1 allocate, 2 free, 3
 * resize; block; size; align). Standard output: three words an operation (low
 * offset, pool or 0x10000000 for slots, footprint), all ones when refused; a
 * last triple with what heap_check and the statistics say.
 */
#include "heap.h"

#define SPAN ((size_t)1 << 27)
#define INCREMENT ((size_t)4096)
#define ARENA ((size_t)DRIVER_ARENA)
#define MOST 20000
#define ARENAS (HEAP_POOLS + (HEAP_OBJECT_POOLS ? 1 : 0))

static unsigned char memory[ARENAS][ARENA] __attribute__((aligned(1 << 21)));
static size_t lengths[ARENAS];
static heap_t heap;
static void *places[MOST];

void *memcpy(void *to, const void *from, size_t bytes)
{
    unsigned char *const target = to;
    const unsigned char *const origin = from;
    for (size_t at = 0; at < bytes; at += 1) {
        target[at] = origin[at];
    }
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    unsigned char *const target = to;
    for (size_t at = 0; at < bytes; at += 1) {
        target[at] = (unsigned char)value;
    }
    return to;
}

static int call(int number, int first, void *second, size_t third)
{
    int result = 0;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(first), "c"(second), "d"(third)
                     : "memory");
    return result;
}

static bool transfer(int number, int file, void *bytes, size_t length)
{
    unsigned char *at = bytes;
    while (length != 0U) {
        const int moved = call(number, file, at, length);
        if (moved <= 0) {
            return false;
        }
        at += moved;
        length -= (size_t)moved;
    }
    return true;
}

static bool grow_any(size_t arena, size_t bytes)
{
    if (bytes > ARENA - lengths[arena]) {
        return false;
    }
    lengths[arena] += bytes;
    return true;
}

static bool grow(void *context, unsigned pool, size_t bytes)
{
    (void)context;
    return grow_any(pool, bytes);
}

#if HEAP_OBJECT_POOLS
#define CAPACITY (ARENA / HEAP_SLAB)
static heap_slab_t records[CAPACITY];
static uint16_t slack[CAPACITY * HEAP_SLOTS];

static bool grow_slabs(void *context, size_t bytes)
{
    (void)context;
    return grow_any(HEAP_POOLS, bytes);
}
static const heap_source_t source = {NULL, INCREMENT, grow, grow_slabs};
#else
static const heap_source_t source = {NULL, INCREMENT, grow};
#endif

static bool prepare(void)
{
    heap_prepare(&heap, SPAN, &source);
    for (unsigned pool = 0; pool < HEAP_POOLS; pool += 1U) {
        const size_t smallest = heap_smallest_region(&heap, pool);
        lengths[pool] = (smallest + INCREMENT - 1U) / INCREMENT * INCREMENT;
        if (heap_add_region(&heap, pool, memory[pool], lengths[pool]) != HEAP_OK) {
            return false;
        }
    }
#if HEAP_OBJECT_POOLS
    heap_add_slabs(&heap, memory[HEAP_POOLS], records, slack, CAPACITY);
#endif
    return true;
}

static void *operate(const uint32_t operation[4])
{
    void **const place = &places[operation[1]];
    void *given = NULL;
    if (operation[0] == 1U) {
        given = heap_allocate(&heap, operation[2], operation[3]);
    } else if (*place != NULL && operation[0] == 2U) {
        heap_free(&heap, *place);
        *place = NULL;
    } else if (*place != NULL) {
        given = heap_resize(&heap, *place, operation[2], operation[3]);
    }
    if (given != NULL) {
        *place = given;
        memset(given, (int)operation[1], operation[2]);
    }
    return given;
}

void _start(void)
{
    uint32_t operation[4];
    bool sound = prepare();
    while (sound && transfer(3, 0, operation, sizeof(operation)) && operation[1] < MOST) {
        const unsigned char *const given = operate(operation);
        uint32_t line[3] = {UINT32_MAX, UINT32_MAX, heap_footprint(&heap)};
        for (unsigned arena = 0; given != NULL && arena < ARENAS; arena += 1U) {
            if (given >= memory[arena] && given < memory[arena] + ARENA) {
                line[0] = (uint32_t)(given - memory[arena]);
                line[1] = arena < HEAP_POOLS ? arena : 0x10000000U;
            }
        }
        sound = transfer(4, 1, line, sizeof(line)) && heap_check(&heap) == HEAP_SOUND;
    }
    const heap_statistics_t statistics = heap_statistics(&heap);
    uint32_t line[3] = {statistics.peak_live, statistics.live, statistics.record_bytes};
    sound = sound && transfer(4, 1, line, sizeof(line));
    call(1, sound ? 0 : 1, NULL, 0);
    for (;;) {
    }
}
