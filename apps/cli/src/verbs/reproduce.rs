//! `metes reproduce`.

mod complexity;
mod edge;
mod hypervolume;
mod partition;
mod recorded;
mod tlsf;

use std::path::Path;

use metes_cases::{admission, concurrent, dvfs, easyport, mesh, paging, predicted, reorder, vtc};
use metes_explore::small_heaps::{self, Effort, Row};
use metes_lab::{About, Figure, figure};
use serde_json::{Value, json};

use crate::arguments::Reproduce;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, GOOD, POOR, Table};
use crate::own::Form;
use crate::progress;
use crate::quantity::grouped;
use crate::verbs::power_models;

/// An experiment that there is.
struct Experiment {
    name: &'static str,
    /// In a line what it tries.
    about: &'static str,
    /// Whose figures stand beside ours.
    paper: Option<&'static str>,
}

const EXPLORATION: Option<&str> = Some("Mamagkakis et al., EMSOFT 2006");
const SLIDES: Option<&str> = Some("Kirsch and Sokolova, slides at the ARTIST summer school 2009");
const REORDERING: Option<&str> = Some(
    "Salvalaggio, Zippo and Stea, “Improving (min,+) convolutions by heuristic operation reordering”",
);

const PAGING: Option<&str> = Some(
    "Böhnert and Scholl, “A Dynamic Virtual Memory Management under Real-Time Constraints”, RTCSA 2014",
);

const MESH: Option<&str> = Some(
    "Koutras et al., “Improving Dynamic Memory Allocation on Many-Core Embedded Systems With Distributed Shared Memory”, IEEE ESL 2016",
);

const EDGE: Option<&str> =
    Some("A comparison of WebAssembly runtimes and containers for real-time functions at the edge");

const FREQUENCIES: Option<&str> = Some(
    "Variable CPU and memory frequencies under real-time constraints: measurements on a Raspberry Pi 3B+ with TACLeBench",
);

const EXPERIMENTS: [Experiment; 26] = [
    Experiment {
        name: "small-heaps",
        about: "exact worst cases of placement policies on small heaps, beside literature and bounds",
        paper: None,
    },
    Experiment {
        name: "dm-easyport",
        about: "106 496 heaps on 12 000 packets: ranges, Pareto set, energy, time (minutes)",
        paper: EXPLORATION,
    },
    Experiment {
        name: "dm-vtc",
        about: "40 heaps for a texture decoder on a scratchpad and a main memory",
        paper: EXPLORATION,
    },
    Experiment {
        name: "dm-prediction",
        about: "heaps of the former space, emitted as C and run: prediction against measurement",
        paper: EXPLORATION,
    },
    Experiment {
        name: "compact-fit-partition",
        about: "compact-fit's size classes on recorded programs: page, smallest, largest and factor explored",
        paper: SLIDES,
    },
    Experiment {
        name: "complexity",
        about: "declared times of every heap against counted instructions, as blocks and heaps grow to 2^20",
        paper: SLIDES,
    },
    Experiment {
        name: "compact-fit-throughput",
        about: "compact-fit on one thread: calls by κ and granularity of locks",
        paper: SLIDES,
    },
    Experiment {
        name: "compact-fit-scalability",
        about: "compact-fit by threads: full and no compaction, shared and an instance a thread",
        paper: SLIDES,
    },
    Experiment {
        name: "compact-fit-increments",
        about: "compact-fit's throughput by the compaction increment ι",
        paper: SLIDES,
    },
    Experiment {
        name: "compact-fit-latency",
        about: "how long 8 threads hold compact-fit's locks, by block size and ι",
        paper: SLIDES,
    },
    Experiment {
        name: "compact-fit-transient",
        about: "what memory compact-fit's moves under way take, by ι: exact bytes",
        paper: SLIDES,
    },
    Experiment {
        name: "compact-fit-tlsf",
        about: "TLSF and non-compacting compact-fit on a recorded editor and browser: instructions, memory",
        paper: SLIDES,
    },
    Experiment {
        name: "reorder-fig-1",
        about: "chains of six curves: time of every order and of every tree",
        paper: REORDERING,
    },
    Experiment {
        name: "reorder-tables-1-5",
        about: "chains of six curves: policies and estimates of the order, and the default plan",
        paper: REORDERING,
    },
    Experiment {
        name: "rtmmu-table-1",
        about: "constant-time pages beside a page table: most of an allocation and a free, pages",
        paper: PAGING,
    },
    Experiment {
        name: "rtmmu-fig-5",
        about: "constant-time pages beside a page table: allocations by size",
        paper: PAGING,
    },
    Experiment {
        name: "rtmmu-fig-6",
        about: "constant-time pages beside a page table: frees by size",
        paper: PAGING,
    },
    Experiment {
        name: "rtmmu-fig-7",
        about: "constant-time pages beside a page table: pages with a frame over time",
        paper: PAGING,
    },
    Experiment {
        name: "mesh-fig-4",
        about: "four kernels on 2 x 2 nodes whose heaps suffice: cycles of a request by manager",
        paper: MESH,
    },
    Experiment {
        name: "mesh-fig-5",
        about: "managers of a heap over 2 x 2 to 8 x 8 nodes: growth, refusals, bound, and what follows from what",
        paper: MESH,
    },
    Experiment {
        name: "edge-fig-1",
        about: "start-up times of WebAssembly runtimes, native code and containers, layer by layer",
        paper: EDGE,
    },
    Experiment {
        name: "edge-fig-2",
        about: "whole times of kernels by WebAssembly runtimes, native code and containers (minutes)",
        paper: EDGE,
    },
    Experiment {
        name: "edge-fig-3",
        about: "long runs of kernels, and why WebAssembly can be faster than a container (minutes)",
        paper: EDGE,
    },
    Experiment {
        name: "edge-admission",
        about: "random sets of functions: exact admission beside simulation, utilisation, density and SCHED_DEADLINE",
        paper: None,
    },
    Experiment {
        name: "dvfs",
        about: "frequencies of processor and memory: a paper's numbers, and its conclusions beside measurements (--data)",
        paper: FREQUENCIES,
    },
    Experiment {
        name: "hypervolume",
        about: "random, local search and NSGA-II on 32 400 heaps (102 400 points): evaluations to 99 % of the hypervolume",
        paper: None,
    },
];

