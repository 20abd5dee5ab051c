//! Objects as trees: blocks of links above blocks of bytes.
//!
//! A small object lies in its first block, behind its size. Otherwise that block holds links:
//!
//! ```text
//! | size | link | link | … |     the first block: one link less than others
//!           ↓      ↓
//!        | link | link | … |     depth levels of these; maybe none
//!           ↓
//!        | bytes ………………… |     leaves, all but the last full
//! ```
//!
//! With f links a block, leaf j hangs on links ⌊j / f^depth⌋ of the first block and
//! ⌊j / f^i⌋ mod f of the block at level i + 1.

use super::blocks::{Blocks, Kind};
use super::options::{Options, SIZE};

/// Most levels: bytes are at most 2³², links at least 4 a block.
const LEVELS: usize = 16;

/// The blocks on the way to a leaf: of links at 1 to depth, the first block above.
struct Path {
    nodes: [u32; LEVELS + 1],
    depth: usize,
    /// log₂ of the links a block.
    bits: u32,
}

/// Leaves of an object; none where it lies in its first block.
fn leaves(options: &Options, size: usize) -> u64 {
    match size <= options.block - SIZE {
        true => 0,
        false => size.div_ceil(options.block) as u64,
    }
}

impl Path {
    fn new(options: &Options, head: u32, leaves: u64) -> Self {
        let depth = options.depth(leaves) as usize;
        let mut nodes = [0; LEVELS + 1];
        nodes[depth + 1] = head;
        Path {
            nodes,
            depth,
            bits: options.fan_out().trailing_zeros(),
        }
    }

    /// Which word of the node at `level` leads towards a leaf.
    fn word(&self, level: usize, leaf: u64) -> usize {
        let link = leaf >> (self.bits as usize * (level - 1));
        match level > self.depth {
            true => 1 + link as usize,
            false => (link & ((1 << self.bits) - 1)) as usize,
        }
    }

    /// Whether a leaf is the first below its node at `level`.
    fn begins(&self, level: usize, leaf: u64) -> bool {
        leaf.is_multiple_of(1 << (self.bits as usize * level))
    }

    /// Finds the nodes on the way to a leaf from `level` down. O(level).
    fn descend(&mut self, blocks: &Blocks, leaf: u64, level: usize) {
        for level in (1..=level.min(self.depth)).rev() {
            let word = self.word(level + 1, leaf);
            self.nodes[level] = blocks.word(self.nodes[level + 1], word);
        }
    }

    /// Hangs a leaf on, and the nodes that begin with it; the path leads to the one before.
    fn append(&mut self, blocks: &mut Blocks, leaf: u64) {
        for level in (0..=self.depth).rev() {
            if self.begins(level, leaf) {
                let node = blocks.take(Kind::Member);
                blocks.set_word(self.nodes[level + 1], self.word(level + 1, leaf), node);
                self.nodes[level] = node;
            }
        }
    }

    /// Gives back the last leaf, to which the path leads, and the nodes that begin with it;
    /// then it leads to the one before.
    fn cut(&mut self, blocks: &mut Blocks, leaf: u64) {
        let mut level = 0;
        while level <= self.depth && self.begins(level, leaf) {
            let (above, word) = (self.nodes[level + 1], self.word(level + 1, leaf));
            blocks.give(blocks.word(above, word));
            blocks.set_word(above, word, 0);
            level += 1;
        }
        if leaf > 0 {
            self.descend(blocks, leaf - 1, level);
        }
    }
}

/// Takes the blocks of an object; the caller knows that they are there. O(n).
pub(super) fn build(blocks: &mut Blocks, options: &Options, size: usize) -> u32 {
    let head = blocks.take(Kind::Head);
    let leaves = leaves(options, size);
    let mut path = Path::new(options, head, leaves);
    for leaf in 0..leaves {
        path.append(blocks, leaf);
    }
    head
}

