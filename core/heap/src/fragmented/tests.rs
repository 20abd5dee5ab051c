//! Objects against vectors of bytes, blocks against their count, refusals against the rule.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use core::mem::MaybeUninit;

use proptest::prelude::*;

use super::*;
use crate::compact::handles::GENERATION;
use crate::store::tagged::Memory;

fn heap(block: usize, shape: Shape, blocks: usize) -> Fragmented {
    let words = blocks * (block + TAG) / 4;
    let memory: &'static mut [MaybeUninit<u32>] = Box::leak(Box::new_uninit_slice(words));
    let start = core::ptr::NonNull::from(memory).cast();
    // SAFETY: leaked, so the heap's for ever.
    let memory = unsafe { Memory::from_raw(start, words * 4) };
    Fragmented::new(&Options { block, shape }, memory).unwrap()
}

const SHAPES: [Shape; 2] = [Shape::Chain, Shape::Tree];

#[test]
fn blocks_of_an_object() {
    let chain = Options {
        block: 32,
        shape: Shape::Chain,
    };
    // 28 bytes a block, four of which hold the size.
    for (size, blocks) in [(0, 1), (24, 1), (25, 2), (52, 2), (53, 3), (1000, 36)] {
        assert_eq!(chain.blocks(size), blocks, "{size}");
    }
    let tree = Options {
        block: 32,
        shape: Shape::Tree,
    };
    // 28 bytes; then 7 links to leaves of 32; then 7 links to 8 links each.
    let counted = [
        (0, 1),
        (28, 1),
        (29, 2),
        (32, 2),
        (33, 3),
        (224, 8),
        (225, 1 + 1 + 8),
        (256, 1 + 1 + 8),
        (257, 1 + 2 + 9),
        (56 * 32, 1 + 7 + 56),
        (56 * 32 + 1, 1 + 1 + 8 + 57),
    ];
    for (size, blocks) in counted {
        assert_eq!(tree.blocks(size), blocks, "{size}");
    }
    for options in [chain, tree] {
        for blocks in 1..300 {
            let most = options.most(blocks).unwrap();
            assert!(options.blocks(most) <= blocks && options.blocks(most + 1) > blocks);
            assert_eq!(options.next(most), most + 1);
            assert!(options.blocks(options.next(most) - 1) <= blocks);
        }
        assert_eq!(options.most(0), None);
    }
}

#[test]
fn contradictions_are_named() {
    let memory = || Memory::from_static(Box::leak(Box::new_uninit_slice(100)));
    for block in [0, 8, 24, 48, 1 << 17] {
        let options = Options {
            block,
            ..Options::DEFAULT
        };
        assert_eq!(
            Fragmented::new(&options, memory()).unwrap_err(),
            Unfit::Block(block)
        );
    }
    let options = Options {
        block: 128,
        ..Options::DEFAULT
    };
    assert_eq!(
        Fragmented::new(&options, memory()).unwrap_err(),
        Unfit::TooSmall
    );
}

#[test]
fn handles_of_the_past_and_of_others_are_refused() {
    for shape in SHAPES {
        let (mut one, mut two) = (heap(16, shape, 100), heap(16, shape, 100));
        let (a, b) = (one.allocate(40).unwrap(), two.allocate(40).unwrap());
        assert_eq!(one.free(b), Err(BadHandle::Foreign));
        assert_eq!(one.write(a, 39, &[1, 2]), Err(BadHandle::Outside));
        assert_eq!(
            one.read(a, usize::MAX, &mut [0; 2]),
            Err(BadHandle::Outside)
        );
        assert_eq!(one.free(a), Ok(()));
        assert_eq!(one.free(a), Err(BadHandle::Stale));
        assert_eq!(one.resize(a, 1), Err(Resize::Handle(BadHandle::Stale)));
        let again = one.allocate(40).unwrap();
        assert!(again != a && one.size(a).is_err());
        assert_eq!(one.allocate(4000), Err(Refused::TooLarge));
        assert_eq!(one.allocate(usize::MAX), Err(Refused::TooLarge));
        // Made up: every block of the object, with any generation.
        for index in 0..200 {
            for generation in 0..4 {
                let bits = again.to_bits() >> 48 << 48 | generation << 24 | index;
                let made_up = Handle::from_bits(bits);
                assert_eq!(one.size(made_up).is_ok(), made_up == again);
            }
        }
        assert_eq!(one.check(), Ok(()));
    }
}

