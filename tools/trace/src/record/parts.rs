//! A recording that goes to a file as it is read: where requests go, and one file after another.
//!
//! *Invariant:* each file is a trace by itself: what was live when it begins is allocated at its start.

use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::blocks::{Asked, Sink};
use crate::error::Inconsistency;
use crate::event::{Event, Op};
use crate::parquet::TraceWriter;
use crate::stacks::Stacks;
use crate::trace::{Beginning, Provenance};
use crate::whole::Part;

/// Rows of a group of a file that is written meanwhile: some ten megabytes of columns.
const ROWS: usize = 1 << 18;
/// Rows of a group where files are cut to a size: a fraction of a megabyte.
const ROWS_OF_PARTS: usize = 1 << 16;

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    /// Its number in the file.
    block: u64,
    size: u64,
    align: u32,
    thread: u32,
    site: u64,
}

/// What is known of a file that is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Its events.
    pub events: u64,
    /// Most bytes that were live at a time.
    pub peak_live: u64,
    /// Where it begins, if that is not the beginning of its process.
    pub beginning: Option<Beginning>,
}

/// A trace on its way to a file.
pub(super) struct PartWriter {
    place: PathBuf,
    /// Its part, unless it is no regular file. None once it failed.
    open: Option<(TraceWriter, Option<Part>)>,
    failed: Option<ParquetError>,
    blocks: u64,
    live: u64,
    facts: FileFacts,
    /// Events of the files before it.
    before: u64,
    /// Whether there will be more than one.
    of_many: bool,
    /// Bytes after which it is full, beside those of the blocks that it began with: were they counted, a file of many
    /// would be full at once.
    pub(super) most: Option<u64>,
    begun_with: u64,
    /// Whether there is no room for more.
    full: bool,
}

impl PartWriter {
    /// A trace that is to be at `place`.
    pub(super) fn begin(place: &Path, of_many: bool) -> PartWriter {
        let mut writer = PartWriter::none_yet(of_many);
        writer.open(place);
        writer
    }

    /// One that writes nothing until it goes on in a file ([`PartWriter::next`]).
    pub(super) fn none_yet(of_many: bool) -> PartWriter {
        PartWriter {
            place: PathBuf::new(),
            open: None,
            failed: None,
            blocks: 0,
            live: 0,
            facts: FileFacts::default(),
            before: 0,
            of_many,
            most: None,
            begun_with: 0,
            full: false,
        }
    }

    fn open(&mut self, place: &Path) {
        self.place = place.to_owned();
        self.blocks = 0;
        self.live = 0;
        self.facts = FileFacts::default();
        let rows = if self.of_many { ROWS_OF_PARTS } else { ROWS };
        let opened =
            Part::begin_or_other(place).map_err(|error| ParquetError::External(Box::new(error)));
        match opened.and_then(|(file, part)| Ok((TraceWriter::with_rows(file, rows)?, part))) {
            Ok(open) => self.open = Some(open),
            Err(error) => self.fail(error),
        }
    }

    /// Nothing is written any more; the first reason counts.
    fn fail(&mut self, error: ParquetError) {
        self.open = None;
        self.failed.get_or_insert(error);
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&mut self) -> Option<ParquetError> {
        self.failed.take()
    }

    /// Whether the last events found no room on the disk: the file ends with those before.
    pub(super) fn found_no_room(&self) -> bool {
        self.full
    }

