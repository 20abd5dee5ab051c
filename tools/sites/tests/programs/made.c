/* Code made at run time, told of as runtimes do: trampolines that only return behind their call, with and without a frame
 * pointer, and one that does something else there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void (*step_t)(int, int, int, void (*)(void));

static void *kept;

/* What the interpreter would do for a function. */
__attribute__((noinline)) static void evaluate(void)
{
    kept = malloc(1000);
    free(kept);
    kept = malloc(10);
}

static step_t outer, middle, inner;

__attribute__((noinline)) static void evaluate_middle(void)
{
    inner(0, 0, 0, evaluate);
    kept = malloc(20);
}

__attribute__((noinline)) static void evaluate_outer(void)
{
    middle(0, 0, 0, evaluate_middle);
    kept = malloc(30);
}

int main(void)
{
    /* sub $8,%rsp; call *%rcx; add $8,%rsp; ret */
    static const unsigned char plain[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3};
    /* push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret */
    static const unsigned char framed[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
    /* push %rbp; mov %rsp,%rbp; call *%rcx; nop; pop %rbp; ret: found by the frame pointer */
    static const unsigned char other[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x90, 0x5d, 0xc3};
    unsigned char *const code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    memcpy(code, plain, sizeof plain);
    memcpy(code + 64, framed, sizeof framed);
    memcpy(code + 128, other, sizeof other);
    if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
    char path[64], text[512];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    snprintf(text, sizeof text, "%lx %lx py::inner:/a/b.py\n%lx %lx py::Outer.run:/a/b.py\n%lx %lx py::main:/a/b.py\n",
             (unsigned long)code, (unsigned long)sizeof plain, (unsigned long)code + 64, (unsigned long)sizeof framed,
             (unsigned long)code + 128, (unsigned long)sizeof other);
    FILE *const told = fopen(path, "w");
    if (told == NULL || fputs(text, told) < 0 || fclose(told) != 0) return 1;
    inner = (step_t)(void *)code;
    middle = (step_t)(void *)(code + 64);
    outer = (step_t)(void *)(code + 128);
    outer(0, 0, 0, evaluate_outer);
    free(kept);
    return 0;
}
