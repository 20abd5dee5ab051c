/* Addresses and sizes that the start of an image, its linker script and its C agree on. */
#ifndef MACHINE_H
#define MACHINE_H

#define WINDOWS 8

/* How many CPUs there can be. Up to 16, %asr17 tells a CPU its number and MP status starts it; beyond
   that no LEON3 goes, and a device of the simulator's own does both. */
#ifndef CPUS
#define CPUS 16
#endif

#define UART 0x80000100
#define IRQMP 0x80000200
#define GPTIMER 0x80000300
#define CPU_ID 0x80000f00    /* read: the number of the CPU that reads */
#define CPU_START 0x80000f04 /* write: starts CPUs 0..31, and those from 32 on one word further */

#endif
