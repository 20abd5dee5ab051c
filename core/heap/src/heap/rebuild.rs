//! Rebuilding: a heap whose change was broken off half-way is made whole again, from the blocks in use alone.
//!
//! What is not in use is free, however it was divided; so of a heap nothing need be right but the records of blocks in
//! use, and of those only sizes: no change of a heap touches the size of a block in use other than its own.
//!
//! Invariant: a rebuilding that is broken off leaves a heap that can be rebuilt, as it touches no size of a block in use.

use super::{Corruption, Heap};
use crate::index::Index;
use crate::store::{Extent, Header, Store};

impl<I: Index<S>, S: Store> Heap<I, S> {
    /// Makes a heap of one region whole again after an operation on it was broken off: the blocks at `used` stay in use,
    /// as they are, all else is free. `index` is a new one of the heap's kind. Linear in blocks in use.
    ///
    /// What was kept aside for requests of its own size is merged. Counts of requests stay what they were.
    ///
    /// # Errors
    /// [`Corruption`] where the blocks in use cannot be right: they overlap, or do not lie in the region. Nothing has
    /// changed.
    ///
    /// # Safety
    /// The heap has no source, and `used` names in the order of addresses, the same each time, blocks that this heap gave
    /// out and that were not freed; of one that was being allocated, resized or freed when the operation was broken off, it
    /// names nothing. No block is used that it does not name.
    pub unsafe fn rebuild(
        &mut self,
        index: I,
        used: impl Iterator<Item = S::Place> + Clone,
    ) -> Result<(), Corruption> {
        let Some(first) = self.base else {
            return Ok(());
        };
        let (live, blocks) = self.tile(first, used.clone())?;
        self.index = index;
        let plan = self.plan(self.span);
        debug_assert_eq!(plan, Some(self.plan), "an index of the same kind");
        for number in 0..self.plan.heads {
            let head = self.store.head(self.index.first_head() + number);
            self.store.set_next(head, head);
            self.store.set_previous(head, head);
        }
        self.index.attach(&mut self.store, first);
        let mut behind = first;
        for place in used {
            // Found the first time.
            let Ok(block) = self.store.resolve(place) else {
                return Err(Corruption::List);
            };
            self.store.clear_previous_free(block);
            self.fill(behind, block);
            let size = self.store.header(block).size;
            behind = self.store.after(block, size);
        }
        let sentinel = self.store.sentinel();
        self.store.clear_previous_free(sentinel);
        self.fill(behind, sentinel);
        if S::STATISTICS {
            self.counters.recount(live, blocks);
        }
        Ok(())
    }

    /// Whether the blocks at `used` lie in the region behind one another; requested bytes, and how many.
    fn tile(
        &self,
        first: S::Block,
        used: impl Iterator<Item = S::Place>,
    ) -> Result<(usize, usize), Corruption> {
        let geometry = self.store.geometry();
        let room = match self.store.region(0) {
            Some(Ok(Extent { room, .. })) => room,
            _ => return Err(Corruption::Region { number: 0 }),
        };
        if self.store.region(1).is_some() {
            return Err(Corruption::Region { number: 1 });
        }
        let (mut live, mut blocks) = (0, 0);
        let mut taken = 0;
        for place in used {
            let offset = self.store.place_offset(place);
            let wrong = Corruption::Size { offset };
            let block = self.store.resolve(place).map_err(|_| wrong)?;
            if self.store.precedes(block, first) {
                return Err(wrong);
            }
            let start = self.store.distance(first, block);
            let gap = start.checked_sub(taken).ok_or(wrong)?;
            let header = self.store.header(block);
            let fits = start < room
                && (geometry.minimum..=room - start).contains(&header.size)
                && header.size.is_multiple_of(geometry.granule)
                && gap.is_multiple_of(geometry.granule)
                && (gap == 0 || gap >= geometry.minimum)
                && !header.free();
            if !fits {
                return Err(wrong);
            }
            let requested = self.store.sound_request(block);
            live += requested.ok_or(Corruption::Request { offset })?;
            blocks += 1;
            taken = start + header.size;
        }
        Ok((live, blocks))
    }

