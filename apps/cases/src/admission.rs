//! Acceptance of random sets of functions (`edge-admission`): the exact test of `metes edge check` beside a simulation,
//! utilisation, density, and what `SCHED_DEADLINE` admits.
//!
//! Invariant: soundness and exactness are checked of every set; a single miss of an admitted set contradicts.

use metes_admission::campaign::{Deadlines, Tally, campaign};
use metes_lab::{Figure, Plot, Report, Series};

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A thousand sets of each load.
    Quick,
    /// A hundred thousand sets in all.
    Whole,
}

/// Loads of a core, in hundredths.
const LOADS: [u64; 15] = [30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100];

/// Draws sets, decides and simulates each; `tell` is told what is done.
#[must_use]
pub fn acceptance(effort: Effort, tell: &dyn Fn(&str)) -> Report {
    let sets = match effort {
        Effort::Quick => 1000,
        Effort::Whole => 100_000_u64.div_ceil(LOADS.len() as u64),
    };
    let tallies = LOADS.map(|load| {
        tell(&format!("{sets} sets of {load} % of a core"));
        campaign(sets, 20, load, Deadlines::Constrained)
    });
    let mut all = Tally::default();
    for tally in &tallies {
        all.add(tally);
    }
    Report {
        experiment: "edge-admission",
        rows: rows(&all),
        assumptions: [
            "sets: one to three cores, two to eight functions on each, periods of 4 to 40, shares of a core uniform over all \
             ways of parting the load, budgets rounded up, deadlines uniform from budget to period",
            "missed: a simulation of preemptive EDF unit by unit, all arriving at once and as often as they may",
            "SCHED_DEADLINE: Linux's test of budgets over periods, each core a domain of its own, 95 % of it to be had",
        ]
        .map(str::to_owned)
        .to_vec(),
        contradicted: contradicted(&all),
        plots: vec![plot(&tallies)],
    }
}

fn rows(all: &Tally) -> Vec<Figure> {
    let count = |what: &str, value: u64| Figure::new(what, "").ours(value as f64);
    vec![
        count("sets", all.sets),
        count("sets that meet all deadlines", all.met),
        count("admitted", all.admitted),
        count("admitted and missing a deadline", all.admitted_missed),
        count("refused and meeting all", all.refused_met),
        count("certificates that held when checked apart", all.certified),
        count("certificates that did not", all.flawed),
        count("admitted by density", all.density),
        count("admitted by utilisation", all.utilisation),
        count("of these, missing a deadline", all.utilisation_missed),
        count("admitted by SCHED_DEADLINE", all.sched_deadline),
        count("of these, missing a deadline", all.sched_deadline_missed),
        count("not simulated to the end", all.too_long),
    ]
}

fn contradicted(all: &Tally) -> Vec<String> {
    [
        (all.admitted_missed, "admitted sets miss a deadline"),
        (
            all.admitted_missed_drawn,
            "admitted sets miss a deadline with drawn arrivals",
        ),
        (all.refused_met, "refused sets meet all deadlines"),
        (all.flawed, "certificates do not hold"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect()
}

fn plot(tallies: &[Tally]) -> Plot {
    let share = |name: &str, of: fn(&Tally) -> u64| {
        let values = tallies
            .iter()
            .map(|tally| 100.0 * of(tally) as f64 / tally.sets as f64);
        Series::measured(name, values.collect::<Vec<_>>())
    };
    Plot {
        title: "Sets admitted, by load of a core".to_owned(),
        x: "load of a core in %".to_owned(),
        names: LOADS.map(|load| load.to_string()).to_vec(),
        y: "sets in %".to_owned(),
        joined: true,
        series: vec![
            share("exact (metes edge check)", |tally| tally.admitted),
            share("density", |tally| tally.density),
            share("utilisation", |tally| tally.utilisation),
            share("SCHED_DEADLINE", |tally| tally.sched_deadline),
            share("SCHED_DEADLINE, wrongly", |tally| {
                tally.sched_deadline_missed
            }),
        ],
    }
}
