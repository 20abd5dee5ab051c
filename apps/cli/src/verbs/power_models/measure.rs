//! `metes power measure`.
//!
//! Invariant: what was set before is restored before anything is said of the results.

use anstyle::Style;
use metes_power::machine::meter::{self, Samples};
use metes_power::machine::{Machine, Saved};
use metes_tune::stdout_to_stderr;
use serde_json::json;

use super::apply::{RECORDED, kept, restored};
use super::sweep::{MARKERS, Run, Sweep, check};
use super::{about, fail, khz, read};
use crate::arguments::PowerMeasure;
use crate::error::Failure;
use crate::output::{self, POOR, Table};
use crate::own::Form;
use crate::{interrupt, progress};

/// The first line of a table of runs, with the version of its form.
const HEAD: &str = "# metes power measure 1\n";

pub(crate) fn run(arguments: &PowerMeasure, json: bool) -> Result<u8, Failure> {
    if let Some(path) = &arguments.output {
        output::writable(path, Form::Plain)?;
    }
    if arguments.runs.is_some() {
        return aligned(arguments, json);
    }
    let machine =
        Machine::find(&arguments.sysfs, arguments.memory_device.as_deref()).map_err(fail)?;
    if arguments.list {
        return list(&machine, json);
    }
    let cpus = wanted(&arguments.cpu, machine.cpu_frequencies())?;
    let memories = wanted(&arguments.memory, machine.memory_frequencies())?;
    let memories: Vec<Option<u64>> = match memories.is_empty() {
        true => vec![None],
        false => memories.into_iter().map(Some).collect(),
    };
    let meters = machine
        .meters_named(arguments.meter.as_deref())
        .map_err(fail)?;
    let remarks = remarks(arguments, &machine, meters.is_empty());
    let scratch = tempfile::tempdir()
        .map_err(|error| Failure::io("make a directory below", &std::env::temp_dir(), error))?;
    let markers = scratch.path().join("markers");
    let sweep = Sweep {
        machine: &machine,
        meters,
        command: &arguments.command,
        markers: &markers,
    };
    // From now on no signal ends this process while settings are not restored.
    let stop = interrupt::flag()?;
    let mut saved = machine.save().map_err(fail)?;
    saved.keep(&arguments.saved).map_err(kept)?;
    let aside = match json {
        true => Some(stdout_to_stderr()?),
        false => None,
    };
    let runs = sweep_all(arguments, &sweep, &stop, &cpus, &memories);
    drop(aside);
    finish(&mut saved)?;
    let runs = runs?;
    if let Some(path) = &arguments.output {
        output::export(path, Form::Plain, table(&runs).as_bytes())?;
    }
    show(&runs, &remarks, json)?;
    Ok(0)
}

fn finish(saved: &mut Saved) -> Result<(), Failure> {
    restored(saved).map(drop)
}

fn sweep_all(
    arguments: &PowerMeasure,
    sweep: &Sweep<'_>,
    stop: &std::sync::atomic::AtomicBool,
    cpus: &[u64],
    memories: &[Option<u64>],
) -> Result<Vec<Run>, Failure> {
    let wheel = progress::spinner("measuring");
    let mut runs = Vec::new();
    for &cpu in cpus {
        for &memory in memories {
            let memory_said =
                memory.map_or(String::new(), |khz| format!(", memory {} MHz", khz / 1000));
            wheel.set_message(format!("processor {} MHz{memory_said}", cpu / 1000));
            sweep.machine.set(cpu, memory).map_err(fail)?;
            for number in 0..arguments.warm_up + arguments.repeats {
                let measured = sweep.run(cpu, memory)?;
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    // Of a Ctrl-C between two runs nobody asked to end knows.
                    check(metes_trace::record::Ending::Exit(0))?;
                    return Err(Failure::ended(
                        libc::SIGINT,
                        "what was set before is restored",
                    ));
                }
                if number >= arguments.warm_up {
                    runs.extend(measured);
                }
            }
        }
    }
    wheel.finish_and_clear();
    Ok(runs)
}

