/* The board of board.c, and what the recorder must know of it. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

#define BOARD_TIMER ((volatile uint32_t *)0x40000000)

#define METES_RECORD_NOW() (~BOARD_TIMER[1])
#define METES_RECORD_FREQUENCY 25000000

void board_print(const char *text);
void _exit(int status) __attribute__((noreturn));

#endif
