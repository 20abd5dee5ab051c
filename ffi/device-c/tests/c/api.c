/* Uses metes_device.h on memory that nothing may touch. Valid C99 and C++. */
#include <metes_device.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

#define EXPECT(condition)                                                           \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition,             \
                    metes_device_last_error());                                     \
            failures++;                                                             \
        }                                                                           \
    } while (0)

#define MIB ((uint64_t)1 << 20)

static int says(const char *part) { return strstr(metes_device_last_error(), part) != NULL; }

static void blocks_and_their_ends(metes_device_heap *heap) {
    uint64_t one = 7, two = 7, bytes = 0;
    EXPECT(metes_device_allocate(heap, 0, 256, 0, &one) == METES_DEVICE_OK && one == 0);
    EXPECT(metes_device_allocate(heap, 3 * MIB, 256, 0, &one) == METES_DEVICE_OK);
    EXPECT(metes_device_allocate(heap, 100, 4096, 5, &two) == METES_DEVICE_OK);
    EXPECT(two % 4096 == 0 && one % 256 == 0 && one != two);
    EXPECT(metes_device_requested(heap, two, &bytes) == METES_DEVICE_OK && bytes == 100);
    EXPECT(metes_device_use_on(heap, two, 6) == METES_DEVICE_OK);
    EXPECT(metes_device_check(heap) == METES_DEVICE_OK);

    /* Frees that are none. */
    EXPECT(metes_device_free(heap, two + 512) == METES_DEVICE_BAD_FREE && says("no block in use"));
    EXPECT(metes_device_free(heap, two) == METES_DEVICE_OK);
    EXPECT(metes_device_free(heap, two) == METES_DEVICE_BAD_FREE);
    EXPECT(metes_device_free(heap, UINT64_MAX) == METES_DEVICE_BAD_FREE);
    EXPECT(metes_device_use_on(heap, two, 6) == METES_DEVICE_BAD_FREE);

    /* Who has what. */
    metes_device_holder holders[4];
    metes_device_block blocks[4];
    metes_device_range ranges[4];
    size_t count = 0;
    EXPECT(metes_device_holders(heap, holders, 4, &count) == METES_DEVICE_OK && count == 1);
    EXPECT(holders[0].stream == 0 && holders[0].bytes == 3 * MIB && holders[0].blocks == 1);
    EXPECT(metes_device_blocks(heap, blocks, 4, &count) == METES_DEVICE_OK && count == 1);
    EXPECT(blocks[0].address == one && blocks[0].requested == 3 * MIB);
    EXPECT(metes_device_mapped(heap, ranges, 4, &count) == METES_DEVICE_OK && count >= 1);
    EXPECT(metes_device_blocks(heap, NULL, 0, &count) == METES_DEVICE_OK && count == 1);

    metes_device_statistics statistics;
    EXPECT(metes_device_get_statistics(heap, &statistics) == METES_DEVICE_OK);
    EXPECT(statistics.all.blocks.current == 1 && statistics.all.blocks.peak == 2);
    EXPECT(statistics.small.requested.removed == 100 && statistics.large.requested.current == 3 * MIB);
    EXPECT(statistics.reserved.current >= 3 * MIB && statistics.bad_frees == 4);
    EXPECT(metes_device_reset_peaks(heap) == METES_DEVICE_OK);
    EXPECT(metes_device_reset_totals(heap) == METES_DEVICE_OK);
    EXPECT(metes_device_get_statistics(heap, &statistics) == METES_DEVICE_OK);
    EXPECT(statistics.all.blocks.peak == 1 && statistics.all.blocks.added == 0);

    /* Streams that go. */
    EXPECT(metes_device_leave(heap, 6) == METES_DEVICE_OK);
    EXPECT(metes_device_leave(heap, 6) == METES_DEVICE_STREAM && says("was not used here"));
    EXPECT(metes_device_forget(heap, 5) == METES_DEVICE_OK);
    EXPECT(metes_device_allocate(heap, 1, 1, 2, &two) == METES_DEVICE_STREAM);

    EXPECT(metes_device_free(heap, one) == METES_DEVICE_OK);
    EXPECT(metes_device_check(heap) == METES_DEVICE_OK);
}

