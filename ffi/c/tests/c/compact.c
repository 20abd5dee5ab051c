/* Uses every metes_compact function of metes.h, rightly and wrongly. Valid C99 and C++. */
#include <metes.h>
#include <stdio.h>
#include <string.h>

static int failures;

#define EXPECT(condition)                                                \
    do {                                                                 \
        if (!(condition)) {                                              \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);      \
            failures++;                                                  \
        }                                                                \
    } while (0)

enum { BLOCKS = 500 };

static union {
    char bytes[1 << 20];
    long double aligned;
} memory, other;

static metes_compact *create(void *at, size_t length, uint32_t kappa, size_t increment) {
    metes_error error;
    metes_compact_options options = metes_compact_defaults();
    options.page = 1024;
    options.largest = 512;
    options.kappa = kappa;
    options.increment = increment;
    metes_compact *heap = metes_compact_create(at, length, &options, &error);
    if (heap == NULL)
        fprintf(stderr, "%s\n", error.message), failures++;
    return heap;
}

static void contradictions(void) {
    metes_error error;
    metes_compact_options options = metes_compact_defaults();
    EXPECT(options.kappa == 1 && options.page == 16384 && options.increment == 0);
    EXPECT(metes_compact_create(NULL, 1 << 20, &options, &error) == NULL);
    EXPECT(strstr(error.message, "NULL") != NULL);
    EXPECT(metes_compact_create(memory.bytes, 100, NULL, &error) == NULL);
    EXPECT(strstr(error.message, "too small") != NULL);
    EXPECT(metes_compact_create(memory.bytes, 4096, NULL, NULL) == NULL);
    options.kappa = 0;
    EXPECT(metes_compact_create(memory.bytes, sizeof memory, &options, &error) == NULL);
    EXPECT(strstr(error.message, "kappa is 0") != NULL);
    options = metes_compact_defaults();
    options.largest = options.page;
    EXPECT(metes_compact_create(memory.bytes, sizeof memory, &options, &error) == NULL);
    EXPECT(strstr(error.message, "largest") != NULL);
    options = metes_compact_defaults();
    options.increment = options.page + 1;
    EXPECT(metes_compact_create(memory.bytes, sizeof memory, &options, &error) == NULL);
    EXPECT(strstr(error.message, "increment") != NULL);
    options = metes_compact_defaults();
    options.page = options.smallest = options.granule = options.factor = 0;
    EXPECT(metes_compact_create(memory.bytes, sizeof memory, &options, &error) == NULL);
    memset(&options, 255, sizeof options);
    EXPECT(metes_compact_create(memory.bytes, sizeof memory, &options, &error) == NULL);
}

