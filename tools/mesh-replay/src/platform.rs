//! The replay on the simulated many-core platform: each node a core with a controller, on a mesh as square as it can be.
//!
//! Invariant: the platform has just as many nodes as the trace may name, so no heap serves that nobody asked for.

use metes_platform::programs::{Operation as Step, traced};
use metes_platform::{Faults, HeapKind, ManagerKind, NotRun, Parameters, Run, Setup, run};

use crate::lists::Lists;
use crate::replay::Replayed;
use crate::trace::{Operation, Trace};

/// The cycle after which a run is broken off.
const LIMIT: u64 = 1 << 40;

/// Replays `trace` on so many nodes with heaps of `heap` bytes, by the parameters that are the default; also what the platform
/// tells of the run.
///
/// # Errors
/// [`NotRun`] says what to change.
pub fn on_platform(
    trace: &Trace,
    nodes: u32,
    heap: u64,
    heaps: HeapKind,
) -> Result<(Replayed, Run), NotRun> {
    let (columns, rows) = sides(nodes as usize);
    let mut parameters = Parameters::sized(columns, rows);
    parameters.heap = heap;
    let setup = Setup {
        parameters,
        manager: ManagerKind::Metes,
        heaps,
        faults: Faults::default(),
        limit: LIMIT,
        every: 0,
    };
    // What cannot be is told before lists are made for it.
    setup.parameters.check()?;
    let lists = Lists::new(trace, nodes);
    let steps = |node: u32| {
        let list = lists.of(node).iter();
        list.map(|&(operation, request)| match operation {
            Operation::Allocate { size, .. } => Step::Allocate { request, size },
            Operation::Free { .. } => Step::Free { request },
        })
        .collect()
    };
    let programs = traced((0..nodes).map(steps).collect(), trace.sizes().len(), 0);
    let run = run(&setup, programs)?;
    let replayed = Replayed {
        operations: trace.operations().len() as u64,
        failed: run.sum(|counts| counts.refused),
        spurious: run.sum(|counts| counts.spurious),
        live_bytes: run.live.iter().map(|(live, _)| live).sum(),
        lost_blocks: run.lost(),
        node_peaks: run.live.iter().map(|(_, peak)| *peak).collect(),
        local: run.sum(|counts| counts.served_at_home),
        remote: run.sum(|counts| counts.served_away),
        visits: run.sum(|counts| counts.visits),
        skips: run.sum(|counts| counts.skips),
        longest: run
            .nodes
            .iter()
            .map(|counts| counts.most_visits)
            .max()
            .unwrap_or(0),
        ..Replayed::default()
    };
    Ok((replayed, run))
}

/// Columns and rows of so many nodes, as near to each other as can be.
fn sides(nodes: usize) -> (usize, usize) {
    let rows = (1..=nodes.isqrt())
        .rev()
        .find(|rows| nodes.is_multiple_of(*rows));
    let rows = rows.unwrap_or(1);
    (nodes / rows, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use metes_heap::{IndexKind, Limits};

    #[test]
    fn a_mesh_is_as_square_as_it_can_be() {
        for (nodes, is) in [
            (1, (1, 1)),
            (4, (2, 2)),
            (12, (4, 3)),
            (7, (7, 1)),
            (64, (8, 8)),
        ] {
            assert_eq!(sides(nodes), is);
        }
    }

    #[test]
    fn a_node_frees_what_another_asked_for() {
        let text = "a,0,1,1500\na,0,2,1500\na,0,3,1500\nf,1,3\nf,1,1\n";
        let trace = Trace::read(text.as_bytes(), 2).expect("a trace");
        let heaps = HeapKind {
            index: IndexKind::Classes {
                second_level: 4,
                probes: 0,
            },
            limits: Limits::NONE,
        };
        let (replayed, _) = on_platform(&trace, 2, 4096, heaps).expect("it can be");
        assert_eq!((replayed.operations, replayed.failed), (5, 0));
        assert_eq!((replayed.local, replayed.remote), (2, 1));
        assert_eq!((replayed.live_bytes, replayed.lost_blocks), (1500, 0));
        assert_eq!(replayed.longest, 2);
    }
}
