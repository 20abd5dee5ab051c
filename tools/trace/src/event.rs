//! One event of a trace, as the schema has it.

use serde::{Deserialize, Serialize};

/// What happened to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Op {
    /// The block came into being.
    Alloc,
    /// The block was given back.
    Free,
    /// The block keeps its serial number and its contents, and has another
    /// size from here on, in place or moved: that is the heap's choice.
    Resize,
    /// The program read or wrote the block.
    Access,
}

impl Op {
    /// The name in the column `op` of a trace file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Op::Alloc => "alloc",
            Op::Free => "free",
            Op::Resize => "resize",
            Op::Access => "access",
        }
    }

    /// The operation of that name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Op> {
        match name {
            b"alloc" => Some(Op::Alloc),
            b"free" => Some(Op::Free),
            b"resize" => Some(Op::Resize),
            b"access" => Some(Op::Access),
            _ => None,
        }
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// Place in the total order over all threads, from 0.
    pub seq: u64,
    /// Nanoseconds since the recording began; 0 throughout if not known.
    pub time_ns: u64,
    /// Thread that made the request, numbered by first appearance.
    pub thread: u32,
    /// What happened.
    pub op: Op,
    /// Serial number of the block.
    pub block: u64,
    /// Requested bytes; the new size for a resize, 0 for a free.
    pub size: u64,
    /// Requested alignment in bytes, a power of two; 0 for a free or an access.
    pub align: u32,
    /// Words of [`access_word`](crate::Provenance::access_word) bytes that the
    /// program read from the block since the block's last event; 0 if not
    /// recorded.
    pub reads: u64,
    /// Words written, likewise.
    pub writes: u64,
    /// Bytes read, likewise, exactly.
    pub read_bytes: u64,
    /// Bytes written, likewise.
    pub write_bytes: u64,
    /// Where in the program the request was made; 0 if not recorded.
    pub site: u64,
}
