/* heap_pool_names.h: the parameters of the general pool HEAP_POOL by short names, and, where a heap
 * has several pools, names of its own for the functions of each. Part of heap.c.
 *
 * What parameters mean is said where they are used; heap_config.h says what they are.
 */
#ifndef HEAP_POOL_NAMES_H
#define HEAP_POOL_NAMES_H

/* Kinds of index. */
#define HEAP_CLASSES 1
#define HEAP_LIST 2
#define HEAP_KINGSLEY 3
#define HEAP_BUDDY 4
#define HEAP_FIXED_SIZES 5
#define HEAP_LEA 6
#define HEAP_TREE_INDEX 7
/* Which block of a searched list serves, and in which order a list is kept. */
#define HEAP_FIRST_FIT 1
#define HEAP_NEXT_FIT 2
#define HEAP_BEST_FIT 3
#define HEAP_WORST_FIT 4
#define HEAP_EXACT_FIT 5
#define HEAP_LIFO 1
#define HEAP_FIFO 2
#define HEAP_BY_ADDRESS 3

#define POOL_PARAMETER_OF_(number, name) HEAP_POOL##number##_##name
#define POOL_PARAMETER_OF(number, name) POOL_PARAMETER_OF_(number, name)
#define POOL_PARAMETER(name) POOL_PARAMETER_OF(HEAP_POOL, name)

#define POOL_INDEX POOL_PARAMETER(INDEX)
#define POOL_LEVEL POOL_PARAMETER(LEVEL)
#define POOL_HALVES (POOL_INDEX == HEAP_BUDDY)
#define POOL_WILDERNESS (POOL_INDEX != HEAP_BUDDY && POOL_INDEX != HEAP_CLASSES)

/* Two free neighbours merge if the result is at most this large (SIZE_MAX: always); a block is
 * split if the remainder is at least this large, and a block (SIZE_MAX: never). */
#define POOL_MERGES_ALL (!POOL_HALVES && POOL_PARAMETER(COALESCE_UP_TO) == SIZE_MAX)
#define POOL_COALESCE_UP_TO ((size_t)POOL_PARAMETER(COALESCE_UP_TO))
#define POOL_SPLIT_DOWN_TO \
    ((size_t)POOL_PARAMETER(SPLIT_DOWN_TO) > MINIMUM ? (size_t)POOL_PARAMETER(SPLIT_DOWN_TO)      \
                                                     : MINIMUM)
/* What the memory of a region is a multiple of. */
#define POOL_UNIT (POOL_HALVES ? MINIMUM : GRANULE)

/* heap_dedicated.h */
#define POOL_DEDICATED POOL_PARAMETER(DEDICATED)
#define POOL_DEDICATED_SIZES POOL_PARAMETER(DEDICATED_SIZES)
#define POOL_FIFO POOL_PARAMETER(DEDICATED_FIFO)
#define POOL_SORTED POOL_PARAMETER(DEDICATED_SORTED)
#define POOL_SINGLE_LINKS POOL_PARAMETER(DEDICATED_SINGLE)
#define POOL_LIMITED POOL_PARAMETER(DEDICATED_LIMITED)
#define POOL_LIMITS POOL_PARAMETER(DEDICATED_LIMITS)

/* heap_index_classes.h */
#define POOL_LOG2 POOL_PARAMETER(SECOND_LEVEL_LOG2)
#define POOL_PROBES POOL_PARAMETER(PROBES)

/* heap_index_list.h */
#define POOL_FIT POOL_PARAMETER(FIT)
#define POOL_ORDER POOL_PARAMETER(ORDER)
#define POOL_SINGLE POOL_PARAMETER(SINGLE)
#define POOL_KEEPS_BEST (POOL_FIT == HEAP_BEST_FIT || POOL_FIT == HEAP_WORST_FIT)
#define POOL_DEPTH POOL_PARAMETER(DEPTH)
#define POOL_MAX_FIT POOL_PARAMETER(MAX_FIT)

/* heap_index_buddy.h */
#define POOL_LOWEST POOL_PARAMETER(LOWEST)

/* heap_index_fixed.h */
#define POOL_SIZES POOL_PARAMETER(SIZES)
#define POOL_SIZES_COUNT POOL_PARAMETER(SIZES_COUNT)
#define POOL_FIRST_POWER_LOG2 POOL_PARAMETER(FIRST_POWER_LOG2)

/* heap_index_lea.h */
#define POOL_KEEP_UP_TO ((size_t)POOL_PARAMETER(KEEP_UP_TO))

/* heap_index_tree.h */
#define POOL_BY_CLASS POOL_PARAMETER(BY_CLASS)

#if HEAP_POOLS > 1
#define POOL_NAME_OF_(number, name) general##number##_##name
#define POOL_NAME_OF(number, name) POOL_NAME_OF_(number, name)
#define POOL_NAME(name) POOL_NAME_OF(HEAP_POOL, name)

