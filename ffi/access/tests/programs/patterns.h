/* A hundred blocks, each accessed in one of ten ways whose counts follow from
 * what is written here, word by word. Needs only `make` and `drop`. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
struct unaligned {
    u32 value;
} __attribute__((packed));

/* Sizes that no library asks for. */
#define SIZE(k) (20000u + (k))

static volatile u32 sink;

static void *make(u32 size);
static void drop(void *block);

/* What block k must show, in words of `word` bytes. */
struct counts {
    u32 reads, writes, read_bytes, write_bytes;
};

static u32 words(u32 bytes, u32 word) { return (bytes + word - 1) / word; }

static struct counts expected(u32 k, u32 word) {
    u32 n = k + 1;
    struct counts c = {0, 0, 0, 0};
    switch (k % 10) {
    case 0: c.writes = n * 8 / word; c.write_bytes = n * 8; break;
    case 1: c.writes = words(n * 4, word); c.write_bytes = n * 4; break;
    case 2: c.writes = words(4 * k + 3, word); c.write_bytes = 4 * k + 3; break;
    case 3: c.reads = n; c.read_bytes = n; break;
    case 4: c.reads = words(2 * n, word); c.read_bytes = 2 * n; break;
    case 5: c.writes = 2 * n; c.write_bytes = 2 * n; break;
    case 6: c.writes = (word == 4 ? 2 : 1) * n; c.write_bytes = 4 * n; break;
    case 7: c.writes = n * 16 / word; c.write_bytes = n * 16; break;
    case 8: c.writes = words(3 * n, word); c.write_bytes = 3 * n; break;
    default: c.reads = c.writes = n; c.read_bytes = c.write_bytes = 4 * n; break;
    }
    return c;
}

static void use(u8 *block, u32 k) {
    u32 n = k + 1, sum = 0;
    switch (k % 10) {
    case 0: /* double words */
        for (u32 i = 0; i < n; i++) ((volatile u64 *)block)[i] = i;
        break;
    case 1: /* words */
        for (u32 i = 0; i < n; i++) ((volatile u32 *)block)[i] = i;
        break;
    case 2: /* bytes, which make words */
        for (u32 i = 0; i < 4 * k + 3; i++) ((volatile u8 *)block)[i] = (u8)i;
        break;
    case 3: /* one byte, again and again: each time a word */
        for (u32 i = 0; i < n; i++) sum += ((volatile u8 *)block)[5];
        break;
    case 4: /* half words */
        for (u32 i = 0; i < n; i++) sum += ((volatile u16 *)block)[i];
        break;
    case 5: /* two words in turn */
        for (u32 i = 0; i < n; i++) {
            ((volatile u8 *)block)[i % 4] = 1;
            ((volatile u8 *)block)[8 + i % 4] = 1;
        }
        break;
    case 6: /* across the border of a word of four, inside one of eight */
        for (u32 i = 0; i < n; i++) {
#ifdef __x86_64__
            ((volatile struct unaligned *)(block + 8 * i + 2))->value = i;
#else
            for (u32 byte = 2; byte < 6; byte++) ((volatile u8 *)block)[8 * i + byte] = (u8)i;
#endif
        }
        break;
    case 7: /* sixteen bytes at a time, where the machine can */
        for (u32 i = 0; i < n; i++) {
#ifdef __SSE2__
            typedef float four __attribute__((vector_size(16)));
            *(volatile four *)(block + 16 * i) = (four){1, 2, 3, 4};
#else
            ((volatile u64 *)block)[2 * i] = i;
            ((volatile u64 *)block)[2 * i + 1] = i;
#endif
        }
        break;
    case 8: { /* a string instruction, which goes byte by byte */
#ifdef __x86_64__
        u8 *to = block;
        unsigned long count = 3 * n;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
#else
        for (u32 i = 0; i < 3 * n; i++) ((volatile u8 *)block)[i] = 7;
#endif
        break;
    }
    default: /* reading and writing in one */
        for (u32 i = 0; i < n; i++) {
#ifdef __x86_64__
            __atomic_fetch_add((u32 *)block, 1, __ATOMIC_SEQ_CST);
#else
            volatile u32 *word = (volatile u32 *)block;
            *word = *word + 1;
#endif
        }
    }
    sink = sum;
}

static void patterns(void) {
    static u8 *block[100];
    for (u32 k = 0; k < 100; k++) block[k] = make(SIZE(k));
    /* Not one after the other, so that blocks are told apart. */
    for (u32 k = 0; k < 100; k++) use(block[(k * 37) % 100], (k * 37) % 100);
    for (u32 k = 0; k < 100; k += 2) drop(block[k]);
    for (u32 k = 1; k < 100; k += 2) drop(block[k]);
}
