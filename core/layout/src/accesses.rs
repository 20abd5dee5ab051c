//! What the guest announces to the plug-in, and the two files in which the
//! plug-in leaves what it saw.
//!
//! The plug-in `metes-access` writes them, the driver in `metes-trace` reads.
//!
//! *Announcements.* The guest calls the system with the number [`ANNOUNCE`],
//! which no system knows, and `(kind, address, size, log2 of the alignment)`.
//! An [`ALLOC`] comes after the allocator made the block, a [`FREE`] before it
//! takes the block back, and a resize is both, so that no announcement of a
//! re-used address comes before the one that gave it up. [`ENTER`] and
//! [`LEAVE`] tell when the allocator runs; [`FREE`] and [`RESIZE_BEGIN`] imply
//! the first, [`ALLOC`] and [`RESIZE_END`] the second.
//!
//! *State file*, mapped shared: [`Header`], one [`Cpu`] for each virtual
//! processor, then [`Slot`]s, one for each live block. What a block counted so
//! far is in its slot, so nothing is lost however the program dies.
//!
//! *Event file*: words of 8 bytes, little-endian, each record begun by a head
//! with its kind in the low 3 bits; a zero word ends the file.
//!
//! | kind | words after the head |
//! | --- | --- |
//! | [`ALLOC`] | slot, address, size |
//! | [`FREE`] | slot, reads, writes, bytes read, bytes written |
//! | [`RESIZE_END`] | slot, address, size, reads, writes, bytes read, bytes written |
//! | [`ACCESS`] | none |
//!
//! Counts are those since the block's last record. A head holds the thread
//! (29 bits from bit 3) and log2 of the alignment (6 bits from bit 32); that of
//! an access: whether it wrote (bit 3), its bytes (7 bits from bit 4), its
//! address (48 bits from bit 11).
//!
//! Invariant: a slot is used for one block at a time, from its `ALLOC` to its
//! `FREE`.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The system call that announces.
pub const ANNOUNCE: i64 = 0x4a5e;

/// A block came into being.
pub const ALLOC: u64 = 1;
/// A block is about to be freed.
pub const FREE: u64 = 2;
/// A block is about to be resized.
pub const RESIZE_BEGIN: u64 = 3;
/// The resize begun last by this thread gave this address; zero if it failed.
pub const RESIZE_END: u64 = 4;
/// The allocator begins to work in this thread.
pub const ENTER: u64 = 5;
/// The allocator ends its work in this thread.
pub const LEAVE: u64 = 6;
/// Kind of a record: the program read or wrote a block. Which accesses have
/// one the plug-in is told: all, or at least the first to each slice of a block.
pub const ACCESS: u64 = 5;

/// First word of a state file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"METESACC");
/// Version of this layout.
pub const VERSION: u32 = 1;
/// Bytes before the virtual processors.
pub const HEADER_BYTES: usize = 4096;
/// Virtual processors that have a state of their own; further threads share the
/// last.
pub const CPUS: usize = 4096;
/// Bytes before the slots.
pub const SLOTS_OFFSET: usize = HEADER_BYTES + CPUS * size_of::<Cpu>();
/// Slots that a file may have: blocks live at one time.
pub const SLOTS: usize = 1 << 26;
/// Name of the state file in its directory.
pub const STATE_FILE: &str = "state.raw";
/// Name of the event file in its directory.
pub const EVENT_FILE: &str = "events.raw";
/// Name of the file that tells the recorder in the guest to announce.
pub const ANNOUNCE_FILE: &str = "announce";

/// Start of a state file. All-zero bytes are a valid value.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Bytes of a word of the word counts.
    pub word: AtomicU32,
    /// Process that runs the program.
    pub pid: AtomicU32,
    /// Threads that ran.
    pub threads: AtomicU32,
    /// Slots used at one time or other.
    pub slots: AtomicU64,
    /// Frees of addresses that are no known block.
    pub unknown_frees: AtomicU64,
    /// Resizes of such addresses.
    pub unknown_resizes: AtomicU64,
    /// Records and blocks for which there was no room.
    pub lost: AtomicU64,
    /// Children that the program forked; they are not followed.
    pub forks: AtomicU64,
    /// Programs that such children ran instead of this one.
    pub child_programs: AtomicU64,
    /// 1 once the program replaced itself by another, which runs outside QEMU.
    pub replaced: AtomicU64,
    /// 1 if QEMU came to the end of the program by itself.
    pub finished: AtomicU64,
}

/// A virtual processor: a thread of the program while it lives.
#[repr(C, align(64))]
pub struct Cpu {
    /// Instructions executed outside the allocator.
    pub instructions: AtomicU64,
    /// Instructions executed in it.
    pub allocator_instructions: AtomicU64,
    /// 1 while the allocator works.
    pub inside: AtomicU32,
    /// Number of the thread, from 0.
    pub thread: AtomicU32,
}

/// A live block and what was counted of it since its last record.
#[repr(C, align(64))]
pub struct Slot {
    /// Its first byte; 0 if the slot is not used.
    pub address: AtomicU64,
    /// Its bytes.
    pub size: AtomicU64,
    /// Words read, written.
    pub words: [AtomicU64; 2],
    /// Bytes read, written.
    pub bytes: [AtomicU64; 2],
    /// The word last read, written: its number times 256, and a bit for each of
    /// its bytes that the present transfer has moved; 0 if none is under way.
    pub transfers: [AtomicU64; 2],
}
