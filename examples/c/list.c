/* A doubly linked list in a heap that moves its nodes: links are handles.
 *
 *     ./list            most nodes go; the rest move together
 *     ./list never      the same without moves */
#include <metes.h>
#include <stdio.h>
#include <string.h>

enum { MEMORY = 256 << 10, NODES = 2000 };

struct node {
    metes_compact_handle previous, next; /* 0: none */
    unsigned number;
};

struct list {
    metes_compact *heap;
    metes_compact_handle first, last;
};

static char memory[MEMORY];

/* Stops the program at the first thing that goes wrong. */
static bool done(metes_compact_status status) {
    if (status != METES_COMPACT_OK)
        fprintf(stderr, "list: %s\n", metes_compact_error(status));
    return status == METES_COMPACT_OK;
}

static bool load(struct list *list, metes_compact_handle handle, struct node *node) {
    return done(metes_compact_read(list->heap, handle, 0, node, sizeof *node));
}

static bool store(struct list *list, metes_compact_handle handle, const struct node *node) {
    return done(metes_compact_write(list->heap, handle, 0, node, sizeof *node));
}

/* Makes `next` follow `previous`; either may be none. */
static bool join(struct list *list, metes_compact_handle previous, metes_compact_handle next) {
    struct node node;
    if (previous == 0) {
        list->first = next;
    } else {
        if (!load(list, previous, &node))
            return false;
        node.next = next;
        if (!store(list, previous, &node))
            return false;
    }
    if (next == 0) {
        list->last = previous;
        return true;
    }
    if (!load(list, next, &node))
        return false;
    node.previous = previous;
    return store(list, next, &node);
}

static bool append(struct list *list, unsigned number) {
    struct node node = {0, 0, number};
    metes_compact_handle handle, last = list->last;
    return done(metes_compact_allocate(list->heap, sizeof node, 8, &handle)) &&
           store(list, handle, &node) && join(list, handle, 0) && join(list, last, handle) &&
           (list->last = handle, true);
}

static bool take_out(struct list *list, metes_compact_handle handle) {
    struct node node;
    return load(list, handle, &node) && done(metes_compact_free(list->heap, handle)) &&
           join(list, node.previous, node.next);
}

/* Says how the heap stands. */
static void report(const struct list *list, const char *when) {
    metes_statistics statistics;
    metes_compact_bytes bytes;
    metes_compact_statistics(list->heap, &statistics);
    metes_compact_fragmentation(list->heap, &bytes);
    printf("%s: %zu nodes, %zu bytes live, %zu bytes held\n", when, statistics.blocks,
           statistics.live, statistics.footprint - bytes.spare);
}

int main(int arguments, char **argument) {
    metes_error error;
    metes_compact_options options = metes_compact_defaults();
    options.page = 4096;
    options.largest = 2048;
    if (arguments > 1 && strcmp(argument[1], "never") == 0)
        options.kappa = METES_COMPACT_NEVER;
    struct list list = {metes_compact_create(memory, sizeof memory, &options, &error), 0, 0};
    if (list.heap == NULL) {
        fprintf(stderr, "list: %s\n", error.message);
        return 2;
    }
    for (unsigned number = 0; number < NODES; number++)
        if (!append(&list, number))
            return 1;
    report(&list, "filled");

    struct node node;
    for (metes_compact_handle at = list.first; at != 0; at = node.next) {
        if (!load(&list, at, &node))
            return 1;
        if (node.number % 10 != 0 && !take_out(&list, at))
            return 1;
    }
    report(&list, "thinned");

    unsigned expected = 0;
    for (metes_compact_handle at = list.first; at != 0; at = node.next, expected += 10)
        if (!load(&list, at, &node) || node.number != expected)
            return 1;
    for (metes_compact_handle at = list.last; at != 0; at = node.previous)
        if (!load(&list, at, &node) || node.number != (expected -= 10))
            return 1;
    if (expected != 0 || !done(metes_compact_check(list.heap)))
        return 1;
    puts("the list is whole in both directions");
    metes_compact_destroy(list.heap);
    return 0;
}
