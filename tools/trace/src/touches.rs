//! Touch traces: what a program asks of its heap and, in between, where it touches its blocks. Text,
//! one operation a line:
//!
//! | line | |
//! | --- | --- |
//! | `a,BLOCK,SIZE[,ALIGN]` | allocates block BLOCK of SIZE bytes, aligned to ALIGN (16 if absent) |
//! | `f,BLOCK` | frees it |
//! | `r,BLOCK,OFFSET` | reads its byte OFFSET, from 0 |
//! | `w,BLOCK,OFFSET` | writes it |
//!
//! BLOCK is a serial number: the first `a` makes block 0, the next one block 1, whatever was freed.
//! There is no resize; it is told in the standard way, as a new block, the copying, and the free of
//! the old one. `#` begins a comment, and blank lines do not count. Numbers are decimal. Any access to
//! a live block may be told; recordings tell the first one of each slice of a block
//! ([`record::access`](crate::record::access)), as an emulation of pages needs no more.
//!
//! Invariant: reads line by line, in memory for the live blocks; an operation given out could be done
//! after those before it.

mod profile;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

pub use profile::TouchProfile;

use crate::error::{Inconsistency, TraceError};
use crate::event::Op;

/// Longest line read, bytes.
const LONGEST_LINE: usize = 1024;
/// Alignment of a line that names none: what `malloc` promises.
const DEFAULT_ALIGN: u32 = 16;
/// Blocks that a trace may have.
const MOST_BLOCKS: u64 = u32::MAX as u64;
/// The first line of touch traces that Metes writes.
pub const TOUCHES_MARK: &str =
    "# Touches of blocks: a,BLOCK,SIZE[,ALIGN] f,BLOCK r,BLOCK,OFFSET w,BLOCK,OFFSET";

/// One operation. Displayed, it is its line, without the line's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TouchOperation {
    /// A block comes into being: `a,BLOCK,SIZE[,ALIGN]`, 16 where ALIGN is absent.
    Allocate {
        /// Its serial number.
        block: u64,
        /// Its bytes.
        size: u64,
        /// What its address is a multiple of, bytes.
        align: u32,
    },
    /// A block is given back: `f,BLOCK`.
    Free {
        /// Its serial number.
        block: u64,
    },
    /// The program reads: `r,BLOCK,OFFSET`.
    Read {
        /// The block's serial number.
        block: u64,
        /// The byte, from the beginning of the block.
        offset: u64,
    },
    /// The program writes: `w,BLOCK,OFFSET`.
    Write {
        /// The block's serial number.
        block: u64,
        /// The byte, from the beginning of the block.
        offset: u64,
    },
}

impl TouchOperation {
    /// The block that it concerns.
    #[must_use]
    pub const fn block(&self) -> u64 {
        match *self {
            TouchOperation::Allocate { block, .. }
            | TouchOperation::Free { block }
            | TouchOperation::Read { block, .. }
            | TouchOperation::Write { block, .. } => block,
        }
    }
}

impl fmt::Display for TouchOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TouchOperation::Allocate { block, size, align } if *align == DEFAULT_ALIGN => {
                write!(f, "a,{block},{size}")
            }
            TouchOperation::Allocate { block, size, align } => {
                write!(f, "a,{block},{size},{align}")
            }
            TouchOperation::Free { block } => write!(f, "f,{block}"),
            TouchOperation::Read { block, offset } => write!(f, "r,{block},{offset}"),
            TouchOperation::Write { block, offset } => write!(f, "w,{block},{offset}"),
        }
    }
}

/// What is wrong with a line of a touch trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TouchError {
    /// See [`Inconsistency`].
    #[error(transparent)]
    Inconsistent(#[from] Inconsistency),
    /// An access beyond the end.
    #[error(
        "offset {offset} of block {block}, which has {size} bytes: an offset is counted from the \
         beginning of its block"
    )]
    Beyond {
        /// The block.
        block: u64,
        /// The offset found.
        offset: u64,
        /// The block's bytes.
        size: u64,
    },
    /// The first field is none of a, f, r, w.
    #[error("unknown operation {0:?}; a (allocate), f (free), r (read) and w (write) are known")]
    UnknownOp(String),
    /// Too few fields or too many.
    #[error(
        "{0} fields; a line is a,BLOCK,SIZE[,ALIGN] or f,BLOCK or r,BLOCK,OFFSET or w,BLOCK,OFFSET"
    )]
    Fields(usize),
    /// A field that should be a number.
    #[error("{field} is {text:?}, not a whole number in its range")]
    NotANumber {
        /// The field.
        field: &'static str,
        /// What it holds.
        text: String,
    },
    /// Longer than any operation.
    #[error("longer than {0} bytes, so no operation; is this a touch trace?")]
    TooLong(usize),
}

/// The operations of a touch trace, in order, each checked against those before it; ends after the first
/// error, [`TraceError::Touch`] with line and cause, or [`TraceError::Empty`]. One [operation](TouchOperation) a
/// line; `#` begins a comment; blocks are numbered by their allocations, from 0. O(1) expected a line, in
/// memory for the live blocks.
#[derive(Debug)]
pub struct TouchReader<R> {
    input: R,
    name: PathBuf,
    text: Vec<u8>,
    line: u64,
    /// Bytes of the live blocks.
    live: HashMap<u64, u64>,
    blocks: u64,
    ended: bool,
}