/// The frequencies asked for, or all, kHz.
fn wanted(asked: &[f64], offered: Vec<u64>) -> Result<Vec<u64>, Failure> {
    match asked {
        [] => Ok(offered),
        asked => asked.iter().map(|mhz| khz(*mhz)).collect(),
    }
}

fn remarks(arguments: &PowerMeasure, machine: &Machine, no_meter: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if arguments.sysfs != std::path::Path::new("/sys") {
        remarks.push(format!(
            "{} {RECORDED}: the times are this machine's as it is, and measure no pair",
            output::name(&arguments.sysfs)
        ));
    }
    if machine.memory.is_none() {
        remarks.push("nobody sets the memory's frequency here: it is not in the table".to_owned());
    }
    if no_meter {
        remarks.push(
            "there is no meter: no energy is in the table; an external one's is added by --runs, --meter-csv, --markers"
                .to_owned(),
        );
    }
    remarks
}

fn list(machine: &Machine, json: bool) -> Result<u8, Failure> {
    let (cpu, memory) = (machine.cpu_frequencies(), machine.memory_frequencies());
    let meters: Vec<_> = machine
        .meters
        .iter()
        .map(|meter| meter.name.as_str())
        .collect();
    if json {
        output::json(&json!({
            "processors": machine.processors.iter().map(|domain| &domain.name).collect::<Vec<_>>(),
            "cpu_khz": cpu,
            "memory": machine.memory.as_ref().map(|domain| &domain.name),
            "memory_khz": memory,
            "meters": meters,
            "temperature": machine.sensors.temperature(),
            "throttled": machine.sensors.throttled(),
        }))?;
        return Ok(0);
    }
    let mhz = |all: &[u64]| {
        let all: Vec<_> = all
            .iter()
            .map(|khz| format!("{}", *khz as f64 / 1e3))
            .collect();
        match all.is_empty() {
            true => "nobody sets it".to_owned(),
            false => all.join(", ") + " MHz",
        }
    };
    output::text(&format!(
        "processors: {}\nmemory: {}\nmeters: {}\n",
        mhz(&cpu),
        mhz(&memory),
        if meters.is_empty() {
            "none".to_owned()
        } else {
            meters.join(", ")
        }
    ))?;
    Ok(0)
}

/// Runs as a table that `metes power fit` reads.
fn table(runs: &[Run]) -> String {
    let memory = runs.iter().any(|run| run.memory_mhz.is_some());
    let mut text = format!(
        "{HEAD}cpu_mhz,{}time_ms,energy_mj,begin_s,end_s,marked,celsius,throttled,applied\n",
        if memory { "memory_mhz," } else { "" }
    );
    for run in runs {
        let number = |value: Option<f64>, digits: usize| {
            value.map_or(String::new(), |value| format!("{value:.digits$}"))
        };
        let memory = run
            .memory_mhz
            .map_or(String::new(), |mhz| format!("{mhz},"));
        text += &format!(
            "{},{memory}{:.6},{},{:.9},{:.9},{},{},{},{}\n",
            run.cpu_mhz,
            run.time * 1e3,
            number(run.energy.map(|joules| joules * 1e3), 6),
            run.begin,
            run.end,
            u8::from(run.marked),
            number(run.temperature, 1),
            u8::from(run.throttled),
            u8::from(run.applied),
        );
    }
    text
}

