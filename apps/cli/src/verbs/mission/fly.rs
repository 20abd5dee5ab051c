//! `metes mission run`.

use std::time::Instant;

use anstyle::Style;
use metes_duster::page::{PLACES, Science};
use metes_duster::report::Asked;
use metes_duster::{Bench, Report, scenario};
use metes_duster_instrument::faults;
use metes_duster_system::System;

use super::{model, unit};
use crate::arguments::MissionRun;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, GOOD, POOR, Table};
use crate::own::Form;
use crate::quantity::grouped;

/// Seconds of a mission beside its acquisition, in which faults happen, too.
const BESIDE: u64 = 30;

pub(super) fn run(arguments: &MissionRun, json: bool) -> Result<u8, Failure> {
    if let Some(path) = &arguments.telemetry {
        output::writable(path, Form::Plain)?;
    }
    if let Some(path) = &arguments.output {
        output::writable(path, Form::Page)?;
    }
    if let Some(path) = &arguments.requests {
        output::writable(path, Form::Plain)?;
    }
    let system = System::of_mission();
    let mut unit = unit(&arguments.unit, &system)?;
    if arguments.requests.is_some() && !unit.write_requests(&system) {
        return Err(Failure::input(
            "the image does not name its partitions' memory and calls; give one that was built by missions/duster/build"
                .to_owned(),
        ));
    }
    let seed = arguments.unit.seed;
    let frequency = system.platform.frequency;
    let until = (arguments.seconds + BESIDE) * u64::from(frequency);
    let faults = faults::plan(
        seed,
        arguments.faults as usize,
        u64::from(frequency),
        until,
        frequency,
    );
    let mut bench = Bench::new(unit, faults);
    let kept = arguments.telemetry.as_ref().or(arguments.output.as_ref());
    bench.telemetry = kept.map(|_| Vec::new());
    let steps: &[u16] = if arguments.seconds >= 20 {
        &[600, 1000]
    } else {
        &[]
    };
    let begin = Instant::now();
    let flown = scenario::fly(&mut bench, arguments.seconds, steps);
    let took = begin.elapsed().as_secs_f64();
    let asked = Asked {
        seed,
        seconds: arguments.seconds,
        model: model(arguments.unit.model).1,
        faults: arguments.faults > 0,
    };
    let mut report = Report::of(&bench, &system, asked, &flown.sweeps);
    report.violations.extend(flown.troubles);
    if let (Some(path), Some(requests)) = (&arguments.requests, &bench.unit.requests) {
        output::export(path, Form::Plain, requests.text().as_bytes())?;
    }
    if let (Some(path), Some(bytes)) = (&arguments.telemetry, &bench.telemetry) {
        output::export(path, Form::Plain, bytes)?;
    }
    if let (Some(path), Some(bytes)) = (&arguments.output, &bench.telemetry) {
        let mut science = Science::new(PLACES);
        science.take_bytes(bytes);
        science.end();
        let page = science.page(&system.platform.name, None);
        output::export(path, Form::Page, page.as_bytes())?;
    }
    output::note(&format!(
        "{:.1} s of mission in {took:.1} s: {:.1} times as fast as real time, {:.0} million instructions a second",
        report.elapsed,
        report.elapsed / took,
        report.instructions as f64 / took / 1e6
    ));
    if json {
        output::json(&report)?;
    } else {
        output::text(&shown(&report))?;
    }
    Ok(if report.violations.is_empty() {
        0
    } else {
        DOES_NOT_HOLD
    })
}

pub(super) fn shown(report: &Report) -> String {
    let micros = |seconds: f64| format!("{:.1} us", seconds * 1e6);
    let bound = |bound: Option<f64>| bound.map_or("none".to_owned(), micros);
    let mut tasks = Table::new(&[
        "task", "core", "runs", "response", "bound", "deadline", "missed",
    ]);
    for task in &report.tasks {
        tasks.row(
            Style::new(),
            vec![
                task.name.clone(),
                task.core.to_string(),
                grouped(task.runs),
                micros(task.response),
                bound(task.bound),
                micros(task.deadline),
                task.missed.to_string(),
            ],
        );
    }
    let mut partitions = Table::new(&["partition", "peak", "bound", "size", "refusals", "worst"]);
    for it in &report.partitions {
        partitions.row(
            Style::new(),
            vec![
                it.name.clone(),
                grouped(it.peak),
                it.bound.map_or("none".to_owned(), grouped),
                grouped(it.size),
                it.refusals.to_string(),
                micros(it.worst),
            ],
        );
    }
    let samples = &report.samples;
    let sweeps = report.sweeps.iter();
    let sweeps: Vec<_> = sweeps
        .map(|it| format!("{} of {}", it.exact, it.asked))
        .collect();
    let mut text = format!(
        "seed {}, {} s of acquisition, {:.1} s in all, model {}\n\
         samples: {} of Langmuir, {} of the field, {} of dust; {} lost, {} packets wrong\n\
         sweeps: steps exact {}; windows of the field exact {}\n\
         dust: {} grains, {} detected within 10 ms, the latest after {:.2} ms\n\
         telecommands: {} executed in {} packets, {} completed, {} refused, {} lost\n\
         telemetry: {} packets, {} missing; {} resets\n\n{tasks}\n{partitions}\n",
        report.seed,
        report.seconds,
        report.elapsed,
        report.model,
        grouped(samples.langmuir),
        grouped(samples.efield),
        grouped(samples.dust),
        grouped(report.lost),
        report.wrong,
        if sweeps.is_empty() {
            "none".to_owned()
        } else {
            sweeps.join(", ")
        },
        grouped(report.windows),
        report.dust.injected,
        report.dust.detected,
        report.dust.latest_ms,
        report.commands.commands,
        report.commands.sent,
        report.commands.completed,
        report.commands.failed,
        report.commands.lost,
        grouped(report.packets),
        report.packets_missing,
        report.resets.len(),
    );
    for violation in report.violations.iter().chain(&report.differences) {
        text += &format!("{POOR}not as it should be:{POOR:#} {violation}\n");
    }
    if report.violations.is_empty() {
        text += &format!("{GOOD}all as it should be{GOOD:#}\n");
    }
    text
}
