//! From the heaps of this crate to their bounds.
//!
//! Invariant: a bound is never given for a stronger heap than the index is; where an index has no
//! kind of its own, the weaker kind stands for it.

use super::{BuddyChoice, ClassSearch, Coalescing, Geometry, HeapKind, Limits, Order, Splitting};
use crate::description::IndexKind;
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
            } => {
                let limits = Limits {
                    depth_percent: depth_percent.min(255) as u8,
                    maximum_fit_percent: (max_fit_percent > 0).then_some(max_fit_percent.into()),
                    ..limits
                };
                match fit {
                    Fit::First => HeapKind::FirstFit {
                        order: match order {
                            crate::Order::Address => Order::Address,
                            crate::Order::Lifo => Order::Lifo,
                            crate::Order::Fifo => Order::Fifo,
                        },
                        limits,
                    },
                    Fit::Next => HeapKind::NextFit { limits },
                    Fit::Best => HeapKind::BestFit { limits },
                    Fit::Worst => HeapKind::WorstFit { limits },
                    Fit::Exact => HeapKind::ExactFit { limits },
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
            IndexKind::Kingsley => HeapKind::Kingsley { page: 0 },
            IndexKind::Buddy { lowest } => HeapKind::Buddy {
                choice: if lowest {
                    BuddyChoice::SmallestThenLowest
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
