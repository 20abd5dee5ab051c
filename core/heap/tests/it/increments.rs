//! Heaps that grow by any increment: every index over both stores in memory, from the
//! smallest first region on, against the model of intervals.

use metes_heap::description::IndexKind;
use metes_heap::index::Index;
use metes_heap::store::tagged::{Memory, TaggedBlock};
use metes_heap::{AnyIndex, Hardened, Heap, Limits, Source, Store, Tagged};
use metes_oracle::{Shadow, Step, limits, memory, steps};
use proptest::prelude::*;

use crate::common::{kinds, zeroed};

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
                let arena = if hardened { zeroed(ARENA) } else { memory(ARENA) };
                let increment = granules * GRANULE;
                if hardened {
                    run(Hardened::new(7), kind, limits, increment, arena, &steps);
                } else {
                    run(<Tagged>::new(), kind, limits, increment, arena, &steps);
                }
                metes_oracle::give_back(arena);
            }
        }
    }
}