fn show(runs: &[Run], remarks: &[String], json: bool) -> Result<(), Failure> {
    let count = |of: fn(&Run) -> bool| runs.iter().filter(|run| of(run)).count();
    let (throttled, missed) = (count(|run| run.throttled), count(|run| !run.applied));
    let unmarked = count(|run| !run.marked);
    let mut remarks = remarks.to_vec();
    if unmarked > 0 {
        remarks.push(format!(
            "{unmarked} of {} runs wrote no markers ({MARKERS}): their time is the whole process's, start-up included",
            runs.len()
        ));
    }
    if missed > 0 {
        remarks.push(format!(
            "in {missed} runs the frequencies were not those asked for: leave them out of a fit"
        ));
    }
    if throttled > 0 {
        remarks.push(format!(
            "in {throttled} runs the processor was throttled: leave them out of a fit"
        ));
    }
    if json {
        return output::json(&json!({ "runs": runs, "remarks": remarks }));
    }
    let mut columns = Table::new(&["cpu MHz", "memory MHz", "runs", "ms", "mJ", "°C", ""]);
    for same in runs.chunk_by(|a, b| a.cpu_mhz == b.cpu_mhz && a.memory_mhz == b.memory_mhz) {
        let mean = |of: &dyn Fn(&Run) -> Option<f64>| {
            let values: Option<Vec<f64>> = same.iter().map(of).collect();
            values.map_or("-".to_owned(), |values| {
                format!("{:.3}", values.iter().sum::<f64>() / values.len() as f64)
            })
        };
        let bad = same.iter().any(|run| run.throttled || !run.applied);
        columns.row(
            if bad { POOR } else { Style::new() },
            vec![
                format!("{}", same[0].cpu_mhz),
                same[0]
                    .memory_mhz
                    .map_or("-".to_owned(), |mhz| format!("{mhz}")),
                same.len().to_string(),
                mean(&|run| Some(run.time * 1e3)),
                mean(&|run| run.energy.map(|joules| joules * 1e3)),
                mean(&|run| run.temperature),
                if bad { "throttled or not applied" } else { "" }.to_owned(),
            ],
        );
    }
    let mut text = columns.to_string();
    for remark in remarks {
        text += &format!("  - {remark}\n");
    }
    output::text(&text)
}

/// Adds an external meter's energies to a table of runs.
fn aligned(arguments: &PowerMeasure, json: bool) -> Result<u8, Failure> {
    let (Some(runs), Some(samples), Some(markers), Some(path)) = (
        &arguments.runs,
        &arguments.meter_csv,
        &arguments.markers,
        &arguments.output,
    ) else {
        return Err(Failure::input(
            "--runs, --meter-csv, --markers and --output belong together",
        ));
    };
    let text = read(runs)?;
    // A table that `fit` would read, too.
    super::table(runs)?;
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .collect();
    let header: Vec<&str> = lines[0].split(',').collect();
    let column = |name: &str| {
        header
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| {
                about(
                    runs,
                    format!("no column {name}: give a table of `metes power measure`"),
                )
            })
    };
    let (begin, end, energy) = (column("begin_s")?, column("end_s")?, column("energy_mj")?);
    let mut host = Vec::new();
    for line in &lines[1..] {
        let fields: Vec<&str> = line.split(',').collect();
        let value = |index: usize| {
            fields
                .get(index)
                .and_then(|text| text.trim().parse::<f64>().ok())
        };
        let span = value(begin).zip(value(end));
        host.push(span.ok_or_else(|| about(runs, format!("'{line}' has no begin_s and end_s")))?);
    }
    let spans = meter::markers(&read(markers)?).map_err(|error| about(markers, error))?;
    meter::align(&host, &spans).map_err(|error| about(markers, error))?;
    let samples = Samples::parse(&read(samples)?).map_err(|error| about(samples, error))?;
    let energies = samples
        .energies(&spans)
        .map_err(|error| about(markers, error))?;
    let mut out = format!("{HEAD}{}\n", lines[0]);
    for (line, joules) in lines[1..].iter().zip(&energies) {
        let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        fields[energy] = format!("{:.6}", joules * 1e3);
        out += &(fields.join(",") + "\n");
    }
    output::export(path, Form::Plain, out.as_bytes())?;
    match json {
        true => output::json(&json!({ "runs": energies.len(), "energies": energies }))?,
        false => output::text(&format!(
            "{} runs with their energy: {}\n",
            energies.len(),
            output::name(path)
        ))?,
    }
    Ok(0)
}
