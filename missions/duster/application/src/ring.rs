//! A ring between two cores: one puts in, the other takes out, and neither waits.
//!
//! *Invariant:* `put - taken` (wrapping) is the number of items, at most `N`; an item is written before `put` says that it
//! is there, and read before `taken` says that its place is free. One side alone calls [`Ring::put`], the other alone
//! [`Ring::take`].

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

/// A queue of at most `N` items (a power of two) from one core to another.
pub struct Ring<T, const N: usize> {
    items: [UnsafeCell<MaybeUninit<T>>; N],
    put: AtomicU32,
    taken: AtomicU32,
}

// SAFETY: an item is reached by one side at a time: by the one that puts before `put` covers it, by the one that takes
// until `taken` covers it; the stores with release and the loads with acquire hand it over.
unsafe impl<T: Send, const N: usize> Sync for Ring<T, N> {}

impl<T, const N: usize> Ring<T, N> {
    const MASK: u32 = {
        assert!(N.is_power_of_two() && N <= 1 << 16);
        N as u32 - 1
    };

    /// An empty ring.
    #[must_use]
    pub const fn new() -> Self {
        Ring {
            items: [const { UnsafeCell::new(MaybeUninit::uninit()) }; N],
            put: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }

    /// Puts an item in; gives it back if there is no room. O(1). For one side alone.
    ///
    /// # Errors
    /// The ring is full: the item.
    pub fn put(&self, item: T) -> Result<(), T> {
        let put = self.put.load(Ordering::Relaxed);
        if put.wrapping_sub(self.taken.load(Ordering::Acquire)) >= N as u32 {
            return Err(item);
        }
        let place = &self.items[(put & Self::MASK) as usize];
        // SAFETY: the place is not covered by `put - taken`, so the other side does not reach it, and this side is alone.
        unsafe { (*place.get()).write(item) };
        self.put.store(put.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Takes the item that was put in first. O(1). For the other side alone.
    pub fn take(&self) -> Option<T> {
        let taken = self.taken.load(Ordering::Relaxed);
        if self.put.load(Ordering::Acquire) == taken {
            return None;
        }
        let place = &self.items[(taken & Self::MASK) as usize];
        // SAFETY: the place is covered by `put - taken`: written, and not written again before `taken` is past it. It is
        // read once, as `taken` goes on.
        let item = unsafe { (*place.get()).assume_init_read() };
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
        Some(item)
    }

    /// Items in it; to others than the two sides an estimate.
    pub fn len(&self) -> usize {
        let put = self.put.load(Ordering::Acquire);
        put.wrapping_sub(self.taken.load(Ordering::Acquire)) as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items that it has room for.
    pub fn room(&self) -> usize {
        N - self.len().min(N)
    }
}

impl<T, const N: usize> Default for Ring<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn is_a_queue(steps in proptest::collection::vec(any::<Option<u32>>(), 0..200)) {
            let ring: Ring<u32, 8> = Ring::new();
            let mut plain = VecDeque::new();
            for step in steps {
                match step {
                    Some(item) => {
                        let kept = ring.put(item).is_ok();
                        prop_assert_eq!(kept, plain.len() < 8);
                        if kept {
                            plain.push_back(item);
                        }
                    }
                    None => prop_assert_eq!(ring.take(), plain.pop_front()),
                }
                prop_assert_eq!((ring.len(), ring.room()), (plain.len(), 8 - plain.len()));
            }
        }
    }

    #[test]
    fn two_threads_lose_nothing() {
        let ring: Ring<u64, 4> = Ring::new();
        const ITEMS: u64 = 20_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for mut item in 0..ITEMS {
                    while let Err(back) = ring.put(item) {
                        item = back;
                        std::thread::yield_now();
                    }
                }
            });
            let mut all = Vec::new();
            while all.len() < ITEMS as usize {
                match ring.take() {
                    Some(item) => all.push(item),
                    None => std::thread::yield_now(),
                }
            }
            assert!(all.iter().copied().eq(0..ITEMS));
        });
    }
}