/// Gives all blocks of an object back. O(n).
pub(super) fn give(blocks: &mut Blocks, options: &Options, head: u32, size: usize) {
    cut(blocks, options, head, leaves(options, size), 0);
    blocks.give(head);
}

/// Cuts leaves off; the depth stays.
fn cut(blocks: &mut Blocks, options: &Options, head: u32, before: u64, after: u64) {
    if before == after {
        return;
    }
    let mut path = Path::new(options, head, before);
    path.descend(blocks, before - 1, LEVELS);
    for leaf in (after..before).rev() {
        path.cut(blocks, leaf);
    }
}

/// Changes the size of an object, whose bytes stay; new ones are zero in new blocks. O(n).
pub(super) fn resize(
    blocks: &mut Blocks,
    options: &Options,
    head: u32,
    before: usize,
    after: usize,
) {
    let (old, new) = (leaves(options, before), leaves(options, after));
    if new < old {
        let kept = new.max(1);
        cut(blocks, options, head, old, kept);
        for _ in options.depth(kept)..options.depth(old) {
            lower(blocks, options, head);
        }
        if new == 0 {
            // The bytes return to the first block, over the link to their leaf.
            let leaf = blocks.word(head, 1);
            blocks.copy((leaf, 0), (head, SIZE), options.block - SIZE);
            blocks.give(leaf);
        }
        return;
    }
    let mut old = old;
    if old == 0 && new > 0 {
        let leaf = blocks.take(Kind::Member);
        blocks.copy((head, SIZE), (leaf, 0), options.block - SIZE);
        blocks.zero(head, SIZE, options.block - SIZE);
        blocks.set_word(head, 1, leaf);
        old = 1;
    }
    if old == new {
        return;
    }
    for _ in options.depth(old)..options.depth(new) {
        raise(blocks, options, head);
    }
    let mut path = Path::new(options, head, new);
    path.descend(blocks, old - 1, LEVELS);
    for leaf in old..new {
        path.append(blocks, leaf);
    }
}

/// The links of the first block go into a block of their own: one level more.
fn raise(blocks: &mut Blocks, options: &Options, head: u32) {
    let node = blocks.take(Kind::Member);
    blocks.copy((head, SIZE), (node, 0), options.block - SIZE);
    blocks.zero(head, SIZE, options.block - SIZE);
    blocks.set_word(head, 1, node);
}

/// The links of the one block below the first go into the first: one level less.
fn lower(blocks: &mut Blocks, options: &Options, head: u32) {
    let node = blocks.word(head, 1);
    blocks.copy((node, 0), (head, SIZE), options.block - SIZE);
    blocks.give(node);
}

/// The block in which a byte of an object lies, and where in it. O(log n).
pub(super) fn find(
    blocks: &Blocks,
    options: &Options,
    (head, size): (u32, usize),
    offset: usize,
) -> (u32, usize) {
    let leaves = leaves(options, size);
    if leaves == 0 {
        return (head, SIZE + offset);
    }
    let mut path = Path::new(options, head, leaves);
    let leaf = (offset / options.block) as u64;
    path.descend(blocks, leaf, LEVELS);
    let block = blocks.word(path.nodes[1], path.word(1, leaf));
    (block, offset % options.block)
}

/// Blocks of an object, or `None` where one is not what it should be. O(n log n).
pub(super) fn verify(blocks: &Blocks, options: &Options, head: u32, size: usize) -> Option<u64> {
    let leaves = leaves(options, size);
    let mut path = Path::new(options, head, leaves);
    let mut count = 1;
    for leaf in 0..leaves {
        for level in (0..=path.depth).rev() {
            let word = path.word(level + 1, leaf);
            path.nodes[level] = blocks.word(path.nodes[level + 1], word);
            if !blocks.is(path.nodes[level], Kind::Member) {
                return None;
            }
            count += u64::from(path.begins(level, leaf));
        }
    }
    Some(count)
}