static void pages(metes_device_heap *heap) {
    uint64_t block, given = 0;
    metes_device_statistics statistics;
    EXPECT(metes_device_allocate(heap, 5 * MIB, 256, 0, &block) == METES_DEVICE_OK);
    EXPECT(metes_device_sleep(heap) == METES_DEVICE_OK);
    EXPECT(metes_device_get_statistics(heap, &statistics) == METES_DEVICE_OK);
    EXPECT(statistics.asleep && statistics.reserved.current == 0);
    uint64_t none = 9;
    EXPECT(metes_device_allocate(heap, 1, 1, 0, &none) == METES_DEVICE_ASLEEP && none == 0);
    EXPECT(metes_device_limit(heap, 8 * MIB) == METES_DEVICE_ASLEEP);
    EXPECT(metes_device_wake(heap) == METES_DEVICE_OK);
    EXPECT(metes_device_limit(heap, 2 * MIB) == METES_DEVICE_INVALID && says("blocks in use need"));
    EXPECT(metes_device_limit(heap, 8 * MIB) == METES_DEVICE_OK);
    EXPECT(metes_device_allocate(heap, 5 * MIB, 256, 0, &none) == METES_DEVICE_OUT_OF_MEMORY);
    EXPECT(says("8.00 MiB") && says("stream 0x0"));
    EXPECT(metes_device_limit(heap, 64 * MIB) == METES_DEVICE_OK);
    EXPECT(metes_device_limit(heap, 1 << 30) == METES_DEVICE_INVALID);
    EXPECT(metes_device_free(heap, block) == METES_DEVICE_OK);
    EXPECT(metes_device_trim(heap, 2 * MIB, &given) == METES_DEVICE_OK && given == 4 * MIB);
    EXPECT(metes_device_trim(heap, 0, NULL) == METES_DEVICE_OK);
    EXPECT(metes_device_get_statistics(heap, &statistics) == METES_DEVICE_OK);
    EXPECT(statistics.reserved.current == 0);
}

struct Kept {
    metes_device_heap *heap;
    uint64_t block; /* where it is may be 0: an offset */
    bool held;
    int calls;
};

static bool reclaim(void *context, uint64_t bytes) {
    struct Kept *kept = (struct Kept *)context;
    kept->calls++;
    EXPECT(bytes == 60 * MIB);
    if (!kept->held) return false;
    EXPECT(metes_device_free(kept->heap, kept->block) == METES_DEVICE_OK);
    kept->held = false;
    return true;
}

static void a_lack_of_memory(metes_device_heap *heap) {
    struct Kept kept = {heap, 0, true, 0};
    uint64_t block, none;
    EXPECT(metes_device_allocate(heap, 32 * MIB, 256, 3, &kept.block) == METES_DEVICE_OK);
    EXPECT(metes_device_allocate(heap, 60 * MIB, 256, 4, &none) == METES_DEVICE_OUT_OF_MEMORY);
    EXPECT(says("stream 0x3: 32.00 MiB in 1 blocks"));
    EXPECT(metes_device_on_out_of_memory(heap, reclaim, &kept) == METES_DEVICE_OK);
    EXPECT(metes_device_allocate(heap, 60 * MIB, 256, 4, &block) == METES_DEVICE_OK);
    EXPECT(kept.calls == 1);
    EXPECT(metes_device_allocate(heap, 60 * MIB, 256, 4, &none) == METES_DEVICE_OUT_OF_MEMORY);
    EXPECT(kept.calls == 2);
    EXPECT(metes_device_on_out_of_memory(heap, NULL, NULL) == METES_DEVICE_OK);
    EXPECT(metes_device_free(heap, block) == METES_DEVICE_OK);
    EXPECT(metes_device_allocate(heap, 1 << 30, 256, 4, &none) == METES_DEVICE_OUT_OF_MEMORY);
    EXPECT(metes_device_allocate(heap, 16, 3, 4, &none) == METES_DEVICE_INVALID);
    EXPECT(metes_device_allocate(heap, 16, 1, 4, NULL) == METES_DEVICE_INVALID);
}

static void events(metes_device_heap *heap) {
    uint64_t block;
    metes_device_event kept[3];
    size_t count;
    EXPECT(metes_device_record(heap, 3) == METES_DEVICE_OK);
    for (uint64_t round = 1; round <= 3; round++) {
        EXPECT(metes_device_allocate(heap, round, 1, 9, &block) == METES_DEVICE_OK);
        EXPECT(metes_device_free(heap, block) == METES_DEVICE_OK);
    }
    EXPECT(metes_device_events(heap, kept, 3, &count) == METES_DEVICE_OK && count == 3);
    EXPECT(kept[0].action == METES_DEVICE_FREED && kept[0].bytes == 2);
    EXPECT(kept[1].action == METES_DEVICE_ALLOCATED && kept[1].bytes == 3 && kept[1].stream == 9);
    EXPECT(kept[2].address == block && kept[2].microseconds >= kept[1].microseconds);
    EXPECT(metes_device_record(heap, 0) == METES_DEVICE_OK);
}