/// Opens the touch trace in file `path`.
///
/// # Errors
/// [`TraceError::Io`].
pub fn open_touches(path: &Path) -> Result<TouchReader<BufReader<File>>, TraceError> {
    let file = File::open(path).map_err(|source| cannot_read(path, source))?;
    Ok(TouchReader::new(BufReader::new(file), path))
}

fn cannot_read(path: &Path, source: io::Error) -> TraceError {
    TraceError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    }
}

impl<R: BufRead> TouchReader<R> {
    /// Reads `input`; `name` is what errors call it.
    pub fn new(input: R, name: &Path) -> TouchReader<R> {
        TouchReader {
            input,
            name: name.to_owned(),
            text: Vec::new(),
            line: 0,
            live: HashMap::new(),
            blocks: 0,
            ended: false,
        }
    }

    /// The next operation; None at the end.
    fn advance(&mut self) -> Result<Option<TouchOperation>, TraceError> {
        loop {
            self.text.clear();
            let mut limited = self.input.by_ref().take(LONGEST_LINE as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.text);
            if read.map_err(|source| cannot_read(&self.name, source))? == 0 {
                // Every operation other than an allocation needs one before it.
                return match self.blocks {
                    0 => Err(TraceError::Empty {
                        path: self.name.clone(),
                    }),
                    _ => Ok(None),
                };
            }
            self.line += 1;
            let parsed = parse(&self.text);
            let checked = parsed.and_then(|found| {
                found.map_or(Ok(()), |operation| self.follow(operation))?;
                Ok(found)
            });
            match checked {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(cause) => {
                    return Err(TraceError::Touch {
                        path: self.name.clone(),
                        line: self.line,
                        cause,
                    });
                }
            }
        }
    }

    /// Whether the operation can be done after those before it.
    fn follow(&mut self, operation: TouchOperation) -> Result<(), TouchError> {
        match operation {
            TouchOperation::Allocate { block, size, align } => {
                if block != self.blocks {
                    let expected = self.blocks;
                    return Err(Inconsistency::NotDense { block, expected }.into());
                }
                if block == MOST_BLOCKS {
                    return Err(Inconsistency::TooManyBlocks.into());
                }
                if size > isize::MAX as u64 {
                    return Err(Inconsistency::SizeTooLarge { size }.into());
                }
                if !align.is_power_of_two() {
                    return Err(Inconsistency::BadAlign { align }.into());
                }
                self.live.insert(block, size);
                self.blocks += 1;
                Ok(())
            }
            TouchOperation::Free { block } => match self.live.remove(&block) {
                Some(_) => Ok(()),
                None if block < self.blocks => Err(Inconsistency::DoubleFree { block }.into()),
                None => {
                    let op = Op::Free;
                    Err(Inconsistency::UnknownBlock { op, block }.into())
                }
            },
            TouchOperation::Read { block, offset } | TouchOperation::Write { block, offset } => {
                let op = Op::Access;
                match self.live.get(&block) {
                    Some(&size) if offset < size => Ok(()),
                    Some(&size) => Err(TouchError::Beyond {
                        block,
                        offset,
                        size,
                    }),
                    None if block < self.blocks => {
                        Err(Inconsistency::DeadBlock { op, block }.into())
                    }
                    None => Err(Inconsistency::UnknownBlock { op, block }.into()),
                }
            }
        }
    }
}

impl<R: BufRead> Iterator for TouchReader<R> {
    type Item = Result<TouchOperation, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The operation of a line; None if it has none.
fn parse(text: &[u8]) -> Result<Option<TouchOperation>, TouchError> {
    if text.len() > LONGEST_LINE {
        return Err(TouchError::TooLong(LONGEST_LINE));
    }
    let text = text.split(|&byte| byte == b'#').next().unwrap_or_default();
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let mut fields = [&[][..]; 4];
    let mut count = 0;
    for field in text.split(|&byte| byte == b',') {
        if let Some(place) = fields.get_mut(count) {
            *place = field.trim_ascii();
        }
        count += 1;
    }
    let [op, block, third, fourth] = fields;
    let block = |wanted: std::ops::RangeInclusive<usize>| match wanted.contains(&count) {
        true => number("BLOCK", block),
        false => Err(TouchError::Fields(count)),
    };
    Ok(Some(match op {
        b"a" => TouchOperation::Allocate {
            block: block(3..=4)?,
            size: number("SIZE", third)?,
            align: match count {
                4 => number("ALIGN", fourth)?,
                _ => DEFAULT_ALIGN,
            },
        },
        b"f" => TouchOperation::Free {
            block: block(2..=2)?,
        },
        b"r" => TouchOperation::Read {
            block: block(3..=3)?,
            offset: number("OFFSET", third)?,
        },
        b"w" => TouchOperation::Write {
            block: block(3..=3)?,
            offset: number("OFFSET", third)?,
        },
        other => return Err(TouchError::UnknownOp(shown(other))),
    }))
}

fn number<T: std::str::FromStr>(field: &'static str, text: &[u8]) -> Result<T, TouchError> {
    let digits = std::str::from_utf8(text).ok();
    // Parsing takes a sign, too.
    let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| TouchError::NotANumber {
        field,
        text: shown(text),
    })
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text.get(..40).unwrap_or(text)).into_owned()
}
