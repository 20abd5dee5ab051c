//! The touches of a run as a touch trace: requests, and the first access to each slice of each block.
//!
//! A resize is told in the standard way: a new block; the copying of what both have, slice by slice, each
//! read in the old block and written in the new one, unless it has been touched before; the free of the old
//! block. Copying knows nothing of what was never written, so it touches that, too.
//!
//! Invariant: of a slice of a block one access is told, the first one, at its first byte there; memory is
//! bounded by the live blocks and their touched slices.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::map::{Map, Step};
use super::raw::Records;
use crate::error::TraceError;
use crate::touches::{TOUCHES_MARK, TouchOperation, TouchProfile};

/// A live block.
struct Live {
    /// Its serial number here, where a resize makes a block.
    serial: u64,
    size: u64,
    /// Slices touched.
    touched: HashSet<u64>,
}

/// What is told.
struct Told<W> {
    output: W,
    profile: TouchProfile,
    /// log2 of a slice's bytes.
    shift: u32,
    serials: u64,
}

/// What is told of the records so far, and the blocks that live, by number in the trace.
struct Collapse<W> {
    told: Told<W>,
    live: HashMap<u64, Live>,
}

/// Writes the touches in the plug-in's file `events` to `path`, with `command` in a comment; what they are.
/// `slice` is the bytes of a slice, a power of two.
pub(super) fn write(
    events: &Path,
    path: &Path,
    slice: u64,
    command: &[String],
) -> Result<TouchProfile, TraceError> {
    let io_error = |action: &'static str, path: &Path, source| TraceError::Io {
        action,
        path: path.to_owned(),
        source,
    };
    let input = File::open(events).map_err(|source| io_error("read", events, source))?;
    let output = File::create(path).map_err(|source| io_error("write", path, source))?;
    collapse(Records::new(input), BufWriter::new(output), slice, command)
        .map_err(|source| io_error("write", path, source))
}

fn collapse(
    records: Records,
    mut output: impl Write,
    slice: u64,
    command: &[String],
) -> io::Result<TouchProfile> {
    writeln!(output, "{TOUCHES_MARK}")?;
    // A comment ends with its line.
    let command = command.join(" ").replace(|c: char| c.is_control(), " ");
    writeln!(
        output,
        "# {command}: the first access to each {slice} B of a block"
    )?;
    let mut collapse = Collapse {
        told: Told {
            output,
            profile: TouchProfile::default(),
            shift: slice.trailing_zeros(),
            serials: 0,
        },
        live: HashMap::new(),
    };
    let mut map = Map::default();
    for record in records {
        if let Some(step) = map.follow(&record) {
            collapse.step(&step)?;
        }
    }
    collapse.told.output.flush()?;
    Ok(collapse.told.profile)
}

impl<W: Write> Collapse<W> {
    fn step(&mut self, step: &Step) -> io::Result<()> {
        let told = &mut self.told;
        match *step {
            Step::Alloc { block, size, align } => {
                self.live.insert(block, told.allocate(size, align)?);
            }
            Step::Free { block } => {
                if let Some(freed) = self.live.remove(&block) {
                    told.free(&freed)?;
                }
            }
            Step::Resize { block, size, align } => {
                if let Some(mut old) = self.live.remove(&block) {
                    let new = told.resize(&mut old, size, align)?;
                    self.live.insert(block, new);
                }
            }
            Step::Access(access) => {
                if let Some(live) = self.live.get_mut(&access.block) {
                    told.access(live, access.offset, u64::from(access.bytes), access.write)?;
                }
            }
        }
        Ok(())
    }
}

impl<W: Write> Told<W> {
    fn put(&mut self, operation: TouchOperation) -> io::Result<()> {
        self.profile.take(&operation);
        writeln!(self.output, "{operation}")
    }

    fn allocate(&mut self, size: u64, align: u32) -> io::Result<Live> {
        let block = self.serials;
        self.serials += 1;
        self.put(TouchOperation::Allocate { block, size, align })?;
        Ok(Live {
            serial: block,
            size,
            touched: HashSet::new(),
        })
    }

    fn free(&mut self, live: &Live) -> io::Result<()> {
        self.put(TouchOperation::Free { block: live.serial })
    }

    fn resize(&mut self, old: &mut Live, size: u64, align: u32) -> io::Result<Live> {
        let mut new = self.allocate(size, align)?;
        let kept = old.size.min(size);
        for slice in 0..kept.div_ceil(1 << self.shift) {
            let offset = slice << self.shift;
            self.touch(old, offset, false)?;
            self.touch(&mut new, offset, true)?;
        }
        self.free(old)?;
        Ok(new)
    }

    fn access(&mut self, live: &mut Live, from: u64, bytes: u64, write: bool) -> io::Result<()> {
        let mut at = from;
        while at < from + bytes {
            self.touch(live, at, write)?;
            at = ((at >> self.shift) + 1) << self.shift;
        }
        Ok(())
    }

    /// Tells an access at `offset` if it is the first to its slice.
    fn touch(&mut self, live: &mut Live, offset: u64, write: bool) -> io::Result<()> {
        if !live.touched.insert(offset >> self.shift) {
            return Ok(());
        }
        let block = live.serial;
        self.put(match write {
            true => TouchOperation::Write { block, offset },
            false => TouchOperation::Read { block, offset },
        })
    }
}
