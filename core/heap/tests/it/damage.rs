//! Whatever is written over the memory of a heap, looking at the heap returns: bits are
//! flipped under every index and store in memory, and `check`, `walk` and `statistics`
//! follow nothing that leads elsewhere.

use metes_heap::description::IndexKind;
use metes_heap::index::Index;
use metes_heap::index::dedicated::{ChosenKeeping, UNLIMITED};
use metes_heap::store::tagged::{Memory, TaggedBlock};
use metes_heap::{
    AnyIndex, Corruption, Dedicated, Hardened, Heap, Limits, Links, Order, Store, Tagged,
};
use metes_oracle::{Step, steps};
use proptest::prelude::*;

use crate::common::{kinds, zeroed};

/// Bytes of a region.
const REGION: usize = 32 << 10;
const WORD: usize = size_of::<usize>();

type Any = Dedicated<AnyIndex<TaggedBlock>, 2, ChosenKeeping<2>>;

fn index(kind: IndexKind, limits: Limits) -> Any {
    let keeping = ChosenKeeping {
        order: [Order::Lifo, Order::Fifo],
        links: [Links::Single, Links::Double],
        limit: [3, UNLIMITED],
    };
    let inner = AnyIndex::new(kind, limits);
    Dedicated::with([6 * WORD, 18 * WORD], keeping, inner)
}

/// A heap in use, in up to three regions, whose memory is known.
struct Known<S: Store> {
    heap: Heap<Any, S>,
    regions: Vec<Memory>,
}

fn known<S>(store: S, kind: IndexKind, limits: Limits, steps: &[Step]) -> Known<S>
where
    S: Store<Block = TaggedBlock, Region = Memory, Place = std::ptr::NonNull<u8>>,
    Any: Index<S>,
{
    let index = index(kind, limits);
    let mut heap = Heap::new(index, store);
    let count = if matches!(kind, IndexKind::Buddy { .. }) {
        1
    } else {
        3
    };
    if matches!(kind, IndexKind::FirstFit { .. }) {
        // A tree is laid out once, for all regions.
        heap.reserve_span(2 * count * REGION);
    }
    let regions: Vec<Memory> = (0..count).map(|_| zeroed(REGION)).collect();
    for &region in &regions {
        heap.add_region(region).unwrap();
    }
    let mut held = Vec::new();
    for &step in steps {
        match step {
            Step::Allocate { size, align } => held.extend(heap.allocate(size, align)),
            Step::Free { which } | Step::Resize { which, .. } => {
                if !held.is_empty() {
                    let place = held.swap_remove(which % held.len());
                    // SAFETY: in use, and forgotten.
                    unsafe { heap.free(place) }.unwrap();
                }
            }
        }
    }
    assert_eq!(heap.check(), Ok(()));
    Known { heap, regions }
}

impl<S> Known<S>
where
    S: Store<Block = TaggedBlock, Region = Memory, Place = std::ptr::NonNull<u8>>,
    Any: Index<S>,
{
    fn flip(&self, bit: usize) {
        let bit = bit % (self.regions.len() * REGION * 8);
        let region = self.regions[bit / (REGION * 8)];
        let byte = region.start().as_ptr().wrapping_add(bit / 8 % REGION);
        // SAFETY: inside the region, which is the heap's; nothing borrows it now.
        unsafe { *byte ^= 1 << (bit % 8) };
    }

    /// Looks at the heap with these bits flipped, and flips them back.
    fn look(&self, bits: &[usize]) -> Result<(), Corruption> {
        bits.iter().for_each(|&bit| self.flip(bit));
        let found = self.heap.check();
        let mut seen = 0;
        let _ = self.heap.walk(|info| seen += info.size);
        assert!(seen <= self.regions.len() * REGION);
        let _ = self.heap.statistics();
        bits.iter().rev().for_each(|&bit| self.flip(bit));
        found
    }

    fn finish(self) {
        assert_eq!(
            self.heap.check(),
            Ok(()),
            "what was flipped was flipped back"
        );
        self.regions.into_iter().for_each(metes_oracle::give_back);
    }
}

fn limits() -> impl Strategy<Value = Limits> {
    prop_oneof![
        Just(Limits::NONE),
        Just(Limits {
            coalesce_up_to: 2048,
            split_down_to: 0
        })
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 8 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn looking_at_a_damaged_heap_returns(
        limits in limits(),
        steps in steps(if cfg!(miri) { 30 } else { 200 }),
        flips in prop::collection::vec(
            prop::collection::vec(any::<usize>(), 1..4),
            if cfg!(miri) { 10 } else { 300 },
        ),
    ) {
        for kind in kinds() {
            let plain = known(<Tagged>::new(), kind, limits, &steps);
            let bare = known(Tagged::<false>::new(), kind, limits, &steps);
            let hardened = known(Hardened::new(11), kind, limits, &steps);
            // The control structures lie at the beginning, and are small.
            let control = (0..64 * 8 * WORD).step_by(7).map(|bit| vec![bit]);
            let control = control.take(if cfg!(miri) { 4 } else { usize::MAX });
            for bits in flips.iter().cloned().chain(control) {
                let _ = plain.look(&bits);
                let _ = bare.look(&bits);
                let _ = hardened.look(&bits);
            }
            plain.finish();
            bare.finish();
            hardened.finish();
        }
    }
}

/// One bit of each record that `check` relies on, and what it says.
#[test]
fn damage_is_named() {
    for kind in kinds() {
        let steps: Vec<_> = (1..60)
            .map(|number| match number % 3 {
                0 => Step::Free { which: number },
                _ => Step::Allocate {
                    size: 8 * number,
                    align: 1,
                },
            })
            .collect();
        let known = known(<Tagged>::new(), kind, Limits::NONE, &steps);
        let mut free = None;
        known
            .heap
            .walk(|info| {
                if info.state == metes_heap::State::Free && info.region == 0 {
                    free = Some(info);
                }
            })
            .unwrap();
        let free = free.expect("some block is free");
        let bit_of = |word: usize, bit: usize| 8 * (free.offset + word * WORD) + bit;
        let high = 8 * WORD - 18;
        assert_eq!(
            known.look(&[bit_of(0, high)]),
            Err(Corruption::Size {
                offset: free.offset
            }),
            "{kind:?}"
        );
        for bit in 0..8 * WORD {
            for word in 0..2 {
                // The words of the region itself.
                let found = known.look(&[8 * word * WORD + bit]);
                assert_eq!(found, Err(Corruption::Region { number: 0 }), "{kind:?}");
            }
        }
        known.finish();
    }
}