    /// Bytes written so far: whole groups.
    fn bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |(writer, _)| writer.bytes())
    }

    /// Where the file is to be.
    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    /// Events so far.
    pub(super) fn events(&self) -> u64 {
        self.facts.events
    }

    /// Ends the file, of which more is known now; it is put in its place by whoever gets it.
    pub(super) fn end(
        &mut self,
        provenance: Provenance,
        stacks: &Stacks,
    ) -> Option<(Option<Part>, FileFacts)> {
        let facts = self.facts.clone();
        let provenance = Provenance {
            beginning: facts.beginning.clone(),
            ..provenance
        };
        let (writer, part) = self.open.take()?;
        match writer.finish(&provenance, stacks) {
            Ok(()) => {
                self.before +=
                    facts.events - facts.beginning.as_ref().map_or(0, |own| own.live_blocks);
                Some((part, facts))
            }
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// Goes on in another file, the `number`th, that is to be at `place`, with these blocks live at `time`.
    pub(super) fn next(&mut self, place: &Path, number: u32, time: u64, live: &mut [&mut Live]) {
        self.open(place);
        live.sort_unstable_by_key(|block| block.block);
        for block in live.iter_mut() {
            let asked = Asked {
                time,
                thread: block.thread,
                site: block.site,
            };
            **block = self.add(asked, block.size, block.align);
        }
        self.begun_with = self.bytes();
        self.facts.beginning = Some(Beginning {
            part: number,
            events_before: self.before,
            live_blocks: self.blocks,
            live_bytes: self.live,
        });
    }

    fn add(&mut self, asked: Asked, size: u64, align: u32) -> Live {
        let block = self.blocks;
        self.blocks += 1;
        self.grow(size);
        self.push(Op::Alloc, asked, block, size, align);
        Live {
            block,
            size,
            align,
            thread: asked.thread,
            site: asked.site,
        }
    }

    fn grow(&mut self, size: u64) {
        self.live = self.live.saturating_add(size);
        self.facts.peak_live = self.facts.peak_live.max(self.live);
    }

    fn push(&mut self, op: Op, asked: Asked, block: u64, size: u64, align: u32) {
        let event = Event {
            seq: self.facts.events,
            time_ns: asked.time,
            thread: asked.thread,
            op,
            block,
            size,
            align,
            reads: 0,
            writes: 0,
            read_bytes: 0,
            write_bytes: 0,
            site: asked.site,
        };
        if self.full {
            return;
        }
        let Some((writer, _)) = &mut self.open else {
            return;
        };
        if writer.is_group_full() && !has_room(&self.place, writer.most_bytes()) {
            // What is not written yet is left out, so that the file can be ended.
            self.facts.events -= writer.forget();
            self.full = true;
            return;
        }
        self.facts.events += 1;
        if let Err(error) = writer.push(&event) {
            self.fail(error);
        }
    }
}

/// Whether so many bytes, and the end of a file, have room beside `place`.
fn has_room(place: &Path, bytes: u64) -> bool {
    /// Bytes of the end of a file.
    const END: u64 = 64 << 10;
    let directory = place.parent().filter(|path| !path.as_os_str().is_empty());
    let room = super::stage::room(directory.unwrap_or(Path::new(".")));
    room.is_none_or(|room| room >= bytes + END)
}

impl Sink for PartWriter {
    type Block = Live;

    fn is_full(&self) -> bool {
        self.most
            .is_some_and(|most| self.bytes() >= most.saturating_add(self.begun_with))
    }

    fn alloc(&mut self, asked: Asked, size: u64, align: u32) -> Result<Live, Inconsistency> {
        // As in any trace.
        if self.blocks >= u64::from(u32::MAX) {
            return Err(Inconsistency::TooManyBlocks);
        }
        Ok(self.add(asked, size, align))
    }

    fn free(&mut self, asked: Asked, block: Live) -> Result<(), Inconsistency> {
        self.live = self.live.saturating_sub(block.size);
        let asked = Asked { site: 0, ..asked };
        self.push(Op::Free, asked, block.block, 0, 0);
        Ok(())
    }

    fn resize(
        &mut self,
        asked: Asked,
        block: Live,
        size: u64,
        align: u32,
    ) -> Result<Live, Inconsistency> {
        self.live = self.live.saturating_sub(block.size);
        self.grow(size);
        self.push(Op::Resize, asked, block.block, size, align);
        Ok(Live {
            size,
            align,
            thread: asked.thread,
            site: asked.site,
            ..block
        })
    }
}
