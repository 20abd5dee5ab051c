/* Carries out page operations given as words {operation, page, count or value, rights}, and prints `result value` for
   each, then regions, frames in use and faults: what the model in software prints of the same list.

   Invariant: the checks are made in the order beyond, unmapped, rights, present, frame free. */
#include "console.h"
#include "pages.h"

#ifndef PAGES_LOG2
#define PAGES_LOG2 10
#endif

int main(void) {
    static const char *const names[] = {"ok", "unmapped", "rights", "overlap", "no_frame", "beyond", "empty", "present"};
    uint32_t left = device_read(DEVICE_OPERATIONS), faults = 0;
    const uint32_t frames = device_read(DEVICE_OPERATIONS);
    if (frames > FRAMES_MAX) {
        print("error: more frames than the memory has\n");
        return 2;
    }
    pages_init(PAGES_LOG2, frames);
    for (left = left - 1; left >= 4; left -= 4) {
        const uint32_t operation = device_read(DEVICE_OPERATIONS), page = device_read(DEVICE_OPERATIONS);
        const uint32_t argument = device_read(DEVICE_OPERATIONS), rights = device_read(DEVICE_OPERATIONS);
        enum pages_result result;
        uint32_t value = 0, served = faults_general;
        fault_error = PAGES_OK;
        switch (operation) {
        case 'm': result = map_region(page, argument, rights); break;
        case 'u': result = unmap_region(page); break;
        /* The segment of translated addresses is 2^17 pages; what lies beyond it is beyond the space, too. */
        case 'r':
            if (page >= 1u << 17) fault_error = PAGES_BEYOND;
            else value = probe_load(page_address(page));
            result = fault_error;
            break;
        case 'w':
            if (page >= 1u << 17) fault_error = PAGES_BEYOND;
            else probe_store(page_address(page), argument);
            result = fault_error;
            break;
        default: print("error: unknown operation\n"); return 2;
        }
        /* With frames cleared every fault takes the general path. */
        served = faults_general - served;
        if (result == PAGES_OK && served != 0) {
            faults++;
            print("fault");
        } else {
            print(names[result]);
        }
        print(" ");
        print_number(value);
        print("\n");
    }
    print("end ");
    print_number(regions_used());
    print(" ");
    print_number(frames_used());
    print(" ");
    print_number(faults);
    print("\n");
    return 0;
}
