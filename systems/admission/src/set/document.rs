//! The text of a set, and what may stand in it.
//!
//! *Invariant:* an error says the line where there is a text, and one remedy; unknown keys are errors.

use std::collections::HashSet;

use serde::Deserialize;
use toml::Spanned;

use super::{
    Criticality, Function, Host, MOST_CHARACTERS, MOST_CORES, MOST_FUNCTIONS, Scheduling, Set,
};

/// A set that there cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub struct SetError {
    /// The line of the text, from 1; none where there is no text.
    pub line: Option<usize>,
    /// What is wrong, and what to write.
    pub problem: String,
}

/// As it is written: each function with its place.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    host: Host,
    #[serde(default)]
    function: Vec<Spanned<Function>>,
}

/// Whose line is looked for.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Host,
    Function(usize),
}

pub(super) fn read(text: &str) -> Result<Set, SetError> {
    let document: Document = toml::from_str(text).map_err(|error| SetError {
        line: error.span().map(|span| line_of(text, span.start)),
        problem: error.message().trim().replace('\n', ", "),
    })?;
    let lines: Vec<usize> = document
        .function
        .iter()
        .map(|function| line_of(text, function.span().start))
        .collect();
    let host_line = text
        .lines()
        .position(|line| line.trim_start().starts_with("[host"));
    let set = Set {
        host: document.host,
        functions: document
            .function
            .into_iter()
            .map(Spanned::into_inner)
            .collect(),
    };
    verify(&set, &|place| match place {
        Place::Host => host_line.map(|line| line + 1),
        Place::Function(index) => lines.get(index).copied(),
    })?;
    Ok(set)
}

fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// Whether the figures can be.
pub(super) fn verify(set: &Set, line: &dyn Fn(Place) -> Option<usize>) -> Result<(), SetError> {
    let host = |problem: Result<(), String>| {
        problem.map_err(|problem| SetError {
            line: line(Place::Host),
            problem,
        })
    };
    host(verify_host(&set.host))?;
    if set.functions.len() > MOST_FUNCTIONS {
        host(Err(format!(
            "{} functions, and {MOST_FUNCTIONS} at most are decided: part the set",
            set.functions.len()
        )))?;
    }
    let mut names = HashSet::new();
    for (index, function) in set.functions.iter().enumerate() {
        let problem = if names.insert(function.name.as_str()) {
            verify_function(function, &set.host)
        } else {
            Err(format!(
                "there are two functions `{}`: name each once",
                function.name
            ))
        };
        problem.map_err(|problem| SetError {
            line: line(Place::Function(index)),
            problem,
        })?;
    }
    Ok(())
}

fn verify_host(host: &Host) -> Result<(), String> {
    if !(1..=MOST_CORES).contains(&host.cores) {
        return Err(format!(
            "cores is {}, and must be from 1 to {MOST_CORES}",
            host.cores
        ));
    }
    for interference in &host.interference {
        positive("interference", "budget", interference.budget)?;
        positive("interference", "period", interference.period)?;
    }
    let Some(server) = &host.compile_server else {
        return Ok(());
    };
    positive("compile_server", "budget", server.budget)?;
    positive("compile_server", "period", server.period)?;
    on_a_core("compile_server", server.core, host.cores)
}

fn verify_function(function: &Function, host: &Host) -> Result<(), String> {
    let name = function.name.as_str();
    let characters = name.chars().count();
    if !(1..=MOST_CHARACTERS).contains(&characters) || name.chars().any(char::is_control) {
        return Err(format!(
            "a name has {characters} characters: give 1 to {MOST_CHARACTERS}, without control characters"
        ));
    }
    positive(name, "period", function.period)?;
    positive(name, "deadline", function.deadline)?;
    positive(name, "budget", function.budget)?;
    positive(name, "burst", function.burst)?;
    on_a_core(name, function.core, host.cores)?;
    if let Some(network) = &function.network {
        positive(name, "network.bytes", network.bytes)?;
        positive(name, "network.rate", network.rate)?;
    }
    if function.budget_high.is_some() && !host.interference.is_empty() {
        return Err(format!(
            "`{name}` has budget_high, which a host with interference cannot give: leave one of them out"
        ));
    }
    if function.budget_high.is_some() && host.scheduling == Scheduling::NonPreemptive {
        return Err(format!(
            "`{name}` has budget_high, which a host of scheduling = \"non-preemptive\" cannot give: leave one of them out"
        ));
    }
    verify_criticality(function)
}

fn verify_criticality(function: &Function) -> Result<(), String> {
    let Some(high) = function.budget_high else {
        return Ok(());
    };
    let name = &function.name;
    if function.criticality == Criticality::Low {
        return Err(format!(
            "`{name}` has budget_high and low criticality: leave one of them out"
        ));
    }
    if high < function.budget {
        return Err(format!(
            "budget_high of `{name}` is {high}, and must be {} or more, its budget",
            function.budget
        ));
    }
    if function.burst > 1 || function.network.is_some() || function.deadline > function.period {
        return Err(format!(
            "`{name}` has budget_high: its deadline may not be above its period, nor may it have a burst or a network"
        ));
    }
    Ok(())
}

fn positive(name: &str, key: &str, value: u64) -> Result<(), String> {
    match value {
        0 => Err(format!("{key} of `{name}` is 0, and must be 1 or more")),
        _ => Ok(()),
    }
}

fn on_a_core(name: &str, core: Option<u32>, cores: u32) -> Result<(), String> {
    match core {
        Some(core) if core >= cores => Err(format!(
            "core of `{name}` is {core}, and must be from 0 to {}",
            cores - 1
        )),
        _ => Ok(()),
    }
}
