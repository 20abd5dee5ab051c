/* heap_growth.h: how a pool takes more memory from its source. Part of heap.c, in heap_pool.h.
 *
 * Memory comes by increments, directly behind the last region. What a request does not need of them
 * stays behind the region's end, in reserve, until a request or another region needs it.
 *
 * Invariant: `footprint` is the regions and the reserve behind the last one. A request that the
 * source refuses leaves the pool as it was.
 */

/* By what the end moves and what that takes from the source, where a block of `need`
 * bytes lacks so many. A block of an increment or more gets no more than it lacks; the
 * rest stays behind the end, in reserve, where nothing lies in its way when it is to
 * grow. Asks for too much when the sum wraps. */
static growth_t pool_growth(const heap_pool_t *pool, size_t need, size_t lacking,
                            const heap_source_t *source)
{
    const size_t least = lacking < GRANULE ? GRANULE : lacking;
    growth_t growth = {0, least};
    if (least > pool->reserve) {
        size_t asked = multiple_from(least - pool->reserve, source->increment);
#if POOL_HALVES
        /* Half a block is no block, and no buddy of one. */
        while (asked % MINIMUM != 0U) {
            asked = asked > SIZE_MAX - source->increment ? 0U : asked + source->increment;
        }
#endif
        growth.asked = asked == 0U ? SIZE_MAX : asked;
    }
#if POOL_HALVES
    (void)need;
    growth.bytes = pool->reserve + growth.asked;
#else
    if (need < source->increment) {
        growth.bytes = pool->reserve + growth.asked;
    }
#endif
    return growth;
}

/* Asks the source for so many bytes, which are in reserve then. */
static bool pool_ask(heap_pool_t *pool, size_t asked, const heap_source_t *source)
{
    if (asked == 0U) {
        return true;
    }
    if (asked > pool->span || pool->footprint > pool->span - asked
        || !HEAP_GROW(source, HEAP_POOL, asked)) {
        return false;
    }
    pool->footprint += asked;
    pool->reserve += asked;
    return true;
}

/* Moves the end of the last region outwards by `bytes` in reserve; returns the room,
 * with a header, or NULL when no region can be so long. */
static block_t *pool_extend(heap_pool_t *pool, size_t bytes)
{
    region_t *const region = pool->last;
    block_t *const room = sentinel_of(region);
    COUNT(1U, 2U);
#if POOL_HALVES
    if (bytes % MINIMUM != 0U) {
        return NULL;
    }
#endif
    const size_t length = length_of(region);
    if (bytes > LARGEST - length) {
        return NULL;
    }
    write_region(region, NULL, length + bytes);
    sentinel_of(region)->header = 0;
    room->header = bytes | (room->header & FLAGS);
    pool->reserve -= bytes;
    return room;
}

/* Gives what is in reserve to the index. */
static bool pool_release_reserve(heap_pool_t *pool)
{
    const size_t bytes = pool->reserve;
    block_t *const room = pool_extend(pool, bytes);
    if (room == NULL) {
        return false;
    }
#if POOL_WILDERNESS
    block_t *const last = previous_free_flag(room) != 0U ? block_before(room) : NULL;
    if (last != NULL && pool_is_wilderness(pool, last)) {
        /* The wilderness grows whatever the limit on merging. */
        const size_t size = size_of_block(last);
        pool_remove(pool, last, size);
        sentinel_of(pool->last)->header |= PREVIOUS_FREE;
        pool_make_free(pool, last, size + bytes, previous_free_flag(last));
        return true;
    }
#endif
    pool_release_room(pool, room, bytes);
    return true;
}

/* Takes `bytes` behind what the heap has already. */
static bool pool_append(heap_pool_t *pool, size_t bytes)
{
    pool->footprint += bytes;
    pool->reserve += bytes;
    if (pool_release_reserve(pool)) {
        return true;
    }
    pool->footprint -= bytes;
    pool->reserve -= bytes;
    return false;
}

#if POOL_HALVES
/* Bytes behind the end with which a block of `need`, a power of two, is surely found:
 * up to the next multiple of `need` where all is free from the one before on, else a
 * whole block more. */
static size_t pool_lacking(const heap_pool_t *pool, size_t need)
{
    block_t *block = sentinel_of(pool->last);
    const size_t beyond = distance(pool->base, block) & (need - 1U);
    size_t used = beyond;
    if (beyond == 0U) {
        return need;
    }
    /* Smaller blocks than `need` do not cross its multiples, and larger ones are not free. */
    while (used != 0U) {
        COUNT(1U, 0U);
        if (previous_free_flag(block) == 0U) {
            break;
        }
        block = block_before(block);
        COUNT(2U, 0U);
        const size_t size = size_of_block(block);
        used = used > size ? used - size : 0U;
    }
    /* `need` is at most the span. */
    return used == 0U ? need - beyond : need - beyond + need;
}
#else
/* Moves the end by `bytes` in reserve, and joins what is gained to the last block, of
 * `*size` bytes, unless that is NULL. Returns the whole as if the index had given it
 * out, and its size. */
