/* Exercises the mesh of metes.h: two processes over one memory, one of which is killed. Exits 1 at the first thing that is
 * wrong. */
#ifndef _GNU_SOURCE /* C++ compilers define it */
#define _GNU_SOURCE
#endif
#include <metes.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

enum { NODES = 3, BYTES = 65536 };

static void *memory;
static size_t size;

static metes_mesh_node *join(uint32_t number)
{
    metes_mesh_status failed = METES_MESH_BUSY;
    void *storage = malloc(metes_mesh_node_size());
    metes_mesh_node *node =
        metes_mesh_join(storage, memory, size, NODES, BYTES, number, &failed);
    CHECK(node != NULL && failed == METES_MESH_OK);
    return node;
}

/* Takes and frees blocks for ever, of its own heap and others'. */
static void work(uint32_t number)
{
    metes_mesh_node *node = join(number);
    void *held[64] = {NULL};
    uint32_t random = number + 1;
    for (;;) {
        random = random * 1664525 + 1013904223;
        uint32_t at = random >> 26;
        if (held[at] != NULL) {
            CHECK(metes_mesh_free(node, held[at]) == METES_MESH_OK);
            held[at] = NULL;
        } else {
            held[at] = metes_mesh_allocate(node, random % 4000, 8, NULL);
            if (held[at] != NULL)
                *(uint32_t *)held[at] = number;
        }
    }
}

static void adopted(void *block, void *context)
{
    void ***next = (void ***)context;
    *(*next)++ = block;
}

static void misuse(void)
{
    metes_mesh_status failed;
    size_t align = 0;
    void *storage = malloc(metes_mesh_node_size());
    CHECK(metes_mesh_size(0, BYTES, NULL) == 0 && metes_mesh_size(1, 0, NULL) == 0);
    CHECK(metes_mesh_size(1 << 20, BYTES, NULL) == 0);
    CHECK(metes_mesh_size(16000, (size_t)1 << 60, NULL) == 0);
    CHECK(metes_mesh_size(NODES, BYTES, &align) == size && align == BYTES);
    CHECK(metes_mesh_create(NULL, size, NODES, BYTES) == METES_MESH_MEMORY);
    CHECK(metes_mesh_create((char *)memory + 64, size, NODES, BYTES) == METES_MESH_MEMORY);
    CHECK(metes_mesh_create(memory, size - 1, NODES, BYTES) == METES_MESH_MEMORY);
    CHECK(metes_mesh_create(memory, size, 0, BYTES) == METES_MESH_INVALID);
    CHECK(metes_mesh_create(memory, size, 1, 64) == METES_MESH_MEMORY);
    CHECK(metes_mesh_join(storage, memory, size, NODES, BYTES, 0, &failed) == NULL);
    CHECK(failed == METES_MESH_NOT_CREATED);
    CHECK(metes_mesh_create(memory, size, NODES, BYTES) == METES_MESH_OK);
    CHECK(metes_mesh_join(storage, memory, size, NODES, BYTES, NODES, &failed) == NULL);
    CHECK(failed == METES_MESH_INVALID);
    CHECK(metes_mesh_join(storage, memory, size, NODES - 1, BYTES, 0, &failed) == NULL);
    CHECK(failed == METES_MESH_NOT_CREATED);
    CHECK(metes_mesh_join(NULL, memory, size, NODES, BYTES, 0, &failed) == NULL);
    CHECK(failed == METES_MESH_MEMORY);
    CHECK(metes_mesh_allocate(NULL, 1, 1, &failed) == NULL && failed == METES_MESH_MEMORY);
    CHECK(metes_mesh_free(NULL, NULL) == METES_MESH_MEMORY);
    free(storage);
}

