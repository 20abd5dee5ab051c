/* prove.c: a bounded sequence of unknown requests, for an abstract interpreter (Frama-C's EVA).
 *
 * Each step allocates one of some sizes, or frees or resizes any of the blocks so far; at the end
 * the rest is freed, and before, with PROVE_CHECK, the heap verifies itself. All sequences are interpreted, so that an alarm is
 * raised wherever one of them could run into undefined behaviour. The memory lies at an absolute
 * address, as it does on a target, so that arithmetic with addresses is exact.
 *
 * With PROVE_BROKEN a byte behind a block is written: then there must be alarms.
 */
#include "heap.h"

#include "__fc_builtin.h"

#define ARENA 4096U
#define MEMORY ((unsigned char *)0x10000)
#ifndef STEPS
#define STEPS 3
#endif
#define SIZES 5

/* Too small for a block, one block, a whole granule, slack beyond the header's bits, too large. */
static const size_t sizes[SIZES] = {0, 12, 20, 100, 5000};
static heap_t heap;
static void *places[STEPS];
static int step;

static void allocate(void)
{
    int size = Frama_C_interval(0, SIZES - 1);
    //@ split size;
    places[step] = heap_allocate(&heap, sizes[size], 8);
    if (places[step] != NULL && sizes[size] != 0U) {
        ((unsigned char *)places[step])[sizes[size] - 1U] = 1;
#ifdef PROVE_BROKEN
        ((unsigned char *)places[step])[sizes[size] + 4096U] = 1;
#endif
    }
}

static void release(void)
{
    int which = Frama_C_interval(0, STEPS - 1);
    //@ split which;
    heap_free(&heap, places[which]);
    places[which] = NULL;
}

static void resize(void)
{
    int which = Frama_C_interval(0, STEPS - 1);
    int size = Frama_C_interval(0, SIZES - 1);
    //@ split which;
    //@ split size;
    if (places[which] != NULL) {
        void *const moved = heap_resize(&heap, places[which], sizes[size], 8);
        places[which] = moved != NULL ? moved : places[which];
    }
}

int main(void)
{
    heap_result_t result = heap_init(&heap, MEMORY, ARENA);
    //@ assert result == HEAP_OK;
    for (step = 0; step < STEPS; step += 1) {
        int choice = step == 0 ? 0 : Frama_C_interval(0, 2);
        //@ split choice;
        if (choice == 0) {
            allocate();
        } else if (choice == 1) {
            release();
        } else {
            resize();
        }
    }
#ifdef PROVE_CHECK
    heap_corruption_t found = heap_check(&heap);
    //@ assert found == HEAP_SOUND;
#endif
    for (step = 0; step < STEPS; step += 1) {
        heap_free(&heap, places[step]);
    }
    //@ assert heap.live == 0 && heap.blocks == 0;
    return 0;
}
