//! The packet experiment (`dm-easyport`): the paper's space of 106 496 heaps on
//! 12 000 packets, and what its section 7.1 says of them.
//!
//! The ranges over all heaps need every replay to its end; the front alone does
//! not, and is explored a second time with replays ended early, for the time that
//! it takes. Energy is that of the front's heaps, each with the placements that
//! the paper names, on its platform.
//!
//! What the paper's means are over is read off its text: figure 7 compares "our
//! energy-efficient solution" with Kingsley's, Lea's and OSE's heaps, so it is
//! *one* heap, the one of least energy, and the mean is over these three.

mod contest;
mod explored;
mod placed;

use metes_config::Config;
use metes_explore::engine::{Metrics, Row};
use metes_explore::{EnergyError, EventError, Events, Parameters, Space, SpaceError};

use crate::packets;
use crate::platform::Platform;
use crate::statistics::{expected_least, rank_correlation};
use contest::Contest;
use explored::Explored;
use metes_lab::{Figure, Report};

/// Which part of the space is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Every 107th heap on half of the packets: seconds.
    Quick,
    /// All heaps on all packets: minutes.
    Whole,
}

/// Why the experiment could not be done.
#[derive(Debug, thiserror::Error)]
pub enum EasyportError {
    /// The trace is refused.
    #[error(transparent)]
    Events(#[from] EventError),
    /// The space is.
    #[error(transparent)]
    Space(Box<SpaceError>),
    /// Its text is.
    #[error(transparent)]
    Text(#[from] metes_config::Error),
    /// The hierarchy is.
    #[error(transparent)]
    Energy(#[from] EnergyError),
}

impl From<SpaceError> for EasyportError {
    fn from(error: SpaceError) -> Self {
        EasyportError::Space(Box::new(error))
    }
}

/// One figure of a heap.
type Metric = fn(&Metrics) -> u64;

/// Depths of exploration.
const DEPTHS: [usize; 3] = [1_000, 10_000, 100_000];

/// Runs the experiment; `tell` hears what it is about to do.
///
/// # Errors
/// [`EasyportError`] if trace, space and hierarchy do not go together.
pub fn reproduce(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, EasyportError> {
    let packets = match effort {
        Effort::Quick => 6_000,
        Effort::Whole => 12_000,
    };
    let options = packets::Options {
        packets,
        ..packets::Options::default()
    };
    let events = Events::try_from(&packets::trace(&packets::packets(&options)))?;
    let space = explored::space(&events)?;
    let explored = explored::explore(&space, &events, effort, tell);
    tell("placing the front's heaps on the platform");
    let front = explored.front.iter();
    let front: Vec<Config> = front.filter_map(|row| space.describe(row.number)).collect();
    let platform = Platform::new(&events)?;
    let contest = Contest::hold(&platform, &front)?;
    let alone = Contest::hold(&Platform::new(&events)?.heap_alone(), &front)?;

    let mut report = Report {
        experiment: "dm-easyport",
        rows: trace_rows(&events),
        assumptions: assumptions(effort, &events, &space),
        contradicted: Vec::new(),
        plots: Vec::new(),
    };
    report.rows.extend(range_rows(&explored, &events));
    report.rows.extend(contest.rows());
    report.contradicted.extend(contest.contradicted());
    report
        .rows
        .extend(alone.summary("the heap's accesses alone: "));
    report.rows.extend(depth_rows(&explored, &platform)?);
    report.rows.extend(defragmentation_rows(&explored, &space));
    report.rows.extend(time_rows(&explored));
    if explored.front.is_empty() {
        report
            .contradicted
            .push("no heap serves every packet".to_owned());
    }
    if explored.same_front == Some(false) {
        let text = "ending replays early changed the front";
        report.contradicted.push(text.to_owned());
    }
    Ok(report)
}

fn trace_rows(events: &Events) -> Vec<Figure> {
    let mut sizes: Vec<usize> = events.as_slice().iter().map(|event| event.size()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    vec![
        Figure::new("packets", "")
            .paper(12_000.0)
            .ours(events.allocations() as f64),
        // A free has size zero.
        Figure::new("sizes", "")
            .paper(59.0)
            .ours(sizes.len() as f64 - 1.0),
        Figure::new("most packets live", "")
            .paper(647.0)
            .ours(events.slots() as f64),
    ]
}

/// Largest over least, where the least is not zero.
fn factor(values: impl Iterator<Item = u64> + Clone) -> Option<f64> {
    let least = values.clone().min().filter(|&least| least > 0)?;
    Some(values.max()? as f64 / least as f64)
}

/// Words of records, as accesses of a 32-bit memory.
fn own(metrics: &Metrics) -> u64 {
    2 * (metrics.record_reads + metrics.record_writes)
}

fn range_rows(explored: &Explored, events: &Events) -> Vec<Figure> {
    let application = events.application();
    let program = application.reads + application.writes;
    let all = |of: fn(&Metrics) -> u64| explored.rows.iter().map(move |row| of(&row.metrics));
    let front = |of: fn(&Metrics) -> u64| explored.front.iter().map(move |row| of(&row.metrics));
    vec![
        Figure::new("heaps", "")
            .paper(106_496.0)
            .ours(explored.points as f64)
            .note(format!(
                "{} differ when parameters that cannot matter are folded; {} replayed here",
                explored.size,
                explored.rows.len()
            )),
        Figure::new("footprint, all heaps", "x")
            .paper(11.0)
            .ours(factor(all(|metrics| metrics.footprint))),
        Figure::new("accesses, all heaps", "x")
            .paper(54.0)
            .ours(factor(all(own).map(|own| own + program)))
            .note("the heap's and the program's"),
        Figure::new("accesses of the heap alone, all heaps", "x")
            .paper(54.0)
            .ours(factor(all(own)))
            .note("the paper's buffering may not have touched what it buffered"),
        Figure::new("Pareto-optimal heaps", "")
            .paper(15.0)
            .ours(explored.front.len() as f64),
        Figure::new("footprint, within the front", "x")
            .paper(2.9)
            .ours(factor(front(|metrics| metrics.footprint))),
        Figure::new("accesses, within the front", "x")
            .paper(4.1)
            .ours(factor(front(own).map(|own| own + program))),
        Figure::new("accesses of the heap alone, within the front", "x")
            .paper(4.1)
            .ours(factor(front(own))),
    ]
}

/// Change in percent from `from` to `to`.
fn change(to: f64, from: f64) -> f64 {
    100.0 * (to / from - 1.0)
}

/// What ten times the heaps gain, in the expectation over all choices of so many.
fn depth_rows(explored: &Explored, platform: &Platform<'_>) -> Result<Vec<Figure>, EnergyError> {
    let mut energies = Vec::with_capacity(explored.rows.len());
    for row in &explored.rows {
        energies.push(platform.in_main(&row.metrics)?);
    }
    let metric = |of: fn(&Metrics) -> u64| {
        let values = explored.rows.iter().map(|row| of(&row.metrics) as f64);
        values.collect::<Vec<f64>>()
    };
    let metrics = [
        ("footprint", metric(|metrics| metrics.footprint)),
        ("accesses of the heap", metric(own)),
        ("energy in main memory", energies),
    ];
    let mut rows = Vec::new();
    for (name, mut values) in metrics {
        values.sort_by(f64::total_cmp);
        for pair in DEPTHS.windows(2) {
            let [few, many] = [pair[0], pair[1]].map(|count| expected_least(&values, count));
            let gain = few.zip(many).map(|(few, many)| change(many, few));
            let enough = values.len() > pair[0];
            rows.push(
                Figure::new(
                    format!("{name}, {} instead of {} heaps", pair[1], pair[0]),
                    "%",
                )
                .paper(-10.0)
                .ours(gain.filter(|_| enough))
                .note(if values.len() < pair[1] {
                    format!("of {} that there are; the paper: up to", values.len())
                } else {
                    "the paper: up to".to_owned()
                }),
            );
        }
    }
    Ok(rows)
}

/// A parameter of a heap, where it has it.
type Parameter = fn(&Parameters) -> Option<f64>;

/// What is correlated: a parameter, and which sign sections 5.3 and 7.1 expect of
/// its correlation with footprint and with accesses.
///
/// Section 5.3: more defragmentation, less footprint and more accesses. Section
/// 7.1: more pools, less search and less defragmentation, less footprint and more
/// accesses, "and vice versa". They cannot both hold for defragmentation.
const TENDENCIES: [(&str, Parameter, [&str; 2]); 6] = [
    (
        "coalescing pools",
        |own| Some(f64::from(own.coalescing_pools)),
        ["5.3: -, 7.1: +", "5.3: +, 7.1: -"],
    ),
    (
        "maximum coalesced size",
        |own| own.max_coalesced.map(|size| size as f64),
        ["5.3: -, 7.1: +", "5.3: +, 7.1: -"],
    ),
    (
        "splitting pools",
        |own| Some(f64::from(own.splitting_pools)),
        ["5.3: -, 7.1: +", "5.3: +, 7.1: -"],
    ),
    (
        // A smaller least rest is more splitting.
        "minimum split size, downwards",
        |own| own.min_split.map(|size| -(size as f64)),
        ["5.3: -, 7.1: +", "5.3: +, 7.1: -"],
    ),
    (
        "depth of search",
        |own| Some(f64::from(own.depth)),
        ["7.1: +", "7.1: -"],
    ),
    (
        "number of pools",
        |own| Some(f64::from(own.general_pools + own.dedicated_pools)),
        ["7.1: -", "7.1: +"],
    ),
];

fn defragmentation_rows(explored: &Explored, space: &Space) -> Vec<Figure> {
    let heaps: Vec<(Parameters, &Metrics)> = explored
        .rows
        .iter()
        .filter_map(|row| Some((space.parameters(row.number)?, &row.metrics)))
        .collect();
    let mut rows = Vec::new();
    for (what, parameter, expected) in TENDENCIES {
        let having: Vec<(f64, &Metrics)> = heaps
            .iter()
            .filter_map(|(own, metrics)| Some((parameter(own)?, *metrics)))
            .collect();
        let values: Vec<f64> = having.iter().map(|heap| heap.0).collect();
        let metrics: [(&str, Metric); 2] = [
            ("footprint", |metrics| metrics.footprint),
            ("accesses of the heap", own),
        ];
        for ((metric, of), expected) in metrics.into_iter().zip(expected) {
            let measured: Vec<f64> = having.iter().map(|heap| of(heap.1) as f64).collect();
            let correlation = rank_correlation(&values, &measured);
            rows.push(
                Figure::new(format!("rank correlation of {what} and {metric}"), "")
                    .ours(correlation)
                    .note(verdict(correlation, expected)),
            );
        }
    }
    rows
}

/// Which sections a correlation agrees with, given what they expect.
fn verdict(correlation: Option<f64>, expected: &str) -> String {
    /// Less than this is no tendency.
    const NONE: f64 = 0.05;
    let sign = match correlation {
        Some(value) if value > NONE => '+',
        Some(value) if value < -NONE => '-',
        _ => return format!("expected {expected}; no tendency"),
    };
    let agreeing: Vec<&str> = expected
        .split(", ")
        .filter(|part| part.ends_with(sign))
        .filter_map(|part| part.split(':').next())
        .collect();
    match agreeing.is_empty() {
        true => format!("expected {expected}; contradicts it"),
        false => format!(
            "expected {expected}; agrees with {}",
            agreeing.join(" and ")
        ),
    }
}

fn time_rows(explored: &Explored) -> Vec<Figure> {
    let every = explored.rows.len() as f64;
    vec![
        Figure::new("seconds for the exact front", "s")
            .paper(120.0 * 106_496.0)
            .ours(explored.front_seconds)
            .note(match explored.same_front {
                Some(true) => "replays ended early; the front is that of whole replays",
                Some(false) => "replays ended early; the front DIFFERS from that of whole replays",
                None => "not measured on a part of the space",
            }),
        Figure::new("seconds for all replays to their end", "s")
            .ours(explored.seconds)
            .note(format!("on {} workers", explored.workers)),
        Figure::new("seconds for one heap", "s")
            .paper(120.0)
            .ours(explored.seconds * explored.workers as f64 / every.max(1.0))
            .note("of one core, replayed to the end"),
    ]
}

fn assumptions(effort: Effort, events: &Events, space: &Space) -> Vec<String> {
    let application = events.application();
    let mut assumptions = vec![
        format!(
            "the packets are generated: {} requests, {} words of 4 bytes read and {} written by the \
             program; sizes, shares and most live packets are the paper's, all else is ours \
             (`metes trace generate packets`)",
            events.len(),
            application.reads,
            application.writes
        ),
        format!(
            "the paper's grid is not said, and the ranges in its text multiply to 1 620 000 and not \
             to 106 496; ours has {} points within these ranges (`--space paper`)",
            space.raw()
        ),
        "records are those of a 64-bit host (8 bytes a word), two accesses of a 32-bit memory; the \
         paper's processor had 4-byte words"
            .to_owned(),
        "footprint is what the heap takes from the system, 256 bytes at a time on the platform"
            .to_owned(),
        "scratchpads of 32 and 64 KiB, main memory the smallest of 1 to 8 MiB that holds the heap; \
         dynamic energy by CACTI 6.5 at 130 nm (the paper: an updated CACTI at 130 nm); accesses one \
         after another, no cache; the program's instructions are not known and take no time"
            .to_owned(),
        "placements are those of the paper: all in main memory, packets of 66 bytes or below 75 bytes \
         in the scratchpad; what does not fit there goes to main memory"
            .to_owned(),
        "\"on average\" is over Kingsley, Lea and OSE-style, all in main memory, against the heap of \
         the front with the least energy"
            .to_owned(),
    ];
    if effort == Effort::Quick {
        assumptions.push(
            "QUICK: every 107th heap, half of the packets; for the paper's run leave --quick out"
                .to_owned(),
        );
    }
    assumptions
}

/// The rows of the front, by rising footprint.
fn rows_of(numbers: &[u64], rows: &[Row]) -> Vec<Row> {
    let of = |number: &u64| rows.iter().find(|row| row.number == *number).copied();
    numbers.iter().filter_map(of).collect()
}
