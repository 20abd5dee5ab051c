/* Uses everything in metes.h. Valid C99 and C++. Its own malloc counts calls:
   the library must not make any. */
#include <metes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(condition)                                                \
    do {                                                                 \
        if (!(condition)) {                                              \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);      \
            failures++;                                                  \
        }                                                                \
    } while (0)

/* malloc of this program, and of all libraries in it. */
static char room[1 << 20];
static size_t taken, calls;
#ifdef __cplusplus
#define THROWS throw()
extern "C" {
#else
#define THROWS
#endif
void *malloc(size_t size) THROWS {
    void *block = room + taken;
    taken += (size + 15) / 16 * 16;
    calls++;
    return taken <= sizeof room ? block : NULL;
}
void free(void *block) THROWS {
    (void)block;
    calls++;
}
void *calloc(size_t count, size_t size) THROWS { return malloc(count * size); }
void *realloc(void *block, size_t size) THROWS {
    (void)block, (void)size;
    calls++;
    return NULL;
}
#ifdef __cplusplus
}
#endif

static const char *const specs[] = {
    "tlsf:store=hardened", "best-fit:order=address,links=single,store=hardened",
    "buddy:store=hardened",
    "first-fit", "next-fit", "best-fit", "worst-fit", "exact-fit", "segregated-fit", "half-fit",
    "tlsf", "buddy", "kingsley", "tlsf:second_level=8", "best-fit:order=lifo,depth=50",
    "first-fit:search=tree", "first-fit:search=tree,summary=class,store=hardened",
    "buddy:order=address", "first-fit:coalesce_up_to=4096,split_down_to=64",
};

static union {
    char bytes[2 << 20];
    long double aligned;
} memory;
static char more[300000];

struct sum {
    size_t used, free, requested, bytes;
    const char *last;
    bool rising;
    int stop_after;
};

static bool add(void *context, const metes_block *block) {
    struct sum *sum = (struct sum *)context;
    sum->rising = sum->rising && (const char *)block->address > sum->last;
    sum->last = (const char *)block->address;
    sum->bytes += block->size;
    sum->requested += block->requested;
    block->used ? sum->used++ : sum->free++;
    return --sum->stop_after != 0;
}

static struct sum walk(const metes_heap *heap, int stop_after) {
    struct sum sum = {0, 0, 0, 0, NULL, true, 0};
    sum.stop_after = stop_after;
    EXPECT(metes_heap_walk(heap, add, &sum));
    return sum;
}

struct held {
    unsigned char *block;
    size_t size;
    unsigned char fill;
};

static bool filled(const struct held *held, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (held->block[i] != held->fill)
            return false;
    return true;
}

