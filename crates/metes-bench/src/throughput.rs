//! Nanoseconds per call, with the allocators taking turns (A B C A B C ...), so
//! that whatever else the machine does falls on all of them alike. Only ratios
//! within one run mean anything.

use std::time::Instant;

use serde::Serialize;

use crate::Error;
use crate::peer::{Peer, Session};
use crate::peers::BASELINE;
use crate::player::Player;
use crate::report::{Cell, Table};
use crate::reservation::{LENGTH, Reservation};
use crate::workload::Workload;

/// What one allocator took on one workload.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    /// Allocator.
    pub(crate) heap: String,
    /// Workload.
    pub(crate) workload: String,
    /// Median over the rounds of nanoseconds per call, loop included.
    pub(crate) nanoseconds: f64,
    /// Median over the rounds of the ratio to the baseline in the same round.
    pub(crate) ratio: f64,
}

/// Plays a workload in `rounds` pieces on all peers in turn. Peers that cannot
/// play it are left out; the baseline must be among the peers.
pub(crate) fn measure(
    peers: &[Peer],
    workload: &Workload,
    rounds: usize,
) -> Result<Vec<Measurement>, Error> {
    let mut memories = Vec::new();
    for _ in peers {
        memories.push(Reservation::new().map_err(Error::Memory)?);
    }
    let mut running: Vec<(&Peer, Session, Player, Vec<f64>)> = Vec::new();
    for (peer, memory) in peers.iter().zip(&mut memories) {
        let Some(session) = peer.start(memory, LENGTH) else {
            continue;
        };
        let mut player = Player::new(workload.slots);
        if player.play(&session, &workload.setup).is_ok() {
            running.push((peer, session, player, Vec::new()));
        }
    }
    let piece = workload.measured.len().div_ceil(rounds).max(1);
    for events in workload.measured.chunks(piece) {
        running.retain_mut(|(_, session, player, times)| {
            let start = Instant::now();
            let played = player.play(session, events).is_ok();
            times.push(start.elapsed().as_nanos() as f64 / events.len() as f64);
            played
        });
    }
    let baseline = running
        .iter()
        .find(|(peer, ..)| peer.name == BASELINE)
        .map(|(.., times)| times.clone())
        .ok_or(Error::NoBaseline)?;
    Ok(running
        .into_iter()
        .map(|(peer, session, mut player, times)| {
            player.release(&session, peer);
            Measurement {
                heap: peer.name.to_owned(),
                workload: workload.name.clone(),
                ratio: median(times.iter().zip(&baseline).map(|(own, base)| own / base)),
                nanoseconds: median(times.into_iter()),
            }
        })
        .collect())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// The table of all workloads, one row per allocator.
pub(crate) fn table(peers: &[Peer], workloads: &[&str], measurements: &[Measurement]) -> Table {
    let mut columns = vec!["heap".to_owned()];
    for workload in workloads {
        columns.push(format!("{workload} ns"));
        columns.push(format!("/ {BASELINE}"));
    }
    let rows = peers
        .iter()
        .map(|peer| {
            let mut row = vec![Cell::text(peer.name)];
            for workload in workloads {
                match measurements
                    .iter()
                    .find(|m| m.heap == peer.name && m.workload == *workload)
                {
                    Some(m) => row.extend([
                        Cell::text(format!("{:.1}", m.nanoseconds)),
                        Cell::text(format!("{:.2}", m.ratio)),
                    ]),
                    None => row.extend([Cell::none(), Cell::none()]),
                }
            }
            row
        })
        .collect();
    Table {
        title: "Nanoseconds per call, allocators in turn (medians; loop included)".to_owned(),
        columns,
        rows,
        remarks: vec!["Only the ratios carry over to another run or machine.".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
