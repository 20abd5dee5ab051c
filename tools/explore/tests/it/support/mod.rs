#![allow(dead_code, reason = "each test binary uses a part")]

//! Random traces and heaps for the tests of this crate.

use metes_explore::{Events, EventsBuilder, Operation};
use metes_heap::compact::Partition;
use metes_heap::description::{DedicatedPool, General, List, ObjectPoolKind};
use metes_heap::{Description, Fit, IndexKind, Limits, Links, Order, SizeTable};
use proptest::prelude::*;

/// One step of a random program: which live block, if any, what size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    what: u8,
    pick: u16,
    size: u32,
    align: u8,
}

impl Step {
    /// The step without a demand on the alignment.
    pub(crate) fn unaligned(self) -> Self {
        Step { align: 0, ..self }
    }
}

pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![
        6 => 0_u32..160,
        3 => prop_oneof![Just(24_u32), Just(48), Just(66), Just(1514)],
        2 => 160_u32..5000,
        1 => 5000_u32..200_000,
    ];
    let align = prop_oneof![12 => Just(0_u8), 1 => 5_u8..8, 1 => Just(12_u8)];
    let step = (0_u8..16, any::<u16>(), size, align).prop_map(|(what, pick, size, align)| Step {
        what,
        pick,
        size,
        align,
    });
    prop::collection::vec(step, 1..most)
}

/// Turns steps into a trace: frees and resizes pick among what is live.
pub(crate) fn trace(steps: &[Step]) -> Events {
    let mut builder = EventsBuilder::new();
    let mut live: Vec<u64> = Vec::new();
    for (serial, step) in steps.iter().enumerate() {
        let serial = serial as u64;
        let pick = usize::from(step.pick) % live.len().max(1);
        let size = u64::from(step.size);
        match step.what {
            0..8 => {
                builder
                    .push(Operation::Allocate, serial, size, 1 << step.align)
                    .unwrap();
                live.push(serial);
            }
            8..14 if !live.is_empty() => {
                let block = live.swap_remove(pick);
                builder.push(Operation::Free, block, 0, 0).unwrap();
            }
            14.. if !live.is_empty() => {
                builder
                    .push(Operation::Resize, live[pick], size, 0)
                    .unwrap();
            }
            _ => {}
        }
    }
    builder.finish()
}

fn links() -> impl Strategy<Value = Links> {
    prop::sample::select(vec![Links::Double, Links::Single])
}

pub(crate) fn kind() -> impl Strategy<Value = IndexKind> {
    let fit = prop::sample::select(vec![
        Fit::First,
        Fit::Next,
        Fit::Best,
        Fit::Worst,
        Fit::Exact,
    ]);
    let order = prop::sample::select(vec![Order::Lifo, Order::Fifo, Order::Address]);
    let depth = prop::sample::select(vec![100_u32, 50, 5]);
    let max_fit = prop::sample::select(vec![0_u32, 100, 150]);
    prop_oneof![
        (fit, order, depth, max_fit, links()).prop_map(
            |(fit, order, depth_percent, max_fit_percent, links)| IndexKind::List {
                fit,
                order,
                depth_percent,
                max_fit_percent,
                links,
            }
        ),
        (
            0_u32..6,
            prop::sample::select(vec![0_usize, 1, 4, usize::MAX])
        )
            .prop_map(|(log2, probes)| IndexKind::Classes {
                second_level: 1 << log2,
                probes
            }),
        Just(IndexKind::Kingsley),
        prop::sample::select(vec![0_u32, 64, 128])
            .prop_map(|keep_up_to| IndexKind::Lea { keep_up_to }),
        prop::sample::select(vec![&[64_u32, 1024][..], &[32, 96, 224, 1536]]).prop_map(|sizes| {
            IndexKind::FixedSizes {
                sizes: SizeTable::new(sizes).unwrap(),
            }
        }),
        any::<bool>().prop_map(|lowest| IndexKind::Buddy { lowest }),
    ]
}

fn general() -> impl Strategy<Value = General> {
    let coalesce = prop::sample::select(vec![usize::MAX, usize::MAX, 0, 256, 8192]);
    let split = prop::sample::select(vec![0_usize, 0, 128, usize::MAX]);
    (kind(), coalesce, split).prop_map(|(index, coalesce_up_to, split_down_to)| General {
        limits: Limits {
            coalesce_up_to,
            split_down_to,
        },
        ..General::of(index)
    })
}

/// Size classes in place of object pools, one time in four.
fn partition() -> impl Strategy<Value = Option<Partition>> {
    let valid = (10_u32..17, 1_usize..6, 0_usize..900, 1050_u32..2000)
        .prop_map(|(log2, smallest, more, factor)| Partition {
            page: 1 << log2,
            smallest: 16 * smallest,
            largest: 16 * smallest + more,
            factor,
            ..Partition::DEFAULT
        })
        .prop_filter("classes that fit", |partition| {
            partition.validate(0).is_ok()
        });
    prop_oneof![3 => Just(None), 1 => valid.prop_map(Some)]
}

pub(crate) fn heap() -> impl Strategy<Value = Description> {
    let split = prop_oneof![Just(None), (40_usize..4000).prop_map(Some)];
    let dedicated = prop::sample::subsequence(vec![24_usize, 48, 66, 1514], 0..=4);
    let objects = prop::sample::subsequence(vec![16_usize, 32, 48, 80, 128], 0..=3);
    let order = prop::sample::select(vec![Order::Lifo, Order::Fifo]);
    let limit = prop::sample::select(vec![None, Some(1), Some(3)]);
    let kept = (order, links(), limit);
    (
        general(),
        general(),
        split,
        dedicated,
        kept,
        objects,
        13_u32..16,
        partition(),
    )
        .prop_map(
            |(first, second, split, dedicated, kept, objects, slab, partition)| {
                let general = match split {
                    Some(up_to) => vec![General { up_to, ..first }, second],
                    None => vec![first],
                };
                let dedicated: Vec<_> = dedicated
                    .into_iter()
                    .map(|size| DedicatedPool {
                        order: kept.0,
                        links: kept.1,
                        limit: kept.2,
                        ..DedicatedPool::new(size, 0)
                    })
                    .collect();
                let slab = 1_usize << slab;
                let objects: Vec<_> = objects
                    .into_iter()
                    .filter(|size| slab / size <= 256 && partition.is_none())
                    .map(|size| ObjectPoolKind {
                        size,
                        slab,
                        level: 0,
                    })
                    .collect();
                Description {
                    general: List::from_slice(&general),
                    dedicated: List::from_slice(&dedicated),
                    objects: List::from_slice(&objects),
                    partition,
                }
            },
        )
}
