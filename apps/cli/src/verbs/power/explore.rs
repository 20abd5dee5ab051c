//! `metes power explore`: heaps and pairs of frequencies in one.
//!
//! *Invariant:* what is shown as the Pareto set was decided, checked and run by `metes-power` in this run.

mod replays;

use std::collections::BTreeSet;
use std::fmt::Write;

use anstyle::Style;
use metes_config::Config;
use metes_power::System;
use metes_power::heaps::{Asked, Choices, Served, choices};
use metes_power::predict::{Assumptions, Prediction};
use metes_power::rational::{Rational, nearly};
use metes_power::system::Units;
use metes_quantity::bytes;
use serde::Serialize;

use super::check::{Late, Pair, said};
use super::{about, system};
use crate::arguments::PowerExplore;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, GOOD, POOR, Table};
use crate::own::Form;
use crate::quantity::grouped;
use crate::verbs::power_models;
use crate::{energy, tracefile};
use replays::{configs, replays, served};

/// Most rows for people.
const MOST_LISTED: usize = 40;

/// A heap at a pair; rationals are strings.
#[derive(Serialize)]
struct At {
    heap: String,
    /// The same as a `heap.toml`.
    toml: String,
    footprint: u64,
    #[serde(flatten)]
    pair: Pair,
    energy: String,
    energy_nearly: f64,
    /// The task's longest response: the deadline that can be guaranteed.
    response: Option<String>,
    /// The longest in a run over a hyperperiod.
    run: Option<String>,
    /// Millions of cycles of processor and memory that an activation takes with this heap, beside those declared.
    cpu_megacycles: f64,
    memory_megacycles: f64,
}

#[derive(Serialize)]
struct Answer {
    task: String,
    heaps: usize,
    /// Those that serve the trace in their levels.
    serving: usize,
    unbeaten: usize,
    pairs: usize,
    combinations: usize,
    feasible: usize,
    length: String,
    pareto: Vec<At>,
    /// Place of the one of least energy in `pareto`.
    least: Option<usize>,
    miss: Option<Late>,
    assumptions: Vec<String>,
}

pub(super) fn run(arguments: &PowerExplore, json: bool) -> Result<u8, Failure> {
    if let Some(path) = &arguments.csv {
        output::writable(path, Form::Table)?;
    }
    let system = system(&arguments.system)?;
    let units = system.units.ok_or_else(|| {
        let remedy = "the counts of a trace need the units of the system: begin it with units = { time = \"us\", \
                      frequency = \"MHz\", power = \"mW\" }";
        about(&arguments.system, remedy)
    })?;
    if system.processor.cpu.is_empty() {
        let remedy = "[processor] has no cpu: list the frequencies that there are";
        return Err(about(&arguments.system, remedy));
    }
    let task = task(arguments, &system)?;
    let named = |name: &String| place(&system, name, "--holds-up");
    let held_up = arguments.holds_up.iter().map(named);
    let held_up = held_up.collect::<Result<BTreeSet<_>, _>>()?;
    let held_up: Vec<usize> = held_up.into_iter().collect();
    let trace = tracefile::read(&arguments.trace)?;
    let events = tracefile::events(&trace)?;
    if !arguments.records_only {
        energy::need_accesses(&arguments.trace, &trace.provenance.command, &events)?;
    }
    let configs = configs(arguments, &events)?;
    let assumed = Assumptions {
        cycles: arguments.cycles,
        nominal: power_models::pair(&arguments.nominal)?,
        memory: arguments.memory_levels.clone(),
    };
    let replays = replays(arguments, &configs, &events)?;
    let mut heaps = Vec::new();
    let mut predictions = Vec::new();
    for (config, replay) in configs.iter().zip(&replays) {
        let Some(replay) = replay else { continue };
        let prediction = Prediction::from_replay(replay, &assumed)
            .map_err(|error| Failure::input(error.to_string()))?;
        heaps.push(served(&prediction, units)?);
        predictions.push((config, prediction));
    }
    let Some((_, prediction)) = predictions.first() else {
        return Err(Failure::input(format!(
            "none of {} heaps serves the trace in the levels of --levels: give them more memory",
            grouped(configs.len() as u64)
        )));
    };
    let asked = Asked {
        system: &system,
        task,
        held_up: &held_up,
        responses: arguments.responses,
    };
    let found = choices(&asked, &heaps).map_err(|error| about(&arguments.system, error))?;
    if let Some(path) = &arguments.csv {
        output::export(path, Form::Table, csv(&found, &heaps).as_bytes())?;
    }
    let mut assumptions =
        power_models::predict::assumptions(prediction, arguments.cycles, &arguments.nominal);
    assumptions.insert(
        0,
        "the trace is one activation of the task, and each takes what it took: record the longest"
            .to_owned(),
    );
    assumptions.push("the heap's memory leaks all the time".to_owned());
    let answer = answer(
        &asked,
        &found,
        &heaps,
        &predictions,
        configs.len(),
        assumptions,
    );
    match json {
        true => output::json(&answer)?,
        false => output::text(&text(&answer, &found, units, &system))?,
    }
    Ok(if answer.pareto.is_empty() {
        DOES_NOT_HOLD
    } else {
        0
    })
}

/// The task that allocates.
fn task(arguments: &PowerExplore, system: &System) -> Result<usize, Failure> {
    match &arguments.task {
        Some(name) => place(system, name, "--task"),
        None if system.tasks.len() == 1 => Ok(0),
        None => {
            let names = names(system);
            let problem = format!("which task allocates? give --task with one of {names}");
            Err(about(&arguments.system, problem))
        }
    }
}

