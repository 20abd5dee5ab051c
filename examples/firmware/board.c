/* The board: Arm's MPS2 with AN385 (Cortex-M3), as QEMU emulates it. What a C library and a program need of it: the vectors,
 * memory as programs find it, a clock, a line to the host by semihosting, memory for malloc. */
#include "board.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern uint32_t board_data_load[];
extern uint32_t board_data[];
extern uint32_t board_data_end[];
extern uint32_t board_bss[];
extern uint32_t board_bss_end[];
extern uint32_t board_stack[];
extern char __heap_start[];
extern char __heap_end[];

void __libc_init_array(void);
int main(void);

void board_reset(void);

void board_reset(void)
{
    memcpy(board_data, board_data_load, (size_t)((char *)board_data_end - (char *)board_data));
    memset(board_bss, 0, (size_t)((char *)board_bss_end - (char *)board_bss));
    /* The timer counts down, 25 million a second, and begins again at the top. */
    BOARD_TIMER[2] = UINT32_MAX;
    BOARD_TIMER[1] = UINT32_MAX;
    BOARD_TIMER[0] = 1;
    __libc_init_array();
    exit(main());
}

static void fault(void)
{
    board_print("the image failed\n");
    _exit(3);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {
    (void (*)(void))board_stack, board_reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault,
};

static int host(int operation, const void *parameters)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = parameters;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory", "lr", "cc");
    return r0;
}

void board_print(const char *text)
{
    host(4 /* SYS_WRITE0 */, text);
}

void _exit(int status)
{
    const uint32_t end[2] = {0x20026 /* the application ends */, (uint32_t)status};
    host(0x20 /* SYS_EXIT_EXTENDED */, end);
    for (;;) {
    }
}

/* newlib's name for it, and picolibc's. */
void *_sbrk(ptrdiff_t more)
{
    static char *end = __heap_start;
    char *const before = end;
    if (more > __heap_end - end || more < __heap_start - end) {
        errno = ENOMEM;
        return (void *)-1;
    }
    end += more;
    return before;
}

void *sbrk(ptrdiff_t more)
{
    return _sbrk(more);
}

void _init(void)
{
}

void _fini(void)
{
}
