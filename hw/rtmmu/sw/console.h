/* Text out, the cycle counter, and the list of operations in.

   Invariant: none of it touches a translated page. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include "layout.h"
#include <stdint.h>

static inline uint32_t device_read(uint32_t address) { return *(volatile uint32_t *)address; }
static inline uint32_t cycles(void) { return device_read(DEVICE_CYCLES); }

static inline void print(const char *text) {
    while (*text != 0) *(volatile uint32_t *)DEVICE_OUT = (uint8_t)*text++;
}

static inline void print_number(uint32_t value) {
    char digits[11];
    char *at = digits + 10;
    *at = 0;
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    print(at);
}

/* `, "name": value` */
static inline void print_field(const char *name, uint32_t value) {
    print(", \"");
    print(name);
    print("\": ");
    print_number(value);
}

#endif
