//! The oracle: a heap driven beside a map of intervals that knows nothing of
//! indexes or stores. Property tests of `metes-heap` and fuzz targets share it.
//!
//! Invariant: the model is told what a heap decided and asks nothing of the heap but to verify it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use metes_heap::index::Index;
use metes_heap::store::tagged::Memory;
use metes_heap::{
    Fit, Heap, IndexKind, Limits, Links, NoSource, Order, SizeTable, Source, State, Store,
};
use proptest::prelude::*;

/// One step of a program.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A request of `size` bytes at a multiple of `align`.
    Allocate {
        /// Bytes.
        size: usize,
        /// A power of two.
        align: usize,
    },
    /// The end of a block.
    Free {
        /// Which of the blocks held, modulo their number.
        which: usize,
    },
    /// Another size for a block.
    Resize {
        /// Which of the blocks held, modulo their number.
        which: usize,
        /// Bytes.
        size: usize,
    },
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0usize..64, 4 => 0usize..600, 1 => 0usize..6000, 1 => Just(24), 1 => Just(100)]
}

/// Sequences that fill a heap, empty it, and fill it again.
pub fn steps(length: usize) -> impl Strategy<Value = Vec<Step>> {
    let align = prop_oneof![12 => Just(0u32), 1 => 0u32..9];
    prop::collection::vec(
        prop_oneof![
            5 => (size(), align).prop_map(|(size, log2)| Step::Allocate { size, align: 1 << log2 }),
            4 => any::<usize>().prop_map(|which| Step::Free { which }),
            1 => (any::<usize>(), size()).prop_map(|(which, size)| Step::Resize { which, size }),
        ],
        1..length,
    )
}

/// Sequences of few, large blocks: split off rarely, and shrunk to almost nothing.
pub fn steps_with_slack(length: usize) -> impl Strategy<Value = Vec<Step>> {
    let size = || prop_oneof![2 => 0usize..200, 2 => 0usize..200_000, 1 => 60_000usize..140_000];
    prop::collection::vec(
        prop_oneof![
            3 => size().prop_map(|size| Step::Allocate { size, align: 1 }),
            2 => any::<usize>().prop_map(|which| Step::Free { which }),
            3 => (any::<usize>(), size()).prop_map(|(which, size)| Step::Resize { which, size }),
        ],
        1..length,
    )
}

/// Every kind of index, with what distinguishes its members.
pub fn kinds() -> Vec<IndexKind> {
    let mut kinds = vec![
        IndexKind::tlsf(1),
        IndexKind::tlsf(4),
        IndexKind::tlsf(32),
        IndexKind::Classes {
            second_level: 8,
            probes: 2,
        },
        IndexKind::Classes {
            second_level: 1,
            probes: usize::MAX,
        },
        IndexKind::Kingsley,
        IndexKind::Lea { keep_up_to: 128 },
        IndexKind::Lea { keep_up_to: 0 },
        IndexKind::FixedSizes {
            sizes: SizeTable::DEFAULT,
        },
        IndexKind::FixedSizes {
            sizes: SizeTable::new(&[32, 96, 224, 1536]).unwrap(),
        },
        IndexKind::FirstFit {
            by_class: false,
            span: None,
        },
        IndexKind::FirstFit {
            by_class: true,
            span: None,
        },
        IndexKind::Buddy { lowest: false },
        IndexKind::Buddy { lowest: true },
    ];
    for fit in [Fit::First, Fit::Next, Fit::Best, Fit::Worst, Fit::Exact] {
        for order in [Order::Lifo, Order::Fifo, Order::Address] {
            for (depth_percent, max_fit_percent) in [(100, 0), (30, 0), (100, 150)] {
                kinds.push(IndexKind::List {
                    fit,
                    order,
                    depth_percent,
                    max_fit_percent,
                    links: Links::Double,
                });
            }
            kinds.push(IndexKind::List {
                fit,
                order,
                depth_percent: 100,
                max_fit_percent: 0,
                links: Links::Single,
            });
        }
    }
    // Under Miri every ninth, those that share least code.
    kinds
        .into_iter()
        .step_by(if cfg!(miri) { 9 } else { 1 })
        .collect()
}

