//! Ticks of the time-stamp counter per call: the workload is replayed from the
//! same start several times and each call keeps its minimum, which removes
//! interrupts and leaves caches and branch predictors.

use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::time::{Duration, Instant};

use metes_step::Call;
use serde::Serialize;

use crate::peer::Peer;
use crate::player::Player;
use crate::report::{Cell, Table};
use crate::reservation::{LENGTH, Reservation};
use crate::workload::{Operation, Workload};

/// After this long, three replays must do.
const PATIENCE: Duration = Duration::from_secs(3);

/// Ticks of the calls of one operation.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Ticks {
    /// Mean.
    pub(crate) mean: f64,
    /// 999 of 1000 calls take no longer.
    pub(crate) p999: u64,
    /// The longest.
    pub(crate) maximum: u64,
}

/// What one allocator took on one workload.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    /// Allocator.
    pub(crate) heap: String,
    /// Workload.
    pub(crate) workload: String,
    /// Allocations.
    pub(crate) allocate: Ticks,
    /// Frees.
    pub(crate) free: Ticks,
}

/// Ticks between two readings with nothing between them: the minimum of many.
pub(crate) fn overhead() -> u64 {
    (0..10_000)
        .map(|_| {
            let start = now();
            now() - start
        })
        .min()
        .unwrap_or(0)
}

/// The counter, with all earlier instructions done and no later one begun.
#[inline(always)]
fn now() -> u64 {
    // SAFETY: both instructions exist on every x86-64.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

#[inline(always)]
fn timed(call: Call) -> (usize, u64) {
    let start = now();
    // SAFETY: the player prepares calls on live blocks only.
    let result = unsafe { call.invoke() };
    (result, now() - start)
}

/// Replays a workload `replays` times; `None` if the heap cannot play it.
pub(crate) fn measure(
    peer: &Peer,
    workload: &Workload,
    replays: usize,
    overhead: u64,
    memory: &mut Reservation,
) -> Option<Measurement> {
    let mut least = vec![u64::MAX; workload.measured.len()];
    memory.touch(2 * workload.peak);
    let begin = Instant::now();
    for replay in 0..replays {
        // Heaps that walk lists would take minutes for what three replays show.
        if replay >= 3 && begin.elapsed() > PATIENCE {
            break;
        }
        let session = peer.start(memory, LENGTH)?;
        let mut player = Player::new(workload.slots);
        player.play(&session, &workload.setup).ok()?;
        for (event, least) in workload.measured.iter().zip(&mut least) {
            let (result, ticks) = timed(player.prepare(&session, event));
            if !player.accept(event, result) {
                return None;
            }
            *least = (*least).min(ticks.saturating_sub(overhead));
        }
        player.release(&session, peer);
    }
    let of = |operation| {
        let mut ticks: Vec<u64> = workload
            .measured
            .iter()
            .zip(&least)
            .filter(|(event, _)| event.operation == operation)
            .map(|(_, ticks)| *ticks)
            .collect();
        summary(&mut ticks)
    };
    Some(Measurement {
        heap: peer.name.to_owned(),
        workload: workload.name.clone(),
        allocate: of(Operation::Allocate),
        free: of(Operation::Free),
    })
}

fn summary(ticks: &mut [u64]) -> Ticks {
    ticks.sort_unstable();
    let Some(maximum) = ticks.last().copied() else {
        return Ticks::default();
    };
    Ticks {
        mean: ticks.iter().sum::<u64>() as f64 / ticks.len() as f64,
        p999: ticks[(ticks.len() * 999).div_ceil(1000) - 1],
        maximum,
    }
}

/// The table of a set of measurements on one workload.
pub(crate) fn table(workload: &str, measurements: &[Measurement]) -> Table {
    let columns = [
        "heap",
        "malloc mean",
        "p99.9",
        "max",
        "free mean",
        "p99.9",
        "max",
    ];
    Table {
        title: format!("TSC ticks per call on {workload} (minimum of the replays of each call)"),
        columns: columns.map(str::to_owned).to_vec(),
        rows: measurements
            .iter()
            .filter(|measurement| measurement.workload == workload)
            .map(|measurement| {
                let mut row = vec![Cell::text(&measurement.heap)];
                for ticks in [measurement.allocate, measurement.free] {
                    row.push(Cell::text(format!("{:.0}", ticks.mean)));
                    row.push(Cell::text(ticks.p999.to_string()));
                    row.push(Cell::text(ticks.maximum.to_string()));
                }
                row
            })
            .collect(),
        remarks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_the_value_that_999_of_1000_do_not_exceed() {
        let mut ticks: Vec<u64> = (1..=1000).collect();
        let summary = summary(&mut ticks);
        assert_eq!((summary.p999, summary.maximum), (999, 1000));
        assert_eq!(summary.mean, 500.5);
    }
}
