//! What heaps declare of their time, held against exact counts.
//!
//! A heap declares how fast each operation grows with the block and with the rest of the heap
//! (`metes_heap::complexity`). Here the worst patterns we know are brought about in heaps that
//! run, at sizes that double up to 2^20; a few calls there are single-stepped; and how fast
//! their counts grow is [classified](classify()) and compared.
//!
//! A declaration is an upper bound: growth beyond it contradicts it, growth below is reported,
//! for no pattern of ours need be the worst. Waiting for other threads is no instruction of the
//! call and is not measured.
//!
//! Invariant: all counts of a [`Row`] are of one pattern, by rising size, made in this run.

mod classify;
mod heaps;
mod pattern;
mod probe;
#[cfg(test)]
mod tests;
mod watched;

use std::io;

use metes_heap::complexity::{Axis, Growth};
use metes_step::Stepper;

pub use classify::{Observed, Point, TOLERANCE, classify};
pub use heaps::{Concurrent, Design, designs};
use pattern::{BIN, COMB, INCREMENTS, KEPT, LARGE, PAGES, Pattern, QUARTER, RUN};
use probe::Probe;

use crate::memory::Range;
use crate::subject::Runnable;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// malloc
    Allocate,
    /// free
    Free,
    /// A read of a byte.
    Access,
    /// The longest that a lock is held.
    Latency,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 4] = [
        Operation::Allocate,
        Operation::Free,
        Operation::Access,
        Operation::Latency,
    ];

    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Allocate => "allocate",
            Operation::Free => "free",
            Operation::Access => "access",
            Operation::Latency => "latency",
        }
    }
}

/// What is declared of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// In the terms of the heap.
    pub notation: &'static str,
    /// Along the axis of the row.
    pub growth: Growth,
}

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Heaps of up to 2^16 blocks, and no call of more than 2^17 instructions.
    Quick,
    /// Sizes up to 2^20, and no call of more than half a million instructions.
    Usual,
    /// Sizes up to 2^20, and no call of more than 2^25 instructions: all walks reach 2^20.
    Full,
}

impl Effort {
    /// Most instructions that a call may be expected to take if it is to be counted.
    fn limit(self, pattern: &Pattern) -> u64 {
        match self {
            // The square shows from 2^9 holes on.
            Effort::Quick if pattern.name == KEPT.name => 1 << 18,
            Effort::Quick => 1 << 17,
            Effort::Usual => 1 << 19,
            Effort::Full => 1 << 25,
        }
    }

    /// log2 of the sizes of a pattern.
    fn sizes(self, pattern: &Pattern) -> Vec<u32> {
        let (first, last, step) = match (pattern.axis, self) {
            // A page-block that can move fills half of the largest page at most, and an
            // increment that block.
            (Axis::Increment, _) => (9, 15, 1),
            (Axis::Block, _) if pattern.name == PAGES.name => (9, 15, 1),
            // With the square of the holes.
            (Axis::Heap, _) if pattern.name == KEPT.name => (5, 12, 1),
            (Axis::Heap, Effort::Quick) => (8, 16, 2),
            _ => (10, 20, 2),
        };
        (first..=last).step_by(step).collect()
    }
}

/// What a declaration is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Observed is what is declared.
    Reached,
    /// Observed is less: nothing here shows the declaration to be needed.
    NotTight,
    /// Observed is more.
    Contradicted,
    /// Too few sizes could be counted.
    Open,
}

impl Verdict {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Reached => "reached",
            Verdict::NotTight => "not tight",
            Verdict::Contradicted => "contradicted",
            Verdict::Open => "open",
        }
    }
}

/// One operation of one heap along one axis.
#[derive(Clone, Debug)]
pub struct Row {
    /// The heap.
    pub heap: String,
    /// The operation.
    pub operation: Operation,
    /// What grows.
    pub axis: Axis,
    /// What the heap declares.
    pub declared: Declared,
    /// What the counts show; `None` where there are too few.
    pub observed: Option<Observed>,
    /// What brought the counts about.
    pub pattern: &'static str,
    /// The counts.
    pub points: Vec<Point>,
    /// Whether sizes were left out because their calls take too many instructions.
    pub cut_short: bool,
}

impl Row {
    /// What the counts say of the declaration.
    pub fn verdict(&self) -> Verdict {
        let Some(observed) = self.observed else {
            return Verdict::Open;
        };
        match observed.cmp(&Observed::Grows(self.declared.growth)) {
            std::cmp::Ordering::Less => Verdict::NotTight,
            std::cmp::Ordering::Equal => Verdict::Reached,
            std::cmp::Ordering::Greater => Verdict::Contradicted,
        }
    }
}

