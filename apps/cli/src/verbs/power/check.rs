//! `metes power check`: whether all deadlines are met at a pair of frequencies.

use anstyle::Style;
use metes_power::rational::{Rational, positive};
use metes_power::{Miss, Verdict, check};
use serde::Serialize;

use crate::arguments::PowerCheck;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, GOOD, POOR, Table};

use super::{about, system};

/// The answer as JSON: rationals are strings.
#[derive(Serialize)]
struct Answer {
    schedulable: bool,
    pair: Pair,
    tasks: Vec<Task>,
    jobs: Vec<Job>,
    cores: Vec<Core>,
    miss: Option<Late>,
}

/// Frequencies.
#[derive(Serialize)]
pub(super) struct Pair {
    pub(super) cpu: String,
    pub(super) memory: String,
}

impl Pair {
    pub(super) fn of(pair: &metes_power::Pair) -> Pair {
        Pair {
            cpu: pair.cpu.to_string(),
            memory: pair.memory.to_string(),
        }
    }
}

#[derive(Serialize)]
struct Task {
    name: String,
    response: Option<String>,
    deadline: String,
}

#[derive(Serialize)]
struct Job {
    name: String,
    finish: Option<String>,
    deadline: String,
}

#[derive(Serialize)]
struct Core {
    core: u32,
    utilisation: String,
}

/// Who is late first, and by how much.
#[derive(Serialize)]
pub(super) struct Late {
    name: String,
    late: Option<String>,
}

impl Late {
    pub(super) fn of(miss: Miss) -> Late {
        Late {
            name: miss.name,
            late: miss.late.map(|late| late.to_string()),
        }
    }
}

/// What is said of a deadline that is missed.
pub(super) fn said(miss: &Miss) -> String {
    match &miss.late {
        Some(late) => format!("`{}` is late by {late} first", miss.name),
        None => format!("`{}` is late first, and ever later", miss.name),
    }
}

pub(super) fn run(arguments: &PowerCheck, json: bool) -> Result<u8, Failure> {
    let system = system(&arguments.system)?;
    let mut pair = system.processor.fastest();
    for (key, given, frequency) in [
        ("--cpu", &arguments.cpu, &mut pair.cpu),
        ("--memory", &arguments.memory, &mut pair.memory),
    ] {
        if let Some(text) = given {
            *frequency =
                positive(text).map_err(|problem| Failure::input(format!("{key}: {problem}")))?;
        }
    }
    let verdict = check(&system, Some(&pair)).map_err(|error| about(&arguments.system, error))?;
    if json {
        output::json(&answer(&verdict))?;
    } else {
        output::text(&text(&verdict))?;
    }
    Ok(if verdict.schedulable {
        0
    } else {
        DOES_NOT_HOLD
    })
}

fn answer(verdict: &Verdict) -> Answer {
    let string = |value: &Option<Rational>| value.as_ref().map(Rational::to_string);
    let tasks = verdict.tasks.iter().map(|task| Task {
        name: task.name.clone(),
        response: string(&task.response),
        deadline: task.deadline.to_string(),
    });
    let jobs = verdict.jobs.iter().map(|job| Job {
        name: job.name.clone(),
        finish: string(&job.finish),
        deadline: job.deadline.to_string(),
    });
    let cores = verdict.cores.iter().map(|(core, utilisation)| Core {
        core: *core,
        utilisation: utilisation.to_string(),
    });
    Answer {
        schedulable: verdict.schedulable,
        pair: Pair::of(&verdict.pair),
        tasks: tasks.collect(),
        jobs: jobs.collect(),
        cores: cores.collect(),
        miss: verdict.miss().map(Late::of),
    }
}

fn text(verdict: &Verdict) -> String {
    let mut table = Table::new(&["", "response", "deadline", ""]);
    let tasks = verdict.tasks.iter();
    let tasks = tasks.map(|task| (&task.name, &task.response, &task.deadline));
    let jobs = verdict.jobs.iter();
    let jobs = jobs.map(|job| (&job.name, &job.finish, &job.deadline));
    for (name, end, deadline) in tasks.chain(jobs) {
        let late = end.as_ref().is_none_or(|end| end > deadline);
        let end = end
            .as_ref()
            .map_or("no longest".to_owned(), Rational::to_string);
        let remark = if late { "late" } else { "" };
        table.row(
            Style::new(),
            vec![name.clone(), end, deadline.to_string(), remark.to_owned()],
        );
    }
    let at = format!(
        "cpu {} and memory {}",
        verdict.pair.cpu, verdict.pair.memory
    );
    let end = match verdict.miss() {
        None => format!("{GOOD}schedulable{GOOD:#} at {at}\n"),
        Some(miss) => format!("{POOR}not schedulable{POOR:#} at {at}: {}\n", said(&miss)),
    };
    format!("{table}\n{end}")
}
