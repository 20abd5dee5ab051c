//! Layout of a raw recording: one header, then segments of words of 8 bytes, each of one thread.
//!
//! The recorder writes it through a shared mapping, so that what was written
//! survives any death of the process; the driver in `metes-trace` reads it, at the end or meanwhile.
//!
//! A segment begins with a word that says whose it is ([`owner`]); then come records, in the order of the
//! thread. A record is a head word and words of kind [`MORE`]:
//!
//! | kind | words |
//! | --- | --- |
//! | [`ALLOC`], [`RESIZE_BEGIN`] | head with the address; size and alignment |
//! | [`FREE`], [`RESIZE_END`] | head with the address |
//! | [`MARK`] | head; full time |
//! | [`TABLE`] | head with what and how much; its number; that many words less one |
//!
//! Where call stacks are
//! recorded ([`Header::sites`]), those of the first line have a word more: the
//! stack, by the number of its entry ([`STACK`]) plus one, or zero. Half
//! the bytes of fixed records, which is what recording costs: memory traffic
//! and pages. The head holds only the low bits of the time; a thread writes a
//! mark before a record that comes so late after its last that they would not
//! do, and at the start of each segment. Behind that stands the system's number of the thread ([`system_thread`]): of a
//! thread that is gone, the segment that it had last can be handed back.
//!
//! Order. The records of all threads are in order by their times. Of two requests of which one hands an address
//! on to the other, the time of the one that gives it up is read before it does, and that of the one that gets it
//! afterwards; where the clocks of the processors are not known to agree, times come from a counter that all threads
//! share ([`Header::clock`]).
//!
//! A record is begun by [`PENDING`] in the place of its head, before the time is read. So who reads along knows
//! that a thread whose next word is zero has no record that is older than that look, but for what a processor
//! had not written back yet.
//!
//! Reading along. The reader hands segments back by [`Header::ring`], zeroed; the recorder takes those before it makes the file
//! longer, and where a reader allows no more ([`Header::most_segments`]), it waits for some.
//!
//! Invariant: segment `i` lies at `HEADER_BYTES + i * SEGMENT_BYTES`; a word of zero was
//! reserved but never written; the kind of a word tells whether it is a head,
//! so that a reader finds its way past a record that its writer did not finish.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// First word of every raw recording.
pub const MAGIC: u64 = u64::from_le_bytes(*b"METESRAW");
/// Version of this layout.
pub const VERSION: u32 = 3;
/// Bytes before the first record: a multiple of every page size in use.
pub const HEADER_BYTES: usize = 65_536;
/// log2 of the words of a chunk, the unit in which the file grows: small enough
/// that a fresh chunk is still in the cache when it is written.
pub const CHUNK_SHIFT: u32 = 15;
/// Bytes of a chunk: also a multiple of every page size in use.
pub const CHUNK_BYTES: usize = 8 << CHUNK_SHIFT;
/// log2 of the words of a segment.
pub const SEGMENT_SHIFT: u32 = 10;
/// Words of a segment.
pub const SEGMENT_WORDS: usize = 1 << SEGMENT_SHIFT;
/// Bytes of a segment.
pub const SEGMENT_BYTES: usize = 8 << SEGMENT_SHIFT;
/// Segments of a chunk.
pub const SEGMENTS_IN_CHUNK: usize = 1 << (CHUNK_SHIFT - SEGMENT_SHIFT);
/// Segments that may be handed back and not yet taken.
pub const RING: usize = 8192;
/// Longest command line kept, in bytes; longer ones are cut.
pub const COMMAND_BYTES: usize = 3072;
/// Longest path of the executable kept, in bytes.
pub const PROGRAM_BYTES: usize = 768;
/// Environment variable that names the directory of the raw recordings.
pub const DIRECTORY_VARIABLE: &str = "METES_RECORD_DIRECTORY";

/// Kind of a head: a block came into being.
pub const ALLOC: u64 = 1;
/// Kind of a head: the block at this address is about to be freed.
pub const FREE: u64 = 2;
/// Kind of a head: the block at this address is about to be resized.
pub const RESIZE_BEGIN: u64 = 3;
/// Kind of a head: the resize begun last by this thread gave this address, or
/// zero if it failed and the old block stays.
pub const RESIZE_END: u64 = 4;
/// Kind of a head: the time of the thread.
pub const MARK: u64 = 5;
/// Kind of a head: an entry of the tables of stacks and modules ([`entry`]).
pub const TABLE: u64 = 6;
/// Kind of a word that belongs to the head before it.
pub const MORE: u64 = 7;

/// In the place of a head: a record is under way.
pub const PENDING: u64 = 1 << 3;
/// In the place of any word: nothing.
pub const PADDING: u64 = 2 << 3;
/// Low byte of the word with the system's number of a thread.
const SYSTEM_THREAD: u64 = 3 << 3;

/// log2 of the times that the bits in a head can tell apart.
const TIME_BITS: u32 = 17;
/// Times that the bits in a head can tell apart; half of them lie before the time of the record before.
pub const TIMES: u64 = 1 << TIME_BITS;

