//! What is known of the device's contents.
//!
//! Nothing is computed here, so what a kernel would have written is not known; what the host
//! copied or filled in is. A launch says which addresses it was given, not what it does with them:
//! it may have written to everything from such an address to the end of the block of the
//! program's around it.
//!
//! Invariant: a byte is known only if the host wrote it, itself or by copies of what it had
//! written, and no launch since was given an address of its block up to it. Where the block begins
//! is what the reader says; without that, a write at a multiple of 512 is taken for the beginning
//! of one, as frameworks place blocks, and any other for a part of the segment around it.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::addresses;

/// What a device keeps of what is written to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Everything, in a file in memory.
    #[default]
    All,
    /// What the host wrote by copies of at most [`LARGEST`] bytes, and by fills.
    Host,
    /// Nothing.
    Nothing,
}

/// Bytes of the largest copy that is kept where only the host's are.
pub const LARGEST: u64 = 1 << 20;
/// Bytes that such copies take together at most; beyond, new ones are not kept.
const MOST_HELD: u64 = 256 << 20;
/// Blocks of frameworks begin at multiples of this.
const BLOCK: u64 = 512;
/// Addresses of launches that are remembered at most; beyond, everything is forgotten.
const MOST_TOUCHES: usize = 1 << 20;
/// Bytes of a copy in which addresses are looked for: tables of addresses that kernels follow.
const MOST_TABLE: u64 = 64 << 10;

/// Whether anything is known: while nothing is, launches need not be looked at.
static ANY: AtomicBool = AtomicBool::new(false);

/// Whether launches need to be looked at.
pub(crate) fn is_anything_known() -> bool {
    ANY.load(Ordering::Relaxed)
}

/// Known bytes.
#[derive(Clone, Debug)]
pub enum Value {
    /// They lie in the device's content.
    Elsewhere,
    /// A part of what was copied, from this index on.
    Bytes(Arc<[u8]>, u64),
    /// A pattern of 1, 2 or 4 bytes, repeated from the multiples of its length on.
    Pattern([u8; 4], u8),
}

impl Value {
    /// What is left behind the first `skipped` bytes.
    fn behind(&self, skipped: u64) -> Value {
        match self {
            Value::Bytes(all, from) => Value::Bytes(Arc::clone(all), from + skipped),
            other => other.clone(),
        }
    }

    /// The bytes of `size` addresses from `address` on; none if they lie elsewhere.
    #[must_use]
    pub fn bytes(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        match self {
            Value::Elsewhere => None,
            Value::Bytes(all, from) => {
                let (from, to) = (*from as usize, (from + size) as usize);
                all.get(from..to).map(<[u8]>::to_vec)
            }
            Value::Pattern(pattern, unit) => {
                let unit = u64::from(*unit);
                let at = |index| pattern[((address + index) % unit) as usize];
                Some((0..size).map(at).collect())
            }
        }
    }
}

/// A range of a read, whose bytes are all known or all not.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where it begins.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// What is known of it.
    pub value: Option<Value>,
}

#[derive(Clone, Debug)]
struct Piece {
    end: u64,
    /// Where the write that it is a part of began, and when it was done.
    origin: u64,
    written: u64,
    value: Value,
}

/// What launches may have written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Blocks around these addresses.
    Pointers(Vec<u64>),
    /// Anything.
    Everything,
}

/// What is known, by device address.
#[derive(Debug, Default)]
pub struct Knowledge {
    kept: Kept,
    pieces: BTreeMap<u64, Piece>,
    /// When a launch was last given an address, by that address.
    touches: BTreeMap<u64, u64>,
    clock: u64,
    /// Bytes in pieces that hold bytes.
    held: u64,
}

