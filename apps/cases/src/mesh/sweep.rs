//! What of figure 5 follows from which parameter: again with each of the decisive ones changed.
//!
//! Invariant: one parameter at a time differs from the defaults.

use metes_lab::{Figure, Report};
use metes_noc::Kind;
use metes_platform::Workload;
use metes_platform::parameters::TableOrder;

use super::fig_5::{MANAGERS, SIDES, Sized, grows, sized, storm};
use super::{Conditions, Load, MeshError, an_event, mean};

/// A parameter and how it is changed.
type Change = (&'static str, fn(&mut Conditions));

const CHANGES: [Change; 11] = [
    ("a map of 20 and 10 instructions", |it| map(it, 20)),
    ("a map of 30 and 15 instructions", |it| map(it, 30)),
    ("a map of 40 and 20 instructions", |it| map(it, 40)),
    ("heaps of 8 KiB", |it| it.parameters.heap = 8 << 10),
    ("heaps of 16 KiB", |it| it.parameters.heap = 16 << 10),
    ("tables by distance", |it| {
        it.parameters.papers.table = TableOrder::Distance;
    }),
    ("a hop of 3 cycles", |it| {
        it.parameters.network.hop = Some(3)
    }),
    (
        "microcoded: lock, request and unlocking in one message",
        |it| {
            it.parameters.papers.microcoded_fused = true;
        },
    ),
    ("both: lock, request and unlocking in one message", |it| {
        it.parameters.papers.microcoded_fused = true;
        it.parameters.papers.proposed_fused = true;
    }),
    ("routers that deflect", |it| {
        it.parameters.network.network = Kind::Deflection;
    }),
    ("routers with queues", |it| {
        it.parameters.network.network = Kind::Buffered;
    }),
];

fn map(conditions: &mut Conditions, instructions: u64) {
    conditions.parameters.core.map_allocate = instructions;
    conditions.parameters.core.map_free = instructions / 2;
}

pub(super) fn sweep(
    report: &mut Report,
    kernels: &[Workload],
    tasks: usize,
    operations: u64,
    tell: &dyn Fn(&str),
) -> Result<(), MeshError> {
    for (name, change) in CHANGES {
        tell(name);
        let changed = |mut conditions: Conditions| {
            change(&mut conditions);
            conditions
        };
        let heap = changed(Conditions::new(2, MANAGERS[0])).parameters.heap;
        let load = Load::Storm(storm(heap, operations, 200, 12));
        let runs = sized(&load, changed)?;
        row(report, &format!("storm, {name}"), &[runs]);
        let under_kernels = kernels
            .iter()
            .map(|kernel| sized(&Load::Kernel(kernel.clone(), tasks), changed))
            .collect::<Result<Vec<_>, _>>()?;
        row(report, &format!("kernels, {name}"), &under_kernels);
    }
    Ok(())
}

/// The ratio on 2 x 2, with all growths and the ratio on 8 x 8 in its note.
fn row(report: &mut Report, what: &str, runs: &[Sized]) {
    let ratio = |side: usize| {
        mean(
            runs.iter()
                .map(|sized| an_event(&sized[side][1]) / an_event(&sized[side][0])),
        )
    };
    let growths: Vec<String> = (0..MANAGERS.len())
        .map(|manager| {
            let growth = mean(runs.iter().map(|sized| grows(sized, manager)));
            format!("{} {growth:.2}", MANAGERS[manager])
        })
        .collect();
    let communication = mean(runs.iter().map(|sized| {
        let last = &sized[SIDES.len() - 1];
        last[1].communication() as f64 / last[0].communication().max(1) as f64
    }));
    report.rows.push(
        Figure::new(
            format!("sweep: {what}: proposed over microcoded on 2 x 2"),
            "x",
        )
        .ours(ratio(0))
        .note(format!(
            "on 8 x 8 {:.2}; growth a step: {}; communication on 8 x 8 {communication:.2} x",
            ratio(SIDES.len() - 1),
            growths.join(", ")
        )),
    );
}
