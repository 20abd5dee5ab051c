//! Exact instructions and cache lines of each call on the timed workloads: mean and maximum
//! per operation, and the path of the worst call.

use std::collections::BTreeMap;

use metes_step::{Lines, Stepper};
use serde::Serialize;

use crate::Error;
use crate::peer::{Peer, Session};
use crate::player::Player;
use crate::report::{Cell, Table};
use crate::reservation::Reservation;
use crate::workload::{Event, Operation, Workload};

/// What is counted of the calls of one operation.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Count {
    /// Calls measured.
    pub(crate) calls: u64,
    /// The sum over all of them.
    pub(crate) total: u64,
    /// The most of a call.
    pub(crate) maximum: u64,
    /// Mean of a call.
    pub(crate) mean: f64,
}

impl Count {
    fn add(&mut self, count: u64) {
        self.calls += 1;
        self.total += count;
        self.maximum = self.maximum.max(count);
        self.mean = self.total as f64 / self.calls as f64;
    }
}

/// Instructions of the calls of one operation, and what they touch.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    /// Instructions.
    #[serde(flatten)]
    pub(crate) instructions: Count,
    /// Distinct cache lines of data.
    pub(crate) lines: Count,
    /// Distinct cache lines of the call's own stack.
    pub(crate) stack_lines: Count,
    /// Places in memory used, one after another, the stack's included.
    pub(crate) accesses: Count,
}

impl Counts {
    fn add(&mut self, instructions: u64, lines: Lines) {
        self.instructions.add(instructions);
        self.lines.add(lines.data);
        self.stack_lines.add(lines.stack);
        self.accesses.add(lines.accesses);
    }
}

/// What one allocator did on one workload.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    /// Allocator.
    pub(crate) heap: String,
    /// Workload.
    pub(crate) workload: String,
    /// Allocations.
    pub(crate) allocate: Counts,
    /// Frees.
    pub(crate) free: Counts,
    /// Resizes, if the workload has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resize: Option<Counts>,
    /// Whether the budget of steps ended the measurement early.
    pub(crate) cut_short: bool,
    /// Why nothing was measured, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

/// Steps every measured event of a workload; at most about `budget`
/// instructions, since heaps that walk lists would take minutes.
pub(crate) fn measure(
    peer: &Peer,
    workload: &Workload,
    budget: u64,
    memory: &mut Reservation,
) -> Result<Measurement, Error> {
    /// Instructions of one call that are looked at: more than any peer here takes.
    const ROOM: usize = 1 << 20;
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut untold = None;
    let mut steps = 0;
    let mut cut_short = false;
    let failure = run(peer, workload, memory, |stepper, player, session, event| {
        if steps >= budget {
            cut_short = true;
            return None;
        }
        // SAFETY: the player prepares calls on live blocks only.
        let (result, count, lines) =
            unsafe { stepper.call_with_lines(player.prepare(session, event), ROOM) };
        steps += count;
        let counts = counts.entry(verb(event.operation)).or_default();
        match lines {
            Ok(lines) => counts.add(count, lines),
            Err(why) => {
                untold = Some(why);
                return None;
            }
        }
        Some(result)
    })?;
    if let Some(why) = untold {
        return Err(Error::Lines {
            heap: peer.name.to_owned(),
            workload: workload.name.clone(),
            why,
        });
    }
    Ok(Measurement {
        heap: peer.name.to_owned(),
        workload: workload.name.clone(),
        allocate: counts.get("allocate").copied().unwrap_or_default(),
        free: counts.get("free").copied().unwrap_or_default(),
        resize: counts.get("resize").copied(),
        cut_short,
        failure,
    })
}

fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Allocate => "allocate",
        Operation::Free => "free",
        Operation::Resize => "resize",
    }
}

/// Plays a workload with each measured event done by `each`, which gives the
/// result of the call or `None` to stop. Returns why it could not be played.
fn run(
    peer: &Peer,
    workload: &Workload,
    memory: &mut Reservation,
    mut each: impl FnMut(&mut Stepper, &Player, &Session, &Event) -> Option<usize>,
) -> Result<Option<String>, Error> {
    let length = memory.used();
    let Some(session) = peer.start(memory, length) else {
        return Ok(Some("the heap does not start".to_owned()));
    };
    let mut player = Player::new(workload.slots);
    if let Err(refused) = player.play(&session, &workload.setup) {
        return Ok(Some(format!(
            "event {} of the setup was refused",
            refused.0
        )));
    }
    let mut stepper = Stepper::new().map_err(Error::Step)?;
    for (index, event) in workload.measured.iter().enumerate() {
        let Some(result) = each(&mut stepper, &player, &session, event) else {
            break;
        };
        if !player.accept(event, result) {
            return Ok(Some(format!("event {index} was refused")));
        }
    }
    drop(stepper);
    player.release(&session, peer);
    Ok(None)
}

