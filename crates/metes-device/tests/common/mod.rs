//! A naive model of device heaps, and the random operations that every heap is put through.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeMap;
use std::fmt::Debug;

use metes_device::heap::{Block, ListHeap, Lists, Refusal};
use metes_device::hybrid::{HybridHeap, HybridPlace};
use metes_heap::BadFree;
use metes_heap::store::ledger::Lookup;

/// A generator of numbers (SplitMix64): the same seed, the same test.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// What the tests ask of a heap.
pub(crate) trait Subject {
    type Place: Copy + Debug + PartialEq;
    /// Whether a place that was freed is never taken for another block.
    const STALE: bool;
    /// Bytes that serve any request of `bytes` bytes when they are free and in one piece.
    fn suffices(&self, bytes: u64) -> u64;
    fn allocate(&mut self, bytes: u64, align: u64) -> Result<(Self::Place, u64), Refusal>;
    fn free(&mut self, place: Self::Place) -> Result<(), BadFree>;
    fn requested(&self, place: Self::Place) -> Result<(u64, u64), BadFree>;
    fn check(&self);
    fn used(&self) -> usize;
}

impl<L: Lookup, I: Lists<L>> Subject for ListHeap<L, I> {
    type Place = L::Place;
    const STALE: bool = size_of::<L>() == 0;

    fn suffices(&self, bytes: u64) -> u64 {
        metes_device::heap::refusable(bytes, self.extent().granule) + self.extent().granule
    }

    fn allocate(&mut self, bytes: u64, align: u64) -> Result<(L::Place, u64), Refusal> {
        let Block { place, offset } = ListHeap::allocate(self, bytes, align)?;
        Ok((place, offset))
    }

    fn free(&mut self, place: L::Place) -> Result<(), BadFree> {
        ListHeap::free(self, place)
    }

    fn requested(&self, place: L::Place) -> Result<(u64, u64), BadFree> {
        let span = self.span(place)?;
        Ok((span.offset, span.requested))
    }

    fn check(&self) {
        ListHeap::check(self).unwrap();
    }

    fn used(&self) -> usize {
        ListHeap::used(self)
    }
}

impl<L: Lookup, I: Lists<L>> Subject for HybridHeap<L, I> {
    type Place = HybridPlace<L::Place>;
    const STALE: bool = size_of::<L>() == 0;

    fn suffices(&self, bytes: u64) -> u64 {
        self.lists().suffices(bytes)
    }

    fn allocate(&mut self, bytes: u64, align: u64) -> Result<(Self::Place, u64), Refusal> {
        let Block { place, offset } = HybridHeap::allocate(self, bytes, align)?;
        Ok((place, offset))
    }

    fn free(&mut self, place: Self::Place) -> Result<(), BadFree> {
        HybridHeap::free(self, place)
    }

    fn requested(&self, place: Self::Place) -> Result<(u64, u64), BadFree> {
        let span = self.span(place)?;
        Ok((span.offset, span.requested))
    }

    fn check(&self) {
        HybridHeap::check(self).unwrap();
    }

    fn used(&self) -> usize {
        HybridHeap::used(self)
    }
}

/// Operations that a heap is put through: as many as are asked for of a release build.
pub(crate) fn operations() -> u64 {
    if cfg!(miri) {
        // A thousand times slower than the machine.
        400
    } else if cfg!(debug_assertions) {
        100_000
    } else {
        10_000_000
    }
}

/// Puts a heap of `bytes` bytes through random operations beside the model, good and bad.
pub(crate) fn exercise<S: Subject>(
    heap: &mut S,
    bytes: u64,
    blocks: usize,
    sizes: impl Fn(&mut Random) -> u64,
    operations: u64,
    seed: u64,
) {
    let mut random = Random(seed);
    // By address: place, requested bytes.
    let mut live: BTreeMap<u64, (S::Place, u64)> = BTreeMap::new();
    let mut addresses: Vec<u64> = Vec::new();
    let mut stale: Vec<(S::Place, u64)> = Vec::new();
    for operation in 0..operations {
        // Long phases of growth and of decline.
        let grow = if operation / 3_000 % 2 == 0 { 60 } else { 40 };
        let chosen = random.below(100);
        if chosen == 0 && !stale.is_empty() {
            let (place, address) = stale[random.below(stale.len() as u64) as usize];
            // An address that was given out again is no error that a heap could see.
            if S::STALE || !live.contains_key(&address) {
                assert!(heap.free(place).is_err(), "freed twice at {address}");
                assert!(heap.requested(place).is_err());
            }
        } else if chosen < grow {
            let wanted = sizes(&mut random);
            let most = if random.below(16) == 0 { 17 } else { 8 };
            let align = 1 << random.below(most);
            match heap.allocate(wanted, align) {
                Ok((place, address)) => {
                    assert!(address % align == 0 && address + wanted <= bytes);
                    let before = live.range(..=address).next_back();
                    if let Some((start, (_, length))) = before {
                        assert!(start + length <= address, "overlaps what lies before");
                    }
                    if let Some((next, _)) = live.range(address..).next() {
                        assert!(address + wanted <= *next, "overlaps what follows");
                    }
                    live.insert(address, (place, wanted));
                    addresses.push(address);
                }
                Err(Refusal::Empty) => assert_eq!(wanted, 0),
                Err(Refusal::TooLarge { .. }) => assert!(wanted > bytes),
                Err(Refusal::Blocks(_)) => assert_eq!(heap.used(), blocks),
                Err(Refusal::NoBlock { .. }) => assert!(!live.is_empty() || align > 256),
                Err(Refusal::Alignment(_)) => panic!("alignments are powers of two"),
            }
        } else if !addresses.is_empty() {
            let position = random.below(addresses.len() as u64) as usize;
            let address = addresses.swap_remove(position);
            let (place, wanted) = live.remove(&address).unwrap();
            assert_eq!(heap.requested(place), Ok((address, wanted)));
            heap.free(place).unwrap();
            if stale.len() < 100 {
                stale.push((place, address));
            } else {
                stale[random.below(100) as usize] = (place, address);
            }
        }
        // Linear, which Miri takes long for.
        let checks = if cfg!(miri) { 2 } else { 20 };
        if operation % (operations / checks) == 0 {
            assert_eq!(heap.used(), live.len());
            heap.check();
        }
    }
    for (place, _) in live.into_values() {
        heap.free(place).unwrap();
    }
    assert_eq!(heap.used(), 0);
    heap.check();
    // Nothing was lost: the range is whole again.
    let (place, address) = heap.allocate(bytes, 1).unwrap();
    assert_eq!(address, 0);
    heap.free(place).unwrap();
}
