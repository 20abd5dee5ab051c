//! From the heaps of this crate to their bounds.
//!
//! Invariant: a bound is never given for a stronger heap than the index is; where an index has no
//! kind of its own, the weaker kind stands for it.

use super::{
    Bound, BoundError, BuddyChoice, ClassSearch, Coalescing, Demand, Geometry, HeapKind, Limits,
    Order, Splitting, composite,
};
use crate::description::{Description, IndexKind, LEVELS};
use crate::{Fit, index, store};

impl HeapKind<'static> {
    /// The kind that the bounds know for an index with its limits.
    pub fn of(index: IndexKind, limits: index::Limits) -> Self {
        let limits = Limits {
            depth_percent: 100,
            maximum_fit_percent: None,
            coalescing: match limits.coalesce_up_to {
                0 => Coalescing::Never,
                usize::MAX => Coalescing::Always,
                bytes => Coalescing::UpTo(bytes as u64),
            },
            splitting: match limits.split_down_to {
                0 => Splitting::Always,
                usize::MAX => Splitting::Never,
                bytes => Splitting::Above(bytes as u64),
            },
        };
        match index {
            IndexKind::List {
                fit,
                order,
                depth_percent,
                max_fit_percent,
                // Links change no placement; for time see `IndexKind::declares`.
                links: _,
            } => {
                let limits = Limits {
                    depth_percent: depth_percent.min(255) as u8,
                    maximum_fit_percent: (max_fit_percent > 0).then_some(max_fit_percent.into()),
                    ..limits
                };
                let order = match order {
                    crate::Order::Address => Order::Address,
                    crate::Order::Lifo => Order::Lifo,
                    crate::Order::Fifo => Order::Fifo,
                };
                match fit {
                    Fit::First => HeapKind::FirstFit { order, limits },
                    Fit::Next => HeapKind::NextFit { order, limits },
                    Fit::Best => HeapKind::BestFit { order, limits },
                    Fit::Worst => HeapKind::WorstFit { order, limits },
                    Fit::Exact => HeapKind::ExactFit { order, limits },
                }
            }
            IndexKind::Classes {
                second_level,
                probes: 0,
            } if limits == Limits::NONE => match second_level {
                1 => HeapKind::HalfFit {
                    power_of_two: false,
                },
                _ => HeapKind::Tlsf { second_level },
            },
            IndexKind::Classes {
                second_level,
                probes,
            } => HeapKind::SegregatedFit {
                per_doubling: second_level,
                search: match probes {
                    usize::MAX => ClassSearch::WholeClass,
                    _ => ClassSearch::NextClass,
                },
                limits,
            },
            // It refuses only when everything is merged and no hole fits, and its sorted
            // lists are walked as those by address are.
            IndexKind::Lea { .. } => HeapKind::BestFit {
                order: Order::Address,
                limits: Limits::NONE,
            },
            IndexKind::FixedSizes { sizes } => HeapKind::FixedSizes { sizes },
            IndexKind::Kingsley => HeapKind::Kingsley { page: 0 },
            // What it decides is first fit's; for time see `IndexKind::declares`.
            IndexKind::FirstFit {
                by_class: false, ..
            } => HeapKind::FirstFit {
                order: Order::Address,
                limits: Limits::NONE,
            },
            IndexKind::FirstFit { by_class: true, .. } => HeapKind::FirstFitByClass {
                // Below 16 granules every size has one of its own, which is finer.
                per_doubling: 8,
            },
            IndexKind::Buddy { lowest } => HeapKind::Buddy {
                choice: if lowest {
                    BuddyChoice::LowestAddress
                } else {
                    BuddyChoice::Any
                },
                outside: None,
            },
        }
    }
}

impl Geometry {
    /// The geometry that a store keeps, with `heads` list heads in the managed memory.
    pub fn of(geometry: &store::Geometry, heads: usize) -> Self {
        let control = geometry.first_block(heads, geometry.granule) + geometry.sentinel;
        Self {
            granule: geometry.granule as u64,
            record: geometry.header as u64,
            minimum: geometry.minimum as u64,
            control: control as u64,
        }
    }
}

/// The guarantee of a described heap. `geometry` is that of its general pools; object pools keep
/// their records outside.
///
/// Where ranges of pools overlap, no bound is proved, and the note says so.
///
/// A single general pool has its own bound with formula; several pools have the sum. Dedicated
/// free lists keep freed blocks out of merging, so that what each may keep counts as live
/// (`docs/guarantees.md#dedicated`, [`each_list`](super::each_list)).
///
/// # Errors
/// As [`super::bound`].
pub fn described(
    description: &Description,
    geometry: &Geometry,
    demand: &Demand,
) -> Result<Bound, BoundError> {
    described_in(description, &[None; LEVELS], geometry, demand)
}

/// The guarantee of a described heap whose memory levels have sizes. Where a pool lies in a level
/// with a size no bound is proved, and the note says so.
///
/// # Errors
/// As [`super::bound`].
pub fn described_in(
    description: &Description,
    sizes: &[Option<usize>; LEVELS],
    geometry: &Geometry,
    demand: &Demand,
) -> Result<Bound, BoundError> {
    if let Some(partition) = description.partition {
        return Err(BoundError::Parameter {
            name: "a partition into pages of",
            value: partition.page as u64,
            allowed: "a heap without one: the bound of non-compacting compact-fit is not computed",
        });
    }
    let kept = composite::asked(description, geometry, demand)?;
    let asked = kept.unwrap_or(*demand);
    let mut bound = match (description.objects.is_empty(), description.general.len()) {
        (true, 1) => {
            let general = description.general.iter().next();
            let kind = general.map(|pool| HeapKind::of(pool.index, pool.limits));
            super::bound(&kind.unwrap_or(HeapKind::Composite(&[])), geometry, &asked)?
        }
        _ => {
            let parts = composite::parts_of(description, geometry, demand);
            super::bound(&HeapKind::Composite(&parts), geometry, &asked)?
        }
    };
    if !description.dedicated.is_empty() {
        if kept.is_none() {
            bound.heap_bytes = None;
            bound.used = None;
            bound.others = Default::default();
            bound.note = Some(
                "no finite bound is proved: dedicated lists also keep blocks that no request of \
                 their size brought about; give each a limit, as in `dedicated:limit=16 40` \
                 (docs/guarantees.md#dedicated)",
            );
        } else {
            bound.note = bound
                .note
                .or(Some("dedicated lists: what each may keep counts as live"));
        }
        bound.necessary_bytes = super::necessary(geometry, demand)?;
    }
    let limited = |level: u8| sizes.get(usize::from(level)).is_some_and(Option::is_some);
    let limited = description.general.iter().any(|pool| limited(pool.level))
        || description.objects.iter().any(|pool| limited(pool.level));
    if limited || !description.partitions() {
        bound.heap_bytes = None;
        bound.used = None;
        bound.others = Default::default();
        bound.note = Some(
            "no finite bound is proved: where ranges of pools overlap or a memory level is \
             limited, which pool a block lies in depends on what found room before",
        );
        bound.necessary_bytes = super::necessary(geometry, demand)?;
    }
    bound.time = description.declares().times;
    Ok(bound)
}
