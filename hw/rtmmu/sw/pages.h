/* Pages of one address space: regions are mapped without frames, a page takes one when it is first touched, and
   unmapping gives back all frames of a region at once.

   Invariant: each operation either does all it says or returns an error and changes nothing. */
#ifndef PAGES_H
#define PAGES_H

#include "layout.h"
#include <stdint.h>

enum pages_result {
    PAGES_OK,
    PAGES_UNMAPPED, /* no region there, or none that begins there */
    PAGES_RIGHTS,   /* the region does not grant the access */
    PAGES_OVERLAP,  /* a page is in a region already */
    PAGES_NO_FRAME, /* every frame is in use */
    PAGES_BEYOND,   /* beyond the address space */
    PAGES_EMPTY,    /* a region of no pages */
    PAGES_PRESENT   /* the page has a frame already */
};

enum { RIGHTS_READ = 5, RIGHTS_WRITE = 10 };

/* Set by the page fault that could not be served; the access was stepped over. PAGES_OK: none since it was cleared. */
extern volatile enum pages_result fault_error;
/* Of the general path of the handler; the straight path counts nothing. */
extern volatile uint32_t faults_general;

/* 2^pages_log2 pages, `frames` frames. O(frames), plus O(pages) in the conventional form. */
void pages_init(unsigned pages_log2, unsigned frames);
/* O(levels of the index); the conventional form O(count). */
enum pages_result map_region(uint32_t start, uint32_t count, uint32_t rights);
/* O(levels of the index); the conventional form O(pages of the region). */
enum pages_result unmap_region(uint32_t start);
/* Gives a page its frame before it is touched. O(levels of the index). */
enum pages_result map_page(uint32_t page);
/* Frames in use: O(frames), for tests. */
uint32_t frames_used(void);
/* Regions: O(pages), for tests. */
uint32_t regions_used(void);

static inline volatile uint32_t *page_address(uint32_t page) {
    return (volatile uint32_t *)(VIRTUAL + (page << PAGE_LOG2));
}

/* Access a word; with fault_error set nothing was read or written. */
uint32_t probe_load(volatile uint32_t *address);
void probe_store(volatile uint32_t *address, uint32_t value);

#endif