static void *churn(void *heap_) {
    metes_device_heap *heap = (metes_device_heap *)heap_;
    uint64_t blocks[16], stream = (uint64_t)(size_t)&blocks;
    bool held[16] = {false};
    for (unsigned turn = 0; turn < 20000; turn++) {
        unsigned number = turn * 7919 % 16;
        if (held[number]) EXPECT(metes_device_free(heap, blocks[number]) == METES_DEVICE_OK);
        uint64_t bytes = 1 + turn * 104729 % (1 << 20);
        EXPECT(metes_device_allocate(heap, bytes, 256, stream, &blocks[number]) == METES_DEVICE_OK);
        held[number] = true;
    }
    for (unsigned number = 0; number < 16; number++)
        if (held[number]) EXPECT(metes_device_free(heap, blocks[number]) == METES_DEVICE_OK);
    return NULL;
}

static void threads(metes_device_heap *heap) {
    pthread_t own[3];
    for (int number = 0; number < 3; number++)
        EXPECT(pthread_create(&own[number], NULL, churn, heap) == 0);
    for (int number = 0; number < 3; number++) EXPECT(pthread_join(own[number], NULL) == 0);
    metes_device_statistics statistics;
    EXPECT(metes_device_get_statistics(heap, &statistics) == METES_DEVICE_OK);
    EXPECT(statistics.all.blocks.current == 0);
    EXPECT(metes_device_check(heap) == METES_DEVICE_OK);
}

static void a_fork(metes_device_heap *heap) {
    uint64_t block;
    EXPECT(metes_device_allocate(heap, 1, 1, 0, &block) == METES_DEVICE_OK);
    pid_t child = fork();
    if (child == 0) {
        uint64_t none;
        int right = metes_device_free(heap, block) == METES_DEVICE_FORKED && says("fork") &&
                    metes_device_allocate(heap, 1, 1, 0, &none) == METES_DEVICE_FORKED;
        metes_device_destroy(heap);
        metes_device_heap *own = metes_device_create_guarded(64 * MIB, 4096, NULL);
        right = right && metes_device_allocate(own, 1, 1, 0, &none) == METES_DEVICE_OK;
        _exit(right ? 0 : 1);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(metes_device_free(heap, block) == METES_DEVICE_OK);
}

static void on(metes_device_heap *heap) {
    EXPECT(heap != NULL);
    if (heap == NULL) return;
    blocks_and_their_ends(heap);
    pages(heap);
    a_lack_of_memory(heap);
    events(heap);
    threads(heap);
    a_fork(heap);
    metes_device_destroy(heap);
}

int main(void) {
    metes_device_options options;
    memset(&options, 0, sizeof options);
    options.blocks = 1024;
    on(metes_device_create_guarded(64 * MIB, 4096, &options));
    on(metes_device_create_offsets(64 * MIB, 4096, &options));

    /* Heaps that are not made, and none. */
    uint64_t none;
    EXPECT(metes_device_create_guarded(64 * MIB, 3, NULL) == NULL && says("3"));
    options.page = 3 << 20;
    EXPECT(metes_device_create_guarded(64 * MIB, 4096, &options) == NULL && says("power of two"));
    options.page = 0;
    options.cap = 65 * MIB;
    EXPECT(metes_device_create_guarded(64 * MIB, 4096, &options) == NULL && says("ask for less"));
    EXPECT(metes_device_create_guarded(1 * MIB, 4096, NULL) == NULL && says("no page"));
    options.cap = 0;
    options.streams = 65;
    EXPECT(metes_device_create_guarded(64 * MIB, 4096, &options) == NULL && says("65"));
    EXPECT(metes_device_free(NULL, 1) == METES_DEVICE_INVALID && says("NULL"));
    EXPECT(metes_device_allocate(NULL, 1, 1, 0, &none) == METES_DEVICE_INVALID);
    metes_device_destroy(NULL);

    /* Devices by number. */
    EXPECT(metes_devices_known(0) == NULL && metes_devices_heap(-1) == NULL && says("-1"));
    EXPECT(metes_devices_configure(&options) == METES_DEVICE_OK);
    EXPECT(metes_devices_configure(NULL) == METES_DEVICE_OK);
    EXPECT(metes_devices_on_out_of_memory(NULL, NULL) == METES_DEVICE_OK);
    EXPECT(metes_devices_record(0) == METES_DEVICE_OK);
    EXPECT(metes_rmm_allocate(0, NULL, NULL) == NULL);
    EXPECT(metes_cupy_malloc(NULL, 0, 0) == NULL);
    EXPECT(metes_torch_malloc(0, 0, NULL) == NULL);
    metes_torch_free(NULL, 0, 0, NULL);
    metes_rmm_deallocate(NULL, 0, NULL, NULL);
    metes_cupy_free(NULL, NULL, 0);
    /* Without a driver: no exception in a program of C, and a reason. */
    EXPECT(metes_devices_heap(0) == NULL && says("libcuda.so.1"));
    EXPECT(metes_torch_malloc(16, 0, NULL) == NULL);
    EXPECT(!metes_torch_prepare());

    if (failures == 0) puts("metes does what its header says");
    return failures != 0;
}
