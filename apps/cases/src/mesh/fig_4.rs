//! Figure 4: three managers on 2 x 2 nodes whose heaps suffice, so that no node asks another.
//!
//! Invariant: nothing is refused, and no block comes from another node.

use metes_lab::{Figure, Plot, Report, Series};
use metes_platform::{ManagerKind, Run};

use super::{Conditions, Effort, Load, MeshError, all, an_event, assumptions, kernels, mean};

const MANAGERS: [ManagerKind; 4] = [
    ManagerKind::Microcoded,
    ManagerKind::Proposed,
    ManagerKind::CPrivate,
    ManagerKind::Metes,
];

/// Bytes that suffice for every kernel's master on 2 x 2 nodes.
const ENOUGH: u64 = 32 << 10;

/// Figure 4.
///
/// # Errors
/// [`MeshError`].
pub fn fig_4(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, MeshError> {
    tell("four kernels on 2 x 2 nodes");
    let (side, tasks) = match effort {
        Effort::Quick => (64, 5),
        Effort::Whole => (256, 85),
    };
    let (kernels, picture) = kernels(side)?;
    let loads: Vec<Load> = kernels
        .iter()
        .map(|kernel| Load::Kernel(kernel.clone(), tasks))
        .collect();
    let conditions = MANAGERS.map(|manager| {
        let mut conditions = Conditions::new(2, manager);
        conditions.parameters.heap = ENOUGH;
        conditions
    });
    let runs: Vec<_> = loads
        .iter()
        .flat_map(|load| conditions.iter().map(move |it| (it.clone(), load)))
        .collect();
    let runs = all(&runs)?;
    let runs: Vec<&[Run]> = runs.chunks(MANAGERS.len()).collect();
    let mut report = Report {
        experiment: "mesh-fig-4",
        rows: Vec::new(),
        assumptions: assumptions(&picture),
        contradicted: Vec::new(),
        plots: Vec::new(),
    };
    report.assumptions.push(format!(
        "heaps of {} suffice on 2 x 2 nodes: none is asked for by another node; the master frees what slaves leave",
        metes_quantity::bytes(ENOUGH)
    ));
    for (kernel, runs) in kernels.iter().zip(&runs) {
        of_kernel(&mut report, &kernel.name, runs);
    }
    let quick_c = loads.iter().map(|load| {
        let mut conditions = conditions[2].clone();
        conditions.parameters.core.c_access = 1;
        conditions.run(load)
    });
    let quick_c = quick_c.collect::<Result<Vec<_>, _>>()?;
    let quick_c = mean(
        quick_c
            .iter()
            .zip(&runs)
            .map(|(run, runs)| over(run, &runs[0])),
    );
    means(&mut report, &runs, quick_c);
    let names = kernels.iter().map(|kernel| kernel.name.clone()).collect();
    let series = |place: usize| {
        let values = runs.iter().map(|runs| over(&runs[place], &runs[0]));
        Series::measured(MANAGERS[place].to_string(), values)
    };
    report.plots.push(Plot {
        title: "Cycles of a request or free, over those of the microcoded manager".to_owned(),
        x: "kernel".to_owned(),
        names,
        y: "x".to_owned(),
        joined: false,
        series: (0..MANAGERS.len()).map(series).collect(),
    });
    Ok(report)
}

fn over(run: &Run, microcoded: &Run) -> f64 {
    an_event(run) / an_event(microcoded)
}

fn of_kernel(report: &mut Report, name: &str, runs: &[Run]) {
    let total = |run: &Run| run.cycles as f64;
    for (manager, run) in MANAGERS.iter().zip(runs).skip(1) {
        let note = format!(
            "{:.0} and {:.0} cycles; total time {:.3} x",
            an_event(run),
            an_event(&runs[0]),
            total(run) / total(&runs[0])
        );
        report.rows.push(
            Figure::new(
                format!("{name}: {manager} over microcoded, a request or free"),
                "x",
            )
            .ours(over(run, &runs[0]))
            .note(note),
        );
        let refused = run.sum(|counts| counts.refused + counts.served_away);
        if refused > 0 {
            report.contradicted.push(format!(
                "{name}, {manager}: {refused} requests were refused or served by another node"
            ));
        }
    }
    let share = {
        let managed: u128 = runs[0].nodes.iter().map(|counts| counts.managed()).sum();
        let computed = runs[0].sum(|counts| counts.computed);
        100.0 * managed as f64 / (managed as f64 + computed as f64)
    };
    let paper = match name {
        "fast" => Some(10.83),
        "gaussian" => Some(23.12),
        _ => None,
    };
    let figure = Figure::new(
        format!("{name}: memory management, of all cycles in which nodes work"),
        "%",
    );
    let figure = match paper {
        Some(paper) => figure.paper(paper),
        None => figure,
    };
    report.rows.push(figure.ours(share).note(
        "microcoded, each node for itself; the paper's is of a master that does it for all, on tiles of another size",
    ));
    if over(&runs[1], &runs[0]) <= 1.0 {
        report.contradicted.push(format!(
            "{name}: proposed is not slower than microcoded on 2 x 2 nodes"
        ));
    }
}

fn means(report: &mut Report, runs: &[&[Run]], quick_c: f64) {
    let of = |place: usize| mean(runs.iter().map(|runs| over(&runs[place], &runs[0])));
    let (proposed, c) = (of(1), of(2));
    report.rows.push(
        Figure::new("mean: proposed over microcoded, a request or free", "x")
            .paper(1.25)
            .ours(proposed)
            .note(
                "the sign emerges; the size is the length of the map's C: mesh-fig-5 has it for other lengths",
            ),
    );
    report.rows.push(
        Figure::new("mean: C over microcoded, a request or free", "x")
            .paper(1.25 / 0.9)
            .ours(c)
            .note(
                "an input, not a result: the paper's C allocator has several pools and is not at hand; this one is first \
                 fit with boundary tags",
            ),
    );
    report.rows.push(
        Figure::new(
            "mean: the same, were each word of a record one instruction",
            "x",
        )
        .paper(1.25 / 0.9)
        .ours(quick_c)
        .note("whether C is slower than proposed follows from what its code takes alone"),
    );
    let total = |place: usize| {
        mean(
            runs.iter()
                .map(|runs| runs[place].cycles as f64 / runs[0].cycles as f64),
        )
    };
    report.rows.push(
        Figure::new("mean: proposed over microcoded, total time", "x")
            .paper(1.25)
            .ours(total(1))
            .note(
                "not reproduced: no manager can make 25 % of the total where memory management is a fifth of it",
            ),
    );
}
