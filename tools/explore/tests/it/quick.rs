//! Replays that count visits and replays that make them end alike.
//!
//! The quick indexes are compared with the library's own over random heaps and runs: on
//! every figure that a replay gives, and on where each block was placed.

use metes_explore::{Arena, Events, EventsBuilder, Operation, Options, Replay, Replayer};
use metes_heap::description::{DedicatedPool, General, List};
use metes_heap::index::links::Links;
use metes_heap::{Description, Fit, IndexKind, Limits, Order};
use proptest::prelude::*;

fn both(
    heap: &Description,
    events: &Events,
    options: &Options,
) -> [(Replay, metes_explore::Curve); 2] {
    [Replayer::new(), Replayer::walking()].map(|mut replayer| {
        let (mut replay, curve) = replayer.replay("any", heap, events, options);
        replay.events_per_second = 0.0;
        (replay, curve)
    })
}

/// A generator of its own, so that a case is a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A run whose live blocks swell to `most` and shrink again, several times, so that lists
/// become long where blocks do not merge.
pub(crate) fn tides(seed: u64, events: usize, most: usize, largest: u64) -> Events {
    let mut random = Random(seed | 1);
    let mut builder = EventsBuilder::new();
    let mut live: Vec<u64> = Vec::new();
    let mut rising = true;
    let mut serial = 0;
    for _ in 0..events {
        rising = match live.len() {
            0 => true,
            many if many >= most => false,
            few if few < most / 8 && random.below(20) == 0 => true,
            _ => rising,
        };
        let choice = random.below(100);
        let size = match random.below(10) {
            0..5 => 1 + random.below(200),
            5..8 => [24, 66, 400, 1514][random.below(4) as usize],
            _ => 1 + random.below(largest),
        };
        if choice < 6 && !live.is_empty() {
            let block = live[random.below(live.len() as u64) as usize];
            builder.push(Operation::Resize, block, size, 0).unwrap();
        } else if live.is_empty() || (choice < 30) != rising {
            serial += 1;
            live.push(serial);
            let align = if random.below(60) == 0 { 64 } else { 0 };
            builder
                .push(Operation::Allocate, serial, size, align)
                .unwrap();
        } else {
            let at = match random.below(3) {
                0 => live.len() - 1,
                1 => 0,
                _ => random.below(live.len() as u64) as usize,
            };
            builder
                .push(Operation::Free, live.swap_remove(at), 0, 0)
                .unwrap();
        }
    }
    builder.finish()
}

/// Heaps that search, mostly such that do not merge or split what they could.
fn searching() -> impl Strategy<Value = Description> {
    let fit = prop::sample::select(vec![
        Fit::First,
        Fit::Next,
        Fit::Best,
        Fit::Worst,
        Fit::Exact,
    ]);
    let order = prop::sample::select(vec![Order::Lifo, Order::Fifo, Order::Address]);
    let depth = prop_oneof![Just(100_u32), 1_u32..=100];
    let most = prop_oneof![Just(0_u32), 100_u32..250];
    let links = prop::sample::select(vec![Links::Double, Links::Single]);
    let list = (fit, order, depth, most, links).prop_map(
        |(fit, order, depth_percent, max_fit_percent, links)| IndexKind::List {
            fit,
            order,
            depth_percent,
            max_fit_percent,
            links,
        },
    );
    let kind = prop_oneof![
        12 => list,
        2 => (0_u32..6, prop::sample::select(vec![16_usize, 17, 40, usize::MAX]))
            .prop_map(|(log2, probes)| IndexKind::Classes { second_level: 1 << log2, probes }),
        1 => Just(IndexKind::Buddy { lowest: true }),
    ];
    let coalesce = prop::sample::select(vec![usize::MAX, 0, 0, 0, 256]);
    let split = prop::sample::select(vec![0_usize, 0, 512, usize::MAX]);
    let dedicated = prop::sample::subsequence(vec![24_usize, 66, 400], 0..=2);
    (kind, coalesce, split, dedicated).prop_map(
        |(index, coalesce_up_to, split_down_to, dedicated)| {
            let dedicated: Vec<_> = dedicated
                .into_iter()
                .map(|size| DedicatedPool::new(size, 0))
                .collect();
            let general = General {
                limits: Limits {
                    coalesce_up_to,
                    split_down_to,
                },
                ..General::of(index)
            };
            Description {
                general: List::from_slice(&[general]),
                dedicated: List::from_slice(&dedicated),
                objects: List::EMPTY,
                partition: None,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn small_runs_on_any_heap_end_alike(
        heap in crate::support::heap(),
        steps in crate::support::steps(400),
        fixed in prop_oneof![4 => Just(None), 1 => (16_384_usize..2_000_000).prop_map(Some)],
    ) {
        prop_assume!(heap.validate(16, 8).is_ok());
        let events = crate::support::trace(&steps);
        let arena = Arena { fixed: [fixed; 4], ..Arena::HOST };
        let options = Options { arena, ..Options::default() };
        let [quick, walked] = both(&heap, &events, &options);
        prop_assert_eq!(quick, walked);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn long_lists_end_alike(
        heap in searching(),
        seed in any::<u64>(),
        most in 200_usize..6000,
        largest in prop::sample::select(vec![300_u64, 5000, 100_000]),
    ) {
        let events = tides(seed, 20_000, most, largest);
        let [quick, walked] = both(&heap, &events, &Options::default());
        prop_assert_eq!(quick, walked);
    }
}

/// The comparison is worth something only if lists become long enough for every method.
#[test]
fn runs_make_lists_of_thousands() {
    let index = IndexKind::List {
        fit: Fit::Exact,
        order: Order::Address,
        depth_percent: 100,
        max_fit_percent: 0,
        links: Links::Double,
    };
    let mut heap = Description::of(index);
    let mut general = heap.general.iter().next().unwrap();
    general.limits = Limits {
        coalesce_up_to: 0,
        split_down_to: usize::MAX,
    };
    heap.general = List::from_slice(&[general]);
    let events = tides(7, 20_000, 3000, 100_000);
    let [(quick, _), (walked, _)] = both(&heap, &events, &Options::default());
    assert_eq!(quick, walked);
    // A search reads two words a block visited.
    assert!(
        quick.most_accesses.allocate > 2 * 3000,
        "{:?}",
        quick.most_accesses
    );
}