static void misuse(void) {
    metes_compact *heap = create(memory.bytes + 1, sizeof memory - 1, 1, 0);
    metes_compact *second = create(other.bytes, sizeof other, 1, 0);
    metes_compact_handle a, b, gone;
    void *address;
    char bytes[64];
    size_t size;
    metes_compact_move move = 12345;
    EXPECT(metes_compact_allocate(heap, 40, 8, &a) == METES_COMPACT_OK && a != 0);
    EXPECT(metes_compact_allocate(second, 40, 8, &b) == METES_COMPACT_OK);
    EXPECT(metes_compact_allocate(heap, 40, 8, &gone) == METES_COMPACT_OK);
    EXPECT(metes_compact_free(heap, gone) == METES_COMPACT_OK);

    EXPECT(metes_compact_free(heap, gone) == METES_COMPACT_STALE);
    EXPECT(metes_compact_free(heap, b) == METES_COMPACT_FOREIGN);
    EXPECT(metes_compact_free(heap, 0) != METES_COMPACT_OK);
    EXPECT(metes_compact_free(heap, UINT64_MAX) == METES_COMPACT_FOREIGN);
    EXPECT(metes_compact_begin_free(heap, gone, &move) == METES_COMPACT_STALE && move == 12345);
    EXPECT(metes_compact_pin(heap, gone, &address) == METES_COMPACT_STALE);
    EXPECT(metes_compact_unpin(heap, gone) == METES_COMPACT_STALE);
    EXPECT(metes_compact_resize(heap, gone, 8, 8) == METES_COMPACT_STALE);
    EXPECT(metes_compact_size(heap, gone, &size) == METES_COMPACT_STALE);
    EXPECT(metes_compact_read(heap, gone, 0, bytes, 1) == METES_COMPACT_STALE);
    EXPECT(metes_compact_write(heap, b, 0, bytes, 1) == METES_COMPACT_FOREIGN);

    EXPECT(metes_compact_read(heap, a, 40, bytes, 1) == METES_COMPACT_OUTSIDE);
    EXPECT(metes_compact_read(heap, a, SIZE_MAX, bytes, 2) == METES_COMPACT_OUTSIDE);
    EXPECT(metes_compact_write(heap, a, 1, bytes, 40) == METES_COMPACT_OUTSIDE);
    EXPECT(metes_compact_write(heap, a, 0, bytes, SIZE_MAX) == METES_COMPACT_OUTSIDE);
    EXPECT(metes_compact_write(heap, a, 40, bytes, 0) == METES_COMPACT_OK);

    EXPECT(metes_compact_allocate(heap, 4096, 8, &b) == METES_COMPACT_TOO_LARGE);
    EXPECT(metes_compact_allocate(heap, SIZE_MAX, 8, &b) == METES_COMPACT_TOO_LARGE);
    EXPECT(metes_compact_allocate(heap, 8, 0, &b) == METES_COMPACT_ALIGNMENT);
    EXPECT(metes_compact_allocate(heap, 8, 24, &b) == METES_COMPACT_ALIGNMENT);
    EXPECT(metes_compact_allocate(heap, 8, 65536, &b) == METES_COMPACT_ALIGNMENT);
    EXPECT(metes_compact_resize(heap, a, 4096, 8) == METES_COMPACT_TOO_LARGE);
    EXPECT(metes_compact_resize(heap, a, 8, 3) == METES_COMPACT_ALIGNMENT);

    EXPECT(metes_compact_unpin(heap, a) == METES_COMPACT_NOT_PINNED);
    for (int i = 0; i < 254; i++)
        EXPECT(metes_compact_pin(heap, a, &address) == METES_COMPACT_OK);
    EXPECT(metes_compact_pin(heap, a, &address) == METES_COMPACT_TOO_MANY_PINS);
    EXPECT(metes_compact_free(heap, a) == METES_COMPACT_PINNED);
    EXPECT(metes_compact_resize(heap, a, 400, 8) == METES_COMPACT_PINNED);
    for (int i = 0; i < 254; i++)
        EXPECT(metes_compact_unpin(heap, a) == METES_COMPACT_OK);

    move = 17;
    EXPECT(metes_compact_step(heap, &move) == METES_COMPACT_NO_MOVE && move == 17);
    move = 0;
    EXPECT(metes_compact_step(heap, &move) == METES_COMPACT_OK && move == 0);

    EXPECT(metes_compact_allocate(NULL, 8, 8, &b) == METES_COMPACT_NULL);
    EXPECT(metes_compact_allocate(heap, 8, 8, NULL) == METES_COMPACT_NULL);
    EXPECT(metes_compact_free(NULL, a) == METES_COMPACT_NULL);
    EXPECT(metes_compact_begin_free(heap, a, NULL) == METES_COMPACT_NULL);
    EXPECT(metes_compact_step(heap, NULL) == METES_COMPACT_NULL);
    EXPECT(metes_compact_finish(NULL) == METES_COMPACT_NULL);
    EXPECT(metes_compact_size(heap, a, NULL) == METES_COMPACT_NULL);
    EXPECT(metes_compact_read(heap, a, 0, NULL, 1) == METES_COMPACT_NULL);
    EXPECT(metes_compact_write(heap, a, 0, NULL, 1) == METES_COMPACT_NULL);
    EXPECT(metes_compact_pin(heap, a, NULL) == METES_COMPACT_NULL);
    EXPECT(metes_compact_statistics(heap, NULL) == METES_COMPACT_NULL);
    EXPECT(metes_compact_fragmentation(heap, NULL) == METES_COMPACT_NULL);
    EXPECT(metes_compact_check(NULL) == METES_COMPACT_NULL);

    EXPECT(metes_compact_check(heap) == METES_COMPACT_OK);
    EXPECT(metes_compact_size(heap, a, &size) == METES_COMPACT_OK && size == 40);
    for (int status = METES_COMPACT_OK; status < METES_COMPACT_CORRUPT; status++)
        EXPECT(strcmp(metes_compact_error(status), metes_compact_error(status + 1)) != 0);
    EXPECT(strstr(metes_compact_error(METES_COMPACT_STALE), "stale") != NULL);
    EXPECT(strstr(metes_compact_error(-1), "no status") != NULL);
    metes_compact_destroy(heap);
    metes_compact_destroy(second);
    metes_compact_destroy(NULL);
}

