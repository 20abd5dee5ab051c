//! Device heaps beside the peers that a registry carries.
//!
//! Measured by `metes_lab::device`, which knows every heap by the same trait. gpu-allocator is
//! not here: its free list is private, and what it exports needs a device of Vulkan, Direct3D or
//! Metal and takes memory from it in blocks of its own, so it has no arena to be given.
//!
//! Invariant: every heap serves the same requests in the same process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use metes_device::heap::Extent;
use metes_lab::device::bench::{Effort, bench};
use metes_lab::device::measure::{Bounds, Candidate, Measured};
use metes_lab::device::named::named;
use metes_lab::device::show::{Grid, tables};
use metes_lab::device::subject::Subject;
use metes_lab::device::workload::Workload;
#[cfg(feature = "traces")]
use metes_lab::device::workload::of_trace;
use offset_allocator::{Allocation, Allocator};
use range_alloc::RangeAllocator;
use serde_json::json;

use crate::Error;
use crate::gate::Ceiling;
use crate::report::{Cell, Table};
use crate::versions::locked;

/// What is measured unless heaps are named; ours first, to which times are related.
const DEFAULT: [&str; 6] = [
    "tlsf",
    "segregated-fit",
    "hybrid",
    "best-fit",
    OFFSET,
    RANGE,
];
const OFFSET: &str = "offset-allocator";
const RANGE: &str = "range-alloc";

/// Heaps that the gate holds to their bounds.
const BOUNDED: [&str; 4] = ["tlsf", "tlsf:store=table", "tlsf:probes=0", "hybrid"];

/// Instructions that no call can exceed; a heap without a bound has the largest there is.
pub(crate) fn bounds() -> BTreeMap<String, Ceiling> {
    let bound = |name: &str| {
        let bounds = named(name).ok().and_then(|heap| heap.bounds());
        let most = |of: fn(Bounds) -> Option<u64>| bounds.and_then(of).unwrap_or(u64::MAX);
        let ceiling = Ceiling {
            allocate: most(|bounds| bounds.allocate),
            free: most(|bounds| bounds.free),
        };
        (name.to_owned(), ceiling)
    };
    BOUNDED.into_iter().map(bound).collect()
}

/// offset-allocator, which counts in granules.
struct Offsets {
    allocator: Allocator<u32>,
    granule: u64,
}

impl Subject for Offsets {
    type Place = Allocation<u32>;

    #[inline(always)]
    fn allocate(&mut self, bytes: u64) -> Option<Allocation<u32>> {
        let granules = bytes.div_ceil(self.granule);
        self.allocator.allocate(u32::try_from(granules).ok()?)
    }

    #[inline(always)]
    fn free(&mut self, place: Allocation<u32>) {
        self.allocator.free(place);
    }

    fn offset(&self, place: Allocation<u32>) -> u64 {
        u64::from(place.offset) * self.granule
    }
}

fn offsets(extent: Extent) -> Option<Offsets> {
    let granules = u32::try_from(extent.bytes / extent.granule).ok()?;
    // A node for every block, in use or free.
    let nodes = u32::try_from(2 * extent.blocks + 1).ok()?;
    Some(Offsets {
        allocator: Allocator::with_max_allocs(granules, nodes),
        granule: extent.granule,
    })
}

/// range-alloc; a block is freed by its range.
struct Ranges {
    allocator: RangeAllocator<u64>,
    granule: u64,
}

impl Subject for Ranges {
    /// Begin and end.
    type Place = (u64, u64);

    #[inline(always)]
    fn allocate(&mut self, bytes: u64) -> Option<(u64, u64)> {
        let bytes = bytes.next_multiple_of(self.granule);
        let range = self.allocator.allocate_range(bytes).ok()?;
        Some((range.start, range.end))
    }

    #[inline(always)]
    fn free(&mut self, (begin, end): (u64, u64)) {
        self.allocator.free_range(begin..end);
    }

    fn offset(&self, (begin, _): (u64, u64)) -> u64 {
        begin
    }
}

fn ranges(extent: Extent) -> Option<Ranges> {
    Some(Ranges {
        allocator: RangeAllocator::new(0..extent.bytes),
        granule: extent.granule,
    })
}

fn peer<S: Subject + 'static>(
    name: &str,
    store: &'static str,
    make: fn(Extent) -> Option<S>,
) -> Box<dyn Measured> {
    Box::new(Candidate {
        name: name.to_owned(),
        store,
        // What peers promise is for them to check.
        constant: false,
        counted: true,
        make,
    })
}

fn heap(name: &str) -> Result<Box<dyn Measured>, Error> {
    match name {
        OFFSET => Ok(peer(name, "nodes", offsets)),
        RANGE => Ok(peer(name, "ranges", ranges)),
        _ => {
            named(name).map_err(|error| Error::Device(format!("{error}; peers: {OFFSET}, {RANGE}")))
        }
    }
}