/// Why a study cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum GrowthError {
    /// The system gives no stepping.
    #[error("calls cannot be single-stepped here: {0}")]
    Step(#[source] io::Error),
    /// The system gives no memory.
    #[error("no {bytes} bytes of address range: {cause}; raise the limit on virtual memory")]
    Memory {
        /// What was asked for.
        bytes: usize,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// A heap does not do what a pattern needs of it.
    #[error("{heap} refuses a request of the pattern `{pattern}` at size {size}")]
    Refused {
        /// The heap.
        heap: String,
        /// The pattern.
        pattern: &'static str,
        /// Its size.
        size: usize,
    },
}

/// A heap refused a request of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refused;

/// Counts all that the heaps of the overview declare; `progress` is told what is counted.
///
/// # Errors
/// [`GrowthError`].
pub fn overview(
    designs: &[Design],
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, GrowthError> {
    let mut rows = Vec::new();
    for design in designs {
        let mut patterns = vec![COMB, RUN];
        if design.has_addresses() {
            patterns.push(QUARTER);
        }
        if design.has_bins() {
            patterns.extend([BIN, KEPT]);
        }
        patterns.push(if design.has_pages() { PAGES } else { LARGE });
        let study = Study {
            name: design.name.clone(),
            effort,
            watched: false,
            room: if design.has_pages() {
                PAGES_AND_TABLES
            } else {
                HEADS
            },
            open: &|_, _| design.runnable(),
            declares: &|operation, axis| design.declares(operation, axis),
        };
        rows.extend(study.run(&patterns, progress)?);
    }
    Ok(rows)
}

/// Counts all that configurations of the concurrent table declare, as one thread sees it.
///
/// # Errors
/// [`GrowthError`].
pub fn concurrent(
    configurations: &[Concurrent],
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, GrowthError> {
    let mut rows = Vec::new();
    for configuration in configurations {
        let mut patterns = vec![PAGES, COMB, RUN];
        if configuration.has_increment() {
            patterns.push(INCREMENTS);
        }
        let study = Study {
            name: configuration.0.to_string(),
            effort,
            watched: true,
            room: PAGES_AND_TABLES,
            open: &|axis, size| configuration.runnable((axis == Axis::Increment).then_some(size)),
            declares: &|operation, axis| Some(configuration.declares(operation, axis)),
        };
        rows.extend(study.run(&patterns, progress)?);
    }
    Ok(rows)
}

/// Bytes of list heads and the like.
const HEADS: usize = 1 << 14;
/// Bytes of a few pages of each class, and their tables.
const PAGES_AND_TABLES: usize = 1 << 22;

/// A heap and what is asked of it.
struct Study<'d> {
    name: String,
    effort: Effort,
    /// Whether its locks note how long they are held.
    watched: bool,
    /// Bytes that it needs beside those of a pattern's blocks.
    room: usize,
    /// The heap for a size along an axis.
    open: &'d dyn Fn(Axis, usize) -> Box<dyn Runnable>,
    /// What it declares of an operation along an axis.
    declares: &'d dyn Fn(Operation, Axis) -> Option<Declared>,
}

/// The counts of one pattern, by operation.
struct Series {
    pattern: Pattern,
    points: [Vec<Point>; Operation::ALL.len()],
    cut_short: [bool; Operation::ALL.len()],
}

impl Study<'_> {
    /// A row for each operation along each axis of the patterns: that of the pattern under which
    /// it grows fastest, and of these the one that counts most.
    fn run(
        &self,
        patterns: &[Pattern],
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<Row>, GrowthError> {
        let mut all = Vec::new();
        for pattern in patterns {
            all.push(self.series(*pattern, progress)?);
        }
        let mut rows = Vec::new();
        for axis in [Axis::Block, Axis::Heap, Axis::Increment] {
            for operation in Operation::ALL {
                let Some(declared) = (self.declares)(operation, axis) else {
                    continue;
                };
                // A series too short to be judged stands above all that counted less.
                let last = |row: &Row| row.points.last().map(|last| last.count);
                let growth = |row: &Row| row.observed.unwrap_or(Observed::Faster);
                let found = (all.iter())
                    .filter(|series| series.pattern.axis == axis)
                    .filter(|series| !series.points[operation as usize].is_empty())
                    .map(|series| self.row(series, operation, declared))
                    .max_by_key(|row| (growth(row), last(row)));
                rows.extend(found);
            }
        }
        Ok(rows)
    }

    fn row(&self, series: &Series, operation: Operation, declared: Declared) -> Row {
        let points = series.points[operation as usize].clone();
        Row {
            heap: self.name.clone(),
            operation,
            axis: series.pattern.axis,
            declared,
            observed: classify(&points),
            pattern: series.pattern.name,
            points,
            cut_short: series.cut_short[operation as usize],
        }
    }

    fn series(
        &self,
        pattern: Pattern,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Series, GrowthError> {
        let mut series = Series {
            pattern,
            points: Default::default(),
            cut_short: [false; Operation::ALL.len()],
        };
        let limit = self.effort.limit(&pattern);
        for log2 in self.effort.sizes(&pattern) {
            for (points, cut) in series.points.iter().zip(&mut series.cut_short) {
                // The next call is taken to grow as the one before did.
                if let [.., before, last] = points.as_slice() {
                    *cut |= last.count * last.count / before.count > limit;
                }
            }
            if series.cut_short[Operation::Allocate as usize..=Operation::Free as usize]
                == [true; 2]
            {
                break;
            }
            progress(&format!("{}, {} 2^{log2}", self.name, pattern.name));
            let counted = series.cut_short.map(|cut| !cut);
            let counts = self.counts(&pattern, 1 << log2, counted)?;
            for (points, count) in series.points.iter_mut().zip(counts) {
                if count > 0 {
                    points.push(Point { log2, count });
                }
            }
        }
        Ok(series)
    }

    /// The most instructions of a call of each operation; zero where none was made.
    fn counts(
        &self,
        pattern: &Pattern,
        size: usize,
        counted: [bool; Operation::ALL.len()],
    ) -> Result<[u64; Operation::ALL.len()], GrowthError> {
        let bytes = (self.room + (pattern.room)(size)).next_power_of_two();
        let mut memory = Range::new(bytes).map_err(|cause| GrowthError::Memory { bytes, cause })?;
        let refused = || GrowthError::Refused {
            heap: self.name.clone(),
            pattern: pattern.name,
            size,
        };
        let heap = (self.open)(pattern.axis, size);
        let running = heap.open(&mut memory).ok_or_else(refused)?;
        let mut stepper = Stepper::new().map_err(GrowthError::Step)?;
        let mut probe = Probe::new(&running, &mut stepper, counted, self.watched);
        (pattern.play)(&mut probe, size).map_err(|Refused| refused())?;
        Ok(Operation::ALL.map(|operation| probe.most(operation)))
    }
}
