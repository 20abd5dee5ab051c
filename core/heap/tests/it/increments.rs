//! Heaps that grow by any increment: every index over both stores in memory, from the
//! smallest first region on, against the model of intervals.

use metes_heap::description::IndexKind;
use metes_heap::index::Index;
use metes_heap::store::tagged::{Memory, TaggedBlock};
use metes_heap::{
    AnyIndex, Fit, Hardened, Heap, Limits, Links, Order, SizeTable, Source, Store, Tagged,
};
use metes_oracle::{Shadow, Step, memory, steps};
use proptest::prelude::*;

/// More than any case needs.
const ARENA: usize = 1 << 20;
const GRANULE: usize = 2 * size_of::<usize>();

/// Grants what lies behind a region of `ARENA` bytes.
struct Behind {
    increment: usize,
    left: usize,
}

// SAFETY: the memory behind the region is there, and nobody else's; what was granted
// is not granted again.
unsafe impl Source for Behind {
    fn increment(&self) -> usize {
        self.increment
    }

    fn grow(&mut self, bytes: usize) -> bool {
        assert_eq!(bytes % self.increment, 0, "growth by the increment");
        let granted = bytes <= self.left;
        self.left -= if granted { bytes } else { 0 };
        granted
    }
}

fn kinds() -> Vec<IndexKind> {
    let list = |fit, order, links| IndexKind::List {
        fit,
        order,
        depth_percent: 100,
        max_fit_percent: 0,
        links,
    };
    let kinds = vec![
        IndexKind::Buddy { lowest: false },
        IndexKind::Buddy { lowest: true },
        IndexKind::tlsf(32),
        IndexKind::tlsf(1),
        IndexKind::Classes {
            second_level: 4,
            probes: usize::MAX,
        },
        IndexKind::Kingsley,
        IndexKind::Lea { keep_up_to: 128 },
        IndexKind::FixedSizes {
            sizes: SizeTable::DEFAULT,
        },
        IndexKind::FixedSizes {
            sizes: SizeTable::new(&[32, 96, 224, 1536]).unwrap(),
        },
        list(Fit::First, Order::Address, Links::Single),
        list(Fit::Next, Order::Fifo, Links::Double),
        list(Fit::Best, Order::Lifo, Links::Double),
        list(Fit::Worst, Order::Address, Links::Double),
        list(Fit::Exact, Order::Lifo, Links::Single),
    ];
    kinds
        .into_iter()
        .step_by(if cfg!(miri) { 5 } else { 1 })
        .collect()
}

fn limits() -> impl Strategy<Value = Limits> {
    let coalesce = prop_oneof![3 => Just(usize::MAX), 1 => Just(0), 1 => 64usize..4096];
    let split = prop_oneof![3 => Just(0), 1 => Just(usize::MAX), 1 => 32usize..2048];
    (coalesce, split).prop_map(|(coalesce_up_to, split_down_to)| Limits {
        coalesce_up_to,
        split_down_to,
    })
}

/// Runs the steps on a heap of `arena` that begins with the smallest region.
fn run<S>(
    store: S,
    kind: IndexKind,
    limits: Limits,
    increment: usize,
    arena: Memory,
    steps: &[Step],
) where
    S: Store<Block = TaggedBlock, Region = Memory, Place = std::ptr::NonNull<u8>>,
    AnyIndex<TaggedBlock>: Index<S>,
{
    let mut shadow = Shadow::new(Heap::new(AnyIndex::new(kind, limits), store));
    shadow.heap.reserve_span(ARENA);
    let first = shadow.heap.smallest_region().next_multiple_of(increment);
    let region = arena.shortened(first);
    shadow.heap.add_region(region).unwrap();
    let mut source = Behind {
        increment,
        left: ARENA - first,
    };
    for &step in steps {
        shadow.step_from(step, &mut source);
        shadow.verify();
    }
    shadow.drain();
    shadow.verify();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 24 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_increment_keeps_a_heap_sound(
        granules in prop_oneof![1usize..16, 1usize..400],
        limits in limits(),
        steps in steps(if cfg!(miri) { 20 } else { 120 }),
    ) {
        for kind in kinds() {
            for hardened in [false, true] {
                let arena = memory(ARENA);
                let increment = granules * GRANULE;
                if hardened {
                    // SAFETY: fresh memory of that length.
                    unsafe { arena.start().as_ptr().write_bytes(0, ARENA) };
                    run(Hardened::new(7), kind, limits, increment, arena, &steps);
                } else {
                    run(<Tagged>::new(), kind, limits, increment, arena, &steps);
                }
                metes_oracle::give_back(arena);
            }
        }
    }
}
