//! The texture experiment (`dm-vtc`): 40 heaps on a scratchpad and a main memory
//! against Kingsley's, as in section 7.2 of the paper.
//!
//! The text says: pools for the most allocated sizes 1024, 2048, 512, 256 and
//! 128, in that order; blocks of 2048 bytes in the scratchpad, which they may
//! fill, and nothing else there; 4 maximum coalesced and 4 minimum split sizes
//! for the main memory; scratchpads of 4 to 128 KiB; 40 heaps in all. It does not
//! say which 40. Ours: two to five pools with each of the six scratchpads (24),
//! and five pools in the main memory alone with each of the 16 limits.

use std::time::Instant;

use metes_explore::EnergyError;
use metes_explore::{EventError, Events, Replayer};
use metes_heap::description::{DedicatedPool, General, List};
use metes_heap::{Description, Fit, IndexKind, Limits, Links, Order};

use crate::platform::{Cost, MAIN, Platform, SCRATCHPAD, in_main};
use crate::texture;
use metes_lab::{Figure, Report};

/// Sizes with pools of their own, most allocated first.
const POOLS: [usize; 5] = [1024, 2048, 512, 256, 128];
/// The size in the scratchpad.
const NEAR: usize = 2048;
const SCRATCHPADS: [usize; 6] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10];
const MERGE_UP_TO: [usize; 4] = [0, 64 << 10, 1 << 20, usize::MAX];
const SPLIT_DOWN_TO: [usize; 4] = [usize::MAX, 1024, 64, 0];
const KEEP: Limits = Limits {
    coalesce_up_to: 0,
    split_down_to: usize::MAX,
};

