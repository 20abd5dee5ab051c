//! A program run at pairs of frequencies: when it began and ended, what it took, and how warm it became.
//!
//! Invariant: a run's time is that between the program's own markers, or the whole process's, and says which; nobody's
//! frequency is touched here.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metes_power::machine::{Applied, Machine, MachineError, Meter, Reading, joules_of, meter};
use metes_trace::record::Ending;
use metes_trace::record::run::run_command;
use serde::Serialize;

use super::fail;
use crate::error::{Failure, signal_name};
use crate::interrupt;

/// How often meters are read while a program runs.
const SAMPLE: Duration = Duration::from_millis(2);
/// The variable that names the file of markers.
pub(super) const MARKERS: &str = "METES_MARKERS";

/// An execution of the task, or of the whole process.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Run {
    pub(super) cpu_mhz: f64,
    pub(super) memory_mhz: Option<f64>,
    /// s.
    pub(super) time: f64,
    /// J.
    pub(super) energy: Option<f64>,
    /// On the monotonic clock, s.
    pub(super) begin: f64,
    pub(super) end: f64,
    /// Whether the program marked it; if not, it is the process.
    pub(super) marked: bool,
    pub(super) temperature: Option<f64>,
    pub(super) throttled: bool,
    pub(super) applied: bool,
}

/// What is run, and watched by what.
pub(super) struct Sweep<'a> {
    pub(super) machine: &'a Machine,
    pub(super) meters: Vec<&'a Meter>,
    pub(super) command: &'a [OsString],
    pub(super) markers: &'a Path,
}

fn now() -> f64 {
    // SAFETY: all-zero bytes are a valid value of this plain structure.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the place for the answer is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The program, with the file for its markers.
pub(super) fn program(command: &[OsString], markers: Option<&Path>) -> Command {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]);
    if let Some(markers) = markers {
        child.env(MARKERS, markers);
    }
    child
}

impl Sweep<'_> {
    /// Runs the program once at a pair that has been set: what it marked, or the process.
    pub(super) fn run(&self, cpu: u64, memory: Option<u64>) -> Result<Vec<Run>, Failure> {
        // Of a run before.
        let _ = std::fs::remove_file(self.markers);
        let throttled = self.machine.sensors.throttled();
        let stop = AtomicBool::new(false);
        // Before the program begins and after it ends, so that the readings reach over it.
        let first = reading(&self.meters).map_err(fail)?;
        let (from, ended, to, readings) = std::thread::scope(|scope| {
            let sampler = scope.spawn(|| sample(&self.meters, &stop, first));
            let from = now();
            let ended = run_command(program(self.command, Some(self.markers)));
            let to = now();
            stop.store(true, Ordering::Relaxed);
            (from, ended, to, sampler.join())
        });
        let ended = ended?;
        check(ended.ending)?;
        let readings = readings
            .map_err(|_| fail("the meters' thread ended early"))?
            .map_err(fail)?;
        let spans = self.spans()?;
        let marked = !spans.is_empty();
        let spans = match marked {
            true => spans,
            false => vec![(from, to)],
        };
        let applied = self.machine.applied(cpu, memory).map_err(fail)?;
        let applied = applied.iter().all(Applied::holds);
        let temperature = self.machine.sensors.temperature();
        let throttled = self.machine.sensors.throttled() > throttled;
        let run = |(begin, end): meter::Span| Run {
            cpu_mhz: cpu as f64 / 1e3,
            memory_mhz: memory.map(|khz| khz as f64 / 1e3),
            time: end - begin,
            energy: self.joules(&readings, begin, end),
            begin,
            end,
            marked,
            temperature,
            throttled,
            applied,
        };
        Ok(spans.into_iter().map(run).collect())
    }

    /// What the program marked.
    fn spans(&self) -> Result<Vec<meter::Span>, Failure> {
        match std::fs::read_to_string(self.markers) {
            Ok(text) => meter::markers(&text).map_err(|error| {
                Failure::input(format!("what the program wrote to {MARKERS}: {error}"))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Failure::io("read", self.markers, error)),
        }
    }

    /// The energy of a span by all meters; none without one.
    fn joules(&self, readings: &[(f64, Vec<Reading>)], from: f64, to: f64) -> Option<f64> {
        if self.meters.is_empty() {
            return None;
        }
        let of = |(number, meter): (usize, &&Meter)| {
            let own: Vec<_> = readings
                .iter()
                .map(|(time, all)| (*time, all[number]))
                .collect();
            joules_of(&meter.joules(&own)?, from, to)
        };
        self.meters.iter().enumerate().map(of).sum()
    }
}

/// What all meters say, and when.
fn reading(meters: &[&Meter]) -> Result<(f64, Vec<Reading>), MachineError> {
    let all = meters.iter().map(|meter| meter.read());
    let all = all.collect::<Result<Vec<_>, _>>()?;
    Ok((now(), all))
}

/// Reads meters until told to stop, and once more.
fn sample(
    meters: &[&Meter],
    stop: &AtomicBool,
    first: (f64, Vec<Reading>),
) -> Result<Vec<(f64, Vec<Reading>)>, MachineError> {
    let mut readings = vec![first];
    loop {
        let last = stop.load(Ordering::Relaxed);
        readings.push(reading(meters)?);
        if last || meters.is_empty() {
            return Ok(readings);
        }
        std::thread::sleep(SAMPLE);
    }
}

/// That a program ended well, and that nobody asks this process to end.
pub(super) fn check(ending: Ending) -> Result<(), Failure> {
    const KEPT: &str = "what was set before is restored";
    if let Some(signal) = interrupt::asked_to_end() {
        return Err(Failure::ended(signal, KEPT));
    }
    match ending {
        Ending::Exit(0) => Ok(()),
        Ending::Signal(signal) if interrupt::was_met(signal) => Err(Failure::ended(signal, KEPT)),
        Ending::Signal(signal) => Err(Failure::input(format!(
            "the program was ended by {}: its time means nothing; {KEPT}",
            signal_name(signal)
        ))),
        Ending::Exit(status) => Err(Failure::input(format!(
            "the program ended with status {status}: its time means nothing; {KEPT}"
        ))),
    }
}
