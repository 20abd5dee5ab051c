//! Every order in which threads may free slots of a page, its owner take them back, and another thread take the page over
//! (`scripts/test model`).
//!
//! Invariant: each slot that was freed is taken back once, the page is put on the chain once for each time that it was taken
//! off, and what was written to a slot before it was freed is seen by who takes it back.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use std::vec;

use crate::parked::{Chain, Marked, Parked};

const PAGE: usize = 64;

/// A page of two words, and what was written to some of its slots.
struct Owned {
    chain: Chain,
    parked: Parked<2>,
    written: [UnsafeCell<usize>; 3],
}

/// The slots that the page has in use: two in the first word, one in the second.
const SLOTS: [usize; 3] = [0, 1, 64];
const MASKS: [u64; 2] = [0b11, 0b1];

impl Owned {
    fn new() -> Arc<Self> {
        Arc::new(Owned {
            chain: Chain::new(),
            parked: Parked::new(),
            written: core::array::from_fn(|_| UnsafeCell::new(0)),
        })
    }

    /// Another thread frees a slot; whether it was not freed before.
    fn free(&self, number: usize) -> bool {
        self.written[number].with_mut(|place| {
            // SAFETY: in use by this thread; the checker would tell.
            unsafe { *place = number + 1 };
        });
        self.mark(number)
    }

    fn mark(&self, number: usize) -> bool {
        match self.parked.mark(SLOTS[number]) {
            Marked::Twice => return false,
            Marked::Told => {}
            Marked::First => self.chain.push(PAGE, &self.parked),
        }
        true
    }

    /// Sees what was written to the slots that are marked.
    fn see(&self, word: usize, marks: u64) {
        for (number, &slot) in SLOTS.iter().enumerate() {
            if slot / 64 == word && marks & (1 << (slot % 64)) != 0 {
                self.written[number].with(|place| {
                    // SAFETY: taken back, so this thread's; the checker would tell.
                    assert_eq!(unsafe { *place }, number + 1);
                });
            }
        }
    }

    /// The owner takes back what it finds; how many slots.
    fn drain(&self) -> u32 {
        let mut count = 0;
        while self.chain.take() != 0 {
            assert_eq!(self.parked.next(), 0, "the page is on the chain once");
            let mut some = self.parked.take();
            assert_ne!(some, 0, "a page on the chain has marks");
            while some != 0 {
                let word = some.trailing_zeros() as usize;
                some &= some - 1;
                let marks = self.parked.take_word(word);
                assert_ne!(marks, 0, "what is told of is there");
                self.see(word, marks);
                count += marks.count_ones();
            }
        }
        count
    }

    /// Another thread takes the page over if all of it was freed.
    fn take_over(&self) -> bool {
        if self.chain.take() == 0 {
            return false;
        }
        let some = self.parked.take();
        if self.parked.is_whole(some, MASKS.into_iter()) {
            for (word, mask) in MASKS.into_iter().enumerate() {
                self.see(word, mask);
            }
            self.parked.clear(MASKS.len());
            return true;
        }
        if self.parked.untake(some) {
            self.chain.push(PAGE, &self.parked);
        }
        false
    }
}

#[test]
fn slots_freed_at_once_are_taken_back_once() {
    loom::model(|| {
        let page = Owned::new();
        let threads = [vec![0], vec![1, 2]].map(|slots| {
            let page = Arc::clone(&page);
            thread::spawn(move || slots.into_iter().for_each(|slot| assert!(page.free(slot))))
        });
        let mut count = page.drain();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("a thread"));
        count += page.drain();
        assert_eq!(count, 3);
    });
}

#[test]
fn a_second_free_is_told() {
    loom::model(|| {
        let page = Owned::new();
        let other = Arc::clone(&page);
        let thread = thread::spawn(move || other.mark(0));
        let own = page.mark(0);
        assert!(
            own != thread.join().expect("a thread"),
            "one of both is the first"
        );
        assert_eq!(page.chain.take(), PAGE);
    });
}

#[test]
fn a_page_is_taken_over_when_nobody_refers_to_it() {
    loom::model(|| {
        let page = Owned::new();
        let threads = [vec![0, 2], vec![1]].map(|slots| {
            let page = Arc::clone(&page);
            thread::spawn(move || slots.into_iter().for_each(|slot| assert!(page.free(slot))))
        });
        let mut over = page.take_over();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("a thread"));
        // Whoever freed the last slot has told of it.
        over |= page.take_over();
        assert!(over);
        assert_eq!(page.chain.take(), 0);
        assert_eq!(page.parked.take(), 0);
    });
}

#[test]
fn owner_and_another_share_what_was_freed() {
    loom::model(|| {
        let page = Owned::new();
        assert!(page.free(0));
        let freer = Arc::clone(&page);
        let freer = thread::spawn(move || {
            assert!(freer.free(1));
            assert!(freer.free(2));
        });
        let other = Arc::clone(&page);
        let other = thread::spawn(move || other.take_over());
        let mut count = page.drain();
        freer.join().expect("a thread");
        let over = other.join().expect("a thread");
        count += page.drain();
        // The page is the other's, or all of it came back to its owner: not some to each.
        assert_eq!(count, if over { 0 } else { 3 });
    });
}