int main(void)
{
    metes_mesh_status failed;
    metes_mesh_counts counts;
    size = metes_mesh_size(NODES, BYTES, NULL);
    /* Aligned to a heap: what is asked for is twice as much. */
    char *room = (char *)mmap(NULL, size + BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                              -1, 0);
    CHECK(room != MAP_FAILED);
    memory = room + (BYTES - (size_t)room % BYTES) % BYTES;
    misuse();

    metes_mesh_node *node = join(0);
    char *block = (char *)metes_mesh_allocate(node, 100, 64, &failed);
    CHECK(block != NULL && failed == METES_MESH_OK && (size_t)block % 64 == 0);
    memset(block, 1, 100);
    CHECK(metes_mesh_free(node, block + 8) == METES_MESH_NOT_IN_USE);
    CHECK(metes_mesh_free(node, &failed) == METES_MESH_OUTSIDE);
    CHECK(metes_mesh_free(node, NULL) == METES_MESH_OK);
    CHECK(metes_mesh_free(node, block) == METES_MESH_OK);
    CHECK(metes_mesh_free(node, block) == METES_MESH_NOT_IN_USE);
    CHECK(metes_mesh_allocate(node, 1, 3, &failed) == NULL && failed == METES_MESH_INVALID);
    CHECK(metes_mesh_allocate(node, BYTES, 1, &failed) == NULL && failed == METES_MESH_FULL);
    CHECK(metes_mesh_declare_dead(node, 0) == METES_MESH_INVALID);
    CHECK(metes_mesh_declare_dead(node, NODES) == METES_MESH_INVALID);

    /* Two more nodes are processes; one is killed wherever it is, again and again, and comes back. */
    pid_t lives = fork();
    if (lives == 0)
        work(2);
    for (int time = 0; time < 200; time++) {
        pid_t dies = fork();
        if (dies == 0)
            work(1);
        usleep(1000 + time * 37 % 2000);
        CHECK(kill(dies, SIGKILL) == 0 && waitpid(dies, NULL, 0) == dies);
        CHECK(metes_mesh_declare_dead(node, 1) == METES_MESH_OK);
        void *theirs[4096], **next = theirs;
        metes_mesh_status status;
        while ((status = metes_mesh_adopt(node, 1, adopted, &next)) == METES_MESH_BUSY)
            ;
        CHECK(status == METES_MESH_OK);
        while (next > theirs)
            CHECK(metes_mesh_free(node, *--next) == METES_MESH_OK);
        while ((status = metes_mesh_readmit(node, 1)) == METES_MESH_BUSY)
            ;
        CHECK(status == METES_MESH_OK);
    }
    CHECK(kill(lives, SIGKILL) == 0 && waitpid(lives, NULL, 0) == lives);
    CHECK(metes_mesh_declare_dead(node, 2) == METES_MESH_OK);
    void *theirs[4096], **next = theirs;
    CHECK(metes_mesh_adopt(node, 2, adopted, &next) == METES_MESH_OK);
    while (next > theirs)
        CHECK(metes_mesh_free(node, *--next) == METES_MESH_OK);
    CHECK(metes_mesh_readmit(node, 2) == METES_MESH_OK);
    /* Some died in the midst of an operation on a heap. */
    CHECK(metes_mesh_count(node, &counts) == METES_MESH_OK && counts.taken_over > 0);
    /* Nothing is lost: each heap is one block again. */
    for (uint32_t number = 0; number < NODES; number++) {
        metes_mesh_node *own = join(number);
        CHECK(metes_mesh_allocate(own, BYTES, 1, &failed) == NULL && failed == METES_MESH_FULL);
        void *most = metes_mesh_allocate(own, BYTES - 6144, 8, &failed);
        CHECK(most != NULL);
        CHECK(metes_mesh_count(own, &counts) == METES_MESH_OK);
        CHECK(counts.local == 1 && counts.full == 1);
        CHECK(metes_mesh_free(own, most) == METES_MESH_OK);
    }
    CHECK(metes_mesh_count(node, NULL) == METES_MESH_MEMORY);
    puts("metes does what its header says");
    return 0;
}