/// How far blocks merge and split.
pub fn limits() -> impl Strategy<Value = Limits> {
    let coalesce = prop_oneof![3 => Just(usize::MAX), 1 => Just(0), 1 => 64usize..4096];
    let split = prop_oneof![3 => Just(0), 1 => Just(usize::MAX), 1 => 32usize..2048];
    (coalesce, split).prop_map(|(coalesce_up_to, split_down_to)| Limits {
        coalesce_up_to,
        split_down_to,
    })
}

/// Memory for a heap; leaked unless given back.
pub fn memory(bytes: usize) -> Memory {
    let layout = std::alloc::Layout::from_size_align(bytes, 4096).unwrap();
    // SAFETY: the layout is not empty.
    let raw = unsafe { std::alloc::alloc(layout) };
    // SAFETY: just allocated, never freed.
    unsafe { Memory::from_raw(NonNull::new(raw).unwrap(), bytes) }
}

/// Memory for a heap, never given back.
pub fn leak(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    Box::leak(Box::new_uninit_slice(bytes))
}

/// Gives such memory back, for programs that run many heaps.
///
/// # Panics
/// When the memory was shortened.
pub fn give_back(memory: Memory) {
    let layout = std::alloc::Layout::from_size_align(memory.bytes(), 4096).unwrap();
    // SAFETY: `memory` allocated it with this layout, and no heap uses it any more.
    unsafe { std::alloc::dealloc(memory.start().as_ptr(), layout) };
}

/// What the program did to a place: lets memory-backed stores be filled and verified.
pub trait Payload: Copy + Eq + Debug {
    /// Writes `bytes` bytes of `pattern`.
    fn fill(self, bytes: usize, pattern: u8);
    /// Asserts that they are still there.
    fn verify(self, bytes: usize, pattern: u8);
}

impl Payload for NonNull<u8> {
    fn fill(self, bytes: usize, pattern: u8) {
        // SAFETY: the heap gave these bytes to this test.
        unsafe { self.as_ptr().write_bytes(pattern, bytes) };
    }
    fn verify(self, bytes: usize, pattern: u8) {
        // SAFETY: as above, and `fill` initialised them.
        let held = unsafe { std::slice::from_raw_parts(self.as_ptr(), bytes) };
        // Whole slices are compared at once, which Miri does fast.
        let expected = [pattern; 512];
        assert!(
            held.chunks(expected.len())
                .all(|part| part == &expected[..part.len()]),
            "payload overwritten at {self:?}"
        );
    }
}

impl Payload for metes_heap::store::ledger::Handle {
    fn fill(self, _: usize, _: u8) {}
    fn verify(self, _: usize, _: u8) {}
}

impl Payload for usize {
    fn fill(self, _: usize, _: u8) {}
    fn verify(self, _: usize, _: u8) {}
}

/// A block that the program holds.
#[derive(Clone, Copy)]
struct Held<P> {
    requested: usize,
    /// All of these are filled.
    usable: usize,
    place: P,
    pattern: u8,
}

/// A heap and the intervals that it should have given out.
pub struct Shadow<I, S: Store> {
    /// The heap that is driven.
    pub heap: Heap<I, S>,
    /// By offset.
    held: BTreeMap<usize, Held<S::Place>>,
    /// Offsets in the order of allocation, so that steps can name blocks.
    order: Vec<usize>,
    next_pattern: u8,
    live: usize,
    peak: usize,
}

