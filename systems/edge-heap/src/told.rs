//! What a module told of its requests, as a trace and as the hashes by which runs are compared.
//!
//! Invariant: requests that were refused, and frees of nothing, are in neither; no block is of less than a byte.

use std::collections::HashMap;

use metes_explore::{Operation, Placements};
use metes_trace::{Inconsistency, Op, Provenance, Trace, TraceBuilder};

use crate::outline::Request;
use crate::run::Told;

/// What blocks begin at multiples of anyway.
const ALIGNMENT: u32 = 16;

/// What a heap is asked for.
enum Asked {
    Allocate {
        size: u32,
        align: u32,
        place: u32,
    },
    Free {
        place: u32,
    },
    Resize {
        place: u32,
        size: u32,
        align: u32,
        moved: u32,
    },
}

fn asked(told: &[Told]) -> impl Iterator<Item = Asked> + '_ {
    told.iter()
        .filter_map(|&[number, place, size, align, result]| {
            let request = *Request::ALL.get(number as usize)?;
            // Told only where it matters to the heap.
            let align = if align <= ALIGNMENT { 1 } else { align };
            let allocate = |size: Option<u32>| {
                let size = size.filter(|_| result != 0)?.max(1);
                Some(Asked::Allocate {
                    size,
                    align,
                    place: result,
                })
            };
            match request {
                Request::Calloc => allocate(place.checked_mul(size)),
                Request::Realloc | Request::RustRealloc if place != 0 => {
                    (result != 0).then_some(Asked::Resize {
                        place,
                        size: size.max(1),
                        align,
                        moved: result,
                    })
                }
                Request::Free | Request::RustDealloc => {
                    (place != 0).then_some(Asked::Free { place })
                }
                Request::UsableSize => None,
                _ => allocate(Some(size)),
            }
        })
}

/// The block at a place, which is free from then on.
fn taken(blocks: &mut HashMap<u32, u64>, op: Op, place: u32) -> Result<u64, Inconsistency> {
    let block = blocks.remove(&place);
    block.ok_or(Inconsistency::UnknownBlock {
        op,
        block: u64::from(place),
    })
}

/// The trace of what was told.
pub(crate) fn trace_of(told: &[Told], command: Vec<String>) -> Result<Trace, Inconsistency> {
    let mut builder = TraceBuilder::new();
    let mut blocks: HashMap<u32, u64> = HashMap::new();
    for asked in asked(told) {
        match asked {
            Asked::Allocate { size, align, place } => {
                let block = builder.alloc(0, 0, u64::from(size), align)?;
                blocks.insert(place, block);
            }
            Asked::Free { place } => {
                let block = taken(&mut blocks, Op::Free, place)?;
                builder.free(0, 0, block)?;
            }
            Asked::Resize {
                place,
                size,
                align,
                moved,
            } => {
                let block = taken(&mut blocks, Op::Resize, place)?;
                builder.resize(0, 0, block, u64::from(size), align)?;
                blocks.insert(moved, block);
            }
        }
    }
    Ok(builder.finish(Provenance {
        command,
        recorder: "metes tune, of a WebAssembly module".to_owned(),
        host: "wasm32".to_owned(),
        threads: 1,
        ..Provenance::default()
    }))
}

/// Both hashes over what was told, with places as `at` says them, and how many events are in them.
pub(crate) fn hashes(told: &[Told], at: impl Fn(u32) -> u64) -> (Placements, u64) {
    let mut hashes = Placements::EMPTY;
    let mut events = 0;
    for asked in asked(told) {
        events += 1;
        match asked {
            Asked::Allocate { size, place, .. } => {
                hashes.add(Operation::Allocate, at(place), u64::from(size));
            }
            Asked::Free { place } => hashes.add(Operation::Free, at(place), 0),
            Asked::Resize { size, moved, .. } => {
                hashes.add(Operation::Resize, at(moved), u64::from(size));
            }
        }
    }
    (hashes, events)
}
