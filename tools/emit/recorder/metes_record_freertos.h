/* The heap of FreeRTOS (heap_1.c to heap_5.c), recorded by the kernel's own trace macros. In FreeRTOSConfig.h, at the end:
 *
 *   #include "metes_record_freertos.h"
 *
 * and metes_record.c among the sources. The kernel calls the macros while its scheduler is suspended, so that of tasks one
 * records at a time.
 *
 * heap_2, heap_4 and heap_5 give the macros the size of the whole block, its header and rounding with it: HEADER bytes are
 * taken off here, the size of their BlockLink_t (a pointer and a size, rounded up to portBYTE_ALIGNMENT); the rounding cannot
 * be. heap_1 has no header, and heap_3 calls the C library's malloc, which metes_record_libc.c records exactly. */
#ifndef METES_RECORD_FREERTOS_H
#define METES_RECORD_FREERTOS_H

#include "metes_record.h"

#ifndef METES_RECORD_FREERTOS_HEADER
#define METES_RECORD_FREERTOS_HEADER                                                                             \
    ((sizeof(void *) + sizeof(size_t) + (portBYTE_ALIGNMENT - 1)) & ~(size_t)(portBYTE_ALIGNMENT - 1))
#endif

#define traceMALLOC(pvAddress, uiSize)                                                                            \
    metes_record_allocated((pvAddress),                                                                          \
                           (size_t)(uiSize) > METES_RECORD_FREERTOS_HEADER                                      \
                               ? (size_t)(uiSize)-METES_RECORD_FREERTOS_HEADER                                  \
                               : (size_t)(uiSize),                                                              \
                           portBYTE_ALIGNMENT)

#define traceFREE(pvAddress, uiSize) metes_record_freed(pvAddress)

#endif
