//! Free blocks by size, and the earliest place of each size.
//!
//! Sizes are numbers of granules, so they need no comparisons to be found: 64 neighbours
//! stand in a leaf, and 64 leaves in a line, 64 lines in a page; each says the earliest
//! place below. Blocks of equal size are a queue. A search is a few scans over 64 words,
//! however many blocks there are.
//!
//! Invariant: what a leaf says of a size is the place of its queue's first block, and
//! what stands above is the least of what stands below; all ones where there is no block.

use super::lanes::{self, WIDTH};

mod queues;

use queues::{NONE, Queue, Queues};

/// Bits of a number that choose among 64.
const BITS: usize = WIDTH.trailing_zeros() as usize;
/// The words of a node without blocks.
const EMPTY: [u32; WIDTH] = [NONE; WIDTH];
/// Levels of nodes: leaves, lines, pages.
const LEVELS: usize = 3;

/// 64 sizes.
#[derive(Clone, Debug)]
struct Leaf {
    earliest: [u32; WIDTH],
    queues: [Queue; WIDTH],
}

/// 64 leaves, of which those exist that ever had a block.
#[derive(Clone, Debug)]
struct Line {
    earliest: [u32; WIDTH],
    leaves: [u32; WIDTH],
}

/// The first block of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First<T> {
    /// In granules.
    pub(super) size: u32,
    pub(super) place: u32,
    pub(super) block: T,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Sizes<T> {
    leaves: Vec<Leaf>,
    lines: Vec<Line>,
    pages: Vec<[u32; WIDTH]>,
    /// The earliest place of each page.
    earliest: Vec<u32>,
    queues: Queues<T>,
    length: usize,
}

impl<T: Copy> Sizes<T> {
    /// No blocks; takes no memory before the first.
    pub(super) const fn new() -> Self {
        Sizes {
            leaves: Vec::new(),
            lines: Vec::new(),
            pages: Vec::new(),
            earliest: Vec::new(),
            queues: Queues::new(),
            length: 0,
        }
    }

    /// Blocks.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Adds a block with a record that none here has. Amortised O(1).
    #[inline(always)]
    pub(super) fn insert(&mut self, size: u32, place: u32, record: u32, block: T) {
        let size = size as usize;
        let (leaf, line, page) = (size >> BITS, size >> (2 * BITS), size >> (3 * BITS));
        if page >= self.pages.len() {
            self.grow(page);
        }
        if self.lines[line].leaves[leaf % WIDTH] == NONE {
            self.new_leaf(leaf);
        }
        let node = &mut self.leaves[self.lines[line].leaves[leaf % WIDTH] as usize];
        let queue = &mut node.queues[size % WIDTH];
        self.queues.insert(queue, place, record, block);
        let lower = |word: &mut u32| *word = place.min(*word);
        lower(&mut node.earliest[size % WIDTH]);
        lower(&mut self.lines[line].earliest[leaf % WIDTH]);
        lower(&mut self.pages[page][line % WIDTH]);
        lower(&mut self.earliest[page]);
        self.length += 1;
    }

    #[cold]
    fn grow(&mut self, page: usize) {
        let pages = page + 1;
        self.earliest.resize(pages, NONE);
        self.pages.resize(pages, EMPTY);
        let line = Line {
            earliest: EMPTY,
            leaves: EMPTY,
        };
        self.lines.resize(pages * WIDTH, line);
    }

    #[cold]
    fn new_leaf(&mut self, leaf: usize) {
        self.lines[leaf / WIDTH].leaves[leaf % WIDTH] = self.leaves.len() as u32;
        self.leaves.push(Leaf {
            earliest: EMPTY,
            queues: [Queue::EMPTY; WIDTH],
        });
    }

    /// Takes out the block with a record. Amortised O(log n).
    #[inline(always)]
    pub(super) fn remove(&mut self, size: u32, record: u32) {
        let size = size as usize;
        let (leaf, line, page) = (size >> BITS, size >> (2 * BITS), size >> (3 * BITS));
        let node = &mut self.leaves[self.lines[line].leaves[leaf % WIDTH] as usize];
        let queue = &mut node.queues[size % WIDTH];
        let was_first = queue.first == record;
        self.queues.remove(queue, record);
        self.length -= 1;
        if !was_first {
            return;
        }
        let word = &mut node.earliest[size % WIDTH];
        let gone = *word;
        *word = self.queues.place(queue.first);
        // Whoever named the place names another one now.
        let least = |words: &[u32; WIDTH]| lanes::least_over(words, 0);
        if self.lines[line].earliest[leaf % WIDTH] == gone {
            self.lines[line].earliest[leaf % WIDTH] = least(&node.earliest);
            if self.pages[page][line % WIDTH] == gone {
                self.pages[page][line % WIDTH] = least(&self.lines[line].earliest);
                if self.earliest[page] == gone {
                    self.earliest[page] = least(&self.pages[page]);
                }
            }
        }
    }

    /// The words of a node: of a leaf, a line, a page.
    #[inline(always)]
    fn words(&self, level: usize, node: usize) -> &[u32; WIDTH] {
        match level {
            0 => match self.lines[node / WIDTH].leaves[node % WIDTH] {
                NONE => &EMPTY,
                leaf => &self.leaves[leaf as usize].earliest,
            },
            1 => &self.lines[node].earliest,
            _ => &self.pages[node],
        }
    }

    /// The smallest size below a word of a level with a place of at most `last`.
    #[inline(always)]
    fn descend(&self, level: usize, word: usize, last: u32) -> First<T> {
        let mut at = word;
        for below in (0..level).rev() {
            let mask = lanes::within(self.words(below, at), WIDTH, 0, last);
            at = at * WIDTH + mask.trailing_zeros() as usize;
        }
        self.first(at)
    }

