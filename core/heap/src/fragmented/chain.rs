//! Objects as chains: each block begins with the number of the next.
//!
//! ```text
//! | next | size | bytes … |  →  | next | bytes …… |  →  | none | bytes …… |
//! ```

use super::blocks::{Blocks, Kind, NONE};
use super::options::{LINK, SIZE};

/// Takes the blocks of an object; the caller knows that they are there. O(count).
pub(super) fn build(blocks: &mut Blocks, count: u64) -> u32 {
    let head = blocks.take(Kind::Head);
    blocks.set_word(head, 0, NONE);
    append(blocks, head, count - 1);
    head
}

/// Takes more blocks behind the last. O(count).
fn append(blocks: &mut Blocks, mut last: u32, count: u64) {
    for _ in 0..count {
        let next = blocks.take(Kind::Member);
        blocks.set_word(next, 0, NONE);
        blocks.set_word(last, 0, next);
        last = next;
    }
}

/// The block so many links behind another. O(links).
fn behind(blocks: &Blocks, block: u32, links: u64) -> u32 {
    (0..links).fold(block, |block, _| blocks.word(block, 0))
}

/// Gives back a block and all behind it. O(blocks).
pub(super) fn give(blocks: &mut Blocks, mut block: u32) {
    while block != NONE {
        let next = blocks.word(block, 0);
        blocks.give(block);
        block = next;
    }
}

/// Makes a chain of `before` blocks one of `after`. O(before + after).
pub(super) fn resize(blocks: &mut Blocks, head: u32, before: u64, after: u64) {
    let last = behind(blocks, head, before.min(after) - 1);
    let rest = blocks.word(last, 0);
    blocks.set_word(last, 0, NONE);
    give(blocks, rest);
    append(blocks, last, after.saturating_sub(before));
}

/// The block in which a byte of an object lies, and where in it. O(n).
pub(super) fn find(blocks: &Blocks, bytes: usize, head: u32, offset: usize) -> (u32, usize) {
    let (carried, at) = (bytes - LINK, offset + SIZE);
    let block = behind(blocks, head, (at / carried) as u64);
    (block, LINK + at % carried)
}

/// Blocks of an object, or `None` where one is not what it should be. O(n).
pub(super) fn verify(blocks: &Blocks, head: u32, most: u64) -> Option<u64> {
    let (mut count, mut block) = (1, blocks.word(head, 0));
    while block != NONE {
        if !blocks.is(block, Kind::Member) || count == most {
            return None;
        }
        count += 1;
        block = blocks.word(block, 0);
    }
    Some(count)
}
