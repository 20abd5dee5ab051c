//! Whether the figures of a system can be.
//!
//! *Invariant:* what passes has no period, work or frequency of zero or less, and no deadline that is over before its
//! release.

use std::collections::HashSet;

use num_traits::{Signed, Zero};

use super::document::Place;
use super::{
    Cost, Job, MOST_CHARACTERS, MOST_FREQUENCIES, MOST_JOBS, MOST_TASKS, Processor, System,
    SystemError, Task,
};
use crate::rational::Rational;

pub(super) fn system(
    system: &System,
    line: &dyn Fn(Place) -> Option<usize>,
) -> Result<(), SystemError> {
    let at = |place: Place, problem: Result<(), String>| {
        problem.map_err(|problem| SystemError {
            line: line(place),
            problem,
        })
    };
    at(Place::Whole, size(system))?;
    at(Place::Processor, processor(&system.processor))?;
    let mut names = HashSet::new();
    for (index, task) in system.tasks.iter().enumerate() {
        let problem = self::name(&task.name, names.insert(&task.name))
            .and_then(|()| self::task(task, &system.processor));
        at(Place::Task(index), problem)?;
    }
    for (index, job) in system.jobs.iter().enumerate() {
        let problem = self::name(&job.name, names.insert(&job.name)).and_then(|()| self::job(job));
        at(Place::Job(index), problem)?;
    }
    Ok(())
}

fn size(system: &System) -> Result<(), String> {
    if system.tasks.is_empty() && system.jobs.is_empty() {
        return Err("there is no [[task]] and no [[job]]: give one".to_owned());
    }
    for (what, count, most) in [
        ("tasks", system.tasks.len(), MOST_TASKS),
        ("jobs", system.jobs.len(), MOST_JOBS),
    ] {
        if count > most {
            return Err(format!(
                "{count} {what}, and {most} at most are planned: part the system"
            ));
        }
    }
    Ok(())
}

fn processor(processor: &Processor) -> Result<(), String> {
    frequencies("cpu", &processor.cpu)?;
    frequencies("memory", &processor.memory)?;
    let power = &processor.power;
    not_negative("power.floor", &power.floor)?;
    not_negative("power.cpu_cubed", &power.cpu_cubed)?;
    not_negative("power.memory", &power.memory)?;
    not_negative("idle", &processor.idle)?;
    not_negative("switch.energy", &processor.switch.energy)?;
    not_negative("switch.time", &processor.switch.time)?;
    if let Some(sleep) = &processor.sleep {
        not_negative("sleep.power", &sleep.power)?;
        not_negative("sleep.energy", &sleep.energy)?;
        not_negative("sleep.time", &sleep.time)?;
        if sleep.power > &power.floor + &processor.idle {
            return Err(format!(
                "sleep.power is {}, more than floor and idle together: nobody would sleep",
                sleep.power
            ));
        }
    }
    Ok(())
}

fn frequencies(key: &str, list: &[Rational]) -> Result<(), String> {
    if list.len() > MOST_FREQUENCIES {
        return Err(format!(
            "{key} has {} frequencies, and may have {MOST_FREQUENCIES}",
            list.len()
        ));
    }
    if let Some(wrong) = list.iter().find(|frequency| !frequency.is_positive()) {
        return Err(format!(
            "{key} has the frequency {wrong}, and must be above 0"
        ));
    }
    match list.windows(2).find(|two| two[0] >= two[1]) {
        Some(two) => Err(format!(
            "{key} has {} before {}: sort its frequencies, the lowest first, each once",
            two[0], two[1]
        )),
        None => Ok(()),
    }
}

fn name(name: &str, new: bool) -> Result<(), String> {
    let characters = name.chars().count();
    if !(1..=MOST_CHARACTERS).contains(&characters) || name.chars().any(char::is_control) {
        return Err(format!(
            "a name has {characters} characters: give 1 to {MOST_CHARACTERS}, without control characters"
        ));
    }
    if new {
        Ok(())
    } else {
        Err(format!(
            "there are two of the name `{name}`: name each once"
        ))
    }
}

fn task(task: &Task, processor: &Processor) -> Result<(), String> {
    let of = |key: &str| format!("{key} of `{}`", task.name);
    positive(&of("period"), &task.period)?;
    positive(&of("deadline"), &task.deadline)?;
    not_negative(&of("offset"), &task.offset)?;
    not_negative(&of("jitter"), &task.jitter)?;
    let of_blocking = |key: &str| match key {
        "time" => of("blocking"),
        _ => format!("{key} of the blocking of `{}`", task.name),
    };
    cost(&task.name, of_blocking, &task.blocking, processor)?;
    if let Cost::Time(time) = &task.cost {
        return positive(&of("time"), time);
    }
    cost(&task.name, of, &task.cost, processor)?;
    if task.cost.is_zero() {
        return Err(format!(
            "`{}` takes no time: cpu, memory and constant are all 0",
            task.name
        ));
    }
    Ok(())
}

/// No part of a cost is below 0, and there is a memory if it takes cycles of one.
fn cost(
    name: &str,
    of: impl Fn(&str) -> String,
    cost: &Cost,
    processor: &Processor,
) -> Result<(), String> {
    match cost {
        Cost::Time(time) => not_negative(&of("time"), time),
        Cost::Model {
            cpu,
            memory,
            constant,
        } => {
            not_negative(&of("cpu"), cpu)?;
            not_negative(&of("memory"), memory)?;
            not_negative(&of("constant"), constant)?;
            if !memory.is_zero() && processor.memory.is_empty() {
                return Err(format!(
                    "`{name}` takes cycles of the memory, but [processor] has no memory: list its frequencies"
                ));
            }
            Ok(())
        }
    }
}

fn job(job: &Job) -> Result<(), String> {
    let of = |key: &str| format!("{key} of `{}`", job.name);
    not_negative(&of("release"), &job.release)?;
    positive(&of("work"), &job.work)?;
    if job.deadline <= job.release {
        return Err(format!(
            "deadline of `{}` is {}, and must be after its release, {}",
            job.name, job.deadline, job.release
        ));
    }
    Ok(())
}

fn positive(what: &str, value: &Rational) -> Result<(), String> {
    if value.is_positive() {
        Ok(())
    } else {
        Err(format!("{what} is {value}, and must be above 0"))
    }
}

fn not_negative(what: &str, value: &Rational) -> Result<(), String> {
    if value.is_negative() {
        Err(format!("{what} is {value}, and must be 0 or more"))
    } else {
        Ok(())
    }
}
