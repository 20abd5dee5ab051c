//! What a core asks of its controller, and how that stands in a word.
//!
//! A command is a word, its kind in the upper eight bits and a node in the others, and an operand beside it. There are steps of
//! the heap of one node, of which a program puts a request together (as the C of the paper's heap space map does, section II),
//! and whole calls, which are left to whoever manages the platform's memory.
//!
//! *Invariant:* a word and an operand are one command or none; a command is one word and one operand.

use serde::{Deserialize, Serialize};

/// What a core asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// The lock of a node's heap, however long it takes.
    Lock {
        /// The node.
        node: u32,
    },
    /// The same if it is free at once; the answer is 1, or 0.
    TryLock {
        /// The node.
        node: u32,
    },
    /// Back with the lock.
    Unlock {
        /// The node.
        node: u32,
    },
    /// A block of a node's heap; the answer is its offset, or [`NOTHING`].
    Take {
        /// The node.
        node: u32,
        /// Bytes.
        size: u32,
    },
    /// Back with a block, to the node whose heap it is of: a message, which takes the lock there by itself.
    Give {
        /// The node.
        node: u32,
        /// Its offset.
        offset: u32,
    },
    /// A block, wherever there is room; the answer is its address, or [`NOTHING`].
    Allocate {
        /// Bytes.
        size: u32,
    },
    /// A block that is no longer needed.
    Free {
        /// Its address.
        address: u32,
    },
    /// A word for another node.
    Send {
        /// The node.
        node: u32,
        /// The word.
        word: u32,
    },
    /// A word that another node has sent, however long it takes; the answer is the word.
    Receive,
    /// Nothing: whoever looks on sees that the program is here.
    Mark {
        /// What it says.
        word: u32,
    },
    /// Nothing ever again: the program has ended.
    Done,
}

/// The answer where there is no block.
pub const NOTHING: u32 = u32::MAX;

const NODE: u32 = 0x00ff_ffff;

impl Command {
    /// The command of a word and an operand, if they are one; [`Command::Done`] has no word.
    #[must_use]
    pub fn of_words(word: u32, operand: u32) -> Option<Command> {
        let node = word & NODE;
        Some(match word >> 24 {
            1 => Command::Lock { node },
            2 => Command::TryLock { node },
            3 => Command::Unlock { node },
            4 => Command::Take {
                node,
                size: operand,
            },
            5 => Command::Give {
                node,
                offset: operand,
            },
            6 => Command::Allocate { size: operand },
            7 => Command::Free { address: operand },
            8 => Command::Send {
                node,
                word: operand,
            },
            9 => Command::Receive,
            10 => Command::Mark { word: operand },
            _ => return None,
        })
    }

    /// The node that it is about, if it is about one.
    #[must_use]
    pub fn node(self) -> Option<u32> {
        match self {
            Command::Lock { node }
            | Command::TryLock { node }
            | Command::Unlock { node }
            | Command::Take { node, .. }
            | Command::Give { node, .. }
            | Command::Send { node, .. } => Some(node),
            _ => None,
        }
    }
}
