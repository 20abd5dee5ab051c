//! Nanoseconds of processor time per call, with the allocators taking turns
//! (A B C A B C ...), so that whatever else the machine does falls on all of them
//! alike. Only ratios within one run mean anything.

use serde::Serialize;

use crate::Error;
use crate::peer::{Peer, Session};
use crate::peers::BASELINE;
use crate::player::Player;
use crate::report::{Cell, Table};
use crate::reservation::{LENGTH, Reservation};
use crate::workload::{Event, Workload};

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

/// Processor time after which an allocator's turn ends early; it goes on from
/// there at its next turn.
const TURN: u64 = 50_000_000;

/// One allocator with its place in the workload.
struct Runner<'a> {
    peer: &'a Peer,
    session: Session<'a>,
    player: Player,
    next: usize,
    times: Vec<f64>,
}

impl Runner<'_> {
    /// Plays up to `calls` events, each half for at most one [`TURN`]; false if
    /// one is refused. The first half is not timed: it brings back the caches
    /// that the others' turns have filled.
    fn turn(&mut self, events: &[Event], calls: usize) -> bool {
        let half = calls.div_ceil(2);
        let Some(_) = self.play(events, half) else {
            return false;
        };
        let Some(time) = self.play(events, half) else {
            return false;
        };
        self.times.push(time);
        true
    }

    /// Plays up to `calls` events or for one [`TURN`]; nanoseconds per call.
    fn play(&mut self, events: &[Event], calls: usize) -> Option<f64> {
        let piece = &events[self.next..(self.next + calls).min(events.len())];
        let start = processor_time();
        let mut played = 0;
        for batch in piece.chunks(512) {
            if self.player.play(&self.session, batch).is_err() {
                return None;
            }
            played += batch.len();
            if processor_time() - start > TURN {
                break;
            }
        }
        let elapsed = processor_time() - start;
        self.next += played;
        Some(elapsed as f64 / played.max(1) as f64)
    }
}

/// Nanoseconds that this thread has run: unlike wall time it does not count the
/// time of other programs.
fn processor_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Plays a workload in `rounds` turns on all peers. Peers that cannot play it
/// are left out; the baseline must be among the peers.
pub(crate) fn measure(
    peers: &[Peer],
    workload: &Workload,
    rounds: usize,
) -> Result<Vec<Measurement>, Error> {
    let mut memories = Vec::new();
    for _ in peers {
        let mut memory = Reservation::new().map_err(Error::Memory)?;
        memory.touch(2 * workload.peak);
        memories.push(memory);
    }
    let mut running: Vec<Runner> = Vec::new();
    for (peer, memory) in peers.iter().zip(&mut memories) {
        let Some(session) = peer.start(memory, LENGTH) else {
            continue;
        };
        let mut player = Player::new(workload.slots);
        if player.play(&session, &workload.setup).is_ok() {
            running.push(Runner {
                peer,
                session,
                player,
                next: 0,
                times: Vec::new(),
            });
        }
    }
    let calls = (workload.measured.len() / rounds).max(1);
    for _ in 0..rounds {
        running.retain_mut(|runner| runner.turn(&workload.measured, calls));
    }
    let baseline = running
        .iter()
        .find(|runner| runner.peer.name == BASELINE)
        .map(|runner| runner.times.clone())
        .ok_or(Error::NoBaseline)?;
    Ok(running
        .into_iter()
        .map(|mut runner| {
            runner.player.release(&runner.session, runner.peer);
            let ratios = runner
                .times
                .iter()
                .zip(&baseline)
                .map(|(own, base)| own / base);
            Measurement {
                heap: runner.peer.name.to_owned(),
                workload: workload.name.clone(),
                ratio: median(ratios),
                nanoseconds: median(runner.times.iter().copied()),
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
        title:
            "Nanoseconds of processor time per call, allocators in turn (medians; loop included)"
                .to_owned(),
        columns,
        rows,
        remarks: vec![
            "Only the ratios carry over to another run or machine. Arenas lie in huge pages; the \
             general allocators choose their own."
                .to_owned(),
        ],
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
