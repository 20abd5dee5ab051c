//! The bounds of a configured heap in 64-bit memory.
//!
//! Invariant: the list heads that the bound counts are those of a memory at
//! least as large as the bound, so that the size found holds with them.

use std::fmt;

use metes_heap::bounds::{self, Bound, BoundError, Demand, Geometry, KeptList, PartBound};
use metes_heap::compact::{MOVES, Options, Partition};
use metes_heap::complexity::Declaration;
use metes_heap::description::GROWING_SPAN;
use metes_heap::index::Index;
use metes_heap::{AnyIndex, ByHandle, IndexKind, Ledger, store};

use crate::{Config, GEOMETRY, StoreKind};

/// Why a configuration has no guarantee for a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuaranteeError {
    /// The demand contradicts itself, or the bound exceeds 128 bits.
    Bound(BoundError),
    /// No index is laid out for so many bytes.
    Span {
        /// How many.
        bytes: u64,
    },
}

impl fmt::Display for GuaranteeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuaranteeError::Bound(error) => error.fmt(f),
            GuaranteeError::Span { bytes } => {
                write!(f, "no heap is laid out for {bytes} bytes: give a smaller M")
            }
        }
    }
}

impl std::error::Error for GuaranteeError {}

/// The guarantee of a heap in 64-bit memory. At most some 60 evaluations of
/// [`bounds::described_in`].
///
/// # Errors
/// [`GuaranteeError`] where there is none to compute.
pub fn guarantee(config: &Config, demand: &Demand) -> Result<Bound, GuaranteeError> {
    if let Some(options) = config.compact_fit() {
        return bounds::compact::moving(&options, MOVES as u64, demand)
            .map_err(GuaranteeError::Bound);
    }
    if let Some(partition) = config.heap.partition {
        return partitioned(config, &partition, demand);
    }
    Ok(laid_out(config, demand)?.1)
}

/// What each pool of a heap adds to its [guarantee], by rising size; nothing of a heap of one pool.
///
/// # Errors
/// As [`guarantee`].
pub fn parts(config: &Config, demand: &Demand) -> Result<Vec<PartBound>, GuaranteeError> {
    let alone = config.heap.objects.is_empty() && config.heap.general.len() == 1;
    let sized = config.level_sizes().iter().any(Option::is_some);
    if alone || sized || config.heap.partition.is_some() {
        return Ok(Vec::new());
    }
    let (geometry, whole) = laid_out(config, demand)?;
    // Lists that keep without limit are those of general pools.
    let kept = !config.heap.dedicated.is_empty() && whole.heap_bytes.is_none();
    let mut parts = Vec::new();
    let mut take = |mut part: PartBound| {
        if kept && matches!(part.pool, bounds::Pool::General(_)) {
            part.bound.heap_bytes = None;
            part.bound.used = None;
            part.bound.others = Default::default();
            part.bound.note = whole.note;
        }
        parts.push(part);
    };
    bounds::each_part(&config.heap, &geometry, demand, &mut take).map_err(GuaranteeError::Bound)?;
    Ok(parts)
}

/// What each dedicated list adds to the live bytes of the pools behind it, by rising size; nothing of a heap whose memory
/// levels have sizes, of which nothing is proved.
///
/// # Errors
/// As [`guarantee`].
pub(crate) fn lists(config: &Config, demand: &Demand) -> Result<Vec<KeptList>, GuaranteeError> {
    let mut lists = Vec::new();
    if config.level_sizes().iter().all(Option::is_none) && config.heap.partition.is_none() {
        let geometry = laid_out(config, demand)?.0;
        bounds::each_list(&config.heap, &geometry, demand, &mut |list| {
            lists.push(list);
        })
        .map_err(GuaranteeError::Bound)?;
    }
    Ok(lists)
}

/// Bytes that would suffice for the pools of a heap without partition if it were laid out for them, whatever span it has;
/// `None` where no finite size is known to.
///
/// # Errors
/// As [`guarantee`].
pub fn span_for(config: &Config, demand: &Demand) -> Result<Option<u128>, GuaranteeError> {
    Ok(found(config, demand)?.1.heap_bytes)
}

/// The bound, and how blocks are laid out in it; none beyond what a tree is laid out for, where a heap that grows refuses.
fn laid_out(config: &Config, demand: &Demand) -> Result<(Geometry, Bound), GuaranteeError> {
    let (geometry, mut bound) = found(config, demand)?;
    let spans = trees(config).map(|declared| declared.unwrap_or(GROWING_SPAN));
    let least = spans.min().filter(|_| config.store.inside());
    if least.is_some_and(|span| bound.heap_bytes > Some(span as u128)) {
        bound.heap_bytes = None;
        bound.used = None;
        bound.others = Default::default();
        bound.note = Some(
            "no finite bound is proved: more would suffice than what the tree is laid out for; raise `span`",
        );
    }
    Ok((geometry, bound))
}