pub(crate) fn run(arguments: &Reproduce, json: bool) -> Result<u8, Failure> {
    let Reproduce {
        name,
        full,
        quick,
        output,
        data,
    } = arguments;
    if data.is_some() && name.as_deref() != Some("dvfs") {
        return Err(Failure::input(
            "--data is for dvfs, which holds a paper against your measurements: leave it out",
        ));
    }
    let show = Show {
        json,
        page: output.as_deref(),
    };
    show.check(name.as_deref())?;
    let threads = match quick {
        true => concurrent::Effort::Quick,
        false => concurrent::Effort::Whole,
    };
    let pages = match quick {
        true => paging::Effort::Quick,
        false => paging::Effort::Whole,
    };
    let nodes = match quick {
        true => mesh::Effort::Quick,
        false => mesh::Effort::Whole,
    };
    let picture = |picture| show.study(|tell| paging::picture(picture, pages, tell).map_err(fail));
    let chains = match quick {
        true => reorder::Effort::Quick,
        false => reorder::Effort::Whole,
    };
    match name.as_deref() {
        None => list(json),
        Some("small-heaps") => small(*full, json),
        Some("dm-easyport") => {
            let effort = match quick {
                true => easyport::Effort::Quick,
                false => easyport::Effort::Whole,
            };
            show.study(|tell| easyport::reproduce(effort, tell).map_err(fail))
        }
        Some("dm-vtc") => show.study(|_| vtc::reproduce().map_err(fail)),
        Some("dm-prediction") => {
            let heaps = match (quick, full) {
                (true, _) => 4,
                (false, false) => 20,
                (false, true) => 100,
            };
            show.study(|tell| predicted::reproduce(heaps, tell).map_err(fail))
        }
        Some("compact-fit-partition") => show.study(partition::run),
        Some("compact-fit-throughput") => {
            show.study(|tell| concurrent::throughput(threads, tell).map_err(fail))
        }
        Some("compact-fit-scalability") => {
            show.study(|tell| concurrent::scalability(threads, tell).map_err(fail))
        }
        Some("compact-fit-increments") => {
            show.study(|tell| concurrent::increments(threads, tell).map_err(fail))
        }
        Some("compact-fit-latency") => {
            show.study(|tell| concurrent::latency(threads, tell).map_err(fail))
        }
        Some("compact-fit-transient") => {
            show.study(|tell| concurrent::transient(threads, tell).map_err(fail))
        }
        Some("compact-fit-tlsf") => show.study(|tell| tlsf::run(*quick, tell)),
        Some("complexity") => complexity::run(arguments, json),
        Some("reorder-fig-1") => {
            show.study(|tell| reorder::distribution(chains, tell).map_err(fail))
        }
        Some("reorder-tables-1-5") => {
            show.study(|tell| reorder::policies(chains, tell).map_err(fail))
        }
        Some("rtmmu-table-1") => show.study(|tell| paging::table_1(pages, tell).map_err(fail)),
        Some("rtmmu-fig-5") => picture(paging::Picture::Allocations),
        Some("rtmmu-fig-6") => picture(paging::Picture::Frees),
        Some("rtmmu-fig-7") => picture(paging::Picture::Footprint),
        Some("mesh-fig-4") => show.study(|tell| mesh::fig_4(nodes, tell).map_err(fail)),
        Some("mesh-fig-5") => show.study(|tell| mesh::fig_5(nodes, tell).map_err(fail)),
        Some(figure @ ("edge-fig-1" | "edge-fig-2" | "edge-fig-3")) => {
            show.study(|tell| edge::run(figure, *quick, tell))
        }
        Some("edge-admission") => {
            let effort = match quick {
                true => admission::Effort::Quick,
                false => admission::Effort::Whole,
            };
            show.study(|tell| Ok(admission::acceptance(effort, tell)))
        }
        Some("dvfs") => {
            let table = data.as_deref().map(power_models::table).transpose()?;
            show.study(|_| dvfs::reproduce(table.as_ref()).map_err(fail))
        }
        Some("hypervolume") => hypervolume::run(*quick, json),
        Some(name) => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Failure {
    Failure::input(format!(
        "there is no experiment named {name}: `metes reproduce` lists those there are ({})",
        EXPERIMENTS.map(|known| known.name).join(", ")
    ))
}

fn list(json: bool) -> Result<u8, Failure> {
    if json {
        let experiments = EXPERIMENTS.map(
            |Experiment { name, about, paper }| json!({ "name": name, "about": about, "paper": paper }),
        );
        output::json(&json!({ "experiments": experiments }))?;
    } else {
        for Experiment { name, about, .. } in EXPERIMENTS {
            output::text(&format!("{BOLD}{name:<24}{BOLD:#} {about}\n"))?;
        }
    }
    Ok(0)
}

const ASSUMPTIONS: [&str; 4] = [
    "sizes are counted in cells of one unit; no records, no alignment",
    "ours: the smallest heap that no sequence of requests exhausts, found by visiting every \
     reachable state",
    "paper: an earlier exhaustive search of the same kind, where there is one; bound: the printed \
     upper bound for that policy and demand",
    "where a policy is an index of metes-heap, its code decides the same states",
];

fn fail(error: impl std::error::Error) -> Failure {
    Failure::input(error.to_string())
}

/// Experiments that print tables of their own form, and have no page.
const WITHOUT_PAGE: [&str; 3] = ["small-heaps", "complexity", "hypervolume"];

/// How a report is to be shown.
struct Show<'a> {
    json: bool,
    /// Where its page is to go.
    page: Option<&'a Path>,
}

impl Show<'_> {
    /// That the page can be written, before minutes are spent.
    fn check(&self, name: Option<&str>) -> Result<(), Failure> {
        let Some(path) = self.page else {
            return Ok(());
        };
        let Some(name) = name else {
            return Err(Failure::input(
                "--output is for the page of an experiment: name one",
            ));
        };
        if EXPERIMENTS.iter().all(|known| known.name != name) {
            return Err(unknown(name));
        }
        if WITHOUT_PAGE.contains(&name) {
            return Err(Failure::input(format!(
                "{name} has no page: leave out --output; --json prints everything that is found"
            )));
        }
        output::writable(path, Form::Page)
    }

    /// Runs a case study and shows its rows; `work` is told whom to tell what it does.
    fn study(
        &self,
        work: impl FnOnce(&dyn Fn(&str)) -> Result<metes_lab::Report, Failure>,
    ) -> Result<u8, Failure> {
        let wheel = progress::spinner("replaying");
        let report = work(&|what| wheel.set_message(what.to_owned()));
        wheel.finish_and_clear();
        let report = report?;
        if let Some(path) = self.page {
            output::write_file(path, page(&report)?.as_bytes())?;
        }
        if self.json {
            let mut document = serde_json::to_value(&report)
                .map_err(|error| Failure::input(format!("cannot be written as JSON: {error}")))?;
            document["holds"] = json!(report.holds());
            if let Some(path) = self.page {
                document["page"] = json!(output::name(path));
            }
            output::json(&document)?;
        } else {
            show_study(&report)?;
            if let Some(path) = self.page {
                output::text(&format!("\n{}\n", path.display()))?;
            }
        }
        Ok(if report.holds() { 0 } else { DOES_NOT_HOLD })
    }
}

