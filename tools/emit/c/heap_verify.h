/* heap_verify.h: verifies a pool from outside: every block and every list, once. Part of heap.c, in
 * heap_pool.h.
 *
 * Invariant: whatever was written over the memory, nothing outside of the regions is read, and
 * every walk ends.
 */

/* Walks all blocks: counts them, sums the requests, verifies the tags. Nothing
 * outside the regions is read, whatever was written over them. */
static heap_corruption_t pool_walk(const heap_pool_t *pool, heap_walk_t *walk)
{
    const region_t *region = pool->first;
    while (region != NULL) {
        const size_t offset = first_block_offset(region == pool->first ? pool->heads : 0U,
                                                 pool_alignment(pool->span));
        block_t *block = (block_t *)(void *)((unsigned char *)(uintptr_t)region + offset);
        block_t *before = NULL;
        if (!region_is_sound(region, pool->last)) {
            return HEAP_CORRUPT_REGION;
        }
        walk->regions += 1U;
        walk->record_bytes += offset + SENTINEL;
        for (;;) {
            const size_t size = size_of_block(block);
            const size_t left = distance(block, sentinel_of(region));
            if (left == 0U ? size != 0U : size < MINIMUM || size > left) {
                return HEAP_CORRUPT_SIZE;
            }
            if ((previous_free_flag(block) != 0U) != (before != NULL)
                || (before != NULL && block_before(block) != before)) {
                return HEAP_CORRUPT_NEIGHBOUR;
            }
            if (left == 0U) {
                break;
            }
#if POOL_MERGES_ALL
            if (before != NULL && is_free(block)) {
                return HEAP_CORRUPT_UNCOALESCED;
            }
#endif
            walk->record_bytes += HEADER;
            if (is_free(block)) {
                walk->free_blocks += 1U;
                walk->free_bytes += size;
                if (size - HEADER > walk->largest_free) {
                    walk->largest_free = size - HEADER;
                }
            } else if ((block->header & RETAINED) != 0U) {
                walk->free_blocks += 1U;
            } else if (!request_is_sound(block)) {
                return HEAP_CORRUPT_REQUEST;
            } else {
                walk->blocks += 1U;
                walk->live += requested_of(block);
            }
            before = is_free(block) ? block : NULL;
            block = shifted(block, size);
        }
        region = region->next;
    }
    return HEAP_SOUND;
}

#if POOL_INDEX != HEAP_LIST && POOL_INDEX != HEAP_TREE_INDEX
/* Verifies list `number` of the index, whose blocks are counted. */
static bool pool_count_list(heap_pool_t *pool, size_t number, size_t limit, size_t *count)
{
    block_t *const head = head_of(pool->first, number);
    block_t *before = head;
    size_t least = 0;
    while (before->next != head) {
        block_t *const block = before->next;
        *count += 1U;
        if (!is_listed(pool, block, *count, limit) || block->previous != before
            || pool_list_of(size_of_block(block)) != number || size_of_block(block) < least) {
            return false;
        }
        /* The lists of heap_index_lea.h are sorted. */
        least = POOL_INDEX == HEAP_LEA ? size_of_block(block) : 0U;
        before = block;
    }
    return head->previous == before && pool_mark_is_right(pool, number, before != head);
}

/* Counts the blocks that the index holds; false when a list is broken. */
static bool pool_count(heap_pool_t *pool, size_t limit, size_t *count)
{
#if POOL_WILDERNESS
    if (!wilderness_is_sound(pool, count)) {
        return false;
    }
#endif
#if POOL_INDEX == HEAP_LEA
    const size_t lists = pool_bins(pool);
    if (!pool_count_kept(pool, limit, count)) {
        return false;
    }
#else
    const size_t lists = pool_index_lists(pool);
#endif
    for (size_t number = 0; number < lists; number += 1U) {
        if (!pool_count_list(pool, number, limit, count)) {
            return false;
        }
    }
    return true;
}
#endif

/* Verifies every invariant of this pool. Linear in blocks. */
static heap_corruption_t pool_check(heap_pool_t *pool, heap_walk_t *walk)
{
    heap_walk_t own = {0};
    size_t listed = 0;
    if (pool->base == NULL) {
        return HEAP_SOUND;
    }
    const heap_corruption_t fault = pool_walk(pool, &own);
    if (fault != HEAP_SOUND) {
        return fault;
    }
    if (!pool_count(pool, own.free_blocks, &listed)) {
        return HEAP_CORRUPT_LIST;
    }
#if POOL_DEDICATED > 0
    if (!pool_count_retained(pool, own.free_blocks, &listed)) {
        return HEAP_CORRUPT_LIST;
    }
#endif
    if (listed != own.free_blocks) {
        return HEAP_CORRUPT_UNLISTED;
    }
    walk->blocks += own.blocks;
    walk->live += own.live;
    return HEAP_SOUND;
}
