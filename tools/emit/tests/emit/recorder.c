/* Does to the recorder what stands on stdin, a line each, and writes what it sends, or its ring, to stdout. Addresses are
 * numbers that nothing lies at. */
#include "metes_record.h"

#include <stdio.h>

uint32_t driver_now;

static void put(void *line, const void *bytes, size_t count)
{
    fwrite(bytes, 1, count, line);
}

int main(void)
{
    char what;
    unsigned long one;
    unsigned long two;
    unsigned long three;
    while (scanf(" %c %lu %lu %lu", &what, &one, &two, &three) == 4) {
        const void *const block = (const void *)(uintptr_t)one;
        switch (what) {
        case 't': driver_now = (uint32_t)one; break;
        case 'a': metes_record_allocated(block, two, three); break;
        case 'f': metes_record_freed(block); break;
        case 'r': metes_record_resizing(block, two); break;
        case 'm': metes_record_resized(block, (const void *)(uintptr_t)two); break;
        case 'x': metes_record_tell((uint32_t)three, (uint32_t)one, (uint32_t)two); break;
        case 's': metes_record_send(put, stdout); break;
        case 'd': fwrite(&metes_record_ring, 1, sizeof(metes_record_ring), stdout); break;
        default: return 2;
        }
    }
    return 0;
}