static unsigned state;
static unsigned some(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static void churn(metes_heap *heap, const char *spec) {
    struct held held[200];
    size_t live = 0, refused = 0;
    memset(held, 0, sizeof held);
    state = 1;
    for (int i = 0; i < 4000; i++) {
        struct held *own = &held[some(200)];
        size_t size = some(16) == 0 ? some(20000) : some(300);
        if (own->block == NULL) {
            unsigned kind = some(4);
            size_t align = kind == 0 ? (size_t)32 << some(5) : 1;
            void *block = kind == 0   ? metes_heap_allocate_aligned(heap, align, size)
                          : kind == 1 ? metes_heap_allocate_zeroed(heap, 1, size)
                                      : metes_heap_allocate(heap, size);
            if (block == NULL) {
                refused++;
                continue;
            }
            EXPECT((size_t)block % align == 0 && (size_t)block % (2 * sizeof(void *)) == 0);
            EXPECT(metes_heap_usable_size(heap, block) >= size);
            own->block = (unsigned char *)block;
            own->size = size;
            if (kind == 1) {
                own->fill = 0;
                EXPECT(filled(own, size));
            }
            live += size ? size : 1;
        } else if (some(3) == 0) {
            unsigned char *block = (unsigned char *)metes_heap_resize(heap, own->block, size);
            if (block == NULL) {
                refused++;
                EXPECT(filled(own, own->size));
                continue;
            }
            own->block = block;
            EXPECT(filled(own, own->size < size ? own->size : size));
            live += size ? size : 1;
            live -= own->size ? own->size : 1;
            own->size = size;
        } else {
            EXPECT(filled(own, own->size));
            EXPECT(metes_heap_free(heap, own->block));
            live -= own->size ? own->size : 1;
            own->block = NULL;
            continue;
        }
        own->fill = (unsigned char)some(256);
        memset(own->block, own->fill, own->size);
    }
    metes_error error;
    EXPECT(metes_heap_check(heap, &error));
    metes_statistics s;
    metes_heap_statistics(heap, &s);
    struct sum sum = walk(heap, 0);
    EXPECT(s.live == live && sum.requested == live && s.peak_live >= live);
    EXPECT(s.blocks == sum.used && s.peak_blocks >= s.blocks && s.free_blocks == sum.free);
    EXPECT(s.allocations == s.blocks + s.frees && s.resizes > 100 && s.failures == refused);
    EXPECT(s.footprint > sum.bytes && s.record_bytes > 8 * s.blocks);
    EXPECT(s.free_bytes + live <= sum.bytes && s.largest_free <= s.free_bytes);
    EXPECT(sum.rising);
    EXPECT(walk(heap, 3).used + walk(heap, 3).free == 3);
    if (refused != 0)
        fprintf(stderr, "%s refused %lu requests\n", spec, (unsigned long)refused);
    for (int i = 0; i < 200; i++)
        EXPECT(metes_heap_free(heap, held[i].block));
    metes_heap_statistics(heap, &s);
    EXPECT(s.live == 0 && s.blocks == 0);
    EXPECT(metes_heap_check(heap, NULL));
}

static void every_spec(void) {
    metes_error error;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        metes_heap *heap = metes_heap_create(memory.bytes, sizeof memory.bytes, specs[i], &error);
        if (heap == NULL) {
            fprintf(stderr, "%s: %s\n", specs[i], error.message);
            failures++;
            continue;
        }
        EXPECT((char *)heap >= memory.bytes && (char *)heap < memory.bytes + 5000);
        churn(heap, specs[i]);
        metes_heap_destroy(heap);
        /* A beginning without alignment, and little memory. */
        heap = metes_heap_create(memory.bytes + 3, 100001, specs[i], NULL);
        EXPECT(heap != NULL);
        if (heap != NULL) {
            void *block = metes_heap_allocate(heap, 1000);
            EXPECT(block != NULL && metes_heap_allocate(heap, 200000) == NULL);
            EXPECT(metes_heap_allocate(heap, (size_t)-1) == NULL);
            EXPECT(metes_heap_allocate_zeroed(heap, (size_t)-1 / 2, 3) == NULL);
            EXPECT(metes_heap_allocate_aligned(heap, 48, 10) == NULL);
            EXPECT(metes_heap_resize(heap, block, 200000) == NULL);
            EXPECT(metes_heap_usable_size(heap, block) == 1000);
            metes_heap_destroy(heap);
        }
    }
}

static void regions(void) {
    metes_error error;
    metes_heap *heap = metes_heap_create(memory.bytes, 20000, "tlsf", &error);
    EXPECT(heap != NULL && !metes_heap_add_region(heap, more, sizeof more, &error));
    EXPECT(strstr(error.message, "span") != NULL);
    heap = metes_heap_create_spanning(memory.bytes, 50000, "tlsf", sizeof more, &error);
    EXPECT(heap != NULL && metes_heap_allocate(heap, 100000) == NULL);
    EXPECT(!metes_heap_add_region(heap, more, 40, &error));
    EXPECT(strstr(error.message, "too small by") != NULL);
    EXPECT(metes_heap_add_region(heap, more + 1, sizeof more - 1, &error));
    char *block = (char *)metes_heap_allocate(heap, 100000);
    EXPECT(block > more && block < more + sizeof more);
    metes_statistics s;
    metes_heap_statistics(heap, &s);
    struct sum sum = walk(heap, 0);
    EXPECT(sum.requested == 100000 && sum.used == 1 && sum.free == 2 && s.largest_free > 100000);
    EXPECT(metes_heap_check(heap, &error) && metes_heap_free(heap, block));
    heap = metes_heap_create(memory.bytes, sizeof memory.bytes, "buddy", &error);
    EXPECT(heap != NULL && !metes_heap_add_region(heap, more, sizeof more, &error));
    EXPECT(strstr(error.message, "one region") != NULL);
    EXPECT(!metes_heap_add_region(heap, NULL, 10, NULL));
    /* Memory that the heap has is not given twice, nor around or inside what it has. */
    heap = metes_heap_create(memory.bytes, sizeof memory.bytes / 2, "tlsf", &error);
    EXPECT(metes_heap_add_region(heap, more, sizeof more / 4, &error));
    EXPECT(!metes_heap_add_region(heap, memory.bytes, sizeof memory.bytes / 2, &error));
    EXPECT(strstr(error.message, "already") != NULL);
    EXPECT(!metes_heap_add_region(heap, memory.bytes + 4096, 4096, &error));
    EXPECT(!metes_heap_add_region(heap, more + 100, sizeof more / 8, &error));
    EXPECT(metes_heap_check(heap, &error) && metes_heap_allocate(heap, 100) != NULL);
}

