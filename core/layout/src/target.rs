//! Layout of what a recorder on a target leaves: a ring of events in memory, and batches of them on a line.
//!
//! All are words of 32 bits in the byte order of the target, which the first one tells. A *ring* is a header of
//! [`HEADER_WORDS`] and then as many events as it has room for; whatever reads the memory of the target (a debugger, a
//! crash dump) brings it out. A *batch* is a header of as many words, events, and a checksum; it is what a target sends.
//! An event is four words:
//!
//! | word | |
//! | --- | --- |
//! | 0 | time in ticks |
//! | 1 | kind (3 bits), log2 of the alignment (5; of [`TOLD`] the [figure]), context (8), low half of the event's number (16) |
//! | 2 | address |
//! | 3 | size; of [`RESIZED`] the address before |
//!
//! Invariant: an event whose word 1 is zero was reserved and never written; the number of an event tells its place in
//! the ring, so that what is left of an older one is never taken for it.

/// First word of a ring.
pub const RING_MAGIC: u32 = u32::from_be_bytes(*b"MTRR");
/// First word of a batch.
pub const BATCH_MAGIC: u32 = u32::from_be_bytes(*b"MTRB");
/// Second word of both: the version of this layout.
pub const VERSION: u32 = 1;
/// Words of a header.
pub const HEADER_WORDS: usize = 8;
/// Words of an event.
pub const EVENT_WORDS: usize = 4;
/// Most events of a batch.
pub const BATCH_EVENTS: usize = 32;

/// Words of the header of a ring, in order.
pub mod ring {
    /// [`RING_MAGIC`](super::RING_MAGIC).
    pub const MAGIC: usize = 0;
    /// [`VERSION`](super::VERSION).
    pub const VERSION: usize = 1;
    /// Events it has room for, a power of two.
    pub const CAPACITY: usize = 2;
    /// Events that were given a number.
    pub const TAKEN: usize = 3;
    /// Those of them that were sent.
    pub const SENT: usize = 4;
    /// Events that found no room, and have no number.
    pub const LOST: usize = 5;
    /// When the first one was lost, in ticks.
    pub const LOST_FROM: usize = 6;
    /// Ticks of a second, 0 if there is no clock.
    pub const FREQUENCY: usize = 7;
}

/// Words of the header of a batch, in order.
pub mod batch {
    /// [`BATCH_MAGIC`](super::BATCH_MAGIC).
    pub const MAGIC: usize = 0;
    /// [`VERSION`](super::VERSION).
    pub const VERSION: usize = 1;
    /// Events in it.
    pub const COUNT: usize = 2;
    /// Number of the first.
    pub const FIRST: usize = 3;
    /// Not used.
    pub const RESERVED: usize = 4;
    /// Events that found no room until then.
    pub const LOST: usize = 5;
    /// When the first one was lost, in ticks.
    pub const LOST_FROM: usize = 6;
    /// Ticks of a second, 0 if there is no clock.
    pub const FREQUENCY: usize = 7;
}

/// Kind of an event: a block came into being.
pub const ALLOCATED: u32 = 1;
/// Kind of an event: a block is about to be freed.
pub const FREED: u32 = 2;
/// Kind of an event: a block is about to be resized.
pub const RESIZING: u32 = 3;
/// Kind of an event: the block that was at the address in the last word is at this one now; 0 if it stays there.
pub const RESIZED: u32 = 4;
/// Kind of an event: a request was refused.
pub const REFUSED: u32 = 5;
/// Kind of an event: the target says a [figure] of its heap or of the recording, in the last two words.
pub const TOLD: u32 = 6;

/// Figures that a target says.
pub mod figure {
    /// Where the memory of its heap begins; bytes of it.
    pub const MEMORY: u32 = 0;
    /// Bytes that the heap took; most bytes live at once.
    pub const TAKEN: u32 = 1;
    /// Ticks in heap functions, low and high word: of allocations; two further on of frees, four of resizes.
    pub const TICKS: u32 = 2;
    /// Their calls; most ticks of one. So, too.
    pub const CALLS: u32 = 3;
    /// Bytes of the heap's tables beside its memory.
    pub const TABLES: u32 = 8;
    /// All is sent: the target came to the end of its recording.
    pub const END: u32 = 9;
    /// Operations of which ticks and calls are said.
    pub const OPERATIONS: u32 = 3;
}

/// Word 1 of an event.
#[inline(always)]
#[must_use]
pub const fn what(kind: u32, align_log2: u32, context: u8, number: u32) -> u32 {
    kind | (align_log2 & 31) << 3 | (context as u32) << 8 | (number & 0xffff) << 16
}

/// CRC-32 (the one of Ethernet) of words as bytes from the lowest on, going on from `before`; 0 at the beginning.
#[must_use]
pub const fn checksum(before: u32, word: u32) -> u32 {
    let mut rest = !before ^ word;
    let mut bit = 0;
    while bit < 32 {
        rest = if rest & 1 == 1 {
            rest >> 1 ^ 0xedb8_8320
        } else {
            rest >> 1
        };
        bit += 1;
    }
    !rest
}
