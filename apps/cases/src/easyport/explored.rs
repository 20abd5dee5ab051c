//! Every heap of the paper's space, replayed to its end; and the front once more
//! with replays ended early, for the time.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use metes_explore::engine::{Explorer, Front, Plan, Row, Status};
use metes_explore::{Events, PAPER, Space, SpaceDescription};
use rayon::prelude::*;

use super::{EasyportError, Effort, rows_of};
use crate::platform::INCREMENT;

/// Of how many heaps one is replayed in a quick run. Prime to the grid's radices.
const STRIDE: u64 = 107;

/// What was replayed.
pub(super) struct Explored {
    /// Points of the grid.
    pub(super) points: u128,
    /// Different heaps among them.
    pub(super) size: u64,
    /// Those replayed to the end, but for heaps to compare with.
    pub(super) rows: Vec<Row>,
    /// Those of them that none beats in footprint and accesses.
    pub(super) front: Vec<Row>,
    /// Wall time of all.
    pub(super) seconds: f64,
    /// Wall time of the front alone, where it was explored so.
    pub(super) front_seconds: Option<f64>,
    /// Whether both ways gave the same front, with the heaps to compare with.
    pub(super) same_front: Option<bool>,
    /// Threads.
    pub(super) workers: usize,
}

/// The paper's space for a trace, on a device without pages.
pub(super) fn space(events: &Events) -> Result<Space, EasyportError> {
    let name = "the paper's space";
    let text = format!("{PAPER}\n[arena]\nincrement = {INCREMENT}\n");
    let description = SpaceDescription::parse(&text, name)?;
    Ok(Space::new(&description, events, &text, name)?)
}

pub(super) fn explore(
    space: &Space,
    events: &Events,
    effort: Effort,
    tell: &dyn Fn(&str),
) -> Explored {
    let never = AtomicBool::new(false);
    let early = Explorer::new(space, events, Plan::default(), 0);
    let mut front_seconds = None;
    let mut found = None;
    if effort == Effort::Whole {
        tell("the exact front, replays ended early");
        let start = Instant::now();
        if let Some(seed) = early.seed(&never) {
            let fronts: Vec<Front> = (0..early.units())
                .into_par_iter()
                .filter_map(|unit| early.unit(&seed, unit, &never))
                .map(|rows| front(&early, &rows))
                .collect();
            let mut whole = Front::new();
            for (point, number) in fronts.iter().flat_map(Front::points) {
                whole.enter(*point, *number);
            }
            front_seconds = Some(start.elapsed().as_secs_f64());
            found = Some(whole);
        }
    }
    tell("every replay to its end");
    let start = Instant::now();
    let numbers: Vec<u64> = match effort {
        Effort::Quick => (space.baselines()..space.size())
            .step_by(STRIDE as usize)
            .collect(),
        Effort::Whole => (0..space.size()).collect(),
    };
    let mut rows: Vec<Row> = numbers
        .par_iter()
        .map(|&number| early.evaluator().row(number, None))
        .filter(|row| row.status == Status::Complete)
        .collect();
    let seconds = start.elapsed().as_secs_f64();
    // What beats a heap early may be one to compare with: both ways have them.
    let whole = front(&early, &rows);
    rows.retain(|row| row.number >= space.baselines());
    let own = front(&early, &rows);
    let points = |front: &Front| {
        let mut points: Vec<_> = front.points().iter().map(|own| own.0).collect();
        points.sort_unstable();
        points
    };
    Explored {
        points: space.raw(),
        size: space.size() - space.baselines(),
        same_front: found.map(|found| points(&found) == points(&whole)),
        front: rows_of(&own.numbers(), &rows),
        rows,
        seconds,
        front_seconds,
        workers: rayon::current_num_threads(),
    }
}

/// The front of rows.
fn front(explorer: &Explorer<'_>, rows: &[Row]) -> Front {
    let mut front = Front::new();
    for row in rows.iter().filter(|row| row.status == Status::Complete) {
        let point = explorer.evaluator().objectives().point(&row.metrics);
        front.enter(point, row.number);
    }
    front
}
