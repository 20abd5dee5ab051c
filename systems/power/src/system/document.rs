//! The text of a system.
//!
//! *Invariant:* an error says the line, and one remedy; unknown keys are errors.

use num_traits::{One, Zero};
use serde::Deserialize;
use toml::Spanned;

use super::{
    Cost, Job, Power, Processor, Scheduler, Sleep, Switch, System, SystemError, Task, Units, verify,
};
use crate::rational::{Number, Rational};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    scheduler: Scheduler,
    units: Option<Units>,
    #[serde(default)]
    task: Vec<Spanned<TaskText>>,
    #[serde(default)]
    job: Vec<Spanned<JobText>>,
    processor: Option<Spanned<ProcessorText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskText {
    name: String,
    #[serde(default)]
    core: u32,
    priority: Option<u64>,
    period: Number,
    deadline: Option<Number>,
    offset: Option<Number>,
    jitter: Option<Number>,
    blocking: Option<Blocking>,
    time: Option<Number>,
    cpu: Option<Number>,
    memory: Option<Number>,
    constant: Option<Number>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "blocking is a time, or { cpu, memory, constant } of what holds the core"
)]
enum Blocking {
    Of(CostText),
    For(Number),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostText {
    cpu: Option<Number>,
    memory: Option<Number>,
    constant: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobText {
    name: String,
    #[serde(default)]
    core: u32,
    priority: Option<u64>,
    release: Number,
    deadline: Number,
    work: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessorText {
    cpu: Option<Frequencies>,
    memory: Option<Frequencies>,
    power: Option<PowerText>,
    idle: Option<Number>,
    sleep: Option<SleepText>,
    switch: Option<SwitchText>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "frequencies are a number, or a list of them that rises"
)]
enum Frequencies {
    Several(Vec<Number>),
    One(Number),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PowerText {
    floor: Option<Number>,
    cpu_cubed: Option<Number>,
    memory: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SleepText {
    power: Option<Number>,
    energy: Option<Number>,
    time: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchText {
    energy: Option<Number>,
    time: Option<Number>,
}

/// Whose line is looked for.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Whole,
    Processor,
    Task(usize),
    Job(usize),
}

pub(super) fn read(text: &str) -> Result<System, SystemError> {
    let document: Document = toml::from_str(text).map_err(|error| SystemError {
        line: error.span().map(|span| line_of(text, span.start)),
        problem: error.message().trim().replace('\n', ", "),
    })?;
    let task_lines = lines(text, &document.task);
    let job_lines = lines(text, &document.job);
    let processor_line = document
        .processor
        .as_ref()
        .map(|processor| line_of(text, processor.span().start));
    let line = |place| match place {
        Place::Whole => None,
        Place::Processor => processor_line,
        Place::Task(index) => task_lines.get(index).copied(),
        Place::Job(index) => job_lines.get(index).copied(),
    };
    let fixed = document.scheduler == Scheduler::FixedPriority;
    let mut tasks = Vec::with_capacity(document.task.len());
    for (index, task) in document.task.into_iter().enumerate() {
        let task = task_of(task.into_inner(), fixed);
        tasks.push(task.map_err(|problem| SystemError {
            line: line(Place::Task(index)),
            problem,
        })?);
    }
    let mut jobs = Vec::with_capacity(document.job.len());
    for (index, job) in document.job.into_iter().enumerate() {
        let job = job_of(job.into_inner(), fixed);
        jobs.push(job.map_err(|problem| SystemError {
            line: line(Place::Job(index)),
            problem,
        })?);
    }
    let processor = document.processor.map(Spanned::into_inner);
    if let Some(ProcessorText {
        cpu: Some(Frequencies::Several(list)),
        ..
    }) = &processor
        && list.is_empty()
    {
        return Err(SystemError {
            line: processor_line,
            problem: "cpu has no frequency: list some, or leave it out for any speed".to_owned(),
        });
    }
    if let Some(ProcessorText {
        memory: Some(Frequencies::Several(list)),
        ..
    }) = &processor
        && list.is_empty()
    {
        return Err(SystemError {
            line: processor_line,
            problem: "memory has no frequency: list some, or leave it out".to_owned(),
        });
    }
    let system = System {
        scheduler: document.scheduler,
        units: document.units,
        tasks,
        jobs,
        processor: processor.map(processor_of).unwrap_or_default(),
    };
    verify::system(&system, &line)?;
    Ok(system)
}

fn lines<T>(text: &str, items: &[Spanned<T>]) -> Vec<usize> {
    // Counted once from the beginning, as there may be many.
    let (mut line, mut at) = (1, 0);
    let bytes = text.as_bytes();
    items
        .iter()
        .map(|item| {
            let start = item.span().start.min(bytes.len());
            if start < at {
                return line_of(text, start);
            }
            line += bytes[at..start]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            at = start;
            line
        })
        .collect()
}

fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

fn or_zero(number: Option<Number>) -> Rational {
    number.map_or_else(Rational::zero, |number| number.0)
}

fn priority_of(name: &str, priority: Option<u64>, fixed: bool) -> Result<u64, String> {
    match priority {
        Some(0) => Err(format!(
            "priority of `{name}` is 0, and must be 1, the highest, or more"
        )),
        Some(priority) => Ok(if fixed { priority } else { 0 }),
        None if fixed => Err(format!(
            "`{name}` has no priority: give one, 1 is the highest"
        )),
        None => Ok(0),
    }
}

fn task_of(task: TaskText, fixed: bool) -> Result<Task, String> {
    let name = task.name;
    let model = task.cpu.is_some() || task.memory.is_some() || task.constant.is_some();
    let cost = match task.time {
        Some(_) if model => {
            return Err(format!(
                "`{name}` has time and cpu, memory or constant: leave one of them out"
            ));
        }
        Some(time) => Cost::Time(time.0),
        None if model => Cost::Model {
            cpu: or_zero(task.cpu),
            memory: or_zero(task.memory),
            constant: or_zero(task.constant),
        },
        None => {
            return Err(format!(
                "`{name}` takes no time: give time, or cpu, memory and constant"
            ));
        }
    };
    Ok(Task {
        core: task.core,
        priority: priority_of(&name, task.priority, fixed)?,
        deadline: task
            .deadline
            .map_or(task.period.0.clone(), |number| number.0),
        period: task.period.0,
        offset: or_zero(task.offset),
        jitter: or_zero(task.jitter),
        blocking: match task.blocking {
            None => Cost::Time(Rational::zero()),
            Some(Blocking::For(time)) => Cost::Time(time.0),
            Some(Blocking::Of(cost)) => Cost::Model {
                cpu: or_zero(cost.cpu),
                memory: or_zero(cost.memory),
                constant: or_zero(cost.constant),
            },
        },
        cost,
        name,
    })
}

fn job_of(job: JobText, fixed: bool) -> Result<Job, String> {
    Ok(Job {
        core: job.core,
        priority: priority_of(&job.name, job.priority, fixed)?,
        release: job.release.0,
        deadline: job.deadline.0,
        work: job.work.0,
        name: job.name,
    })
}

fn processor_of(processor: ProcessorText) -> Processor {
    let list = |frequencies: Option<Frequencies>| match frequencies {
        None => Vec::new(),
        Some(Frequencies::One(one)) => vec![one.0],
        Some(Frequencies::Several(several)) => several.into_iter().map(|one| one.0).collect(),
    };
    let power = processor.power.map_or_else(Power::default, |power| Power {
        floor: or_zero(power.floor),
        cpu_cubed: power
            .cpu_cubed
            .map_or_else(Rational::one, |number| number.0),
        memory: or_zero(power.memory),
    });
    Processor {
        cpu: list(processor.cpu),
        memory: list(processor.memory),
        power,
        idle: or_zero(processor.idle),
        sleep: processor.sleep.map(|sleep| Sleep {
            power: or_zero(sleep.power),
            energy: or_zero(sleep.energy),
            time: or_zero(sleep.time),
        }),
        switch: processor.switch.map_or_else(
            || Processor::default().switch,
            |switch| Switch {
                energy: or_zero(switch.energy),
                time: or_zero(switch.time),
            },
        ),
    }
}
