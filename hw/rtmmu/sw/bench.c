/* Cycles of each operation on the core, by region size, as lines of JSON; then a check of the data.

   Invariant: a figure is the cycle counter's difference around one call (or one access of an unrolled loop), less that
   of an empty pair of readings; index updates, frame lists and the unit's registers are inside. */
#include "console.h"
#include "pages.h"

#ifndef PAGES_LOG2
#define PAGES_LOG2 10
#endif
#define PAGES (1u << PAGES_LOG2)
#ifndef FRAMES_COUNT
#define FRAMES_COUNT PAGES
#endif

static uint32_t empty;
static uint32_t failures;

static void check(int holds, const char *what) {
    if (holds) return;
    failures++;
    print("{\"failed\": \"");
    print(what);
    print("\"}\n");
}

static uint32_t now(void) { return cycles(); }

/* One touch of a page: a load, since a store is posted. */
static uint32_t touch(uint32_t page) {
    const uint32_t before = now();
    (void)*page_address(page);
    return now() - before - empty;
}

struct figures {
    uint32_t map, unmap, unmap_untouched, touch_first, touch_mean, touch_max, hit_mean, hit_max, other_region;
};

static void measure(struct figures *f, uint32_t start, uint32_t size) {
    uint32_t before, after;
    enum pages_result result;

    before = now();
    result = map_region(start, size, RIGHTS_READ | RIGHTS_WRITE);
    after = now();
    check(result == PAGES_OK, "map");
    f->map = after - before - empty;

    f->touch_max = 0;
    before = now();
    for (uint32_t page = start; page < start + size; page++) *page_address(page) = page;
    after = now();
    f->touch_mean = (after - before - empty) / size;
    before = now();
    for (uint32_t page = start; page < start + size; page++) (void)*page_address(page);
    after = now();
    f->hit_mean = (after - before - empty) / size;
    f->hit_max = 0;
    for (uint32_t page = start; page < start + size; page++) {
        const uint32_t hit = touch(page);
        if (hit > f->hit_max) f->hit_max = hit;
        check(*page_address(page) == page, "data");
    }

    before = now();
    result = unmap_region(start);
    after = now();
    check(result == PAGES_OK, "unmap");
    f->unmap = after - before - empty;

    /* Each touch alone. Before the first, which is the last page's, another region is touched. */
    check(map_region(start, size, RIGHTS_READ | RIGHTS_WRITE) == PAGES_OK, "map again");
    check(map_region(2, 1, RIGHTS_READ | RIGHTS_WRITE) == PAGES_OK, "map another");
    touch(2);
    f->touch_first = touch(start + size - 1);
    for (uint32_t page = start; page < start + size - 1; page++) {
        const uint32_t cost = touch(page);
        if (cost > f->touch_max) f->touch_max = cost;
    }
    check(unmap_region(2) == PAGES_OK, "unmap another");
    check(unmap_region(start) == PAGES_OK, "unmap again");
    check(map_region(start, size, RIGHTS_READ | RIGHTS_WRITE) == PAGES_OK, "map untouched");
    before = now();
    result = unmap_region(start);
    after = now();
    check(result == PAGES_OK, "unmap untouched");
    f->unmap_untouched = after - before - empty;
    check(frames_used() == 0, "frames left");
}

static void report(const char *where, uint32_t size, const struct figures *f) {
    print("{\"where\": \"");
    print(where);
    print("\"");
    print_field("pages", size);
    print_field("map", f->map);
    print_field("unmap", f->unmap);
    print_field("unmap_untouched", f->unmap_untouched);
    print_field("first_touch", f->touch_mean);
    print_field("first_touch_other_region", f->touch_first);
    print_field("first_touch_max", f->touch_max > f->touch_first ? f->touch_max : f->touch_first);
    print_field("hit", f->hit_mean);
    print_field("hit_max", f->hit_max);
    print("}\n");
}

/* Random regions live at once; every page read back. */
static void check_data(void) {
    uint32_t state = 1, begins[32], sizes[32], live = 0, touched = 0;
    static uint8_t seen[PAGES];
    for (uint32_t step = 0; step < 300; step++) {
        state = state * 1664525u + 1013904223u;
        const uint32_t random = state >> 8;
        if (live < 24 && (random & 3) != 0) {
            const uint32_t size = 1 + (random >> 2) % 24, start = (random >> 8) % (PAGES - size);
            int free = 1;
            for (uint32_t i = 0; i < live; i++)
                if (start < begins[i] + sizes[i] && begins[i] < start + size) free = 0;
            const enum pages_result result = map_region(start, size, RIGHTS_READ | RIGHTS_WRITE);
            check(result == (free ? PAGES_OK : PAGES_OVERLAP), "map or overlap");
            if (!free) continue;
            for (uint32_t page = start; page < start + size; page += 1 + (random & 1)) {
                *page_address(page) = page * 2654435761u + step;
                seen[page] = 1;
                touched++;
            }
            begins[live] = start;
            sizes[live++] = size;
            for (uint32_t page = start; page < start + size; page += 1 + (random & 1))
                check(*page_address(page) == page * 2654435761u + step, "own data");
        } else if (live != 0) {
            const uint32_t victim = random % live;
            check(unmap_region(begins[victim]) == PAGES_OK, "unmap of a live region");
            check(unmap_region(begins[victim]) == PAGES_UNMAPPED, "double unmap");
            for (uint32_t page = begins[victim]; page < begins[victim] + sizes[victim]; page++) {
                touched -= seen[page];
                seen[page] = 0;
            }
            fault_error = PAGES_OK;
            probe_load(page_address(begins[victim]));
            check(fault_error == PAGES_UNMAPPED, "access to a released page");
            begins[victim] = begins[--live];
            sizes[victim] = sizes[live];
        }
        check(frames_used() == touched, "frames in use");
        check(regions_used() == live, "regions in use");
    }
    while (live != 0) check(unmap_region(begins[--live]) == PAGES_OK, "last unmap");
    check(frames_used() == 0, "frames at the end");
}

int main(void) {
    static const uint32_t sizes[] = {1, 2, 8, 16, 64, 256, 512};
    struct figures f;
    pages_init(PAGES_LOG2, FRAMES_COUNT);
    empty = now();
    empty = now() - empty;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] > PAGES / 2) break;
        /* Alone: each index update goes up to the root. */
        measure(&f, PAGES / 2, sizes[i]);
        report("alone", sizes[i], &f);
        /* Beside others: as in use. */
        check(map_region(PAGES / 2 - 1, 1, RIGHTS_READ) == PAGES_OK, "left neighbour");
        check(map_region(0, 1, RIGHTS_READ) == PAGES_OK, "far neighbour");
        if (sizes[i] < PAGES / 2) check(map_region(PAGES / 2 + sizes[i], 1, RIGHTS_READ) == PAGES_OK, "right neighbour");
        measure(&f, PAGES / 2, sizes[i]);
        report("between", sizes[i], &f);
        check(unmap_region(PAGES / 2 - 1) == PAGES_OK, "left neighbour goes");
        check(unmap_region(0) == PAGES_OK, "far neighbour goes");
        if (sizes[i] < PAGES / 2) check(unmap_region(PAGES / 2 + sizes[i]) == PAGES_OK, "right neighbour goes");
    }
    check_data();
    print("{\"failures\": ");
    print_number(failures);
    print_field("faults_general", faults_general);
    print("}\n");
    return failures != 0;
}
