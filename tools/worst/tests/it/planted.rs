//! A heap with a slow operation planted in it: the search must find that operation.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use metes_heap::bounds::Demand;
use metes_worst::time::{Time, TimeSearch};
use metes_worst::{Range, Runnable, Running, Shape, Step, Subject, Target, Victim};

/// Steps of the planted operations.
const SLOW: u64 = 300;

/// Never uses memory twice. Slow is an allocation of 496 to 511 bytes while two blocks are
/// live, and a free of a block of the largest size that is not the youngest.
#[derive(Default)]
struct Planted {
    /// Sizes of live blocks by number; 0: freed.
    sizes: Vec<u64>,
    live: u64,
    work: u64,
    /// Bytes ever given.
    end: u64,
}

const LARGEST: u64 = 4096;

impl Planted {
    fn loiter(&mut self, slow: bool) {
        for _ in 0..if slow { SLOW } else { 1 } {
            self.work += std::hint::black_box(1);
        }
    }

    fn take(&mut self, size: u64) -> u32 {
        self.loiter((496..512).contains(&size) && self.live == 2);
        self.live += 1;
        self.end += size;
        self.sizes.push(size);
        self.sizes.len() as u32 - 1
    }

    fn give(&mut self, block: u32) {
        let youngest = block as usize == self.sizes.len() - 1;
        self.loiter(self.sizes[block as usize] == LARGEST && !youngest);
        self.live -= 1;
        self.sizes[block as usize] = 0;
    }
}

impl Target for Planted {
    fn allocate(&mut self, size: u64) -> Option<u32> {
        Some(self.take(size))
    }

    fn free(&mut self, block: u32) {
        self.give(block);
    }

    fn offset(&self, _: u32) -> Option<u64> {
        None
    }

    fn footprint(&self) -> u64 {
        self.end
    }

    fn work(&self) -> u64 {
        self.work
    }

    fn shape(&self) -> Shape {
        Shape::TAGGED
    }
}

impl Subject for Planted {
    fn allocate(&mut self, size: usize) -> usize {
        self.take(size as u64) as usize + 1
    }

    unsafe fn free(&mut self, block: usize) {
        self.give(block as u32 - 1);
    }

    /// Its blocks have no bytes: the search only allocates and frees.
    unsafe fn read(&mut self, _block: usize, _at: usize) -> u8 {
        0
    }
}

struct Heaps {
    /// Whether the guide sees the work.
    sees: bool,
    /// How many heaps there may be.
    left: std::cell::Cell<u32>,
}

/// A heap whose work nobody sees.
struct Hidden(Planted);

impl Target for Hidden {
    fn allocate(&mut self, size: u64) -> Option<u32> {
        Target::allocate(&mut self.0, size)
    }

    fn free(&mut self, block: u32) {
        Target::free(&mut self.0, block);
    }

    fn offset(&self, _: u32) -> Option<u64> {
        None
    }

    fn footprint(&self) -> u64 {
        self.0.footprint()
    }

    fn work(&self) -> u64 {
        0
    }

    fn shape(&self) -> Shape {
        Shape::TAGGED
    }
}

impl Victim for Heaps {
    fn fresh(&mut self, _: Option<u64>, _: usize, drive: &mut dyn FnMut(&mut dyn Target)) -> bool {
        match self.sees {
            true => drive(&mut Planted::default()),
            false => drive(&mut Hidden(Planted::default())),
        }
        true
    }
}

impl Runnable for Heaps {
    fn open<'m>(&self, _: &'m mut Range) -> Option<Running<'m>> {
        let left = self.left.get().checked_sub(1)?;
        self.left.set(left);
        Some(Running::new(Planted::default(), true))
    }
}

fn search(sees: bool, seed: u64, heaps: u32) -> Time {
    let heaps = || Heaps {
        sees,
        left: std::cell::Cell::new(heaps),
    };
    TimeSearch {
        victim: &mut heaps(),
        runnable: &heaps(),
        demand: Demand::new(60_000, LARGEST, 64),
        arena: 1 << 16,
        budget: 200_000,
        seed,
    }
    .run(&mut |_| ())
    .unwrap()
    .unwrap()
}

fn found(time: &Time) {
    assert!(time.allocate.instructions > SLOW, "{:?}", time.allocate);
    let steps = time.allocate.sequence.steps();
    let Some(Step::Allocate(size)) = steps.last() else {
        panic!("{steps:?}");
    };
    assert!((496..512).contains(size), "{steps:?}");
    assert!(time.free.instructions > SLOW, "{:?}", time.free);
    let steps = time.free.sequence.steps();
    let Some(Step::Free(block)) = steps.last() else {
        panic!("{steps:?}");
    };
    let mut sizes = steps.iter().filter_map(|step| match step {
        Step::Allocate(size) => Some(*size),
        Step::Free(_) => None,
    });
    assert_eq!(
        sizes.nth(*block as usize),
        Some(LARGEST as u32),
        "{steps:?}"
    );
    assert!(
        sizes.next().is_some(),
        "the youngest is not slow: {steps:?}"
    );
}

#[test]
fn planted_operations_are_found() {
    for seed in 1..3 {
        found(&search(true, seed, u32::MAX));
    }
    // Without a guide what is counted leads.
    let blind = search(false, 1, u32::MAX);
    assert!(blind.allocate.instructions > 0);
}

/// Handles tell only so many heaps apart: then the search ends with what it has.
#[test]
fn a_search_ends_when_no_more_heaps_can_be_had() {
    let (few, all) = (search(true, 1, 40), search(true, 1, u32::MAX));
    assert!(few.allocate.instructions > 0);
    assert!(few.counted < all.counted);
}