#[cfg(not(feature = "traces"))]
fn recorded(path: &Path) -> Result<Workload, Error> {
    Err(Error::Device(format!(
        "{}: this build reads no traces: build metes-bench with its default features",
        path.display()
    )))
}

#[cfg(feature = "traces")]
fn recorded(path: &Path) -> Result<Workload, Error> {
    let trace =
        metes_trace::read_parquet(path).map_err(|error| Error::Device(error.to_string()))?;
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let name = name.strip_suffix(".trace.parquet").unwrap_or(&name);
    let workload = of_trace(name, &trace);
    match workload.requests.is_empty() {
        true => Err(Error::Device(format!(
            "{} asks for no memory: take another trace",
            path.display()
        ))),
        false => Ok(workload),
    }
}

/// Bytes that the C library has given out, those of mapped blocks included.
fn taken() -> u64 {
    // SAFETY: reads the allocator's own statistics.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

/// Measures the heaps of these names, all if there are none.
pub(crate) fn command(
    json: bool,
    names: &[String],
    traces: &[PathBuf],
    quick: bool,
) -> Result<ExitCode, Error> {
    if cfg!(debug_assertions) {
        return Err(Error::Unoptimised);
    }
    let names: Vec<&str> = match names.is_empty() {
        true => DEFAULT.to_vec(),
        false => names.iter().map(String::as_str).collect(),
    };
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    if distinct.len() < names.len() {
        return Err(Error::Device(
            "a heap is named twice: leave one out".to_owned(),
        ));
    }
    let heaps = names
        .iter()
        .map(|name| heap(name))
        .collect::<Result<Vec<_>, _>>()?;
    let recorded = traces
        .iter()
        .map(|path| recorded(path))
        .collect::<Result<Vec<_>, _>>()?;
    let effort = match quick {
        true => Effort::QUICK,
        false => Effort::WHOLE,
    };
    let found = bench(&heaps, recorded, effort, Some(taken), &|what| {
        eprintln!("{what}");
    });
    let versions: Vec<String> = [OFFSET, RANGE]
        .map(|package| format!("{package} {}", locked(package).unwrap_or("?")))
        .to_vec();
    if json {
        println!("{}", json!({ "versions": versions, "device": found }));
    } else {
        println!("Peers: {}\n", versions.join(", "));
        for grid in tables(&found) {
            println!("{}", table(grid).render());
        }
        for assumption in &found.assumptions {
            println!("- {assumption}");
        }
        for what in &found.contradicted {
            println!("\ndoes not hold: {what}");
        }
    }
    Ok(ExitCode::from(u8::from(!found.contradicted.is_empty())))
}

fn table(grid: Grid) -> Table {
    Table {
        title: grid.title,
        columns: grid.head,
        rows: grid
            .rows
            .into_iter()
            .map(|row| row.into_iter().map(Cell::text).collect())
            .collect(),
        remarks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use metes_lab::device::workload::{log_uniform, serving};

    use super::*;

    /// Blocks lie apart, in the arena, and what is free again is used again.
    fn places_are_sound<S: Subject>(mut heap: S, granule: u64) {
        let mut held: Vec<(S::Place, u64)> = Vec::new();
        for round in 0..200_u64 {
            let bytes = granule * (1 + round * 7 % 13);
            let place = heap.allocate(bytes).unwrap();
            held.push((place, bytes));
            if round % 3 == 2 {
                heap.free(held.swap_remove((round as usize * 5) % held.len()).0);
            }
            let mut spans: Vec<(u64, u64)> = held
                .iter()
                .map(|&(place, bytes)| (heap.offset(place), bytes))
                .collect();
            spans.sort_unstable();
            for pair in spans.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0);
            }
            let last = spans[spans.len() - 1];
            assert!(last.0 + last.1 <= 4000 * granule);
        }
    }

    #[test]
    fn peers_place_blocks_apart() {
        let extent = Extent {
            bytes: 4000 * 256,
            granule: 256,
            blocks: 201,
        };
        places_are_sound(offsets(extent).unwrap(), 256);
        places_are_sound(ranges(extent).unwrap(), 256);
    }

    #[test]
    fn peers_serve_in_an_arena_that_is_small_and_not_in_none() {
        for workload in [log_uniform(50, 500, 1), serving(500, true, 1)] {
            for name in [OFFSET, RANGE] {
                let heap = heap(name).unwrap();
                let bytes = heap.smallest_arena(&workload).unwrap();
                assert!((workload.peak..2 * workload.peak).contains(&(bytes + 256)));
                assert!(!heap.completes(&workload, workload.peak / 2));
            }
        }
    }

    #[test]
    fn what_is_no_heap_is_said_with_the_peers() {
        let error = heap("ofset-allocator").err().unwrap().to_string();
        assert!(
            error.contains("peers: offset-allocator, range-alloc"),
            "{error}"
        );
    }
}
