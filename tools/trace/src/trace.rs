//! A trace in memory: columns, mostly 14 bytes an event.
//!
//! Invariant: every trace is consistent. Block `k` is made by the `k`-th
//! allocation, and is resized, accessed and freed only while it is live; sizes
//! fit `isize`, alignments are powers of two. [`TraceBuilder`] alone makes
//! traces, so who iterates over one need not check again.

use serde::{Deserialize, Serialize};

use crate::error::Inconsistency;
use crate::event::{Event, Op};
use crate::numbers::Numbers;
use crate::stacks::Stacks;

/// Where a trace comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// The command line; empty if not known.
    pub command: Vec<String>,
    /// What recorded or imported it.
    pub recorder: String,
    /// System and processor it was recorded on.
    pub host: String,
    /// Version of Metes that made the trace.
    pub version: String,
    /// Threads that made requests. With more than one, the order of events
    /// differs from run to run.
    pub threads: u32,
    /// The process came from `fork` and inherited a heap not in the trace.
    pub forked: bool,
    /// Frees and resizes of blocks that the trace does not know.
    pub unknown_blocks: u64,
    /// Events that could not be recorded.
    pub lost_events: u64,
    /// Whether `time_ns` holds times.
    pub timed: bool,
    /// Bytes of a word of `reads` and `writes`; 0 if no accesses were recorded.
    pub access_word: u32,
    /// Instructions that the program executed outside malloc and its kin; 0 if
    /// not known.
    pub instructions: u64,
    /// Where the trace begins, if that is not where its process does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beginning: Option<Beginning>,
}

/// Where a part of a recording begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beginning {
    /// Which part it is, from 1.
    pub part: u32,
    /// Events of the parts before it.
    pub events_before: u64,
    /// Blocks that were live: the first so many events allocate them, in the order in which they came to be.
    pub live_blocks: u64,
    /// Bytes of those.
    pub live_bytes: u64,
}

/// What a light recording leaves zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Detail {
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
}

/// The events of one process in their order, and where they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Where the trace comes from.
    pub provenance: Provenance,
    /// The call stacks of its requests, if they were recorded.
    pub stacks: Stacks,
    ops: Vec<Op>,
    blocks: Vec<u32>,
    sizes: Numbers,
    /// 0 for none, else one more than log2.
    aligns: Vec<u8>,
    threads: Numbers,
    times: Numbers,
    /// Empty while all are zero.
    details: Vec<Detail>,
    /// Empty while all are zero.
    sites: Numbers,
    block_count: u32,
}

impl Trace {
    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// True if there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Number of blocks: serial numbers are below it.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.block_count as usize
    }

    /// What happened, event by event.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The block of each event.
    #[must_use]
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// The size of each event, bytes; 0 for a free.
    #[must_use]
    pub fn sizes(&self) -> &Numbers {
        &self.sizes
    }

    /// The thread of each event.
    #[must_use]
    pub fn threads(&self) -> &Numbers {
        &self.threads
    }

    /// The time of each event, nanoseconds.
    #[must_use]
    pub fn times(&self) -> &Numbers {
        &self.times
    }

    /// The alignment of event `index`, bytes; 0 for a free. O(1).
    #[must_use]
    pub fn align(&self, index: usize) -> u32 {
        self.aligns.get(index).map_or(0, |&code| align_of(code))
    }

    /// The site of event `index`; 0 if not recorded. O(1).
    #[must_use]
    pub fn site(&self, index: usize) -> u64 {
        self.sites.get(index).unwrap_or(0)
    }

    /// Gives the events other stacks: `site` says of each old one, 0 among them, which it is among the new ones.
    /// O(events).
    pub fn restack(&mut self, stacks: Stacks, site: impl Fn(u64) -> u64) {
        let mut sites = Numbers::default();
        for index in 0..self.len() {
            sites.push(site(self.site(index)));
        }
        sites.shrink();
        (self.sites, self.stacks) = (sites, stacks);
    }

    /// True if some event has reads or writes.
    #[must_use]
    pub fn is_detailed(&self) -> bool {
        !self.details.is_empty()
    }

    /// Event `index`; None past the end. O(1).
    #[must_use]
    pub fn event(&self, index: usize) -> Option<Event> {
        let detail = self.details.get(index).copied().unwrap_or_default();
        Some(Event {
            seq: index as u64,
            op: *self.ops.get(index)?,
            block: u64::from(*self.blocks.get(index)?),
            size: self.sizes.get(index)?,
            align: self.align(index),
            thread: self.threads.get(index)? as u32,
            time_ns: self.times.get(index)?,
            reads: detail.reads,
            writes: detail.writes,
            read_bytes: detail.read_bytes,
            write_bytes: detail.write_bytes,
            site: self.site(index),
        })
    }

    /// All events in order.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        (0..self.len()).map_while(|index| self.event(index))
    }
}

