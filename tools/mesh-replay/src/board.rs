//! What nodes tell each other beside the protocol: where blocks are, what they have done, who has died.
//!
//! Invariant: each word of a node is written by that node alone, but for those that say what happened to it and what its heap
//! holds.

use metes_mesh::{Fabric, Mesh, Node};

/// Words that every node reaches, a row a node, 0 at first; and the bytes of blocks.
pub trait Board {
    /// Reads a word; what was written before it, is seen.
    fn load(&self, node: u32, word: usize) -> u64;
    /// Writes a word, after all that was written before.
    fn store(&self, node: u32, word: usize, value: u64);
    /// Adds to a word, modulo 2⁶⁴; what it was.
    fn add(&self, node: u32, word: usize, value: u64) -> u64;
    /// Makes a word `value` at least.
    fn raise(&self, node: u32, word: usize, value: u64);
    /// Writes a mark into the block at an address, which is the caller's.
    fn write(&self, address: u64, size: u64, mark: u64);
    /// Whether the block at an address, which is the caller's, holds the mark.
    fn holds(&self, address: u64, size: u64, mark: u64) -> bool;
    /// Waits a little for others; `node` may look whether they live.
    fn wait(&self, node: u32);
    /// Waits longer: it has nothing to do any more.
    fn rest(&self, node: u32);
}

/// It was taken for dead.
pub(crate) const DEAD: usize = 0;
/// What it had was adopted.
pub(crate) const ADOPTED: usize = 1;
/// It has done its operations.
pub(crate) const DONE: usize = 2;
/// How often it was told of a death.
const NEWS: usize = 3;
/// Blocks of others that it has adopted.
const BLOCKS: usize = 4;
/// The number of a request and 1, whose block did not hold what was written.
const WRONG: usize = 5;
/// Bytes of requests that its heap holds, and most that it held.
const LIVE: usize = 6;
const PEAK: usize = 7;
/// What it has done.
const TALLY: usize = 8;
/// What each of its requests came to.
const REQUESTS: usize = TALLY + Tally::WORDS;

/// What a request comes to: nothing yet, refused, or its address, which is greater.
pub(crate) const NOTHING: u64 = 0;
pub(crate) const REFUSED: u64 = 1;

/// Words of a node with so many requests.
pub const fn words(requests: usize) -> usize {
    REQUESTS + requests
}

/// What a node has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) operations: u64,
    pub(crate) failed: u64,
    pub(crate) unsure: u64,
    pub(crate) local: u64,
    pub(crate) remote: u64,
    pub(crate) parked: u64,
    pub(crate) visits: u64,
    pub(crate) skips: u64,
    pub(crate) longest: u64,
}

impl Tally {
    const WORDS: usize = 9;

    fn words(self) -> [u64; Tally::WORDS] {
        [
            self.operations,
            self.failed,
            self.unsure,
            self.local,
            self.remote,
            self.parked,
            self.visits,
            self.skips,
            self.longest,
        ]
    }

    /// With what the protocol has counted.
    pub(crate) fn with<F: Fabric>(self, mesh: &Mesh<'_, F>) -> Tally {
        let counts = mesh.counts();
        Tally {
            local: counts.local,
            remote: counts.remote,
            parked: counts.parked,
            visits: counts.visits,
            skips: counts.skips,
            longest: counts.longest,
            ..self
        }
    }
}

/// A board by what its words mean.
#[derive(Debug)]
pub(crate) struct Notes<'b, B>(pub(crate) &'b B);

impl<B> Clone for Notes<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Notes<'_, B> {}

impl<B: Board> Notes<'_, B> {
    pub(crate) fn says(self, node: u32, word: usize) -> bool {
        self.0.load(node, word) != 0
    }

    pub(crate) fn say(self, node: u32, word: usize) {
        self.0.store(node, word, 1);
    }

    /// What a request came to.
    pub(crate) fn came_to(self, (node, before): (u32, usize)) -> u64 {
        self.0.load(node, REQUESTS + before)
    }

    pub(crate) fn comes_to(self, (node, before): (u32, usize), what: u64) {
        self.0.store(node, REQUESTS + before, what);
    }

    /// A heap holds so many bytes more.
    pub(crate) fn takes(self, heap: u32, size: u64) {
        let live = self.0.add(heap, LIVE, size).wrapping_add(size);
        self.0.raise(heap, PEAK, live);
    }

    pub(crate) fn gives(self, heap: u32, size: u64) {
        self.0.add(heap, LIVE, size.wrapping_neg());
    }

    pub(crate) fn live(self, heap: u32) -> u64 {
        self.0.load(heap, LIVE)
    }

    pub(crate) fn peak(self, heap: u32) -> u64 {
        self.0.load(heap, PEAK)
    }

    pub(crate) fn report(self, node: u32, tally: Tally) {
        for (word, value) in tally.words().into_iter().enumerate() {
            self.0.store(node, TALLY + word, value);
        }
    }

    pub(crate) fn tally(self, node: u32) -> Tally {
        let word = |at| self.0.load(node, TALLY + at);
        Tally {
            operations: word(0),
            failed: word(1),
            unsure: word(2),
            local: word(3),
            remote: word(4),
            parked: word(5),
            visits: word(6),
            skips: word(7),
            longest: word(8),
        }
    }

    pub(crate) fn wrong(self, node: u32) -> Option<usize> {
        let number = self.0.load(node, WRONG).checked_sub(1)?;
        Some(number as usize)
    }

    pub(crate) fn is_wrong(self, node: u32, request: usize) {
        self.0.store(node, WRONG, request as u64 + 1);
    }

    pub(crate) fn news(self, node: u32) -> u64 {
        self.0.load(node, NEWS)
    }

    pub(crate) fn adopts(self, node: u32) {
        self.0.add(node, BLOCKS, 1);
    }

    pub(crate) fn adopted(self, node: u32) -> u64 {
        self.0.load(node, BLOCKS)
    }

    /// Who adopts what `dead` had: the next one that lives.
    pub(crate) fn heir(self, dead: u32, nodes: u32) -> Option<u32> {
        let mut others = (1..nodes).map(|step| (dead + step) % nodes);
        others.find(|&node| !self.says(node, DEAD))
    }

    /// Whether everybody has done its operations, or was adopted.
    pub(crate) fn is_over(self, nodes: u32) -> bool {
        (0..nodes)
            .all(|node| self.says(node, DONE) || self.says(node, DEAD) && self.says(node, ADOPTED))
    }
}

/// Takes a node for dead, and tells all. Whoever calls it must be sure that the node takes no further step.
pub fn bury<F: Fabric, B: Board>(fabric: &F, board: &B, dead: u32) {
    let notes = Notes(board);
    if notes.says(dead, DEAD) {
        return;
    }
    Mesh::new(fabric, Node(dead)).declare_dead(Node(dead));
    notes.say(dead, DEAD);
    for node in 0..fabric.space().nodes() {
        board.add(node, NEWS, 1);
    }
}

/// Whether a node was taken for dead.
pub fn is_dead<B: Board>(board: &B, node: u32) -> bool {
    Notes(board).says(node, DEAD)
}