static block_t *pool_lengthen(heap_pool_t *pool, block_t *last, size_t bytes, size_t *size)
{
    block_t *block = pool_extend(pool, bytes);
    if (block == NULL) {
        return NULL;
    }
    COUNT(1U, 0U);
    if (last != NULL) {
        COUNT(1U, 0U);
        pool_remove(pool, last, *size);
        block = last;
    }
    *size += bytes;
    COUNT(0U, 2U);
    sentinel_of(pool->last)->header |= PREVIOUS_FREE;
    block->header = *size | previous_free_flag(block);
    return block;
}

/* Moves the end outwards by what the last block lacks, and takes that block whatever
 * the index would find: a search may begin above what suffices. */
static block_t *pool_take_at_end(heap_pool_t *pool, size_t need, const heap_source_t *source,
                                 size_t *found)
{
    block_t *const end = sentinel_of(pool->last);
    growth_t growth = pool_growth(pool, need, need, source);
    block_t *last = NULL;
    *found = 0;
    COUNT(1U, 0U);
    if (previous_free_flag(end) != 0U) {
        block_t *const before = block_before(end);
        const size_t size = size_of_block(before);
        const size_t lacking = need > size ? need - size : 0U;
        const growth_t joined = pool_growth(pool, need, lacking, source);
        COUNT(2U, 0U);
#if POOL_WILDERNESS
        /* The wilderness grows whatever the limit on merging. */
#endif
        if (pool_is_wilderness(pool, before)
            || (joined.asked <= pool->span && size + joined.bytes <= POOL_COALESCE_UP_TO)) {
            last = before;
            *found = size;
            growth = joined;
        }
    }
    return pool_ask(pool, growth.asked, source) ? pool_lengthen(pool, last, growth.bytes, found)
                                              : NULL;
}

/* What a block in use needs for `size` bytes, if it is the last one and can grow where
 * it is; else zero. */
static size_t pool_grows_at_end(const heap_pool_t *pool, block_t *block, size_t size, size_t align)
{
    const size_t need = pool_need(size);
    if (need == 0U || !is_power_of_two(align) || misalignment(block, align) != 0U
        || need > pool->span || need > POOL_COALESCE_UP_TO) {
        return 0;
    }
    block_t *behind = shifted(block, size_of_block(block));
    COUNT(2U, 0U);
    if (is_free(behind)) {
        behind = shifted(behind, size_of_block(behind));
    }
    return behind == sentinel_of(pool->last) ? need : 0U;
}

/* Grows the last block in use, with what is free behind it, so that it has `need` bytes;
 * the end is marked as if all of it were free. Returns what it has then, or zero. */
static size_t pool_grow_in_place(heap_pool_t *pool, block_t *block, size_t need,
                                 const heap_source_t *source)
{
    block_t *const end = sentinel_of(pool->last);
    const size_t own = size_of_block(block);
    block_t *last = NULL;
    size_t more = 0;
    COUNT(2U, 0U);
    if (previous_free_flag(end) != 0U) {
        last = block_before(end);
        more = size_of_block(last);
        COUNT(2U, 0U);
    }
    const size_t room = own + more;
    const growth_t growth = pool_growth(pool, need, need > room ? need - room : 0U, source);
    if (growth.asked > pool->span || room + growth.bytes > POOL_COALESCE_UP_TO
        || !pool_ask(pool, growth.asked, source)
        || pool_lengthen(pool, last, growth.bytes, &more) == NULL) {
        return 0;
    }
    /* The model also writes the header, which the cut writes again. */
    COUNT(0U, 1U);
    return own + more;
}
#endif

/* Takes memory from the source so that `need` is served. */
static block_t *pool_take_grown(heap_pool_t *pool, size_t need, const heap_source_t *source,
                                size_t *found)
{
#if POOL_INDEX == HEAP_LEA
    if (pool->base == NULL || need > pool->span) {
        return NULL;
    }
    if (pool_gather(pool)) {
        block_t *const block = pool_take(pool, need, found);
        if (block != NULL) {
            return block;
        }
    }
#endif
    if (source == NULL || pool->base == NULL || need > pool->span) {
        return NULL;
    }
#if POOL_HALVES
    const growth_t growth = pool_growth(pool, need, pool_lacking(pool, need), source);
    if (!pool_ask(pool, growth.asked, source) || !pool_release_reserve(pool)) {
        return NULL;
    }
    return pool_take(pool, need, found);
#else
    return pool_take_at_end(pool, need, source, found);
#endif
}