/* Bytes survive moves, whole or in steps; partly used pages stay within kappa. */
static void moves(uint32_t kappa, size_t increment) {
    metes_compact *heap = create(memory.bytes, sizeof memory, kappa, increment);
    static metes_compact_handle handles[BLOCKS];
    metes_compact_move move;
    metes_compact_bytes bytes;
    metes_statistics statistics;
    char content[100], held[100];
    void *address;
    int steps = 0;
    for (int i = 0; i < BLOCKS; i++) {
        memset(content, i, sizeof content);
        EXPECT(metes_compact_allocate(heap, 100, 8, &handles[i]) == METES_COMPACT_OK);
        EXPECT(metes_compact_write(heap, handles[i], 0, content, 100) == METES_COMPACT_OK);
    }
    EXPECT(metes_compact_pin(heap, handles[1], &address) == METES_COMPACT_OK);
    EXPECT(((char *)address)[99] == 1);
    for (int i = 0; i < BLOCKS; i += 2) {
        EXPECT(metes_compact_begin_free(heap, handles[i], &move) == METES_COMPACT_OK);
        while (move != 0) {
            /* What is written between the steps arrives, too. */
            memset(content, i + 1, sizeof content);
            EXPECT(metes_compact_write(heap, handles[i + 1], 0, content, 100) == METES_COMPACT_OK);
            EXPECT(metes_compact_step(heap, &move) == METES_COMPACT_OK);
            steps++;
        }
    }
    EXPECT(metes_compact_finish(heap) == METES_COMPACT_OK);
    for (int i = 1; i < BLOCKS; i += 2) {
        memset(content, i, sizeof content);
        EXPECT(metes_compact_read(heap, handles[i], 0, held, 100) == METES_COMPACT_OK);
        EXPECT(memcmp(content, held, 100) == 0);
    }
    EXPECT(((char *)address)[99] == 1);
    EXPECT(metes_compact_unpin(heap, handles[1]) == METES_COMPACT_OK);
    EXPECT(metes_compact_resize(heap, handles[1], 300, 8) == METES_COMPACT_OK);
    EXPECT(metes_compact_read(heap, handles[1], 99, held, 1) == METES_COMPACT_OK && held[0] == 1);
    EXPECT(metes_compact_check(heap) == METES_COMPACT_OK);
    EXPECT(metes_compact_statistics(heap, &statistics) == METES_COMPACT_OK);
    EXPECT(metes_compact_fragmentation(heap, &bytes) == METES_COMPACT_OK);
    EXPECT(statistics.blocks == BLOCKS / 2 && statistics.live == 100 * BLOCKS / 2 + 200);
    EXPECT(bytes.live == statistics.live && bytes.transient == 0);
    EXPECT(bytes.live + bytes.page_block_internal + bytes.page_internal + bytes.size_class +
               bytes.spare + bytes.handles + bytes.records ==
           statistics.footprint);
    if (kappa == METES_COMPACT_NEVER)
        EXPECT(steps == 0 && bytes.size_class > 100 * BLOCKS / 3);
    else
        EXPECT(steps > 0 && bytes.size_class <= 2 * kappa * 1024);
    while (metes_compact_allocate(heap, 500, 8, &handles[0]) == METES_COMPACT_OK)
        ;
    EXPECT(metes_compact_allocate(heap, 500, 8, &handles[0]) == METES_COMPACT_EXHAUSTED);
    EXPECT(metes_compact_check(heap) == METES_COMPACT_OK);
    metes_compact_destroy(heap);
}

int main(void) {
    contradictions();
    misuse();
    moves(1, 0);
    moves(1, 16);
    moves(3, 40);
    moves(METES_COMPACT_NEVER, 0);
    if (failures == 0)
        puts("metes does what its header says");
    return failures != 0;
}