#[test]
fn a_block_whose_generations_are_used_up_is_retired() {
    for shape in SHAPES {
        let mut heap = heap(32, shape, 3);
        let object = heap.allocate(20).unwrap();
        let last = heap.age(object, GENERATION).unwrap();
        heap.free(last).unwrap();
        assert_eq!(heap.size(last), Err(BadHandle::Stale));
        assert_eq!(heap.check(), Ok(()));
        assert_eq!(heap.blocks(), (0, 2));
        assert!(heap.allocate(20).is_ok() && heap.allocate(20).is_ok());
        assert!(heap.allocate(20).is_err());
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn what_was_freed_in_crumbs_serves_an_object_of_any_size() {
    for shape in SHAPES {
        let blocks = if cfg!(miri) { 60 } else { 1000 };
        let mut heap = heap(32, shape, blocks);
        let crumbs: Vec<Handle> = (0..blocks).map(|_| heap.allocate(20).unwrap()).collect();
        assert_eq!(heap.allocate(0), Err(Refused::Exhausted));
        // Every third block, so that no two free ones are neighbours.
        for crumb in crumbs.iter().step_by(3) {
            heap.free(*crumb).unwrap();
        }
        let free = blocks.div_ceil(3) as u64;
        let largest = heap.options().most(free).unwrap() as usize;
        assert_eq!(heap.statistics().largest_free, largest);
        assert_eq!(heap.allocate(largest + 1), Err(Refused::Exhausted));
        let object = heap.allocate(largest).unwrap();
        let bytes: Vec<u8> = (0..largest).map(|i| (i * 7) as u8).collect();
        heap.write(object, 0, &bytes).unwrap();
        let mut held = vec![0; largest];
        heap.read(object, 0, &mut held).unwrap();
        assert_eq!(held, bytes);
        assert_eq!(heap.check(), Ok(()));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate(usize),
    Free(usize),
    Resize(usize, usize),
    Write(usize, usize, Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let which = any::<u16>().prop_map(usize::from);
    let size = || prop_oneof![3 => 0usize..40, 3 => 0usize..600, 1 => 0usize..6000];
    prop_oneof![
        4 => size().prop_map(Step::Allocate),
        3 => which.clone().prop_map(Step::Free),
        3 => (which.clone(), size()).prop_map(|(which, size)| Step::Resize(which, size)),
        3 => (which.clone(), which, proptest::collection::vec(any::<u8>(), 0..200))
            .prop_map(|(which, at, bytes)| Step::Write(which, at, bytes)),
    ]
}

const BLOCKS: usize = 300;

/// A heap and what it should hold.
struct Model {
    heap: Fragmented,
    live: Vec<(Handle, Vec<u8>)>,
}

impl Model {
    /// Blocks that are free, by the rule alone.
    fn free(&self) -> u64 {
        let options = self.heap.options();
        let used = self
            .live
            .iter()
            .map(|(_, own)| options.blocks(own.len() as u64));
        BLOCKS as u64 - used.sum::<u64>()
    }

    fn run(&mut self, step: Step) {
        let (count, free, options) = (self.live.len(), self.free(), self.heap.options());
        match step {
            Step::Allocate(size) => {
                let served = self.heap.allocate(size);
                assert_eq!(served.is_ok(), options.blocks(size as u64) <= free);
                self.live
                    .extend(served.map(|handle| (handle, vec![0; size])));
            }
            _ if count == 0 => {}
            Step::Free(which) => {
                let (handle, _) = self.live.swap_remove(which % count);
                self.heap.free(handle).unwrap();
            }
            Step::Resize(which, size) => {
                let (handle, own) = &mut self.live[which % count];
                let free = free + options.blocks(own.len() as u64);
                let served = self.heap.resize(*handle, size);
                assert_eq!(served.is_ok(), options.blocks(size as u64) <= free);
                if served.is_ok() {
                    own.resize(size, 0);
                }
            }
            Step::Write(which, at, bytes) => {
                let (handle, own) = &mut self.live[which % count];
                let at = at % (own.len() + 1);
                let fits = &bytes[..bytes.len().min(own.len() - at)];
                self.heap.write(*handle, at, fits).unwrap();
                own[at..at + fits.len()].copy_from_slice(fits);
                let mut held = vec![1; own.len() - at];
                self.heap.read(*handle, at, &mut held).unwrap();
                assert_eq!(held, own[at..]);
            }
        }
    }

    fn verify(&self) {
        assert_eq!(self.heap.check(), Ok(()));
        for (handle, own) in &self.live {
            let mut held = vec![1; own.len()];
            self.heap.read(*handle, 0, &mut held).unwrap();
            assert_eq!(&held, own);
        }
        let used: usize = self.live.iter().map(|(_, own)| own.len()).sum();
        assert_eq!(self.heap.statistics().live, used);
        assert_eq!(u64::from(self.heap.blocks().0), BLOCKS as u64 - self.free());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 400 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn objects_are_vectors_and_refusals_follow_the_rule(
        steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 30 } else { 200 }),
        block in 4u32..8,
        tree in any::<bool>(),
    ) {
        let shape = if tree { Shape::Tree } else { Shape::Chain };
        let mut model = Model { heap: heap(1 << block, shape, BLOCKS), live: vec![] };
        for step in steps {
            model.run(step);
            model.verify();
        }
    }

    /// Memory of the size that the bound gives serves whatever stays within the demand.
    #[test]
    fn the_bound_suffices(
        steps in proptest::collection::vec((any::<bool>(), any::<u32>()), 1..if cfg!(miri) { 30 } else { 400 }),
        block in 4u32..8,
        tree in any::<bool>(),
        smallest in 1usize..60,
        more in 0usize..300,
        beyond in 0usize..2000,
    ) {
        let shape = if tree { Shape::Tree } else { Shape::Chain };
        let options = Options { block: 1 << block, shape };
        let (largest, most) = (smallest + more, smallest + more + beyond);
        let demand = crate::bounds::Demand::new(most as u64, largest as u64, smallest as u64);
        let bytes = crate::bounds::fragmented(&options, &demand).unwrap().heap_bytes.unwrap();
        let mut heap = heap(options.block, shape, bytes as usize / (options.block + TAG));
        let (mut objects, mut live) = (vec![], 0);
        for (allocate, number) in steps {
            let number = number as usize;
            let size = smallest + number % (more + 1);
            if allocate && live + size <= most {
                objects.push(heap.allocate(size).unwrap());
                live += size;
            } else if !objects.is_empty() {
                let object = objects.swap_remove(number % objects.len());
                let before = heap.size(object).unwrap();
                // Every third is resized rather than freed.
                if number.is_multiple_of(3) && live - before + size <= most {
                    heap.resize(object, size).unwrap();
                    live = live - before + size;
                    objects.push(object);
                } else {
                    heap.free(object).unwrap();
                    live -= before;
                }
            }
        }
        prop_assert_eq!(heap.statistics().failures, 0);
        prop_assert!(heap.footprint() as u128 <= bytes);
    }

    #[test]
    fn blocks_never_fall_as_sizes_grow(block in 4u32..12, size in 0u64..1 << 40, tree in any::<bool>()) {
        let shape = if tree { Shape::Tree } else { Shape::Chain };
        let options = Options { block: 1 << block, shape };
        prop_assert!(options.blocks(size) <= options.blocks(size + 1));
    }
}
