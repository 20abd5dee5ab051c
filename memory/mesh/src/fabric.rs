//! How nodes reach each other: words, tags, links of freed blocks, and heaps.
//!
//! Invariant: all that the protocol shares goes through here, so whoever implements this decides what a step costs, what
//! may be lost, and when a node dies; the protocol is the same.

use core::sync::atomic::Ordering;

use crate::local::LocalHeap;
use crate::space::{HeapSpace, Node};

/// A word that each node has, 0 at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Who holds its heap: a [`Holder`](crate::Holder).
    Lock,
    /// The chain of blocks of its heap that were freed without its lock: the latest.
    Parked,
    /// The part of the chain that the holder has taken off, and not yet freed.
    Draining,
    /// What the holder is at.
    Work,
    /// Whether its heap serves no more.
    LeftOut,
    /// How often the node was taken for dead and came back; odd while it is dead.
    Epoch,
    /// How often in turn the node has held its own heap by its lock, and nobody else has: see [`Fabric::barrier`].
    Bias,
    /// Whether the node is at its own heap without its lock: a [`Holder`](crate::Holder).
    Home,
}

impl Word {
    /// All words.
    pub const ALL: [Word; 8] = [
        Word::Lock,
        Word::Parked,
        Word::Draining,
        Word::Work,
        Word::LeftOut,
        Word::Epoch,
        Word::Bias,
        Word::Home,
    ];
}

/// The order that a load needs: what was written before the value that is read, is seen.
pub const LOAD: Ordering = Ordering::Acquire;
/// The order that a store needs: what was written before it, is seen by who reads it.
pub const STORE: Ordering = Ordering::Release;
/// The order that a successful exchange needs: both.
pub const EXCHANGE: Ordering = Ordering::AcqRel;

/// What connects nodes. Each access of a word or a tag is a step, in the orders above.
///
/// A node that dies takes no further step (fail-stop); what it wrote before stays.
pub trait Fabric {
    /// What each node's heap is.
    type Heap: LocalHeap;

    /// Which addresses are whose.
    fn space(&self) -> HeapSpace;

    /// Reads a word of a node.
    fn load(&self, node: Node, word: Word) -> u64;

    /// Writes a word of a node.
    fn store(&self, node: Node, word: Word, value: u64);

    /// Writes a word of a node if it is `current`; what it was, if not.
    ///
    /// # Errors
    /// The word was another one.
    fn compare_exchange(&self, node: Node, word: Word, current: u64, new: u64) -> Result<(), u64>;

    /// Reads the tag of a granule of [`LocalHeap::APART`] bytes.
    fn tag(&self, node: Node, granule: u64) -> u16;

    /// Writes the tag of a granule.
    fn set_tag(&self, node: Node, granule: u64, tag: u16);

    /// Writes the tag of a granule if it is `current`.
    ///
    /// # Errors
    /// The tag was another one.
    fn exchange_tag(&self, node: Node, granule: u64, current: u16, new: u16) -> Result<(), u16>;

    /// Reads the first word of a block that is parked.
    ///
    /// # Safety
    /// The block at `offset` is parked or being unchained, and the caller holds the lock of `node`.
    unsafe fn link(&self, node: Node, offset: u64) -> u64;

    /// Writes the first word of a block.
    ///
    /// # Safety
    /// The caller has freed the block at `offset` (its tag says so), and not yet parked it.
    unsafe fn set_link(&self, node: Node, offset: u64, link: u64);

    /// Lets `change` at the heap of `node`.
    ///
    /// # Safety
    /// The caller holds the lock of `node`, and `change` frees only blocks that are in use.
    unsafe fn with_heap<T>(&self, node: Node, change: impl FnOnce(&mut Self::Heap) -> T) -> T;

    /// Does what `act` does, whose steps are at words, tags, blocks and the heap of `node` but for the epochs of others: where
    /// a node has somebody who acts for others, such as a controller, one message there and one back may take the place of
    /// a message a step. What `act` does is the same.
    fn at<T>(&self, node: Node, act: impl FnOnce() -> T) -> T {
        let _ = node;
        act()
    }

    /// Whether who acts by [`at`](Self::at) is where the heap is, so that its lock is as near as its tags: then a block of
    /// another node's heap is freed into it at once, if nobody holds it.
    fn acts_there(&self) -> bool {
        false
    }

    /// Makes every node pass a full barrier before it returns: what a node has stored before it is seen by the caller
    /// afterwards, and what the caller stored before is seen by every node. False where there is no such thing, and nothing
    /// was done; the same each time.
    ///
    /// Where there is one, a node may use its own heap without an exchange, and pays another one that comes by; see
    /// [`near_barrier`](Self::near_barrier).
    fn barrier(&self) -> bool {
        false
    }

    /// The other side of [`barrier`](Self::barrier): keeps the compiler from moving loads behind it before stores in front of
    /// it; the processor may.
    fn near_barrier(&self) {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Waits a little, before a lock is tried again.
    fn relax(&self);
}
