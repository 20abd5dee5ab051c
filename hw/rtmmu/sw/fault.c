/* The general path of the page fault: any region, any rights, every error. crt0.S serves the common first touch itself.

   Invariant: compiled so that it keeps every register but r3, r9 and r11; it runs untranslated on its own stack. */
#include "manager.h"

volatile enum pages_result fault_error;
volatile uint32_t faults_general;

/* The page fault. Returns whether the access is to be stepped over. */
int fault(void) {
    faults_general++;
    const uint32_t cause = GET(UNIT_CAUSE);
    enum pages_result result;
    if ((cause & 3) == 1) {
        result = PAGES_RIGHTS;
    } else if ((cause & 3) == 2) {
        result = PAGES_BEYOND;
    } else {
        /* ESR says who made the access. */
        const uint32_t supervisor = GET(64) & 1;
        const uint32_t page = (GET(UNIT_ENTRY) - RECORDS) >> RECORD_LOG2;
        result = take_frame(page, (supervisor ? 4u : 1u) << (cause >> 2));
    }
    if (result == PAGES_OK) return 0;
    fault_error = result;
    return 1;
}

