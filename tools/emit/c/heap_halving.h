/* heap_halving.h: how buddies are cut and merged. Part of heap.c, in heap_pool.h.
 *
 * A block of 2^k bytes lies at a multiple of 2^k from the base; its buddy is the other half of the
 * block of 2^(k+1) bytes that both lie in. A block is cut by halving, and merges with its buddy
 * alone.
 *
 * Invariant: two free buddies are one block.
 */

/* Merges a block with its buddy as long as that is free and whole. */
static void pool_release(heap_pool_t *pool, block_t *block, size_t size, size_t flags)
{
    for (;;) {
        if ((distance(pool->base, block) & size) != 0U) {
            /* The second half: its buddy lies before it. */
            if (flags == 0U) {
                break;
            }
            block_t *const before = block_before(block);
            COUNT(2U, 0U);
            if (size_of_block(before) != size) {
                break;
            }
            pool_remove(pool, before, size);
            block = before;
            flags = previous_free_flag(before);
        } else {
            block_t *const after = shifted(block, size);
            COUNT(1U, 0U);
            if (!is_free(after) || size_of_block(after) != size) {
                break;
            }
            pool_remove(pool, after, size);
        }
        size *= 2U;
    }
    COUNT(0U, 1U);
    shifted(block, size)->header |= PREVIOUS_FREE;
    pool_make_free(pool, block, size, flags);
}

/* Halves a block as long as half still serves; returns the size kept. */
static inline size_t pool_split(heap_pool_t *pool, block_t *block, size_t found, size_t need)
{
    size_t size = found;
    while (size / 2U >= need) {
        size /= 2U;
        /* Unless this is the last cut, the half before this one ends up free. */
        const size_t flags = size / 2U >= need ? PREVIOUS_FREE : 0U;
        pool_make_free(pool, shifted(block, size), size, flags);
    }
    return size;
}

/* Tiles fresh room with the largest aligned powers of two, which then merge. */
static void pool_release_room(heap_pool_t *pool, block_t *room, size_t size)
{
    block_t *block = room;
    size_t left = size;
    for (;;) {
        const size_t offset = distance(pool->base, block);
        const size_t widest = (size_t)1 << highest_bit(left);
        const size_t aligned = offset == 0U ? widest : lowest_alone(offset);
        const size_t piece = aligned < widest ? aligned : widest;
        const size_t flags = previous_free_flag(block);
        block_t *const rest = shifted(block, piece);
        COUNT(1U, 0U);
        left -= piece;
        if (left != 0U) {
            COUNT(0U, 1U);
            rest->header = left;
        }
        pool_release(pool, block, piece, flags);
        if (left < MINIMUM) {
            return;
        }
        block = rest;
    }
}
