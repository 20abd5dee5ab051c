//! A queue within core 0.
//!
//! *Invariant:* what is taken was put first of what is there; no item is lost or there twice.

/// At most `N` items, first in, first out.
pub(super) struct Fifo<T, const N: usize> {
    items: [Option<T>; N],
    first: usize,
    length: usize,
}

impl<T, const N: usize> Fifo<T, N> {
    pub(super) const fn new() -> Self {
        Fifo {
            items: [const { None }; N],
            first: 0,
            length: 0,
        }
    }

    /// Puts an item in; gives it back if there is no room.
    pub(super) fn put(&mut self, item: T) -> Result<(), T> {
        let last = (self.first + self.length) % N;
        match self.items.get_mut(last) {
            Some(place) if self.length < N => {
                *place = Some(item);
                self.length += 1;
                Ok(())
            }
            _ => Err(item),
        }
    }

    /// Takes the item that was put in first.
    pub(super) fn take(&mut self) -> Option<T> {
        let item = self.items.get_mut(self.first)?.take()?;
        self.first = (self.first + 1) % N;
        self.length -= 1;
        Some(item)
    }

    pub(super) const fn len(&self) -> usize {
        self.length
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) const fn room(&self) -> usize {
        N - self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn is_a_queue(steps in proptest::collection::vec(any::<Option<u32>>(), 0..100)) {
            let mut fifo: Fifo<u32, 5> = Fifo::new();
            let mut plain = VecDeque::new();
            for step in steps {
                match step {
                    Some(item) if plain.len() < 5 => {
                        plain.push_back(item);
                        prop_assert_eq!(fifo.put(item), Ok(()));
                    }
                    Some(item) => prop_assert_eq!(fifo.put(item), Err(item)),
                    None => prop_assert_eq!(fifo.take(), plain.pop_front()),
                }
                prop_assert_eq!((fifo.len(), fifo.room()), (plain.len(), 5 - plain.len()));
                prop_assert_eq!(fifo.is_empty(), plain.is_empty());
            }
        }
    }
}
