//! The profile of a trace: the figures that a heap is chosen by.
//!
//! A resize: the block keeps its serial number and leaves its size for another.
//! Counts per size follow it: `frees` counts the frees of blocks that had the
//! size at the end, `peak_live` the blocks that had it at one time. Lifespans
//! run from allocation to free and count for the size at allocation; blocks
//! never freed have none.
//!
//! Invariant: exact, but for the curve, which keeps the lowest and highest
//! point of each stretch and hence the peak. O(events) time; memory O(live blocks),
//! and four bytes for each other one.

mod histogram;
mod render;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::event::{Event, Op};
use crate::trace::Trace;
pub use histogram::{Bucket, Histogram};

/// Most points of [`Profile::curve`].
pub const CURVE_POINTS: usize = 2000;
/// Share of the allocations that the dominant sizes make up.
const DOMINANT_SHARE: f64 = 0.8;
/// Most dominant sizes.
const DOMINANT_MOST: usize = 16;

/// What a trace asks of a heap. Sizes and live bytes in bytes, times in
/// nanoseconds, lifespans also in events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// All events.
    pub events: u64,
    /// Allocations, and so blocks.
    pub allocations: u64,
    /// Frees.
    pub frees: u64,
    /// Resizes.
    pub resizes: u64,
    /// Resizes to a larger size.
    pub grows: u64,
    /// Access events.
    pub accesses: u64,
    /// Bytes of a word of the counts below; 0 if no accesses were recorded.
    pub access_word: u32,
    /// Words read, where recorded.
    pub reads: u64,
    /// Words written, where recorded.
    pub writes: u64,
    /// Bytes read, where recorded.
    pub read_bytes: u64,
    /// Bytes written, where recorded.
    pub write_bytes: u64,
    /// The size whose blocks were accessed most, in words; None if none was.
    pub most_accessed: Option<u64>,
    /// Instructions executed outside malloc; 0 if not known.
    pub instructions: u64,
    /// Threads that made requests.
    pub threads: u32,
    /// Frees by a thread other than the one that allocated.
    pub cross_thread_frees: u64,
    /// Time from first to last event; 0 if the trace has no times.
    pub duration_ns: u64,
    /// Sum of the sizes of all allocations.
    pub allocated_bytes: u64,
    /// Largest size ever requested.
    pub largest: u64,
    /// Most bytes live at one time.
    pub peak_live: u64,
    /// Event after which they first were.
    pub peak_live_seq: u64,
    /// Most blocks live at one time.
    pub peak_blocks: u64,
    /// Bytes live at the end.
    pub final_live: u64,
    /// Blocks live at the end.
    pub final_blocks: u64,
    /// Every size, ascending.
    pub sizes: Vec<SizeProfile>,
    /// The most allocated sizes, which together make up four fifths of the
    /// allocations, at most 16; most allocated first.
    pub dominant: Vec<u64>,
    /// Requested alignments of allocations.
    pub aligns: Vec<AlignCount>,
    /// Lifespans of freed blocks, events.
    pub lifespan_events: Histogram,
    /// Lifespans of freed blocks, nanoseconds; empty if there are no times.
    pub lifespan_ns: Histogram,
    /// Lengths of runs of allocations without a free between.
    pub allocation_bursts: Histogram,
    /// Lengths of runs of frees without an allocation between.
    pub free_bursts: Histogram,
    /// Live bytes over time, at most [`CURVE_POINTS`] points.
    pub curve: Vec<CurvePoint>,
}

/// The figures of one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeProfile {
    /// Requested bytes.
    pub size: u64,
    /// Allocations of this size.
    pub allocations: u64,
    /// Frees of blocks that had this size then.
    pub frees: u64,
    /// Resizes to this size.
    pub resizes_to: u64,
    /// Resizes from this size.
    pub resizes_from: u64,
    /// Most blocks that had this size at one time.
    pub peak_live: u64,
    /// Mean lifespan in events of the freed blocks allocated with this size;
    /// None if none was freed.
    pub mean_lifespan_events: Option<f64>,
    /// Mean lifespan in nanoseconds of the freed blocks allocated with this size; None if none was
    /// freed or the trace has no times.
    pub mean_lifespan_ns: Option<f64>,
    /// Words read from blocks while they had this size, where recorded.
    pub reads: u64,
    /// Words written to them, where recorded.
    pub writes: u64,
    /// Bytes read from them, where recorded.
    pub read_bytes: u64,
    /// Bytes written to them, where recorded.
    pub write_bytes: u64,
}