/// Entry of a table: a call stack, a word for the address of each call, the innermost first.
pub const STACK: u64 = 0;
/// As [`STACK`], and more calls lie outside of the outermost one.
pub const CUT_STACK: u64 = 1;
/// As [`STACK`], and the caller of the outermost one could not be found.
pub const BROKEN_STACK: u64 = 2;
/// Entry of a table: a module, that is, a program or library as it lies in memory: its first
/// address, the first behind it, what its addresses in memory are above those in its file, then
/// bytes of the build id (low 16 bits) and of the path, then those bytes, [`PACKED`] a word.
pub const MODULE: u64 = 3;
/// Calls of a stack that are kept, from the innermost on.
pub const MOST_CALLS: usize = 64;
/// Bytes in each word of packed bytes.
pub const PACKED: usize = 7;
/// Name of the file, in the directory of the raw recordings, that has stacks recorded.
pub const SITES_FILE: &str = "sites";
/// Name of the file there that has recordings begin paused.
pub const PAUSED_FILE: &str = "paused";

/// Start of a raw recording. All-zero bytes are a valid value.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// A unit of time is two to this power of ticks of the clock.
    pub clock_shift: u32,
    /// Process that wrote the file.
    pub pid: u32,
    /// Its parent when the file was begun.
    pub parent: u32,
    /// 1 if the process came from `fork` and inherited its parent's heap.
    pub forked: u32,
    /// 1 if call stacks are recorded.
    pub sites: u32,
    /// Ticks of the clock when the file was begun.
    pub clock_start: u64,
    /// Monotonic time when the file was begun, nanoseconds.
    pub monotonic_start: u64,
    /// Bytes used of `command`.
    pub command_length: u32,
    /// Bytes used of `program`.
    pub program_length: u32,
    /// 1 if times come from `clock`.
    pub shared_clock: u32,
    /// Not 0 while nothing is to be recorded.
    pub paused: AtomicU32,
    /// The process that reads along; 0 if none does.
    pub reader: AtomicU32,
    /// Segments that there may be, if somebody reads along; 0 for any number.
    pub most_segments: AtomicU32,
    /// Keeps what is written below away from what is read at each event.
    pub padding: [u64; 8],
    /// Segments that the file has: each has its first word.
    pub segments: AtomicU64,
    /// Segments taken from the ring.
    pub taken: AtomicU64,
    /// Events that found no place (disk full, file size limit, no access).
    pub lost: AtomicU64,
    /// Nanoseconds for which threads waited for a reader.
    pub waited: AtomicU64,
    /// Entries of tables so far.
    pub entries: AtomicU64,
    /// Keeps the clock on a cache line of its own.
    pub padding_clock: [u64; 8],
    /// The last time that was read, if threads share a clock.
    pub clock: AtomicU64,
    /// Keeps the clock on a cache line of its own.
    pub padding_after: [u64; 8],
    /// Segments handed back by the reader.
    pub given: AtomicU64,
    /// Which they are: the `n`th at `n % RING`.
    pub ring: [AtomicU32; RING],
    /// Arguments, each ended by a zero byte.
    pub command: [u8; COMMAND_BYTES],
    /// Path of the executable.
    pub program: [u8; PROGRAM_BYTES],
}

/// The first word of a segment: the `number`th of that thread, both from 1.
#[inline(always)]
#[must_use]
pub const fn owner(thread: u32, number: u32) -> u64 {
    (thread as u64) << 32 | number as u64
}

/// In the place of a head: the number that the system has for the thread; 0 where it is not to be looked for.
#[inline(always)]
#[must_use]
pub const fn system_thread(number: u32) -> u64 {
    (number as u64) << 8 | SYSTEM_THREAD
}

/// That number, if the word is one of those.
#[inline(always)]
#[must_use]
pub const fn system_thread_of(word: u64) -> Option<u32> {
    match word & 0xff {
        SYSTEM_THREAD => Some((word >> 8) as u32),
        _ => None,
    }
}

/// The head of a record: kind (3 bits), low bits of the time (17),
/// address / 16 (44).
#[inline(always)]
#[must_use]
pub const fn head(kind: u64, time: u64, address: u64) -> u64 {
    kind | (time & (TIMES - 1)) << 3 | (address >> 4) << (3 + TIME_BITS)
}

/// Low bits of the time in a head.
#[inline(always)]
#[must_use]
pub const fn time_of(head: u64) -> u64 {
    head >> 3 & (TIMES - 1)
}

/// Address in a head.
#[inline(always)]
#[must_use]
pub const fn address_of(head: u64) -> u64 {
    head >> (3 + TIME_BITS) << 4
}

/// The head of an entry of a table, followed by `words` words, its number included.
#[inline(always)]
#[must_use]
pub const fn entry(what: u64, words: usize) -> u64 {
    TABLE | (what & 0x7f) << 3 | (words as u64) << 10
}

/// A further word: kind and 61 bits.
#[inline(always)]
#[must_use]
pub const fn more(bits: u64) -> u64 {
    MORE | bits << 3
}

/// The bits of a word after the head: size (48 bits) and log2 of the alignment.
#[inline(always)]
#[must_use]
pub const fn request(size: u64, align_log2: u32) -> u64 {
    size & 0xffff_ffff_ffff | (align_log2 as u64) << 48
}
