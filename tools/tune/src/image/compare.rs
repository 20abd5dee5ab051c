//! The second recording beside the replay: was each block where it was predicted?
//!
//! *Invariant:* equality is said only of runs that asked for the same, block for block at the predicted offset.

use metes_config::Config;
use metes_emit::Ranges;
use metes_explore::{Event, Events, Operation, Options, POOL_SHIFT, Placements, Replay, SLAB_BIT};
use metes_trace::HeapState;

use crate::check::Difference;
use crate::ranges::{Places, placed};

/// What a run on the emitted heap showed of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Most requested bytes live at once, as the heap says.
    pub peak_live: u64,
    /// Bytes that it took, as it says.
    pub footprint: u64,
    /// Bytes of its tables beside its memory, as it says.
    pub tables: u64,
    /// Events of the recording.
    pub events: u64,
    /// The image asked for the same as when it was recorded first.
    pub requests_equal: bool,
    /// And each block lay where it was predicted.
    pub placements_equal: bool,
    /// The first event in which that is not so.
    pub difference: Option<Difference>,
}

impl Shown {
    /// Both figures are as predicted.
    pub fn figures_equal(&self, predicted: &Replay) -> bool {
        self.peak_live == predicted.peak_live && self.footprint == predicted.footprint
    }
}

/// A recording of an image on the emitted heap.
pub(super) struct OnHeap<'a> {
    pub(super) events: &'a Events,
    pub(super) places: &'a [u32],
    pub(super) state: HeapState,
}

/// Compares a run with what was predicted for it from `recorded`.
pub(super) fn compare(
    (config, options, ranges): (&Config, &Options, Ranges),
    recorded: &Events,
    predicted: &Replay,
    run: &OnHeap<'_>,
) -> Shown {
    let foreseen = placed(config, recorded, options);
    let places = Places::new(config, ranges);
    let state = run.state;
    let at = |place: u32| {
        let distance = place.wrapping_sub(state.memory);
        (distance < state.bytes).then(|| places.of(distance))
    };
    let mut hashes = Placements::EMPTY;
    for (event, &place) in run.events.as_slice().iter().zip(run.places) {
        let offset = at(place).unwrap_or(u64::MAX);
        hashes.add(event.operation(), offset, size_of(*event));
    }
    let requests_equal =
        hex(hashes.requests) == predicted.requests && run.events.len() == recorded.len();
    let difference = (0..recorded.len().max(run.events.len())).find_map(|number| {
        let before = recorded.as_slice().get(number);
        let now = run.events.as_slice().get(number);
        let foreseen = foreseen.get(number).copied().flatten();
        let place = run.places.get(number).copied();
        let same = match (before, now) {
            (Some(before), Some(now)) => {
                asked(*before) == asked(*now) && place.and_then(at) == foreseen
            }
            _ => false,
        };
        (!same).then(|| Difference {
            event: number as u64,
            recorded: spell(before, foreseen.map_or("nowhere".to_owned(), offset)),
            again: spell(
                now,
                match place {
                    Some(place) => at(place).map_or_else(
                        || format!("{place:#010x}, outside of the heap's memory"),
                        offset,
                    ),
                    None => String::new(),
                },
            ),
            events: [recorded.len() as u64, run.events.len() as u64],
        })
    });
    Shown {
        peak_live: u64::from(state.peak_live),
        footprint: u64::from(state.footprint),
        tables: u64::from(state.tables),
        events: run.events.len() as u64,
        requests_equal,
        placements_equal: requests_equal && hex(hashes.placements) == predicted.placements,
        difference,
    }
}

/// A hash as replays write it.
fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

fn size_of(event: Event) -> u64 {
    match event.operation() {
        Operation::Free => 0,
        Operation::Allocate | Operation::Resize => event.size() as u64,
    }
}

/// What an event asks for, whichever block it concerns.
fn asked(event: Event) -> (Operation, u64, usize) {
    (event.operation(), size_of(event), event.align())
}

/// An event in words.
fn spell(event: Option<&Event>, place: String) -> String {
    let Some(event) = event else {
        return "the end".to_owned();
    };
    let what = match event.operation() {
        Operation::Allocate => format!("allocation of {} bytes", event.size()),
        Operation::Free => "free".to_owned(),
        Operation::Resize => format!("resize to {} bytes", event.size()),
    };
    format!("{what} at {place}")
}

/// A place of a replay in words.
fn offset(place: u64) -> String {
    if place & SLAB_BIT != 0 {
        return format!("{:#x} in the slabs", place & !SLAB_BIT);
    }
    let within = place & ((1 << POOL_SHIFT) - 1);
    match place >> POOL_SHIFT {
        0 => format!("{within:#x}"),
        pool => format!("{within:#x} in pool {}", pool + 1),
    }
}