/// The page of a study's report.
fn page(report: &metes_lab::Report) -> Result<String, Failure> {
    let known = EXPERIMENTS
        .iter()
        .find(|known| known.name == report.experiment);
    let about = About {
        command: &format!("metes reproduce {}", report.experiment),
        title: known.map_or(report.experiment, |known| known.about),
        paper: known.and_then(|known| known.paper),
    };
    metes_lab::page(report, about).map_err(fail)
}

fn show_study(report: &metes_lab::Report) -> Result<(), Failure> {
    let mut table = Table::new(&["what", "paper", "ours", "ratio", ""]);
    let cell = |value: Option<f64>, unit: &str| match value {
        Some(value) => figure(value, unit),
        None => "-".to_owned(),
    };
    for row in &report.rows {
        let Figure {
            what,
            paper,
            ours,
            ratio,
            unit,
            note,
        } = row;
        table.row(
            anstyle::Style::new(),
            vec![
                what.clone(),
                cell(*paper, unit),
                cell(*ours, unit),
                ratio.map_or("-".to_owned(), |ratio| figure(ratio, "")),
                note.clone(),
            ],
        );
    }
    let mut text = format!("{BOLD}{}{BOLD:#}\n\n{table}\n", report.experiment);
    for assumption in &report.assumptions {
        text += &format!("  - {assumption}\n");
    }
    for what in &report.contradicted {
        text += &format!("\n{POOR}does not hold: {what}{POOR:#}\n");
    }
    output::text(&text)
}