/* Memory that no block ever had is no block, whatever the heap; and no heap is none. */
static void never_used(void) {
    static const char *const specs[] = {"tlsf", "half-fit", "first-fit", "best-fit", "buddy",
                                        "kingsley", "tlsf:store=hardened", "buddy:order=address"};
    metes_error error;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        memset(memory.bytes, 0, sizeof memory.bytes);
        metes_heap *heap = metes_heap_create(memory.bytes, sizeof memory.bytes, specs[i], &error);
        EXPECT(heap != NULL && metes_heap_allocate(heap, 100) != NULL);
        for (size_t at = sizeof memory.bytes / 2; at < sizeof memory.bytes; at += 4096 - 64) {
            EXPECT(!metes_heap_free(heap, memory.bytes + at));
            EXPECT(metes_heap_resize(heap, memory.bytes + at, 200) == NULL);
            EXPECT(metes_heap_usable_size(heap, memory.bytes + at) == 0);
        }
        EXPECT(!metes_heap_free(heap, memory.bytes + sizeof memory.bytes - 64));
        EXPECT(!metes_heap_free(heap, memory.bytes + 512));
        EXPECT(metes_heap_check(heap, &error) && metes_heap_allocate(heap, 1000) != NULL);
    }
    metes_statistics none;
    EXPECT(metes_heap_allocate(NULL, 10) == NULL && metes_heap_resize(NULL, NULL, 10) == NULL);
    EXPECT(metes_heap_allocate_aligned(NULL, 64, 10) == NULL);
    EXPECT(metes_heap_allocate_zeroed(NULL, 1, 10) == NULL && !metes_heap_free(NULL, &error));
    EXPECT(metes_heap_usable_size(NULL, &error) == 0 && metes_heap_fault(NULL) == NULL);
    EXPECT(!metes_heap_add_region(NULL, memory.bytes, sizeof memory.bytes, &error));
    EXPECT(!metes_heap_check(NULL, &error) && strstr(error.message, "NULL") != NULL);
    metes_heap_statistics(NULL, &none);
    EXPECT(none.footprint == 0 && none.blocks == 0);
}

static void misuse(void) {
    metes_error error;
    metes_heap *heap = metes_heap_create(memory.bytes, sizeof memory.bytes, "tlsf", &error);
    void *block = metes_heap_allocate(heap, 100), *other = metes_heap_allocate(heap, 100);
    EXPECT(metes_heap_free(heap, NULL) && metes_heap_usable_size(heap, NULL) == 0);
    EXPECT(metes_heap_free(heap, block) && !metes_heap_free(heap, block));
    EXPECT(metes_heap_resize(heap, block, 10) == NULL && metes_heap_usable_size(heap, block) == 0);
    EXPECT(!metes_heap_free(heap, &error) && !metes_heap_free(heap, (char *)other + 4));
    EXPECT(metes_heap_check(heap, &error));
    EXPECT(metes_heap_resize(heap, NULL, 50) != NULL && metes_heap_free(heap, other));
    /* A program that writes behind its block. */
    block = metes_heap_allocate(heap, 24);
    memset(block, 0xff, 64);
    EXPECT(!metes_heap_check(heap, &error) && strlen(error.message) > 10);
    metes_heap_destroy(NULL);
}