/// The tables of a set of measurements, one row per allocator: instructions, and cache lines.
pub(crate) fn tables(measurements: &[Measurement], workloads: &[&str]) -> [Table; 2] {
    let cut = "+ cut short by the budget of steps; the mean is of fewer calls";
    let instructions = Table {
        title: "Instructions per call (exact; call and ret included)".to_owned(),
        columns: columns(workloads),
        rows: rows(measurements, |counts| counts.instructions),
        remarks: vec![cut.to_owned()],
    };
    let lines = Table {
        title: "Cache lines per call (exact; distinct lines of 64 bytes, without the call's stack)"
            .to_owned(),
        rows: rows(measurements, |counts| counts.lines),
        ..instructions.clone()
    };
    [instructions, lines]
}

fn columns(workloads: &[&str]) -> Vec<String> {
    let mut columns = vec!["heap".to_owned()];
    for workload in workloads {
        for what in ["malloc", "free"] {
            columns.push(format!("{workload} {what} mean"));
            columns.push("max".to_owned());
        }
    }
    columns
}

fn rows(measurements: &[Measurement], what: fn(&Counts) -> Count) -> Vec<Vec<Cell>> {
    let mut rows: Vec<(&str, Vec<Cell>)> = Vec::new();
    for measurement in measurements {
        let name = measurement.heap.as_str();
        let at = rows.iter().position(|(heap, _)| *heap == name);
        let at = at.unwrap_or_else(|| {
            rows.push((name, vec![Cell::text(name)]));
            rows.len() - 1
        });
        for count in [&measurement.allocate, &measurement.free].map(what) {
            if measurement.failure.is_some() || count.calls == 0 {
                rows[at].1.extend([Cell::none(), Cell::none()]);
                continue;
            }
            let mark = if measurement.cut_short { "+" } else { "" };
            let mean = Cell::text(format!("{:.1}{mark}", count.mean));
            rows[at]
                .1
                .extend([mean, Cell::text(count.maximum.to_string())]);
        }
    }
    rows.into_iter().map(|(_, cells)| cells).collect()
}

/// The longest call of each operation: which event, and each instruction run.
pub(crate) struct Path {
    /// "allocate", "free" or "resize".
    pub(crate) operation: &'static str,
    /// Index of the event.
    pub(crate) event: usize,
    /// Bytes requested.
    pub(crate) size: usize,
    /// Addresses in order.
    pub(crate) addresses: Vec<usize>,
}

/// Finds the longest calls of a workload and how often each instruction ran.
pub(crate) fn paths(
    peer: &Peer,
    workload: &Workload,
    memory: &mut Reservation,
) -> Result<(Vec<Path>, BTreeMap<usize, u64>), Error> {
    const ROOM: usize = 65_536;
    let mut longest: BTreeMap<&'static str, Path> = BTreeMap::new();
    let mut visits: BTreeMap<usize, u64> = BTreeMap::new();
    let mut index = 0;
    let failure = run(peer, workload, memory, |stepper, player, session, event| {
        // SAFETY: the player prepares calls on live blocks only.
        let (result, _, addresses) =
            unsafe { stepper.call_with_path(player.prepare(session, event), ROOM) };
        for address in &addresses {
            *visits.entry(*address).or_default() += 1;
        }
        let operation = verb(event.operation);
        if longest
            .get(operation)
            .is_none_or(|path| path.addresses.len() < addresses.len())
        {
            longest.insert(
                operation,
                Path {
                    operation,
                    event: index,
                    size: event.size,
                    addresses,
                },
            );
        }
        index += 1;
        Some(result)
    })?;
    match failure {
        None => Ok((longest.into_values().collect(), visits)),
        Some(why) => Err(Error::Unplayable {
            heap: peer.name.to_owned(),
            workload: workload.name.clone(),
            why,
        }),
    }
}
