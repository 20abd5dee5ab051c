/* A program whose calls are known: what is called how often, how deep, and where branches go. */

__asm__(".section .text.start, \"ax\"\n"
        ".global _start\n"
        ".type _start, #function\n"
        "_start: wr %g0, 2, %wim\n"
        "        set 0x40100000, %sp\n"
        "        sub %sp, 96, %sp\n"
        "        wr %g0, 0xc7, %psr\n" /* supervisor, traps off, window 7 */
        "        nop; nop; nop\n"
        "        set 0x40100000, %sp\n"
        "        sub %sp, 96, %sp\n"
        "        call work\n"
        "        nop\n"
        "        ta 0\n"
        "        nop\n"
        ".size _start, . - _start\n"
        ".text\n");

#define KEPT __attribute__((noinline, noclone, noipa))

volatile int result;

KEPT int leaf(int x)
{
    return x * 3 + 1;
}

KEPT int last(int x)
{
    result = x;
    return x + 1;
}

/* Ends with a jump to last. */
KEPT int tail(int x)
{
    return last(x + leaf(x));
}

KEPT int loop(int times)
{
    int sum = 0;
    for (int i = 0; i < times; i++) {
        if (i % 4 == 3)
            sum += leaf(i);
        else
            sum -= i;
    }
    return sum;
}

KEPT int never(int x)
{
    return x - 1;
}

KEPT int work(void)
{
    result = loop(100);
    result += tail(2);
    result += tail(3);
    if (result == 12345)
        result = never(result);
    return 0;
}
