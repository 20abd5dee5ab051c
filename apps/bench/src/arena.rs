//! The smallest arena in which a heap completes a workload, over the peak of
//! requested bytes: what a system without virtual memory must set aside.
//!
//! Success need not be monotone in the arena's size, so the figure is the
//! smallest arena that the binary search found, the same in every run. Where
//! another is known to have sufficed, as the gate's table has it, it is tried, too:
//! eight bytes less of control structure may lead the search past it.

use serde::Serialize;

use crate::peer::{Kind, Peer};
use crate::player::Player;
use crate::report::{Cell, Table};
use crate::reservation::{LENGTH, Reservation};
use crate::workload::{Workload, robson, robson_live};

/// What one allocator needs for one workload.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    /// Allocator.
    pub(crate) heap: String,
    /// Workload.
    pub(crate) workload: String,
    /// Peak of requested bytes.
    pub(crate) peak_live: usize,
    /// Smallest arena found, control structure included; none if even the
    /// largest arena of the harness fails.
    pub(crate) smallest_arena: Option<usize>,
    /// The quotient.
    pub(crate) ratio: Option<f64>,
}

/// Whether the question makes sense for this kind.
pub(crate) fn applies(kind: Kind) -> bool {
    matches!(kind, Kind::Arena | Kind::OutOfBand | Kind::Moving)
}

/// Searches the smallest arena for a workload; of one that the search does not find, but that is
/// `known` to have sufficed (as a ratio), asks whether it still does.
pub(crate) fn measure(
    peer: &Peer,
    workload: &Workload,
    known: Option<f64>,
    memory: &mut Reservation,
) -> Measurement {
    against(peer, workload, workload.peak, known, memory)
}

/// Searches the smallest arena for the Robson ramp as [`measure`] does, whose yardstick is the
/// bytes of live blocks with their records.
pub(crate) fn measure_robson(
    peer: &Peer,
    known: Option<f64>,
    memory: &mut Reservation,
) -> Measurement {
    against(peer, &robson(peer.record), robson_live(), known, memory)
}

fn against(
    peer: &Peer,
    workload: &Workload,
    peak: usize,
    known: Option<f64>,
    memory: &mut Reservation,
) -> Measurement {
    let mut completes = |length| completes(peer, workload, length, memory);
    let found = smallest_arena(peak, &mut completes);
    let known = known.map(|ratio| tried(peak, ratio));
    let smallest = match known.filter(|&known| found.is_none_or(|found| known < found)) {
        Some(known) if completes(known) => Some(known),
        _ => found,
    };
    Measurement {
        heap: peer.name.to_owned(),
        workload: workload.name.clone(),
        peak_live: peak,
        smallest_arena: smallest,
        ratio: smallest.map(|arena| arena as f64 / peak as f64),
    }
}

/// Arenas are tried in steps of one part in 4096 of the peak, or of 16 bytes.
fn step(peak: usize) -> usize {
    (peak / 4096).next_multiple_of(16).max(16)
}

/// The arena that was tried, by its ratio to four places.
fn tried(peak: usize, ratio: f64) -> usize {
    let step = step(peak);
    (ratio * peak as f64 / step as f64).round() as usize * step
}

/// Binary search among the arenas that are tried.
fn smallest_arena(peak: usize, mut completes: impl FnMut(usize) -> bool) -> Option<usize> {
    let step = step(peak);
    let mut enough = (peak / step + 1) * step;
    while !completes(enough) {
        enough = (enough / step * 5 / 4 + 1) * step;
        if enough > LENGTH {
            return None;
        }
    }
    let mut short = 0;
    while enough - short > step {
        let middle = (short + enough) / 2 / step * step;
        if completes(middle) {
            enough = middle;
        } else {
            short = middle;
        }
    }
    Some(enough)
}

fn completes(peer: &Peer, workload: &Workload, length: usize, memory: &mut Reservation) -> bool {
    let Some(session) = peer.start(memory, length) else {
        return false;
    };
    let mut player = Player::new(workload.slots);
    player.play(&session, &workload.setup).is_ok()
        && player.play(&session, &workload.measured).is_ok()
}

/// The table of ratios: one row per allocator, one column per workload.
pub(crate) fn table(peers: &[Peer], workloads: &[String], measurements: &[Measurement]) -> Table {
    let mut columns = vec!["heap".to_owned(), "control B".to_owned()];
    columns.extend(workloads.iter().cloned());
    let rows = peers
        .iter()
        .filter(|peer| peer.kind != Kind::Floor)
        .map(|peer| {
            let mut row = vec![Cell::text(peer.name)];
            if !applies(peer.kind) {
                row.push(Cell::text("not a fixed-arena heap"));
                row.extend(workloads.iter().map(|_| Cell::none()));
                return row;
            }
            row.push(Cell::text(peer.control.to_string()));
            for workload in workloads {
                let found = measurements
                    .iter()
                    .find(|m| m.heap == peer.name && m.workload == *workload);
                row.push(match found.map(|m| m.ratio) {
                    Some(Some(ratio)) => Cell::text(format!("{ratio:.4}")),
                    Some(None) => Cell::text("fails"),
                    None => Cell::none(),
                });
            }
            row
        })
        .collect();
    Table {
        title: "Smallest arena / peak live bytes".to_owned(),
        columns,
        rows,
        remarks: vec![
            "Control structures count, except records kept out of band. robson: to the bytes of \
             live blocks."
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_threshold() {
        let threshold = 123_456;
        let found = smallest_arena(100_000, |length| length >= threshold).unwrap();
        assert!(found >= threshold && found < threshold + 32, "{found}");
        assert_eq!(smallest_arena(1 << 20, |_| false), None);
    }

    #[test]
    fn an_arena_is_known_by_its_ratio() {
        for peak in [31_920, 100_000, 16_380_561] {
            let step = step(peak);
            for arena in (0..40).map(|steps| (peak / step + 100 * steps) * step) {
                let ratio = (arena as f64 / peak as f64 * 1e4).round() / 1e4;
                assert_eq!(tried(peak, ratio), arena);
            }
        }
    }
}