    /// Makes what lies between two blocks free.
    fn fill(&mut self, from: S::Block, to: S::Block) {
        if from == to {
            return;
        }
        let size = self.store.distance(from, to);
        self.store.set_header(from, Header::new(size, 0));
        self.release_room(from, size);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::vec::Vec;
    use std::{ptr::NonNull, vec};

    use proptest::prelude::*;

    use crate::description::IndexKind;
    use crate::store::counted::Counted;
    use crate::store::tagged::Memory;
    use crate::{AnyIndex, Fit, Heap, Limits, Links, Order, SizeTable, State, Tagged};

    type Store = Counted<Tagged>;
    type Index = AnyIndex<<Store as crate::store::Store>::Block>;

    fn kinds() -> Vec<(IndexKind, Limits)> {
        let list = |fit, order, links| IndexKind::List {
            fit,
            order,
            depth_percent: 100,
            max_fit_percent: 0,
            links,
        };
        let merged = [
            IndexKind::tlsf(8),
            IndexKind::Classes {
                second_level: 4,
                probes: usize::MAX,
            },
            IndexKind::Kingsley,
            IndexKind::Lea { keep_up_to: 128 },
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
            IndexKind::FixedSizes {
                sizes: SizeTable::DEFAULT,
            },
            list(Fit::First, Order::Address, Links::Single),
            list(Fit::Next, Order::Fifo, Links::Double),
            list(Fit::Best, Order::Lifo, Links::Double),
        ];
        let mut kinds: Vec<_> = merged.map(|kind| (kind, Limits::NONE)).into();
        let apart = Limits {
            coalesce_up_to: 0,
            split_down_to: 64,
        };
        kinds.push((list(Fit::First, Order::Lifo, Links::Double), apart));
        kinds
    }

    /// Requests and frees until the heap has written so many words.
    fn live_until(
        heap: &mut Heap<Index, Store>,
        steps: &[(bool, u16)],
        writes: u64,
        used: &mut Vec<(NonNull<u8>, usize)>,
    ) -> bool {
        heap.store().dies_after(writes);
        let lived = catch_unwind(AssertUnwindSafe(|| {
            for &(allocates, number) in steps {
                if allocates {
                    let align = if number % 7 == 0 { 64 } else { 8 };
                    let size = usize::from(number % 900);
                    if let Some(place) = heap.allocate(size, align) {
                        used.push((place, size));
                    }
                } else if !used.is_empty() {
                    let (place, _) = used.swap_remove(usize::from(number) % used.len());
                    // SAFETY: it is in use.
                    unsafe { heap.free(place) }.unwrap();
                }
            }
        }));
        heap.store().dies_after(u64::MAX);
        lived.is_ok()
    }

    fn verify(heap: &Heap<Index, Store>, used: &[(NonNull<u8>, usize)]) {
        heap.check().unwrap();
        let mut found = Vec::new();
        heap.walk(|block| {
            if let State::Used(requested) = block.state {
                found.push((block.offset, requested));
            }
        })
        .unwrap();
        let mut wanted: Vec<_> = used
            .iter()
            .map(|&(place, size)| (heap.place_offset(place) - size_of::<usize>(), size))
            .collect();
        wanted.sort_unstable();
        assert_eq!(found, wanted);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]
        #[test]
        fn a_heap_broken_off_anywhere_is_made_whole(
            kind in prop::sample::select(kinds()),
            steps in prop::collection::vec((any::<bool>(), any::<u16>()), 1..60),
            (first, second) in (0u64..400, 0u64..400),
        ) {
            let hook = std::panic::take_hook();
            std::panic::set_hook(std::boxed::Box::new(|_| {}));
            let mut room = vec![0u128; 1 << 10];
            let start = NonNull::from(&mut room[..]).cast();
            // SAFETY: the memory outlives the heap.
            let memory = unsafe { Memory::from_raw(start, 16 << 10) };
            let new = || Index::new(kind.0, kind.1);
            let mut heap = Heap::new(new(), Counted::new(Tagged::new()));
            heap.add_region(memory).unwrap();
            let mut used = Vec::new();
            live_until(&mut heap, &steps, first, &mut used);
            used.sort_unstable();
            // Between a count and what it counts, too.
            heap.counters.holds(3);
            // The rebuilding dies as well, and is begun anew.
            heap.store().dies_after(second);
            let places = || used.iter().map(|&(place, _)| place);
            // SAFETY: these are in use, and no others.
            let again = catch_unwind(AssertUnwindSafe(|| unsafe { heap.rebuild(new(), places()) }));
            heap.store().dies_after(u64::MAX);
            if again.is_err() {
                // SAFETY: as above.
                unsafe { heap.rebuild(new(), places()) }.unwrap();
            }
            std::panic::set_hook(hook);
            verify(&heap, &used);
            live_until(&mut heap, &steps, u64::MAX, &mut used);
            verify(&heap, &used);
        }

        #[test]
        fn what_cannot_be_is_refused(
            sizes in prop::collection::vec(0usize..300, 2..20),
            wrong in any::<prop::sample::Index>(),
            by in 1usize..40,
        ) {
            let mut room = vec![0u128; 1 << 10];
            let start: NonNull<u8> = NonNull::from(&mut room[..]).cast();
            // SAFETY: the memory outlives the heap.
            let memory = unsafe { Memory::from_raw(start, 16 << 10) };
            let new = || Index::new(IndexKind::tlsf(8), Limits::NONE);
            let mut heap = Heap::new(new(), Counted::new(Tagged::new()));
            heap.add_region(memory).unwrap();
            let mut used: Vec<_> = sizes
                .iter()
                .map(|&size| (heap.allocate(size, 8).unwrap(), size))
                .collect();
            used.sort_unstable();
            let mut places: Vec<_> = used.iter().map(|&(place, _)| place).collect();
            let other = 1 + wrong.index(places.len() - 1);
            places.swap(0, other);
            // SAFETY: refused before anything changes.
            let swapped = unsafe { heap.rebuild(new(), places.iter().copied()) };
            prop_assert!(swapped.is_err());
            verify(&heap, &used);
            // Not where a block begins: inside of the region, so that its record can be read.
            let inside = [used[0].0, {
                // SAFETY: within the memory.
                unsafe { used[0].0.add(16 * by) }
            }];
            // SAFETY: what it names is read, at most.
            let inside = unsafe { heap.rebuild(new(), inside.iter().copied()) };
            prop_assume!(inside.is_err());
            verify(&heap, &used);
        }
    }
}
