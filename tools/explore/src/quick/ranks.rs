//! A set of numbers that knows how many of them lie below a number.
//!
//! A bit for each number up to the largest, and counts of set bits by 512, 32 768 and
//! 2 097 152 of them: a rank is three short sums. Memory is a bit a number, so numbers
//! should be dense.
//!
//! Invariant: each count is the number of set bits that it stands for.

/// Words of a line.
const LINE: usize = 8;
/// Entries of one level that one of the next stands for.
const FAN: usize = 64;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks {
    words: Vec<u64>,
    lines: Vec<u32>,
    pages: Vec<u32>,
    books: Vec<u32>,
    length: usize,
}

/// Line, page and book of a word.
#[inline(always)]
fn above(word: usize) -> (usize, usize, usize) {
    let line = word / LINE;
    (line, line / FAN, line / FAN / FAN)
}

#[inline(always)]
fn sum(counts: &[u32]) -> usize {
    counts.iter().sum::<u32>() as usize
}

/// The entry in which the element with `rank` lies, and its rank in there.
#[inline(always)]
fn descend(counts: impl Iterator<Item = u32>, rank: usize) -> (usize, usize) {
    let mut left = rank;
    for (index, count) in counts.enumerate() {
        if left < count as usize {
            return (index, left);
        }
        left -= count as usize;
    }
    unreachable!("the rank is below the length")
}

impl Ranks {
    /// Numbers in the set.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Adds a number that is not in the set. Amortised O(1).
    #[inline(always)]
    pub(super) fn insert(&mut self, number: usize) {
        let word = number / 64;
        if word >= self.words.len() {
            self.grow(word);
        }
        self.words[word] |= 1 << (number % 64);
        let (line, page, book) = above(word);
        self.lines[line] += 1;
        self.pages[page] += 1;
        self.books[book] += 1;
        self.length += 1;
    }

    #[cold]
    fn grow(&mut self, word: usize) {
        let (_, _, book) = above(word + word / 2);
        self.books.resize(book + 1, 0);
        self.pages.resize((book + 1) * FAN, 0);
        self.lines.resize((book + 1) * FAN * FAN, 0);
        self.words.resize((book + 1) * FAN * FAN * LINE, 0);
    }

    /// Takes a number out that is in the set. O(1).
    #[inline(always)]
    pub(super) fn remove(&mut self, number: usize) {
        let word = number / 64;
        debug_assert!(self.words[word] >> (number % 64) & 1 == 1);
        self.words[word] &= !(1 << (number % 64));
        let (line, page, book) = above(word);
        self.lines[line] -= 1;
        self.pages[page] -= 1;
        self.books[book] -= 1;
        self.length -= 1;
    }

    /// How many numbers of the set lie below one.
    #[inline(always)]
    pub(super) fn rank(&self, number: usize) -> usize {
        let word = number / 64;
        if word >= self.words.len() {
            return self.length;
        }
        let (line, page, book) = above(word);
        let mut below = sum(&self.books[..book])
            + sum(&self.pages[book * FAN..page])
            + sum(&self.lines[page * FAN..line]);
        for whole in &self.words[line * LINE..word] {
            below += whole.count_ones() as usize;
        }
        below + (self.words[word] & ((1 << (number % 64)) - 1)).count_ones() as usize
    }

    /// The number with so many others below it, which must be fewer than there are.
    #[inline(always)]
    pub(super) fn select(&self, rank: usize) -> usize {
        let (book, left) = descend(self.books.iter().copied(), rank);
        let (page, left) = descend(self.pages[book * FAN..].iter().copied(), left);
        let page = book * FAN + page;
        let (line, left) = descend(self.lines[page * FAN..].iter().copied(), left);
        let line = page * FAN + line;
        let words = &self.words[line * LINE..];
        let (word, left) = descend(words.iter().map(|word| word.count_ones()), left);
        let mut bits = words[word];
        for _ in 0..left {
            bits &= bits - 1;
        }
        (line * LINE + word) * 64 + bits.trailing_zeros() as usize
    }
}
