//! The layered tree of the paper: a bit a page, under nodes that know their least and greatest
//! start (RTCSA 2014, II-C2 and IV-A5).
//!
//! Because a node knows its extremes, a search goes down one path: where the answer cannot lie
//! below the child that the page belongs to, it is the extreme of the child beside it. At 2^20
//! pages it takes 143,756 bytes, as in the paper: 2^15 words, and 2^10 + 2^5 + 1 nodes of 12 bytes.
//!
//! Invariant: a node's summary has the bit of each child with a start; `least` and `greatest` are
//! those of the starts below it wherever the summary is not zero, and mean nothing elsewhere.

use super::Index;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Node {
    least: u32,
    greatest: u32,
    summary: u32,
}

impl Node {
    const EMPTY: Self = Self {
        least: 0,
        greatest: 0,
        summary: 0,
    };

    /// Takes note of a start below `child`.
    #[inline(always)]
    fn include(&mut self, child: usize, page: u32) {
        let empty = self.summary == 0;
        self.least = if empty || page < self.least {
            page
        } else {
            self.least
        };
        self.greatest = if empty || page > self.greatest {
            page
        } else {
            self.greatest
        };
        self.summary |= 1 << (child & 31);
    }

    #[inline(always)]
    fn first(&self) -> usize {
        self.summary.trailing_zeros() as usize & 31
    }

    #[inline(always)]
    fn last(&self) -> usize {
        (self.summary | 1).ilog2() as usize
    }

    /// The last child before `child` that has a start.
    #[inline(always)]
    fn before(&self, child: usize) -> usize {
        (self.summary & ((1 << (child & 31)) - 1) | 1).ilog2() as usize
    }

    /// The first child behind `child` that has a start.
    #[inline(always)]
    fn behind(&self, child: usize) -> usize {
        (self.summary & ((u32::MAX - 1) << (child & 31))).trailing_zeros() as usize & 31
    }
}

/// The paper's layered tree; `A` words of 32 pages, `B` nodes over 32 words each, `C` over 32 nodes
/// each, and a root.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Layered<const A: usize, const B: usize, const C: usize> {
    words: [u32; A],
    nodes: [Node; B],
    uppers: [Node; C],
    root: Node,
}

impl<const A: usize, const B: usize, const C: usize> Layered<A, B, C> {
    /// The levels fit each other; a mismatch does not compile.
    const FITS: () =
        assert!(A.is_power_of_two() && B == A.div_ceil(32) && C == B.div_ceil(32) && C <= 32);

    /// One region over all pages.
    pub const fn new() -> Self {
        const { Self::FITS };
        Self {
            words: [0; A],
            nodes: [Node::EMPTY; B],
            uppers: [Node::EMPTY; C],
            root: Node::EMPTY,
        }
    }

    /// Numbers of the word, the node and the upper node that `page` belongs to.
    #[inline(always)]
    fn path(page: usize) -> (usize, usize, usize) {
        let word = page >> 5 & (A - 1);
        let node = word >> 5 & (B - 1);
        (word, node, node >> 5 & (C - 1))
    }
}

impl<const A: usize, const B: usize, const C: usize> Default for Layered<A, B, C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const A: usize, const B: usize, const C: usize> Index for Layered<A, B, C> {
    const PAGES: usize = A << 5;

    #[inline]
    fn insert(&mut self, page: u32) {
        let (word, node, upper) = Self::path(page as usize);
        self.words[word] |= 1 << (page & 31);
        self.nodes[node].include(word, page);
        self.uppers[upper].include(node, page);
        self.root.include(upper, page);
    }

    #[inline]
    fn remove(&mut self, page: u32) {
        let (word, node, upper) = Self::path(page as usize);
        let left = self.words[word] & !(1 << (page & 31));
        self.words[word] = left;

        let it = &mut self.nodes[node];
        it.summary &= !(u32::from(left == 0) << (word & 31));
        let (first, last) = (node << 5 | it.first(), node << 5 | it.last());
        let (first, last) = (first & (A - 1), last & (A - 1));
        it.least = (first << 5) as u32 | self.words[first].trailing_zeros() & 31;
        it.greatest = (last << 5) as u32 | (self.words[last] | 1).ilog2();
        let gone = it.summary == 0;

        let it = &mut self.uppers[upper];
        it.summary &= !(u32::from(gone) << (node & 31));
        it.least = self.nodes[(upper << 5 | it.first()) & (B - 1)].least;
        it.greatest = self.nodes[(upper << 5 | it.last()) & (B - 1)].greatest;
        let gone = it.summary == 0;

        let it = &mut self.root;
        it.summary &= !(u32::from(gone) << (upper & 31));
        it.least = self.uppers[it.first() & (C - 1)].least;
        it.greatest = self.uppers[it.last() & (C - 1)].greatest;
    }

    #[inline]
    fn contains(&self, page: u32) -> bool {
        page == 0 || self.words[Self::path(page as usize).0] >> (page & 31) & 1 != 0
    }

    #[inline]
    fn find(&self, page: u32) -> u32 {
        let (word, node, upper) = Self::path(page as usize);
        if self.root.summary == 0 || page < self.root.least {
            return 0;
        }
        let it = &self.uppers[upper];
        if it.summary == 0 || page < it.least {
            return self.uppers[self.root.before(upper) & (C - 1)].greatest;
        }
        let it = &self.nodes[node];
        if it.summary == 0 || page < it.least {
            return self.nodes[(upper << 5 | self.uppers[upper].before(node)) & (B - 1)].greatest;
        }
        let bits = self.words[word] & (u32::MAX >> (31 - (page & 31)));
        if bits != 0 {
            return (word << 5) as u32 | (bits | 1).ilog2();
        }
        let word = (node << 5 | it.before(word)) & (A - 1);
        (word << 5) as u32 | (self.words[word] | 1).ilog2()
    }

    #[inline]
    fn next(&self, page: u32) -> Option<u32> {
        let (word, node, upper) = Self::path(page as usize);
        if self.root.summary == 0 || page >= self.root.greatest {
            return None;
        }
        let it = &self.uppers[upper];
        if it.summary == 0 || page >= it.greatest {
            return Some(self.uppers[self.root.behind(upper) & (C - 1)].least);
        }
        let it = &self.nodes[node];
        if it.summary == 0 || page >= it.greatest {
            return Some(
                self.nodes[(upper << 5 | self.uppers[upper].behind(node)) & (B - 1)].least,
            );
        }
        let bits = self.words[word] & ((u32::MAX - 1) << (page & 31));
        if bits != 0 {
            return Some((word << 5) as u32 | bits.trailing_zeros());
        }
        let word = (node << 5 | it.behind(word)) & (A - 1);
        Some((word << 5) as u32 | self.words[word].trailing_zeros())
    }
}
