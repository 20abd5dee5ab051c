//! The program on the emitted heap: was it as predicted?
//!
//! Two hashes decide. *Requests*: did the program ask for the same as when it
//! was recorded? Only then a prediction can be held against it. *Placements*:
//! did the heap put every block where the replay did? If the requests differ,
//! the program is recorded again, to tell whether it differs from run to run by
//! itself, and where first; should the run agree with that second recording
//! (caches were warm by then), the prediction is made from it.
//!
//! Invariant: a prediction never uses anything measured on the emitted heap.

use std::path::Path;

use metes_explore::{Events, Options, Replay, Replayer};
use metes_trace::record::{Ending, Run};
use metes_trace::{Op, Trace};
use serde::Serialize;

use crate::capture::{Pass, Written, capture};
use crate::error::Error;
use crate::launch::{Report, launch};
use crate::tuning::{Chosen, Program, Recorded, Watch};

/// What the run showed.
#[derive(Debug)]
pub struct Checked {
    /// The prediction that counts: of the recording that the run agrees with,
    /// else of the first.
    pub predicted: Replay,
    /// The report of the process in question; None if it left none.
    pub measured: Option<Report>,
    /// The program by which the process replaced itself: then it left no report,
    /// and nothing of its heap was measured.
    pub replaced_by: Option<String>,
    /// Whether two runs of the program asked for the same; None if not found out.
    pub deterministic: Option<bool>,
    /// Where two recordings differ first.
    pub difference: Option<Difference>,
    /// Stdout and the exit status are those of a recorded run.
    pub output_unchanged: bool,
    /// Two recorded runs wrote different things, so that a changed output
    /// proves nothing.
    pub output_varies: bool,
    /// How the run ended.
    pub ending: Ending,
    /// Seconds that passed in it.
    pub wall_seconds: f64,
    /// The second recording, if one was made.
    pub again: Option<Trace>,
}

/// The first event in which two recordings differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The event, counted from 0.
    pub event: u64,
    /// What the first recording has there.
    pub recorded: String,
    /// What the second has.
    pub again: String,
    /// Events of both.
    pub events: [u64; 2],
}

impl Checked {
    /// The program asked for the same as when it was recorded.
    pub fn requests_equal(&self) -> bool {
        let measured = self.measured.as_ref();
        measured.is_some_and(|measured| same_requests(measured, &self.predicted))
    }

    /// Every block lay where it was predicted.
    pub fn placements_equal(&self) -> bool {
        let measured = self.measured.as_ref();
        measured.is_some_and(|measured| measured.placements == self.predicted.placements)
    }

    /// Predicted = measured: both figures, and the place of every block.
    pub fn equal(&self) -> bool {
        self.requests_equal() && self.placements_equal() && self.figures_equal()
    }

    /// Both figures are as predicted.
    pub fn figures_equal(&self) -> bool {
        self.measured.as_ref().is_some_and(|measured| {
            measured.peak_live == self.predicted.peak_live
                && measured.footprint == self.predicted.footprint
        })
    }

    /// Nothing that was checked is contradicted. Of a program that asks for
    /// other things in each run, nothing was predicted.
    pub fn holds(&self) -> bool {
        let as_predicted =
            self.figures_equal() || self.deterministic == Some(false) || self.replaced_by.is_some();
        as_predicted && (self.output_unchanged || self.output_varies)
    }
}

fn same_requests(measured: &Report, predicted: &Replay) -> bool {
    measured.requests == predicted.requests && measured.events == predicted.events
}