impl Knowledge {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(kept: Kept) -> Knowledge {
        Knowledge {
            kept,
            ..Knowledge::default()
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The host copied `size` bytes; `source` gives them where they are wanted.
    pub fn copied(&mut self, start: u64, size: u64, source: impl FnOnce() -> Option<Vec<u8>>) {
        let value = match self.kept {
            Kept::All => Some(Value::Elsewhere),
            Kept::Host if size <= LARGEST && self.held + size <= MOST_HELD => {
                source().map(|bytes| Value::Bytes(bytes.into(), 0))
            }
            Kept::Host | Kept::Nothing => None,
        };
        self.wrote(start, size, value);
    }

    /// A fill.
    pub fn filled(&mut self, start: u64, size: u64, pattern: [u8; 4], unit: usize) {
        let value = match self.kept {
            Kept::All => Some(Value::Elsewhere),
            Kept::Host => Some(Value::Pattern(pattern, unit as u8)),
            Kept::Nothing => None,
        };
        self.wrote(start, size, value);
    }

    /// A copy within the device, from a place in a segment that begins at `segment`.
    pub fn moved(&mut self, to: u64, from: u64, size: u64, segment: u64) {
        let runs = self.look(from, size, None, segment);
        self.wrote(to, size, None);
        let now = self.tick();
        for run in runs {
            if let Some(value) = run.value {
                let start = to + (run.start - from);
                self.insert(start, start + run.size, to, now, value);
            }
        }
    }

    fn wrote(&mut self, start: u64, size: u64, value: Option<Value>) {
        self.cut(start, size);
        if let Some(value) = value
            && size > 0
        {
            let now = self.tick();
            self.insert(start, start + size, start, now, value);
        }
    }

    /// The memory there is given back. What launches were given there is remembered all the same:
    /// a block may go on beyond.
    pub fn forget(&mut self, start: u64, size: u64) {
        self.cut(start, size);
    }

    /// Nothing is known any more.
    pub fn forget_all(&mut self) {
        self.pieces.clear();
        self.touches.clear();
        self.held = 0;
        ANY.store(false, Ordering::Relaxed);
    }

    fn insert(&mut self, start: u64, end: u64, origin: u64, written: u64, value: Value) {
        if matches!(value, Value::Bytes(..)) {
            self.held += end - start;
        }
        let piece = Piece {
            end,
            origin,
            written,
            value,
        };
        self.pieces.insert(start, piece);
        ANY.store(true, Ordering::Relaxed);
    }

    fn remove(&mut self, start: u64) -> Option<Piece> {
        let piece = self.pieces.remove(&start)?;
        if matches!(piece.value, Value::Bytes(..)) {
            self.held -= piece.end - start;
        }
        Some(piece)
    }

    /// Takes a range out of all pieces.
    fn cut(&mut self, start: u64, size: u64) {
        let end = start.saturating_add(size);
        if size == 0 {
            return;
        }
        while let Some((at, _)) = self
            .pieces
            .range(..end)
            .next_back()
            .filter(|(_, piece)| piece.end > start)
        {
            let at = *at;
            let Some(piece) = self.remove(at) else { return };
            if at < start {
                let value = piece.value.clone();
                self.insert(at, start, piece.origin, piece.written, value);
            }
            if piece.end > end {
                let value = piece.value.behind(end - at);
                self.insert(end, piece.end, piece.origin, piece.written, value);
            }
        }
    }

    /// A kernel was launched.
    pub fn touched(&mut self, what: Touched) {
        let mut pointers = match what {
            Touched::Everything => return self.forget_all(),
            Touched::Pointers(pointers) => pointers,
        };
        let now = self.tick();
        let mut next = 0;
        while let Some(&pointer) = pointers.get(next) {
            next += 1;
            let around = self.pieces.range(..=pointer).next_back();
            if let Some((&at, piece)) = around.filter(|(_, piece)| piece.end > pointer) {
                // A kernel follows the addresses in a table that it is given.
                if piece.end - at <= MOST_TABLE
                    && let Some(bytes) = piece.value.bytes(at, piece.end - at)
                    && matches!(piece.value, Value::Bytes(..))
                {
                    pointers.extend(addresses::among(&bytes));
                }
                let size = piece.end - pointer;
                self.cut(pointer, size);
            }
            let last = self.pieces.last_key_value();
            if last.is_some_and(|(_, piece)| piece.end > pointer) {
                self.touches.insert(pointer, now);
            }
        }
        if self.touches.len() > MOST_TOUCHES {
            self.forget_all();
        }
    }

    /// What is known of a range, in order. `block` is where the program's block around it begins,
    /// if that is known; `segment` where the device's does.
    #[must_use]
    pub fn look(&self, start: u64, size: u64, block: Option<u64>, segment: u64) -> Vec<Run> {
        let end = start.saturating_add(size);
        let mut runs = Vec::new();
        let mut at = start;
        let first = self.pieces.range(..=start).next_back();
        let later = self.pieces.range((Excluded(start), Unbounded));
        for (&from, piece) in first.into_iter().chain(later) {
            if from >= end {
                break;
            }
            if piece.end <= at || self.is_stale(piece, end.min(piece.end), block, segment) {
                continue;
            }
            let begin = from.max(at);
            unknown(&mut runs, at, begin);
            at = piece.end.min(end);
            runs.push(Run {
                start: begin,
                size: at - begin,
                value: Some(piece.value.behind(begin - from)),
            });
        }
        unknown(&mut runs, at, end);
        runs
    }

    /// Whether a launch may have written over a piece, up to `end`, since it was written.
    fn is_stale(&self, piece: &Piece, end: u64, block: Option<u64>, segment: u64) -> bool {
        let begin = match block {
            Some(block) => block.min(piece.origin),
            None if piece.origin.is_multiple_of(BLOCK) => piece.origin,
            None => segment.min(piece.origin),
        };
        let mut touches = self.touches.range(begin..end);
        touches.any(|(_, when)| *when > piece.written)
    }
}

fn unknown(runs: &mut Vec<Run>, start: u64, end: u64) {
    if end > start {
        runs.push(Run {
            start,
            size: end - start,
            value: None,
        });
    }
}

#[cfg(test)]
mod tests;
