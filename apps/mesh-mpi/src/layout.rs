//! Where things lie in the window of a rank; the same of all.
//!
//! Invariant: no two overlap; words are aligned to eight bytes, tags to four.

use metes_heap::Carried;
use metes_mesh::Word;

use crate::heap::Index;
use crate::times::TIMES;

/// Of each rank, behind the words of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// Its process, when that was started, and on which host.
    Process,
    Started,
    Host,
    /// Nanoseconds that its operations took.
    Elapsed,
    /// Whether all that it tells is told.
    Told,
    /// Whether somebody has added up all.
    Over,
}

const OWN: u64 = Word::ALL.len() as u64 * 8;
const CARRIED: u64 = OWN + 8 * 8;
const TAGS: u64 = CARRIED + (size_of::<Carried<Index>>() as u64).next_multiple_of(8);

/// Offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    board: u64,
    times: u64,
    heap: u64,
    heap_bytes: u64,
}

impl Layout {
    /// For heaps of so many bytes and granules, and so many words of the board.
    pub(crate) fn new(heap_bytes: u64, granules: u64, words: u64) -> Layout {
        let board = (TAGS + 4 * granules).next_multiple_of(64);
        let times = board + 8 * words;
        let heap = (times + TIMES).next_multiple_of(64);
        Layout {
            board,
            times,
            heap,
            heap_bytes,
        }
    }

    /// Bytes of the window.
    pub(crate) fn bytes(&self) -> u64 {
        self.heap + self.heap_bytes.next_multiple_of(8)
    }

    pub(crate) fn word(&self, word: Word) -> u64 {
        8 * word as u64
    }

    pub(crate) fn own(&self, own: Own) -> u64 {
        OWN + 8 * own as u64
    }

    pub(crate) fn carried(&self) -> u64 {
        CARRIED
    }

    pub(crate) fn tag(&self, granule: u64) -> u64 {
        TAGS + 4 * granule
    }

    pub(crate) fn board(&self, word: usize) -> u64 {
        self.board + 8 * word as u64
    }

    pub(crate) fn times(&self) -> u64 {
        self.times
    }

    pub(crate) fn heap(&self) -> u64 {
        self.heap
    }

    pub(crate) fn heap_bytes(&self) -> u64 {
        self.heap_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        for (heap, granules, words) in [(64, 2, 1), (4096, 128, 33), (5000, 157, 1000)] {
            let layout = Layout::new(heap, granules, words);
            let places = [
                layout.word(Word::Home) + 8,
                layout.own(Own::Process),
                layout.own(Own::Over) + 8,
                layout.carried(),
                layout.tag(0),
                layout.tag(granules),
                layout.board(0),
                layout.board(words as usize),
                layout.times(),
                layout.times() + TIMES,
                layout.heap(),
                layout.heap() + heap,
                layout.bytes(),
            ];
            assert!(places.is_sorted(), "{places:?}");
            assert!(layout.board(0).is_multiple_of(8) && layout.heap().is_multiple_of(16));
        }
    }
}