/// How often an alignment was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AlignCount {
    /// Bytes.
    pub align: u32,
    /// Allocations.
    pub count: u64,
}

/// Live memory after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CurvePoint {
    /// The event.
    pub seq: u64,
    /// Its time.
    pub time_ns: u64,
    /// Bytes live after it.
    pub live: u64,
    /// Blocks live after it.
    pub blocks: u64,
}

/// A block while it lives.
#[derive(Clone, Copy, Default)]
struct Block {
    /// Its size now, as index of a row.
    row: u32,
    /// Its size at allocation, as index of a row.
    first_row: u32,
    thread: u32,
    born: u64,
    born_ns: u64,
}

/// The blocks that live; who comes after one that was freed takes its place.
struct Blocks {
    /// By serial number.
    places: Vec<u32>,
    blocks: Vec<Block>,
    spare: Vec<u32>,
}

impl Blocks {
    fn new(count: usize) -> Self {
        Blocks {
            places: vec![0; count],
            blocks: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// The block of an event, which may be the last of it.
    fn of(&mut self, event: &Event) -> &mut Block {
        let place = &mut self.places[event.block as usize];
        if event.op == Op::Alloc {
            *place = self.spare.pop().unwrap_or_else(|| {
                self.blocks.push(Block::default());
                // Blocks are counted by u32.
                (self.blocks.len() - 1) as u32
            });
        }
        if event.op == Op::Free {
            self.spare.push(*place);
        }
        &mut self.blocks[*place as usize]
    }
}

/// The threads met; mostly the same as before.
#[derive(Default)]
struct Threads {
    met: HashSet<u32>,
    last: Option<u32>,
}

impl Threads {
    fn insert(&mut self, thread: u32) {
        if self.last != Some(thread) {
            self.last = Some(thread);
            self.met.insert(thread);
        }
    }
}

/// A size while it is counted.
#[derive(Default)]
struct Row {
    size: u64,
    allocations: u64,
    frees: u64,
    resizes_to: u64,
    resizes_from: u64,
    live: u64,
    peak_live: u64,
    ended: u64,
    lifespan_events: u128,
    lifespan_ns: u128,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl Row {
    fn count(&mut self, event: &Event) {
        self.reads = self.reads.saturating_add(event.reads);
        self.writes = self.writes.saturating_add(event.writes);
        self.read_bytes = self.read_bytes.saturating_add(event.read_bytes);
        self.write_bytes = self.write_bytes.saturating_add(event.write_bytes);
    }

    fn enter(&mut self) {
        self.live += 1;
        self.peak_live = self.peak_live.max(self.live);
    }
}

/// The rows, found by size.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    index: HashMap<u64, u32>,
}

impl Rows {
    fn of(&mut self, size: u64) -> u32 {
        *self.index.entry(size).or_insert_with(|| {
            self.rows.push(Row {
                size,
                ..Row::default()
            });
            // Every row has an event, and blocks are counted by u32.
            (self.rows.len() - 1) as u32
        })
    }

    fn get(&mut self, row: u32) -> &mut Row {
        &mut self.rows[row as usize]
    }
}

/// Profiles `trace`. O(events) expected.
#[must_use]
pub fn profile(trace: &Trace) -> Profile {
    let timed = !trace.times().all_are(0);
    let mut rows = Rows::default();
    let mut blocks = Blocks::new(trace.block_count());
    let mut aligns = BTreeMap::new();
    let mut threads = Threads::default();
    let mut curve = Curve::new(trace.len());
    let mut bursts = Bursts::default();
    let mut lifespan_events = Histogram::default();
    let mut lifespan_ns = Histogram::default();
    let mut result = empty(trace);
    let (mut live, mut live_blocks) = (0u64, 0u64);

    for event in trace.iter() {
        threads.insert(event.thread);
        let block = blocks.of(&event);
        // What a resize carries happened before it.
        let held = (event.op != Op::Alloc).then_some(block.row);
        match event.op {
            Op::Alloc => {
                result.allocations += 1;
                result.allocated_bytes = result.allocated_bytes.saturating_add(event.size);
                *aligns.entry(event.align).or_insert(0u64) += 1;
                let row = rows.of(event.size);
                rows.get(row).allocations += 1;
                rows.get(row).enter();
                *block = Block {
                    row,
                    first_row: row,
                    thread: event.thread,
                    born: event.seq,
                    born_ns: event.time_ns,
                };
                live = live.saturating_add(event.size);
                live_blocks += 1;
                bursts.allocation();
            }
            Op::Free => {
                result.frees += 1;
                result.cross_thread_frees += u64::from(block.thread != event.thread);
                let row = rows.get(block.row);
                row.frees += 1;
                row.live -= 1;
                live = live.saturating_sub(row.size);
                live_blocks -= 1;
                let events = event.seq - block.born;
                // Another tool's times may run backwards.
                let ns = event.time_ns.saturating_sub(block.born_ns);
                let first = rows.get(block.first_row);
                first.ended += 1;
                first.lifespan_events += u128::from(events);
                first.lifespan_ns += u128::from(ns);
                lifespan_events.add(events);
                if timed {
                    lifespan_ns.add(ns);
                }
                bursts.free();
            }
            Op::Resize => {
                result.resizes += 1;
                let old = rows.get(block.row);
                let old_size = old.size;
                old.resizes_from += 1;
                old.live -= 1;
                result.grows += u64::from(event.size > old_size);
                block.row = rows.of(event.size);
                let new = rows.get(block.row);
                new.resizes_to += 1;
                new.enter();
                live = live.saturating_sub(old_size).saturating_add(event.size);
            }
            Op::Access => result.accesses += 1,
        }
        rows.get(held.unwrap_or(block.row)).count(&event);
        result.reads = result.reads.saturating_add(event.reads);
        result.writes = result.writes.saturating_add(event.writes);
        result.read_bytes = result.read_bytes.saturating_add(event.read_bytes);
        result.write_bytes = result.write_bytes.saturating_add(event.write_bytes);
        if live > result.peak_live {
            result.peak_live = live;
            result.peak_live_seq = event.seq;
        }
        result.peak_blocks = result.peak_blocks.max(live_blocks);
        result.largest = result.largest.max(event.size);
        curve.add(CurvePoint {
            seq: event.seq,
            time_ns: event.time_ns,
            live,
            blocks: live_blocks,
        });
    }

    result.threads = threads.met.len() as u32;
    result.final_live = live;
    result.final_blocks = live_blocks;
    result.aligns = aligns
        .into_iter()
        .map(|(align, count)| AlignCount { align, count })
        .collect();
    (result.allocation_bursts, result.free_bursts) = bursts.finish();
    result.lifespan_events = lifespan_events;
    result.lifespan_ns = lifespan_ns;
    result.curve = curve.finish();
    result.sizes = sizes(rows, timed);
    let words = |row: &&SizeProfile| row.reads.saturating_add(row.writes);
    let busiest = result.sizes.iter().filter(|row| words(row) > 0);
    // The smallest of equals.
    let busiest = busiest.max_by_key(|row| (words(row), std::cmp::Reverse(row.size)));
    result.most_accessed = busiest.map(|row| row.size);
    result.dominant = dominant(&result.sizes, result.allocations);
    result
}

fn empty(trace: &Trace) -> Profile {
    let first = trace.times().first().unwrap_or(0);
    let last = trace.times().last().unwrap_or(0);
    Profile {
        events: trace.len() as u64,
        allocations: 0,
        frees: 0,
        resizes: 0,
        grows: 0,
        accesses: 0,
        access_word: trace.provenance.access_word,
        reads: 0,
        writes: 0,
        read_bytes: 0,
        write_bytes: 0,
        most_accessed: None,
        instructions: trace.provenance.instructions,
        threads: 0,
        cross_thread_frees: 0,
        duration_ns: last.saturating_sub(first),
        allocated_bytes: 0,
        largest: 0,
        peak_live: 0,
        peak_live_seq: 0,
        peak_blocks: 0,
        final_live: 0,
        final_blocks: 0,
        sizes: Vec::new(),
        dominant: Vec::new(),
        aligns: Vec::new(),
        lifespan_events: Histogram::default(),
        lifespan_ns: Histogram::default(),
        allocation_bursts: Histogram::default(),
        free_bursts: Histogram::default(),
        curve: Vec::new(),
    }
}

fn sizes(rows: Rows, timed: bool) -> Vec<SizeProfile> {
    let mean = |sum: u128, row: &Row| (row.ended > 0).then(|| sum as f64 / row.ended as f64);
    let mut sizes: Vec<_> = rows
        .rows
        .iter()
        .map(|row| SizeProfile {
            size: row.size,
            allocations: row.allocations,
            frees: row.frees,
            resizes_to: row.resizes_to,
            resizes_from: row.resizes_from,
            peak_live: row.peak_live,
            mean_lifespan_events: mean(row.lifespan_events, row),
            mean_lifespan_ns: mean(row.lifespan_ns, row).filter(|_| timed),
            reads: row.reads,
            writes: row.writes,
            read_bytes: row.read_bytes,
            write_bytes: row.write_bytes,
        })
        .collect();
    sizes.sort_by_key(|row| row.size);
    sizes
}

fn dominant(sizes: &[SizeProfile], allocations: u64) -> Vec<u64> {
    let mut by_count: Vec<_> = sizes.iter().filter(|row| row.allocations > 0).collect();
    by_count.sort_by_key(|row| (std::cmp::Reverse(row.allocations), row.size));
    let mut covered = 0;
    by_count
        .into_iter()
        .take(DOMINANT_MOST)
        .take_while(|row| {
            let wanted = (covered as f64) < DOMINANT_SHARE * allocations as f64;
            covered += row.allocations;
            wanted
        })
        .map(|row| row.size)
        .collect()
}

/// Runs of allocations and of frees; resizes and accesses do not end them.
#[derive(Default)]
struct Bursts {
    allocations: Histogram,
    frees: Histogram,
    allocating: u64,
    freeing: u64,
}

impl Bursts {
    fn allocation(&mut self) {
        self.allocating += 1;
        end_run(&mut self.freeing, &mut self.frees);
    }

    fn free(&mut self) {
        self.freeing += 1;
        end_run(&mut self.allocating, &mut self.allocations);
    }

    fn finish(mut self) -> (Histogram, Histogram) {
        end_run(&mut self.allocating, &mut self.allocations);
        end_run(&mut self.freeing, &mut self.frees);
        (self.allocations, self.frees)
    }
}

fn end_run(length: &mut u64, histogram: &mut Histogram) {
    if *length > 0 {
        histogram.add(std::mem::take(length));
    }
}

/// Keeps two points of each stretch of equal length.
struct Curve {
    stretch: usize,
    seen: usize,
    lowest: Option<CurvePoint>,
    highest: Option<CurvePoint>,
    points: Vec<CurvePoint>,
}

impl Curve {
    fn new(events: usize) -> Curve {
        Curve {
            stretch: events.div_ceil(CURVE_POINTS / 2).max(1),
            seen: 0,
            lowest: None,
            highest: None,
            points: Vec::new(),
        }
    }

    fn add(&mut self, point: CurvePoint) {
        if self.lowest.is_none_or(|lowest| point.live < lowest.live) {
            self.lowest = Some(point);
        }
        if self.highest.is_none_or(|highest| point.live > highest.live) {
            self.highest = Some(point);
        }
        self.seen += 1;
        if self.seen == self.stretch {
            self.end_stretch();
        }
    }

    fn end_stretch(&mut self) {
        self.seen = 0;
        if let (Some(low), Some(high)) = (self.lowest.take(), self.highest.take()) {
            let (first, second) = if low.seq <= high.seq {
                (low, high)
            } else {
                (high, low)
            };
            self.points.push(first);
            if first.seq != second.seq {
                self.points.push(second);
            }
        }
    }

    fn finish(mut self) -> Vec<CurvePoint> {
        self.end_stretch();
        self.points
    }
}
