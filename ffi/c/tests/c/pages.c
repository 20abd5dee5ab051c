/* Exercises the virtual memory of metes.h; exits 1 at the first thing that is wrong. */
#include <metes.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

static metes_pages *space(uint32_t pages, uint8_t domain)
{
    size_t bytes = metes_pages_size(pages);
    void *memory = calloc(1, bytes);
    CHECK(metes_pages_create(memory, bytes - 1, pages, domain) == NULL);
    CHECK(metes_pages_create((char *)memory + 1, bytes, pages, domain) == NULL);
    CHECK(metes_pages_create(memory, bytes, pages, 64) == NULL);
    return metes_pages_create(memory, bytes, pages, domain);
}

int main(void)
{
    static const uint32_t sizes[] = {10, 4096, 65536, 1 << 20, 1 << 24};
    size_t bytes = metes_frames_size(4);
    void *memory = malloc(bytes);
    memset(memory, 0xa5, bytes);
    metes_frames *frames = metes_frames_create(memory, bytes, 4);
    CHECK(metes_frames_create(memory, bytes - 1, 4) == NULL);
    CHECK(metes_frames_create(memory, bytes, 0) == NULL);
    CHECK(frames != NULL && metes_frames_available(frames) == 4);
    CHECK(metes_pages_size(0) == 0 && metes_pages_size((1 << 24) + 1) == 0);
    CHECK(metes_pages_map(NULL, 0, 1, true) == METES_PAGES_MEMORY);

    for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
        uint32_t last = sizes[at] - 1, frame = 0;
        metes_mapped mapped;
        metes_pages *pages = space(sizes[at], (uint8_t)at);
        CHECK(pages != NULL);
        CHECK(metes_pages_map(pages, 2, 0, true) == METES_PAGES_EMPTY);
        CHECK(metes_pages_map(pages, 2, last, true) == METES_PAGES_BEYOND);
        CHECK(metes_pages_map(pages, 2, 4, false) == METES_PAGES_OK);
        CHECK(metes_pages_map(pages, 5, 1, true) == METES_PAGES_OVERLAP);
        CHECK(metes_pages_map(pages, 6, last - 5, true) == METES_PAGES_OK);
        CHECK(metes_pages_access(pages, 3, true, &frame) == METES_PAGES_RIGHTS);
        CHECK(metes_pages_access(pages, 3, false, &frame) == METES_PAGES_ABSENT);
        CHECK(metes_pages_access(pages, 0, false, &frame) == METES_PAGES_UNMAPPED);
        CHECK(metes_pages_access(pages, last + 1, false, &frame) == METES_PAGES_BEYOND);
        CHECK(metes_pages_map_page(pages, last, frames, NULL) == METES_PAGES_MEMORY);
        for (uint32_t page = 6; page <= 9; page++) {
            CHECK(metes_pages_map_page(pages, page, frames, &mapped) == METES_PAGES_OK);
            CHECK(mapped.clear);
            CHECK(metes_pages_access(pages, page, true, &frame) == METES_PAGES_OK);
            CHECK(frame == mapped.frame && frame < 4);
        }
        CHECK(metes_pages_map_page(pages, 9, frames, &mapped) == METES_PAGES_PRESENT);
        CHECK(metes_pages_map_page(pages, 2, frames, &mapped) == METES_PAGES_NO_FRAME);
        CHECK(metes_frames_available(frames) == 0);
        CHECK(metes_pages_unmap(pages, 7, frames) == METES_PAGES_UNMAPPED);
        CHECK(metes_pages_unmap(pages, 6, frames) == METES_PAGES_OK);
        CHECK(metes_pages_unmap(pages, 6, frames) == METES_PAGES_UNMAPPED);
        CHECK(metes_frames_available(frames) == 4);
        CHECK(metes_pages_access(pages, last, true, &frame) == METES_PAGES_UNMAPPED);
        /* What this domain gave back it takes again as it is. */
        CHECK(metes_pages_map_page(pages, 2, frames, &mapped) == METES_PAGES_OK);
        CHECK(!mapped.clear);
        CHECK(metes_pages_unmap(pages, 2, frames) == METES_PAGES_OK);
        free(pages);
    }
    free(frames);
    puts("metes does what its header says");
    return 0;
}