fn small(full: bool, json: bool) -> Result<u8, Failure> {
    let wheel = progress::spinner("every sequence on small heaps");
    let rows = small_heaps::table(if full { Effort::Full } else { Effort::Quick });
    wheel.finish_and_clear();
    let holds = rows.iter().all(Row::holds);
    if json {
        output::json(&json!({
            "experiment": "small-heaps",
            "rows": rows.iter().map(document).collect::<Vec<_>>(),
            "assumptions": ASSUMPTIONS,
            "holds": holds,
        }))?;
    } else {
        show(&rows, holds)?;
    }
    Ok(if holds { 0 } else { DOES_NOT_HOLD })
}

/// Ours over the paper's value, where there are both.
fn ratio(row: &Row) -> Option<f64> {
    Some(f64::from(row.found?) / f64::from(row.paper?))
}

fn remark(row: &Row) -> String {
    let mut remarks = Vec::new();
    if row.found.is_none() {
        remarks.push("more states than the cap".to_owned());
    }
    if row.meets_bound() {
        remarks.push("meets the bound".to_owned());
    }
    match (&row.decisions, &row.difference) {
        (_, Some(difference)) => remarks.push(format!("the code differs: {difference}")),
        (Some(decisions), None) => {
            let decisions = grouped(*decisions as u64);
            remarks.push(format!("the code agrees in {decisions} decisions"));
        }
        (None, None) => {}
    }
    if !row.holds() {
        remarks.push("does not hold".to_owned());
    }
    remarks.join("; ")
}

fn document(row: &Row) -> Value {
    let Row {
        policy,
        live,
        largest,
        sizes,
        ..
    } = row;
    json!({
        "what": format!("{policy}, M = {live}, n = {largest}, {sizes} sizes"),
        "paper": row.paper,
        "ours": row.found,
        "ratio": ratio(row),
        "note": remark(row),
        "bound": row.bound.map(|bound| bound as u64),
        "method": row.method,
        "necessary": row.necessary as u64,
        "states": row.states,
        "holds": row.holds(),
    })
}

fn show(rows: &[Row], holds: bool) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "policy", "sizes", "M", "n", "paper", "ours", "ratio", "bound", "states", "",
    ]);
    let cells = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    for row in rows {
        let style = if row.holds() {
            anstyle::Style::new()
        } else {
            POOR
        };
        table.row(
            style,
            vec![
                row.policy.clone(),
                row.sizes.to_owned(),
                row.live.to_string(),
                row.largest.to_string(),
                cells(row.paper.map(|paper| paper.to_string())),
                cells(row.found.map(|found| found.to_string())),
                cells(ratio(row).map(|ratio| format!("{ratio:.2}"))),
                cells(row.bound.map(|bound| bound.to_string())),
                grouped(row.states as u64),
                remark(row),
            ],
        );
    }
    let mut text =
        format!("{BOLD}small-heaps{BOLD:#}: cells that suffice for every sequence\n\n{table}\n");
    for assumption in ASSUMPTIONS {
        text += &format!("  - {assumption}\n");
    }
    text += &if holds {
        format!("\n{GOOD}no bound and no earlier value is contradicted{GOOD:#}\n")
    } else {
        format!("\n{POOR}a bound or an earlier value is contradicted{POOR:#}\n")
    };
    output::text(&text)
}