/// Runs the program on the emitted heap and compares.
pub(crate) fn check(
    program: &Program<'_>,
    recorded: &Recorded,
    chosen: &Chosen,
    library: &Path,
    watch: &mut dyn Watch,
) -> Result<Checked, Error> {
    let (ended, written) = run(program, library, None)?;
    let reports = program.scratch.reports();
    let is_main = recorded.process.is_main;
    let first = &chosen.predicted;
    let unchanged =
        |other: &Recorded| other.written.stdout == written.stdout && other.ending == ended.ending;
    let replaced_by = recorded.process.replaced_by.clone();
    let measured = match &replaced_by {
        Some(_) => None,
        None => of_process(&reports, first, is_main, &ended).cloned(),
    };
    let mut checked = Checked {
        predicted: first.clone(),
        measured,
        replaced_by,
        deterministic: None,
        difference: None,
        output_unchanged: unchanged(recorded),
        output_varies: false,
        ending: ended.ending,
        wall_seconds: ended.wall_seconds,
        again: None,
    };
    if checked.replaced_by.is_some() && checked.output_unchanged {
        return Ok(checked);
    }
    if checked.requests_equal() && checked.output_unchanged {
        // Other placements may be those of other frees.
        checked.deterministic = checked.placements_equal().then_some(true);
        return Ok(checked);
    }
    if watch.asked_to_end().is_some() {
        return Ok(checked);
    }
    // At once, before the second recording.
    if checked.ending != recorded.ending {
        watch.ended_otherwise(checked.ending, recorded.ending, &written.stderr.end());
    }
    let again = match program.record(false) {
        Ok(again) => again,
        Err(error) => {
            watch.no_second_recording(&error);
            return Ok(checked);
        }
    };
    checked.output_varies =
        again.written.stdout != recorded.written.stdout || again.ending != recorded.ending;
    checked.output_unchanged |= unchanged(&again);
    checked.difference = difference(&recorded.trace, &again.trace);
    checked.deterministic = Some(checked.difference.is_none());
    if checked.replaced_by.is_none() && checked.difference.is_some() && !checked.requests_equal() {
        let events = Events::try_from(&again.trace)?;
        let (second, _) = Replayer::new().replay(
            &first.heap,
            &chosen.config.heap,
            &events,
            &Options::of(&chosen.config),
        );
        let agrees = of_process(&reports, &second, is_main, &ended)
            .filter(|report| same_requests(report, &second));
        if let Some(report) = agrees {
            checked.measured = Some(report.clone());
            checked.predicted = second;
        }
    }
    checked.again = Some(again.trace);
    Ok(checked)
}

/// Runs the program on the heap of a library, or on the one of that name which the library has.
pub(crate) fn run(
    program: &Program<'_>,
    library: &Path,
    heap: Option<&str>,
) -> Result<(Run, Written), Error> {
    program.scratch.clear();
    let mut environment = program.scratch.environment();
    environment.extend(heap.map(|heap| ("METES_HEAP".into(), heap.into())));
    let run = || launch(program.command(), library, &environment);
    let (ended, written) = capture(Pass::Away, || program.input.give(false, run))?;
    Ok((ended??, written))
}

/// The report of the process that was tuned. Numbers of processes change from
/// run to run, so it is known by what it asked for; failing that, by being the
/// command itself, or by the nearest number of events.
pub(crate) fn of_process<'r>(
    reports: &'r [Report],
    predicted: &Replay,
    is_main: bool,
    ended: &Run,
) -> Option<&'r Report> {
    let same = reports
        .iter()
        .find(|report| same_requests(report, predicted));
    if same.is_some() {
        return same;
    }
    if is_main {
        return reports.iter().rfind(|report| report.pid == ended.pid);
    }
    reports
        .iter()
        .min_by_key(|report| report.events.abs_diff(predicted.events))
}

/// Where two traces ask for different things first.
fn difference(recorded: &Trace, again: &Trace) -> Option<Difference> {
    let length = recorded.len().max(again.len());
    let at = |trace: &Trace, index| {
        trace
            .event(index)
            .map(|event| (event.op, event.size, event.align))
    };
    let differ = (0..length).find(|&index| at(recorded, index) != at(again, index))?;
    let spell = |trace: &Trace| match at(trace, differ) {
        None => "the end".to_owned(),
        Some((Op::Alloc, size, _)) => format!("allocation of {size} bytes"),
        Some((Op::Free, _, _)) => "a free".to_owned(),
        Some((Op::Resize, size, _)) => format!("resize to {size} bytes"),
        Some((Op::Access, _, _)) => "an access".to_owned(),
    };
    Some(Difference {
        event: differ as u64,
        recorded: spell(recorded),
        again: spell(again),
        events: [recorded.len() as u64, again.len() as u64],
    })
}