/// The spans that trees of a heap are laid out for, as far as they are said.
fn trees(config: &Config) -> impl Iterator<Item = Option<usize>> {
    let pools = config.heap.general.iter();
    pools.filter_map(|pool| match pool.index {
        IndexKind::FirstFit { span, .. } => Some(span),
        _ => None,
    })
}

/// The bound, and how blocks are laid out in it.
fn found(config: &Config, demand: &Demand) -> Result<(Geometry, Bound), GuaranteeError> {
    let shape = match config.store {
        StoreKind::Hardened => store::Geometry::hardened(8),
        _ => GEOMETRY,
    };
    let outside = Geometry::outside(shape.granule as u64);
    let sizes = config.level_sizes();
    if !config.store.inside() {
        let bound = bounds::described_in(&config.heap, &sizes, &outside, demand);
        return Ok((outside, bound.map_err(GuaranteeError::Bound)?));
    }
    // The list heads lie in the memory, and how many there are depends on its
    // size: the size found with the heads of a larger memory holds. Where they follow the memory
    // in proportion, it is found by small steps.
    let follows = trees(config).next().is_some();
    let least = trees(config).flatten().min();
    let mut span = demand.live.saturating_mul(2).max(least.unwrap_or(0) as u64);
    loop {
        let heads = heads(config, span, shape).ok_or(GuaranteeError::Span { bytes: span })?;
        let geometry = Geometry::of(&shape, heads);
        let bound = bounds::described_in(&config.heap, &sizes, &geometry, demand)
            .map_err(GuaranteeError::Bound)?;
        let needed = bound.heap_bytes.unwrap_or(0);
        if needed <= u128::from(span) || span == u64::MAX {
            return Ok((geometry, bound));
        }
        let step = match follows {
            true => span.saturating_add(span / 64 + 1),
            false => span.saturating_mul(2),
        };
        span = u64::try_from(needed).unwrap_or(u64::MAX).max(step);
    }
}

impl Config {
    /// The options of compact-fit whose blocks move, if that is the heap.
    pub fn compact_fit(&self) -> Option<Options> {
        match (self.store, self.heap.partition) {
            (StoreKind::Moving(moving), Some(partition)) => Some(Options {
                partition,
                kappa: moving.kappa,
                increment: moving.increment,
            }),
            _ => None,
        }
    }

    /// What the heap declares of its time and fragmentation.
    pub fn declares(&self) -> Declaration {
        match self.compact_fit() {
            Some(options) => options.declares(),
            None => self.heap.declares(),
        }
    }
}

/// The guarantee of size classes in pages in front of a general heap: each serves its sizes,
/// and the sum suffices.
fn partitioned(
    config: &Config,
    partition: &Partition,
    demand: &Demand,
) -> Result<Bound, GuaranteeError> {
    let largest = partition.largest as u64;
    let mut behind = config.clone();
    behind.heap.partition = None;
    if demand.smallest > largest {
        return guarantee(&behind, demand);
    }
    let mut classes = *demand;
    classes.largest = demand.largest.min(largest);
    let mut bound =
        bounds::compact::page_blocks(partition, &classes).map_err(GuaranteeError::Bound)?;
    if demand.largest > largest {
        let mut rest = *demand;
        rest.smallest = largest + 1;
        let rest = guarantee(&behind, &rest)?;
        bound.heap_bytes = bound
            .heap_bytes
            .zip(rest.heap_bytes)
            .map(|(classes, rest)| classes + rest);
        bound.outside_bytes += rest.outside_bytes;
        bound.time = rest.time;
        bound.others = [bound.used.take(), rest.used, None];
        bound.note = rest.note.or(Some("the sum of both parts below"));
    }
    Ok(bound)
}

/// Most list heads of a pool of this heap in a memory of `span` bytes; None if
/// no index is laid out for so many.
fn heads(config: &Config, span: u64, shape: store::Geometry) -> Option<usize> {
    let span = usize::try_from(span).unwrap_or(usize::MAX);
    let mut most = 0;
    for pool in config.heap.general.iter() {
        let mut index = AnyIndex::new(pool.index, pool.limits);
        most = most.max(Index::<Ledger<'_, ByHandle>>::heads(
            &mut index, span, shape,
        )?);
    }
    Some(most + config.heap.dedicated.len())
}