    #[inline(always)]
    fn first(&self, size: usize) -> First<T> {
        let (leaf, line) = (size >> BITS, size >> (2 * BITS));
        let node = &self.leaves[self.lines[line].leaves[leaf % WIDTH] as usize];
        First {
            size: size as u32,
            place: node.earliest[size % WIDTH],
            block: self.queues.block(node.queues[size % WIDTH].first),
        }
    }

    /// The first block of a size.
    #[inline(always)]
    pub(super) fn of(&self, size: u32) -> Option<First<T>> {
        let size = size as usize;
        if size >> (3 * BITS) >= self.pages.len() {
            return None;
        }
        (self.words(0, size >> BITS)[size % WIDTH] != NONE).then(|| self.first(size))
    }

    /// The first block of the smallest size from `least` on that has a place of at most
    /// `last`, which is not all ones.
    #[inline(never)]
    pub(super) fn smallest(&self, least: u32, last: u32) -> Option<First<T>> {
        let mut at = least as usize;
        if at >> (3 * BITS) >= self.pages.len() {
            return None;
        }
        for level in 0..LEVELS {
            let node = at >> BITS;
            if node >= self.pages.len() << (BITS * (LEVELS - 1 - level)) {
                return None;
            }
            let mask = lanes::within(self.words(level, node), WIDTH, 0, last) >> (at % WIDTH);
            if mask != 0 {
                return Some(self.descend(level, at + mask.trailing_zeros() as usize, last));
            }
            at = node + 1;
        }
        let more = self.earliest.get(at..)?;
        let page = at + more.iter().position(|&place| place <= last)?;
        Some(self.descend(LEVELS, page, last))
    }

    /// The first block of the largest size up to `most` that has a place of at most
    /// `last`, which is not all ones.
    #[inline(never)]
    pub(super) fn largest(&self, most: u32, last: u32) -> Option<First<T>> {
        // The last word that is looked at, of each level.
        let mut at = (most as usize).min((self.pages.len() << (3 * BITS)).checked_sub(1)?);
        let final_bit = |mask: u64| 63 - mask.leading_zeros() as usize;
        let mut found = None;
        for level in 0..LEVELS {
            let node = at >> BITS;
            let upto = u64::MAX >> (63 - at % WIDTH);
            let mask = lanes::within(self.words(level, node), WIDTH, 0, last) & upto;
            if mask != 0 {
                found = Some((level, node * WIDTH + final_bit(mask)));
                break;
            }
            at = node.checked_sub(1)?;
        }
        let (level, mut at) = match found {
            Some(found) => found,
            None => {
                let less = &self.earliest[..=at];
                (LEVELS, less.iter().rposition(|&place| place <= last)?)
            }
        };
        for below in (0..level).rev() {
            let mask = lanes::within(self.words(below, at), WIDTH, 0, last);
            at = at * WIDTH + final_bit(mask);
        }
        Some(self.first(at))
    }

    /// The earliest block of a size in `least..=most`.
    #[inline(never)]
    pub(super) fn earliest(&self, least: u32, most: u32) -> Option<First<T>> {
        let end = (self.pages.len() << (3 * BITS)).checked_sub(1)?;
        let (mut from, mut to) = (least as usize, (most as usize).min(end));
        if from > to {
            return None;
        }
        let mut best = Least::default();
        for level in 0..LEVELS {
            let (low, high) = (from >> BITS, to >> BITS);
            if low == high {
                let words = &self.words(level, low)[from % WIDTH..=to % WIDTH];
                best.of(words, level, from);
                return self.at(best);
            }
            best.of(&self.words(level, low)[from % WIDTH..], level, from);
            let words = &self.words(level, high)[..=to % WIDTH];
            best.of(words, level, high * WIDTH);
            (from, to) = (low + 1, high - 1);
            if from > to {
                return self.at(best);
            }
        }
        best.of(&self.earliest[from..=to], LEVELS, from);
        self.at(best)
    }

    /// The block with the least place that was met.
    #[inline(always)]
    fn at(&self, least: Least) -> Option<First<T>> {
        let Least {
            place,
            level,
            from,
            length,
        } = least;
        if place == NONE {
            return None;
        }
        let words = match level {
            LEVELS => &self.earliest[from..from + length],
            _ => &self.words(level, from >> BITS)[from % WIDTH..from % WIDTH + length],
        };
        let word = from + words.iter().position(|&word| word == place)?;
        Some(self.descend(level, word, place))
    }

    /// Calls `visit` with size, place and block of each, in no order.
    pub(super) fn each(&self, mut visit: impl FnMut(u32, u32, T)) {
        for (number, line) in self.lines.iter().enumerate() {
            for (leaf, &index) in line.leaves.iter().enumerate() {
                let Some(node) = self.leaves.get(index as usize) else {
                    continue;
                };
                for (slot, &queue) in node.queues.iter().enumerate() {
                    let size = ((number * WIDTH + leaf) * WIDTH + slot) as u32;
                    let mut found = |place, block| visit(size, place, block);
                    self.queues.each(queue.first, &mut found);
                }
            }
        }
    }
}

/// The least word of some ranges, and the first range that has it.
#[derive(Clone, Copy)]
struct Least {
    place: u32,
    level: usize,
    /// Number of the range's first word in its level.
    from: usize,
    length: usize,
}

impl Default for Least {
    fn default() -> Self {
        Least {
            place: NONE,
            level: 0,
            from: 0,
            length: 0,
        }
    }
}

impl Least {
    #[inline(always)]
    fn of(&mut self, words: &[u32], level: usize, from: usize) {
        let place = lanes::least_over(words, 0);
        if place < self.place {
            *self = Least {
                place,
                level,
                from,
                length: words.len(),
            };
        }
    }
}