#define pool_add_region POOL_NAME(add_region)
#define pool_alignment POOL_NAME(alignment)
#define pool_append POOL_NAME(append)
#define pool_ask POOL_NAME(ask)
#define pool_attach POOL_NAME(attach)
#define pool_bins POOL_NAME(bins)
#define pool_block_size POOL_NAME(block_size)
#define pool_check POOL_NAME(check)
#define pool_class_below POOL_NAME(class_below)
#define pool_class_floor POOL_NAME(class_floor)
#define pool_clear POOL_NAME(clear)
#define pool_count POOL_NAME(count)
#define pool_count_group POOL_NAME(count_group)
#define pool_count_list POOL_NAME(count_list)
#define pool_count_kept POOL_NAME(count_kept)
#define pool_count_retained POOL_NAME(count_retained)
#define pool_cut POOL_NAME(cut)
#define pool_dedicated POOL_NAME(dedicated)
#define pool_enter POOL_NAME(enter)
#define pool_enter_single POOL_NAME(enter_single)
#define pool_entries POOL_NAME(entries)
#define pool_extend POOL_NAME(extend)
#define pool_fence POOL_NAME(fence)
#define pool_find POOL_NAME(find)
#define pool_find_aligned POOL_NAME(find_aligned)
#define pool_find_larger POOL_NAME(find_larger)
#define pool_first_above POOL_NAME(first_above)
#define pool_first_block POOL_NAME(first_block)
#define pool_first_from POOL_NAME(first_from)
#define pool_first_group POOL_NAME(first_group)
#define pool_flags_of_free POOL_NAME(flags_of_free)
#define pool_gather POOL_NAME(gather)
#define pool_gathers POOL_NAME(gathers)
#define pool_give_back POOL_NAME(give_back)
#define pool_grow_in_place POOL_NAME(grow_in_place)
#define pool_grows_at_end POOL_NAME(grows_at_end)
#define pool_growth POOL_NAME(growth)
#define pool_heads POOL_NAME(heads)
#define pool_index_heads POOL_NAME(index_heads)
#define pool_index_lists POOL_NAME(index_lists)
#define pool_insert POOL_NAME(insert)
#define pool_is_better POOL_NAME(is_better)
#define pool_is_wilderness POOL_NAME(is_wilderness)
#define pool_keep POOL_NAME(keep)
#define pool_lacking POOL_NAME(lacking)
#define pool_largest POOL_NAME(largest)
#define pool_leave POOL_NAME(leave)
#define pool_lengthen POOL_NAME(lengthen)
#define pool_limit POOL_NAME(limit)
#define pool_list_of POOL_NAME(list_of)
#define pool_lists POOL_NAME(lists)
#define pool_lower POOL_NAME(lower)
#define pool_lowest POOL_NAME(lowest)
#define pool_make_free POOL_NAME(make_free)
#define pool_mark_is_right POOL_NAME(mark_is_right)
#define pool_need POOL_NAME(need)
#define pool_payload POOL_NAME(payload)
#define pool_place POOL_NAME(place)
#define pool_place_of POOL_NAME(place_of)
#define pool_pop_kept POOL_NAME(pop_kept)
#define pool_probe POOL_NAME(probe)
#define pool_raise POOL_NAME(raise)
#define pool_reach POOL_NAME(reach)
#define pool_recall POOL_NAME(recall)
#define pool_release POOL_NAME(release)
#define pool_release_reserve POOL_NAME(release_reserve)
#define pool_release_room POOL_NAME(release_room)
#define pool_relinquish POOL_NAME(relinquish)
#define pool_remove POOL_NAME(remove)
#define pool_resize_in_place POOL_NAME(resize_in_place)
#define pool_retain POOL_NAME(retain)
#define pool_reuse POOL_NAME(reuse)
#define pool_search POOL_NAME(search)
#define pool_served POOL_NAME(served)
#define pool_set POOL_NAME(set)
#define pool_settle POOL_NAME(settle)
#define pool_smallest POOL_NAME(smallest)
#define pool_split POOL_NAME(split)
#define pool_suffices POOL_NAME(suffices)
#define pool_summary_of POOL_NAME(summary_of)
#define pool_take POOL_NAME(take)
#define pool_take_at_end POOL_NAME(take_at_end)
#define pool_take_grown POOL_NAME(take_grown)
#define pool_take_or_grow POOL_NAME(take_or_grow)
#define pool_take_out POOL_NAME(take_out)
#define pool_tries POOL_NAME(tries)
#define pool_walk POOL_NAME(walk)
#define pool_wanted POOL_NAME(wanted)
#define pool_words POOL_NAME(words)
#endif

#endif
