/* The heaps of Zephyr, recorded by its own listeners (CONFIG_HEAP_LISTENER=y in prj.conf): the C library's malloc, where that
 * is a sys_heap (CONFIG_COMMON_LIBC_MALLOC), the system heap of k_malloc, and any k_heap or sys_heap.
 *
 *   metes_record_zephyr(&heap->heap.heap);       a struct k_heap
 *   metes_record_zephyr(NULL);                   that of malloc
 *
 * once each, before what is to be recorded. In prj.conf for METES_RECORD_NOW: CONFIG_TIMER_HAS_64BIT_CYCLE_COUNTER is not
 * needed, k_cycle_get_32() is taken.
 *
 * A listener is told the bytes that a request took, rounded to the chunks of the heap, not those asked for. */
#include "metes_record.h"

#include <zephyr/kernel.h>
#include <zephyr/sys/heap_listener.h>
#include <zephyr/sys/sys_heap.h>

static void allocated(uintptr_t heap, void *block, size_t bytes)
{
    (void)heap;
    metes_record_allocated(block, bytes, sizeof(void *));
}

static void freed(uintptr_t heap, void *block, size_t bytes)
{
    (void)heap;
    (void)bytes;
    metes_record_freed(block);
}

#ifndef METES_RECORD_ZEPHYR_HEAPS
#define METES_RECORD_ZEPHYR_HEAPS 4
#endif

int metes_record_zephyr(struct sys_heap *heap)
{
    static struct heap_listener listeners[METES_RECORD_ZEPHYR_HEAPS][2];
    static size_t used;
    if (used == METES_RECORD_ZEPHYR_HEAPS) {
        return -1;
    }
    const uintptr_t id = heap != NULL ? HEAP_ID_FROM_POINTER(heap) : HEAP_ID_LIBC;
    struct heap_listener *const both = listeners[used];
    both[0] = (struct heap_listener){.heap_id = id, .event = HEAP_ALLOC, .alloc_cb = allocated};
    both[1] = (struct heap_listener){.heap_id = id, .event = HEAP_FREE, .free_cb = freed};
    heap_listener_register(&both[0]);
    heap_listener_register(&both[1]);
    used += 1;
    return 0;
}