/* What a plain heap cannot see, a hardened one refuses with a reason. */
static void refused(metes_heap *heap, void *block, const char *expected) {
    EXPECT(!metes_heap_free(heap, block));
    const char *why = metes_heap_fault(heap);
    if (why == NULL || strstr(why, expected) == NULL) {
        fprintf(stderr, "%s: %s\n", expected, why == NULL ? "no fault" : why);
        failures++;
    }
}

static void hardened(void) {
    memset(memory.bytes, 0, sizeof memory.bytes);
    metes_heap *heap =
        metes_heap_create(memory.bytes, sizeof memory.bytes, "tlsf:store=hardened", NULL);
    EXPECT(heap != NULL && metes_heap_fault(heap) == NULL);
    char *blocks[6];
    for (int i = 0; i < 6; i++)
        EXPECT((blocks[i] = (char *)metes_heap_allocate(heap, 100)) != NULL);
    refused(heap, blocks[0] + 16, "begins there");
    refused(heap, blocks, "begins there");
    EXPECT(metes_heap_resize(heap, blocks[0] + 1, 10) == NULL && metes_heap_fault(heap) != NULL);
    EXPECT(metes_heap_usable_size(heap, blocks[0] + 32) == 0);
    EXPECT(metes_heap_free(heap, blocks[1]) && metes_heap_fault(heap) == NULL);
    EXPECT(metes_heap_free(heap, blocks[0]));
    refused(heap, blocks[1], "freed twice");
    EXPECT(metes_heap_check(heap, NULL));
    char guard = blocks[3][100];
    blocks[3][100] = 0;
    refused(heap, blocks[3], "beyond its end");
    EXPECT(!metes_heap_check(heap, NULL));
    blocks[3][100] = guard;
    memset(blocks[1], 'x', 90);
    EXPECT(metes_heap_check(heap, NULL)); /* Inside free memory, where no record is. */
    memset(blocks[4] - 8, 'x', 8);
    refused(heap, blocks[4], "in front of it");
    EXPECT(!metes_heap_check(heap, NULL) && metes_heap_free(heap, blocks[5]));
}

static void wrong(const char *spec, size_t length, const char *expected) {
    metes_error error;
    memset(&error, 0, sizeof error);
    EXPECT(metes_heap_create(memory.bytes, length, spec, NULL) == NULL);
    EXPECT(metes_heap_create(memory.bytes, length, spec, &error) == NULL);
    if (strstr(error.message, expected) == NULL) {
        fprintf(stderr, "%s: %s\n", spec, error.message);
        failures++;
    }
}

static void errors(void) {
    static char endless[2000];
    memset(endless, 'x', sizeof endless - 1);
    wrong("tslf", sizeof memory.bytes, "heap:1:1: there is no heap named `tslf` (did you mean `tlsf`?)");
    wrong("tlsf:second_level=3", sizeof memory.bytes, "power of two");
    wrong("compact-fit", sizeof memory.bytes, "metes_compact_create");
    wrong("compact-fit:moving=no", sizeof memory.bytes, "metes_compact_create");
    wrong("tlsf:store=ledger", sizeof memory.bytes, "leave out `store`");
    wrong("\xff\xfe", sizeof memory.bytes, "UTF-8");
    wrong(endless, sizeof memory.bytes, "at most 512");
    wrong("", sizeof memory.bytes, "no heap named");
    wrong(NULL, sizeof memory.bytes, "NULL");
    wrong("tlsf", 0, "too small by");
    wrong("tlsf", 100, "too small by");
    wrong("tlsf", 1500, "too small by");
    /* However often it is tried. */
    for (int i = 0; i < 3000; i++)
        EXPECT(metes_heap_create(memory.bytes, 1000000, "best-fit:depth=101", NULL) == NULL);
}

int main(void) {
    fputs("metes ", stdout);
    size_t before = calls;
    EXPECT(strlen(metes_version()) >= 5);
    every_spec();
    regions();
    misuse();
    never_used();
    hardened();
    errors();
    EXPECT(calls == before);
    puts(failures == 0 ? "does what its header says" : "fails");
    return failures != 0;
}
