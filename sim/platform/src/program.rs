//! What a node's program does, whatever it is: a cost model of tasks, a trace, or code on a simulated core.
//!
//! *Invariant:* a program knows nothing of time, nodes' memories or managers; it says what it does next and is told what came
//! of it.

/// What a program does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Computes for so many instructions.
    Compute(u64),
    /// Lets so many cycles pass: what code on a simulated core has taken, or a wait.
    Pass(u64),
    /// Asks for a block of so many bytes.
    Allocate {
        /// Bytes.
        size: u64,
    },
    /// Frees a block.
    Free {
        /// Its address.
        address: u64,
        /// Bytes that were asked for.
        size: u64,
    },
    /// A step at the heap of a node: of a program that manages memory by itself, by the controllers' services. Such programs run
    /// under the manager `proposed`, whose heaps have nothing but blocks.
    At {
        /// The node.
        heap: usize,
        /// What is done there.
        step: HeapStep,
    },
    /// Sends words to another node's program.
    Send {
        /// The node.
        to: usize,
        /// What it is told.
        words: Vec<u64>,
    },
    /// Waits for words of another program.
    Receive,
    /// Has ended.
    End,
}

/// A step at a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapStep {
    /// Its lock, however long it takes.
    Lock,
    /// Its lock if it is free.
    TryLock,
    /// Back with its lock.
    Unlock,
    /// A block; the lock is the program's.
    Take {
        /// Bytes.
        size: u64,
    },
    /// Back with a block: a message, with the lock taken and given back there.
    Give {
        /// Its offset.
        offset: u64,
        /// Bytes that were asked for.
        size: u64,
    },
}

/// What came of the last action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It begins.
    Begin,
    /// It is done.
    Done,
    /// There is a block at this address.
    Block(u64),
    /// There is none.
    Refused,
    /// The block was freed, or was no block in use.
    Freed(bool),
    /// The lock is the program's now, or it is not.
    Held(bool),
    /// A block at this offset of the heap, or none.
    Offset(Option<u64>),
    /// Words have come.
    Message(Message),
}

/// Words from another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The node that sent them.
    pub from: usize,
    /// The words.
    pub words: Vec<u64>,
}

/// A program of a node.
pub trait Program {
    /// What it does next, after what came of the last action. Called at `cycle`.
    fn next(&mut self, outcome: Outcome, cycle: u64) -> Action;

    /// A node has died; blocks at `addresses`, which it had allocated, are this node's now.
    fn inherit(&mut self, dead: usize, addresses: &[u64]) {
        let _ = (dead, addresses);
    }
}