impl<I: Index<S>, S: Store> Shadow<I, S>
where
    S::Place: Payload,
{
    /// Beside a heap that has given out nothing yet.
    pub fn new(heap: Heap<I, S>) -> Self {
        Shadow {
            heap,
            held: BTreeMap::new(),
            order: vec![],
            next_pattern: 1,
            live: 0,
            peak: 0,
        }
    }

    fn enter(&mut self, place: S::Place, size: usize, align: usize) -> usize {
        let offset = self.heap.place_offset(place);
        assert_eq!(offset % align.max(1), 0, "alignment {align}");
        // SAFETY: the place was just given out.
        let usable = unsafe { self.heap.usable_size(place) }.expect("in use");
        assert!(usable >= size, "{usable} bytes for {size}");
        assert!(
            offset + usable <= self.heap.footprint(),
            "inside the memory"
        );
        if let Some((&before, held)) = self.held.range(..=offset).next_back() {
            assert!(
                before + held.usable <= offset && before != offset,
                "overlaps the block before"
            );
        }
        if let Some((&after, _)) = self.held.range(offset..).next() {
            assert!(offset + usable <= after, "overlaps the block after");
        }
        let pattern = self.next_pattern;
        self.next_pattern = self.next_pattern.wrapping_add(1);
        place.fill(usable, pattern);
        let held = Held {
            requested: size,
            usable,
            place,
            pattern,
        };
        self.held.insert(offset, held);
        self.order.push(offset);
        self.live += size;
        self.peak = self.peak.max(self.live);
        offset
    }

    /// Where the block lies that a step calls `which`.
    pub fn offset(&self, which: usize) -> Option<usize> {
        let count = self.order.len().max(1);
        self.order.get(which % count).copied()
    }

    fn leave(&mut self, which: usize) -> Option<(usize, Held<S::Place>)> {
        if self.order.is_empty() {
            return None;
        }
        let offset = self.order.swap_remove(which % self.order.len());
        let held = self.held.remove(&offset).unwrap();
        held.place.verify(held.usable, held.pattern);
        // SAFETY: still in use.
        let requested = unsafe { self.heap.requested(held.place) }.expect("in use");
        let kept = if S::STATISTICS {
            held.requested
        } else {
            held.usable
        };
        assert_eq!(requested, kept);
        self.live -= held.requested;
        Some((offset, held))
    }

    /// Takes a step; returns the offset the heap decided on, if it served.
    pub fn step(&mut self, step: Step) -> Option<usize> {
        self.step_from(step, &mut NoSource)
    }

    /// Takes a step of a heap that may grow; `source` must be the one behind its last region.
    /// Returns the offset the heap decided on, if it served.
    pub fn step_from(&mut self, step: Step, source: &mut impl Source) -> Option<usize> {
        match step {
            Step::Allocate { size, align } => {
                // SAFETY: the caller's contract.
                let place = unsafe { self.heap.allocate_from(size, align, source) }?;
                Some(self.enter(place, size, align))
            }
            Step::Free { which } => {
                let (offset, held) = self.leave(which)?;
                // SAFETY: the place is in use; the test forgets it.
                unsafe { self.heap.free(held.place) }.expect("in use");
                Some(offset)
            }
            Step::Resize { which, size } => {
                let (offset, held) = self.leave(which)?;
                // SAFETY: the place is in use; the test forgets it if it moved.
                let moved = unsafe { self.heap.resize_from(held.place, size, 1, source) };
                let moved = moved.expect("in use");
                match moved {
                    Some(new) => {
                        new.verify(held.requested.min(size), held.pattern);
                        Some(self.enter(new, size, 1))
                    }
                    None => {
                        self.held.insert(offset, held);
                        self.order.push(offset);
                        self.live += held.requested;
                        None
                    }
                }
            }
        }
    }

    /// Everything that must hold between steps.
    pub fn verify(&self) {
        self.heap.check().unwrap_or_else(|fault| panic!("{fault}"));
        let mut seen = 0;
        let mut bytes = 0;
        self.heap
            .walk(|info| {
                if let State::Used(requested) = info.state {
                    seen += 1;
                    bytes += requested;
                    assert!(requested <= info.size);
                }
            })
            .unwrap();
        assert_eq!(
            seen,
            self.held.len(),
            "every block in use is one the program holds"
        );
        if S::STATISTICS {
            let statistics = self.heap.statistics();
            assert_eq!(bytes, self.live);
            assert_eq!(
                (statistics.live, statistics.peak_live),
                (self.live, self.peak)
            );
            assert_eq!(statistics.blocks, self.held.len());
        }
    }

    /// Frees everything the program holds.
    pub fn drain(&mut self) {
        while self.step(Step::Free { which: 0 }).is_some() {}
    }
}
