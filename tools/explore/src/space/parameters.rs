//! What the parameters of a heap are, as a row of results shows them.
//!
//! Invariant: read off the heap itself, so that heaps of a grid and heaps to
//! compare with are shown alike.

use metes_config::Config;
use metes_heap::description::{DedicatedPool, General};
use metes_heap::{Fit, IndexKind, Links, Order};
use serde::Serialize;

/// The parameters of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Parameters {
    /// General pools.
    pub general_pools: u8,
    /// Dedicated pools.
    pub dedicated_pools: u8,
    /// Object pools.
    pub object_pools: u8,
    /// The fit of a searched list, or the index: `first`, `tlsf`, `buddy`.
    pub fit: &'static str,
    /// Where a freed block goes: `lifo`, `fifo`, `address`.
    pub order: &'static str,
    /// Links of lists: `single`, `double`.
    pub links: &'static str,
    /// Depth of search in percent.
    pub depth: u8,
    /// Maximum fit in percent; 0: any.
    pub max_fit: u16,
    /// General pools that merge.
    pub coalescing_pools: u8,
    /// General pools that split.
    pub splitting_pools: u8,
    /// Largest block that a merge makes; none: any, or no merges.
    pub max_coalesced: Option<u64>,
    /// Smallest rest that a split leaves; none: any, or no splits.
    pub min_split: Option<u64>,
    /// Bytes of the nearest level where it is a scratchpad, 0 where there is none.
    pub scratchpad: u64,
}

impl Parameters {
    /// Those of a heap; where general pools differ, the last one's.
    pub fn of(config: &Config) -> Self {
        let heap = &config.heap;
        // A pool for the requests of one block is a dedicated pool in a level of
        // its own.
        let alone = |pool: &General| {
            metes_config::ranged(DedicatedPool::new(pool.up_to, pool.level)) == Some(*pool)
        };
        let pools = || heap.general.iter().filter(|pool| !alone(pool));
        let index = pools().last().map(|pool| pool.index);
        let (mut fit, mut order, mut depth, mut max_fit) = ("none", "lifo", 100, 0);
        let mut links = "double";
        match index {
            Some(IndexKind::List {
                fit: own,
                order: own_order,
                depth_percent,
                max_fit_percent,
                links: own_links,
            }) => {
                if own_links == Links::Single {
                    links = "single";
                }
                fit = fit_word(own);
                order = order_word(own_order);
                depth = u8::try_from(depth_percent).unwrap_or(100);
                max_fit = u16::try_from(max_fit_percent).unwrap_or(u16::MAX);
            }
            Some(IndexKind::Classes {
                second_level: 1,
                probes: 0,
            }) => fit = "half-fit",
            Some(IndexKind::Classes { probes: 0, .. }) => fit = "tlsf",
            Some(IndexKind::Classes { .. }) => fit = "segregated",
            Some(IndexKind::Kingsley) => fit = "kingsley",
            Some(IndexKind::Lea { .. }) => fit = "lea",
            Some(IndexKind::FixedSizes { .. }) => fit = "fixed-sizes",
            Some(IndexKind::FirstFit { by_class, .. }) => {
                fit = if by_class { "tree-by-class" } else { "tree" };
                order = "address";
            }
            Some(IndexKind::Buddy { lowest }) => {
                fit = "buddy";
                order = if lowest { "address" } else { "lifo" };
            }
            None => {}
        }
        let own_limits = !matches!(
            index,
            Some(
                IndexKind::Kingsley
                    | IndexKind::Lea { .. }
                    | IndexKind::FixedSizes { .. }
                    | IndexKind::FirstFit { .. }
                    | IndexKind::Buddy { .. }
            )
        );
        let merging = || pools().filter(|pool| own_limits && pool.limits.coalesce_up_to > 0);
        let splitting =
            || pools().filter(|pool| own_limits && pool.limits.split_down_to < usize::MAX);
        let up_to = merging().map(|pool| pool.limits.coalesce_up_to).max();
        let down_to = splitting().map(|pool| pool.limits.split_down_to).min();
        let near = heap.general.iter().any(|pool| pool.level == 0)
            || heap.dedicated.iter().any(|pool| pool.level == 0);
        Parameters {
            general_pools: pools().count() as u8,
            dedicated_pools: (heap.dedicated.len() + heap.general.iter().filter(alone).count())
                as u8,
            object_pools: heap.objects.len() as u8,
            fit,
            order,
            links,
            depth,
            max_fit,
            coalescing_pools: merging().count() as u8,
            splitting_pools: splitting().count() as u8,
            max_coalesced: up_to
                .filter(|&size| size != usize::MAX)
                .map(|size| size as u64),
            min_split: down_to.filter(|&size| size != 0).map(|size| size as u64),
            scratchpad: match config.levels.len() > 1 && near {
                true => config.levels[0].size.map_or(0, |size| size as u64),
                false => 0,
            },
        }
    }
}

fn fit_word(fit: Fit) -> &'static str {
    match fit {
        Fit::First => "first",
        Fit::Next => "next",
        Fit::Best => "best",
        Fit::Worst => "worst",
        Fit::Exact => "exact",
    }
}

fn order_word(order: Order) -> &'static str {
    match order {
        Order::Lifo => "lifo",
        Order::Fifo => "fifo",
        Order::Address => "address",
    }
}