/// Why the experiment could not be done.
#[derive(Debug, thiserror::Error)]
pub enum VtcError {
    /// The trace is refused.
    #[error(transparent)]
    Events(#[from] EventError),
    /// The hierarchy is.
    #[error(transparent)]
    Energy(#[from] EnergyError),
}

/// One of the heaps, and what it costs.
struct Tried {
    scratchpad: Option<usize>,
    cost: Cost,
}

/// Runs the experiment; some seconds.
///
/// # Errors
/// [`VtcError`] if trace, heaps and hierarchy do not go together.
pub fn reproduce() -> Result<Report, VtcError> {
    let start = Instant::now();
    let events = Events::try_from(&texture::trace())?;
    let platform = Platform::new(&events)?;
    let mut replayer = Replayer::new();
    let mut tried = Vec::new();
    let mut attempt = |scratchpad: Option<usize>, pools: usize, limits| -> Result<(), VtcError> {
        let heap = heap(&POOLS[..pools], scratchpad.is_some(), limits);
        tried.push(Tried {
            scratchpad,
            cost: platform.cost(&mut replayer, &heap, scratchpad)?,
        });
        Ok(())
    };
    for pools in 2..=POOLS.len() {
        for scratchpad in SCRATCHPADS {
            attempt(Some(scratchpad), pools, Limits::NONE)?;
        }
    }
    for coalesce_up_to in MERGE_UP_TO {
        for split_down_to in SPLIT_DOWN_TO {
            let limits = Limits {
                coalesce_up_to,
                split_down_to,
            };
            attempt(None, POOLS.len(), limits)?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let kingsley = in_main(&Description::of(IndexKind::Kingsley));
    let kingsley = platform.cost(&mut replayer, &kingsley, None)?;
    let lines = platform.cost(&mut replayer, &lines(), Some(SCRATCHPADS[5]))?;
    Ok(report(&events, &tried, &kingsley, &lines, seconds))
}

/// Beyond the paper: whatever is no longer than a line may go to the scratchpad.
fn lines() -> Description {
    let list = IndexKind::list(Fit::Best, Order::Fifo);
    let near = General {
        up_to: NEAR,
        level: SCRATCHPAD,
        ..General::of(list)
    };
    let main = General {
        level: MAIN,
        ..General::of(list)
    };
    Description {
        general: List::from_slice(&[near, main]),
        dedicated: List::EMPTY,
        objects: List::EMPTY,
        partition: None,
    }
}

/// A heap with pools for `sizes`, perhaps that of [`NEAR`] in the scratchpad, and a
/// main memory that merges and splits within limits.
fn heap(sizes: &[usize], scratchpad: bool, limits: Limits) -> Description {
    let mut general = List::EMPTY;
    let mut dedicated: Vec<DedicatedPool> = Vec::new();
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    for size in sorted {
        if scratchpad && size == NEAR {
            general.push(General {
                from: size,
                up_to: size,
                index: IndexKind::List {
                    fit: Fit::Exact,
                    order: Order::Fifo,
                    depth_percent: 100,
                    max_fit_percent: 0,
                    links: Links::Single,
                },
                limits: KEEP,
                level: SCRATCHPAD,
            });
        } else {
            dedicated.push(DedicatedPool {
                order: Order::Fifo,
                links: Links::Single,
                ..DedicatedPool::new(size, MAIN)
            });
        }
    }
    general.push(General {
        limits,
        level: MAIN,
        ..General::of(IndexKind::list(Fit::Best, Order::Fifo))
    });
    Description {
        general,
        dedicated: List::from_slice(&dedicated),
        objects: List::EMPTY,
        partition: None,
    }
}

/// Change in percent from `from` to `to`.
fn change(to: f64, from: f64) -> f64 {
    100.0 * (to / from - 1.0)
}

/// Largest difference among values, in percent of the least.
fn spread(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    Some(change(*values.last()?, *values.first()?))
}

fn report(events: &Events, tried: &[Tried], kingsley: &Cost, lines: &Cost, seconds: f64) -> Report {
    let served = || tried.iter().filter(|own| own.cost.failed == 0);
    let least = |of: fn(&Cost) -> f64| served().map(|own| of(&own.cost)).min_by(f64::total_cmp);
    let energy = least(|cost| cost.energy);
    let time = least(|cost| cost.time);
    let near = served().map(|own| own.cost.near).max_by(f64::total_cmp);
    let in_main = || served().filter(|own| own.scratchpad.is_none());
    let with = || served().filter(|own| own.scratchpad.is_some());
    let rows = vec![
        Figure::new("heaps tried", "").paper(40.0).ours(tried.len() as f64),
        Figure::new("energy, best of them against Kingsley", "%")
            .paper(-82.9)
            .ours(energy.map(|energy| change(energy, kingsley.energy)))
            .note(format!(
                "{:.2} mJ against {:.2} mJ{}; at most {:.0} % of all accesses go to the scratchpad",
                1e3 * energy.unwrap_or(f64::NAN),
                1e3 * kingsley.energy,
                beyond(kingsley),
                100.0 * near.unwrap_or(f64::NAN),
            )),
        Figure::new("time, best of them against Kingsley", "%")
            .paper(-3.8)
            .ours(time.map(|time| change(time, kingsley.time)))
            .note("accesses and the heap's own cycles; the decoder's instructions, unknown here, hide much of it"),
        Figure::new("footprint of Kingsley over the least of them", "x")
            .ours(
                least(|cost| cost.footprint as f64).map(|own| kingsley.footprint as f64 / own),
            ),
        Figure::new("footprint, effect of the 16 limits", "%")
            .paper(5.0)
            .ours(spread(in_main().map(|own| own.cost.footprint as f64)))
            .note("the paper: less than 5 %"),
        Figure::new("energy, effect of the scratchpad's size", "%")
            .ours(spread(with().map(|own| own.cost.energy)))
            .note("the paper: minimal; two lines of 2 KiB are live at a time"),
        Figure::new("energy, all lines in the scratchpad, against Kingsley", "%")
            .ours((lines.failed == 0).then(|| change(lines.energy, kingsley.energy)))
            .note(format!(
                "beyond the paper: one pool up to 2048 bytes; {:.0} % of all accesses",
                100.0 * lines.near
            )),
        Figure::new("seconds for all heaps", "s").paper(13.3 * 3600.0).ours(seconds),
    ];
    let mut contradicted = Vec::new();
    if energy.is_none_or(|energy| energy >= kingsley.energy) {
        contradicted.push("no heap takes less energy than Kingsley's".to_owned());
    }
    let application = events.application();
    Report {
        experiment: "dm-vtc",
        rows,
        assumptions: vec![
            format!(
                "the trace is generated: a 512 x 512 image with halved chroma, {} requests, {} words \
                 read and {} written by the program; the paper's figures of the trace hold, all \
                 else in it is ours (`metes trace generate texture`)",
                events.len(),
                application.reads,
                application.writes
            ),
            "which 40 heaps the paper tried is not said; ours: two to five pools with each of six \
             scratchpads, and five pools in the main memory with each of 16 limits"
                .to_owned(),
            "\"exact fit\" is the best fit of the whole list: a fit that must be exact never splits, \
             and the paper varies splitting"
                .to_owned(),
            "pools of one size are lists first in, first out, with single links, the main memory's list \
             has double ones, as in the paper; records are those of a 64-bit host, two accesses \
             of the 32-bit memories each"
                .to_owned(),
            "energy is dynamic, by CACTI 6.5 at 130 nm (the paper: an updated CACTI at 130 nm); main \
             memory is the smallest power of two up to 8 MiB that holds the heap, and a heap that \
             needs more is charged as if 8 MiB sufficed"
                .to_owned(),
            "Kingsley stands for the paper's variation of it, all in main memory".to_owned(),
        ],
        contradicted,
        plots: Vec::new(),
    }
}

fn beyond(cost: &Cost) -> &'static str {
    if cost.beyond {
        " (charged for 8 MiB, needs more)"
    } else {
        ""
    }
}