fn align_of(code: u8) -> u32 {
    if code == 0 { 0 } else { 1 << (code - 1) }
}

/// Makes a trace event by event, and refuses each that could not have happened.
///
/// ```
/// use metes_trace::{Provenance, TraceBuilder};
/// let mut builder = TraceBuilder::new();
/// let block = builder.alloc(0, 0, 100, 16)?;
/// builder.free(10, 0, block)?;
/// assert!(builder.free(11, 0, block).is_err());
/// assert_eq!(builder.finish(Provenance::default()).len(), 2);
/// # Ok::<(), metes_trace::Inconsistency>(())
/// ```
#[derive(Debug, Default)]
pub struct TraceBuilder {
    trace: Trace,
    /// By serial number.
    live: Vec<bool>,
}

impl TraceBuilder {
    /// An empty trace.
    #[must_use]
    pub fn new() -> TraceBuilder {
        TraceBuilder::default()
    }

    /// Events so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.trace.len()
    }

    /// True before the first event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trace.is_empty()
    }

    /// Adds an allocation; the serial number of the new block.
    ///
    /// # Errors
    /// If size or alignment are impossible, or serial numbers used up.
    pub fn alloc(
        &mut self,
        time_ns: u64,
        thread: u32,
        size: u64,
        align: u32,
    ) -> Result<u64, Inconsistency> {
        self.alloc_at(0, time_ns, thread, size, align)
    }

    /// Adds a free of a live block.
    ///
    /// # Errors
    /// If the block is not live.
    pub fn free(&mut self, time_ns: u64, thread: u32, block: u64) -> Result<(), Inconsistency> {
        self.push(bare(self.next(), Op::Free, block, time_ns, thread))
    }

    /// Adds a resize of a live block to `size` bytes.
    ///
    /// # Errors
    /// If the block is not live or the size impossible.
    pub fn resize(
        &mut self,
        time_ns: u64,
        thread: u32,
        block: u64,
        size: u64,
        align: u32,
    ) -> Result<(), Inconsistency> {
        self.resize_at(0, time_ns, thread, block, size, align)
    }

    /// As [`alloc`](TraceBuilder::alloc), from a site.
    ///
    /// # Errors
    /// As there.
    pub fn alloc_at(
        &mut self,
        site: u64,
        time_ns: u64,
        thread: u32,
        size: u64,
        align: u32,
    ) -> Result<u64, Inconsistency> {
        let block = self.live.len() as u64;
        self.push(Event {
            align,
            size,
            site,
            ..bare(self.next(), Op::Alloc, block, time_ns, thread)
        })?;
        Ok(block)
    }

    /// As [`resize`](TraceBuilder::resize), from a site.
    ///
    /// # Errors
    /// As there.
    pub fn resize_at(
        &mut self,
        site: u64,
        time_ns: u64,
        thread: u32,
        block: u64,
        size: u64,
        align: u32,
    ) -> Result<(), Inconsistency> {
        self.push(Event {
            align,
            size,
            site,
            ..bare(self.next(), Op::Resize, block, time_ns, thread)
        })
    }

    /// Blocks so far: the serial number that the next allocation must carry.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.live.len() as u64
    }

    fn next(&self) -> u64 {
        self.trace.len() as u64
    }

    /// Adds `event`, which must carry the next sequence number and, if it is an
    /// allocation, the next serial number. Size and alignment of a free and
    /// alignment of an access are not kept. Amortised O(1).
    ///
    /// # Errors
    /// If the event cannot follow those before it; the trace is unchanged then.
    pub fn push(&mut self, event: Event) -> Result<(), Inconsistency> {
        let Event {
            seq,
            op,
            block,
            size,
            align,
            ..
        } = event;
        if seq != self.next() {
            return Err(Inconsistency::BadSequence {
                seq,
                expected: self.next(),
            });
        }
        if op != Op::Free && size > isize::MAX as u64 {
            return Err(Inconsistency::SizeTooLarge { size });
        }
        let aligned = matches!(op, Op::Alloc | Op::Resize);
        if aligned && !align.is_power_of_two() {
            return Err(Inconsistency::BadAlign { align });
        }
        let known = self.live.len() as u64;
        if op == Op::Alloc {
            if block < known {
                return Err(if self.is_live(block) {
                    Inconsistency::LiveBlock { block }
                } else {
                    Inconsistency::NotDense {
                        block,
                        expected: known,
                    }
                });
            }
            if block != known {
                return Err(Inconsistency::NotDense {
                    block,
                    expected: known,
                });
            }
            self.trace.block_count = self
                .trace
                .block_count
                .checked_add(1)
                .ok_or(Inconsistency::TooManyBlocks)?;
            self.live.push(true);
        } else {
            if block >= known {
                return Err(Inconsistency::UnknownBlock { op, block });
            }
            if !self.is_live(block) {
                return Err(match op {
                    Op::Free => Inconsistency::DoubleFree { block },
                    _ => Inconsistency::DeadBlock { op, block },
                });
            }
            if op == Op::Free {
                self.live[block as usize] = false;
            }
        }
        self.keep(event);
        Ok(())
    }

    fn is_live(&self, block: u64) -> bool {
        self.live.get(block as usize).copied().unwrap_or(false)
    }

    fn keep(&mut self, event: Event) {
        let trace = &mut self.trace;
        let Event {
            reads,
            writes,
            read_bytes,
            write_bytes,
            site,
            ..
        } = event;
        let detail = Detail {
            reads,
            writes,
            read_bytes,
            write_bytes,
        };
        if !trace.sites.is_empty() {
            trace.sites.push(site);
        } else if site != 0 {
            for _ in 0..trace.ops.len() {
                trace.sites.push(0);
            }
            trace.sites.push(site);
        }
        if !trace.details.is_empty() {
            trace.details.push(detail);
        } else if detail != Detail::default() {
            trace.details.resize(trace.ops.len(), Detail::default());
            trace.details.push(detail);
        }
        trace.ops.push(event.op);
        // Below `block_count`, which is a u32.
        trace.blocks.push(event.block as u32);
        trace
            .sizes
            .push(if event.op == Op::Free { 0 } else { event.size });
        trace.aligns.push(match event.op {
            Op::Alloc | Op::Resize => event.align.trailing_zeros() as u8 + 1,
            Op::Free | Op::Access => 0,
        });
        trace.threads.push(u64::from(event.thread));
        trace.times.push(event.time_ns);
    }

    /// The trace, with unused room given back.
    #[must_use]
    pub fn finish(self, provenance: Provenance) -> Trace {
        let mut trace = self.trace;
        trace.provenance = provenance;
        trace.ops.shrink_to_fit();
        trace.blocks.shrink_to_fit();
        trace.sizes.shrink();
        trace.aligns.shrink_to_fit();
        trace.threads.shrink();
        trace.times.shrink();
        trace.details.shrink_to_fit();
        trace.sites.shrink();
        trace
    }
}

fn bare(seq: u64, op: Op, block: u64, time_ns: u64, thread: u32) -> Event {
    Event {
        seq,
        time_ns,
        thread,
        op,
        block,
        size: 0,
        align: 0,
        reads: 0,
        writes: 0,
        read_bytes: 0,
        write_bytes: 0,
        site: 0,
    }
}
