/* A process with little room for addresses: what does not fit is told, and nothing aborts. */
#include "metes_device.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define MIB ((uint64_t)1 << 20)

int main(void) {
    struct rlimit limit = {512 * MIB, 512 * MIB};
    metes_device_heap *heap;
    metes_device_options many = {0}, granules = {0};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 2;
    /* Too many pages, then too many blocks of few pages. */
    heap = metes_device_create_offsets((uint64_t)1 << 47, MIB, NULL);
    if (heap != NULL || strstr(metes_device_last_error(), "134217728 pages") == NULL)
        return 3;
    many.blocks = (uint64_t)1 << 29;
    heap = metes_device_create_offsets((uint64_t)1 << 40, 1024 * MIB, &many);
    if (heap != NULL || strstr(metes_device_last_error(), "no memory for the records") == NULL)
        return 4;
    granules.blocks = UINT64_MAX;
    heap = metes_device_create_offsets((uint64_t)1 << 62, (uint64_t)1 << 40, &granules);
    if (heap != NULL)
        return 5;
    heap = metes_device_create_offsets(64 * MIB, MIB, NULL);
    if (heap == NULL)
        return 6;
    metes_device_destroy(heap);
    puts("metes does what its header says");
    return 0;
}