fn names(system: &System) -> String {
    let names: Vec<&str> = system.tasks.iter().map(|task| task.name.as_str()).collect();
    names.join(", ")
}

fn place(system: &System, name: &str, option: &str) -> Result<usize, Failure> {
    let place = system.tasks.iter().position(|task| task.name == name);
    place.ok_or_else(|| {
        let names = names(system);
        Failure::input(format!("{option}: there is no task `{name}`, only {names}"))
    })
}

fn answer(
    asked: &Asked<'_>,
    found: &Choices,
    heaps: &[Served],
    predictions: &[(&Config, Prediction)],
    all: usize,
    assumptions: Vec<String>,
) -> Answer {
    let string = |value: &Option<Rational>| value.as_ref().map(Rational::to_string);
    let at = |place: &usize| {
        let combination = &found.combinations[*place];
        let heap = &heaps[combination.heap];
        let (config, prediction) = &predictions[combination.heap];
        let terms = &prediction.time.terms;
        At {
            heap: heap.heap.clone(),
            toml: config.to_toml(),
            footprint: heap.footprint,
            pair: Pair::of(&combination.pair),
            energy: combination.energy.to_string(),
            energy_nearly: nearly(&combination.energy),
            response: string(&combination.response),
            run: string(&combination.run),
            cpu_megacycles: terms[0].1,
            memory_megacycles: terms[1].1,
        }
    };
    let energy = |place: &usize| &found.combinations[found.front[*place]].energy;
    let feasible = found.combinations.iter();
    Answer {
        task: asked.system.tasks[asked.task].name.clone(),
        heaps: all,
        serving: heaps.len(),
        unbeaten: found.heaps.len(),
        pairs: asked.system.processor.pairs().len(),
        combinations: found.combinations.len(),
        feasible: feasible.filter(|combination| combination.feasible).count(),
        length: metes_power::pair::hyperperiod(asked.system).to_string(),
        pareto: found.front.iter().map(at).collect(),
        least: (0..found.front.len()).min_by(|left, right| energy(left).cmp(energy(right))),
        miss: found.miss.clone().map(Late::of),
        assumptions,
    }
}

/// All combinations, in the order in which they were looked at.
fn csv(found: &Choices, heaps: &[Served]) -> String {
    let front: BTreeSet<usize> = found.front.iter().copied().collect();
    let mut text = String::from("heap,footprint,cpu,memory,energy,feasible,pareto,response\n");
    for (place, combination) in found.combinations.iter().enumerate() {
        let heap = &heaps[combination.heap];
        let response = combination
            .response
            .as_ref()
            .map_or(String::new(), |response| nearly(response).to_string());
        let _ = writeln!(
            text,
            "\"{}\",{},{},{},{},{},{},{response}",
            heap.heap.replace('"', "\"\""),
            heap.footprint,
            nearly(&combination.pair.cpu),
            nearly(&combination.pair.memory),
            nearly(&combination.energy),
            combination.feasible,
            front.contains(&place),
        );
    }
    text
}

fn text(answer: &Answer, found: &Choices, units: Units, system: &System) -> String {
    let time = units.time();
    let mut text = format!(
        "`{}` with {} heaps: {} serve the trace, {} of them unbeaten at {} pairs; of these {} combinations {} miss no \
         deadline of {} tasks\n\n",
        answer.task,
        grouped(answer.heaps as u64),
        grouped(answer.serving as u64),
        grouped(answer.unbeaten as u64),
        grouped(answer.pairs as u64),
        grouped(answer.combinations as u64),
        grouped(answer.feasible as u64),
        grouped(system.tasks.len() as u64),
    );
    if let Some(miss) = &found.miss {
        text += &format!(
            "{POOR}not feasible{POOR:#} with any heap even at the highest frequencies: with the fastest {}\n",
            said(miss)
        );
        return text;
    }
    let millijoules = nearly(&units.joules()) * 1e3;
    let mut table = Table::new(&[
        "heap",
        "bytes",
        "cpu",
        "memory",
        "mJ",
        &format!("response, {time}"),
        "in a run",
        "",
    ]);
    let listed = answer.pareto.iter().zip(&found.front).enumerate();
    for (number, (at, place)) in listed.take(MOST_LISTED) {
        let least = answer.least == Some(number);
        let combination = &found.combinations[*place];
        let number = |value: &Option<Rational>| {
            value
                .as_ref()
                .map_or("-".to_owned(), |value| format!("{:.3}", nearly(value)))
        };
        let name: String = at.heap.chars().take(48).collect();
        table.row(
            if least { GOOD } else { Style::new() },
            vec![
                name,
                bytes(at.footprint),
                at.pair.cpu.clone(),
                at.pair.memory.clone(),
                format!("{:.4}", at.energy_nearly * millijoules),
                number(&combination.response),
                number(&combination.run),
                if least { "least energy" } else { "" }.to_owned(),
            ],
        );
    }
    let more = answer.pareto.len().saturating_sub(MOST_LISTED);
    if more > 0 {
        table.row(output::DIM, vec![format!("{more} more: --json lists all")]);
    }
    text += &format!(
        "{table}\nenergy is over {} {time}; all other combinations are late, or take no less of {}; these are checked \
         apart, and run\n",
        answer.length,
        if found
            .combinations
            .iter()
            .any(|one| one.response.is_some() && one.run.is_none())
        {
            "energy, memory and response"
        } else {
            "energy and memory"
        }
    );
    for assumption in &answer.assumptions {
        text += &format!("  - {assumption}\n");
    }
    text
}
