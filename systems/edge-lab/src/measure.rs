//! The campaign: every kernel by every subject, cold and prolonged, with what each run cost beside its time.
//!
//! Subjects take turns, run by run, so that a machine that becomes slower does so for all of them.
//!
//! *Invariant:* a cell without figures says why; a checksum that differs is kept and told, never dropped. A campaign that is
//! stopped keeps every run that has ended.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metes_edge_kernels::{NOTHING, Size};

use crate::engine::{Mode, ONE_THREAD};
use crate::process::{self, Cost};
use crate::programs::Build;
use crate::subject::{Subject, Workshop};
use crate::suite::Printed;

/// A prolonged run is to take about so long at most: a subject that is slow makes fewer runs.
const PROLONGED_NS: u64 = 4_000_000_000;
/// And so many at least.
const LEAST_REPEATS: usize = 4;
/// Runs in one process of which system calls are counted, beside one.
const COUNTED: usize = 5;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Kernels, by name.
    pub kernels: Vec<String>,
    /// How much they compute.
    pub size: Size,
    /// Cold runs of each.
    pub runs: usize,
    /// Runs in one process of each, at most; 0: none.
    pub repeats: usize,
    /// Instances of each engine of ours of a module that it has loaded; 0: none.
    pub instances: usize,
    /// Whether system calls are counted, in runs of their own.
    pub count_calls: bool,
    /// Whether to end with what there is: looked at between two runs.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs of a process that is started for one run of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Cold {
    /// What each process cost.
    pub costs: Vec<Cost>,
    /// What the kernel itself took in each, in nanoseconds.
    pub inside: Vec<u64>,
    /// System calls of a process.
    pub calls: Option<u64>,
}

/// Many runs in one process.
#[derive(Clone, Debug, Default)]
pub struct Prolonged {
    /// What each took, in nanoseconds.
    pub times: Vec<u64>,
    /// What the process cost.
    pub cost: Cost,
    /// System calls of a run more.
    pub calls: Option<f64>,
}

/// A kernel by a subject.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Which subject.
    pub subject: &'static str,
    /// Which kernel.
    pub kernel: String,
    /// Runs of a process each.
    pub cold: Cold,
    /// Runs in one process.
    pub prolonged: Option<Prolonged>,
    /// Of what it computed.
    pub checksum: Option<u64>,
    /// Why figures are missing.
    pub failure: Option<String>,
}

/// New instances of a loaded module, in one process.
#[derive(Clone, Debug)]
pub struct Warm {
    /// Which engine.
    pub mode: Mode,
    /// Which kernel.
    pub kernel: String,
    /// Nanoseconds of each: made, run, dropped.
    pub times: Vec<u64>,
    /// Pages that each faulted in.
    pub faults: Vec<u64>,
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// How it was measured.
    pub options: Options,
    /// Whose kernels.
    pub suite: String,
    /// All subjects, absent ones included.
    pub subjects: Vec<Subject>,
    /// By kernel, then by subject; the first kernel does [nothing](NOTHING).
    pub cells: Vec<Cell>,
    /// By kernel and engine.
    pub warm: Vec<Warm>,
    /// Where what was computed is not what native code computes.
    pub differences: Vec<String>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

impl Measured {
    /// A kernel by a subject.
    #[must_use]
    pub fn cell(&self, subject: &str, kernel: &str) -> Option<&Cell> {
        let found = |cell: &&Cell| cell.subject == subject && cell.kernel == kernel;
        self.cells.iter().find(found)
    }

    /// A subject that was measured.
    #[must_use]
    pub fn present(&self, name: &str) -> Option<&Subject> {
        let found = |subject: &&Subject| subject.name == name && subject.absent.is_none();
        self.subjects.iter().find(found)
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// No directory for programs.
    #[error("no directory for programs: {0}")]
    Directory(std::io::Error),
    /// Native code is what all else is compared with.
    #[error("native kernels cannot be run here: {0}")]
    NoNative(String),
    /// It was stopped before the first run.
    #[error("stopped before anything was measured: let the first kernel's runs end")]
    Stopped,
    /// A suite that cannot be read.
    #[error("{path} is no directory of PolyBench/C: {why}")]
    Suite {
        /// Where it was looked for.
        path: std::path::PathBuf,
        /// What is missing.
        why: String,
    },
}

/// Tries every subject, then measures those that can be had; `tell` is told what is done.
///
/// # Errors
/// When native code cannot be run: all else is compared with it.
pub fn measure(
    workshop: &Workshop<'_>,
    mut subjects: Vec<Subject>,
    options: &Options,
    tell: &dyn Fn(&str),
) -> Result<Measured, LabError> {
    for subject in &mut subjects {
        if options.stopped() {
            return Err(LabError::Stopped);
        }
        if subject.absent.is_none() {
            tell(&format!("trying {}", subject.name));
            subject.absent = workshop.trial(subject);
        }
    }
    if let Some(why) = subjects.first().and_then(|native| native.absent.clone()) {
        return Err(LabError::NoNative(why));
    }
    let mut cells = Vec::new();
    for kernel in std::iter::once(NOTHING).chain(options.kernels.iter().map(String::as_str)) {
        if options.stopped() {
            break;
        }
        tell(kernel);
        let taking_part = |subject: &&Subject| {
            subject.absent.is_none() && (kernel == NOTHING || !subject.start_only)
        };
        let present: Vec<&Subject> = subjects.iter().filter(taking_part).collect();
        cells.extend(
            Row {
                workshop,
                options,
                kernel,
            }
            .measure(&present),
        );
    }
    if cells.iter().all(|cell: &Cell| cell.cold.costs.is_empty()) && options.stopped() {
        return Err(LabError::Stopped);
    }
    let warm = match options.instances {
        0 => Vec::new(),
        _ if options.stopped() => Vec::new(),
        _ => warm(workshop, options, tell),
    };
    let suite = workshop.suite;
    let mut differences = Vec::new();
    for kernel in &options.kernels {
        let expected = suite.checksum(kernel, options.size);
        for cell in cells.iter().filter(|cell| cell.kernel == *kernel) {
            if let (Some(expected), Some(found)) = (expected, cell.checksum)
                && expected != found
            {
                differences.push(format!(
                    "{kernel} by {} gave {found:016x}, native code {expected:016x}",
                    cell.subject
                ));
            }
        }
    }
    Ok(Measured {
        options: options.clone(),
        suite: suite.name(),
        subjects,
        cells,
        warm,
        differences,
        interrupted: options.stopped(),
    })
}

/// One kernel by all subjects.
struct Row<'a> {
    workshop: &'a Workshop<'a>,
    options: &'a Options,
    kernel: &'a str,
}

impl Row<'_> {
    fn measure(&self, subjects: &[&Subject]) -> Vec<Cell> {
        let cell = |subject: &&Subject| Cell {
            subject: subject.name,
            kernel: self.kernel.to_owned(),
            cold: Cold::default(),
            prolonged: None,
            checksum: None,
            failure: None,
        };
        let mut cells: Vec<Cell> = subjects.iter().map(cell).collect();
        for _ in 0..self.options.runs {
            for (subject, cell) in subjects.iter().zip(&mut cells) {
                if self.goes_on(cell) {
                    let failure = self.cold(subject, cell).err();
                    cell.failure = self.not_of_stopping(failure);
                }
            }
        }
        for (subject, cell) in subjects.iter().zip(&mut cells) {
            if self.goes_on(cell) && self.options.count_calls {
                // A process that may not be traced has no count; its times stand.
                cell.cold.calls = self.calls(subject, 1).ok();
            }
        }
        if self.kernel != NOTHING && self.options.repeats > 0 {
            for (subject, cell) in subjects.iter().zip(&mut cells) {
                if self.goes_on(cell) {
                    match self.prolonged(subject, cell) {
                        Ok(prolonged) => cell.prolonged = Some(prolonged),
                        Err(why) => cell.failure = self.not_of_stopping(Some(why)),
                    }
                }
            }
        }
        // What was stopped before its first run is not there at all.
        cells.retain(|cell| cell.failure.is_some() || !cell.cold.costs.is_empty());
        cells
    }

    fn goes_on(&self, cell: &Cell) -> bool {
        cell.failure.is_none() && !self.options.stopped()
    }

    /// A failure, unless the signal that stops the campaign has met the process, too, as a terminal's does.
    fn not_of_stopping(&self, failure: Option<String>) -> Option<String> {
        failure.filter(|_| !self.options.stopped())
    }

    fn run(&self, subject: &Subject, runs: usize) -> Result<(Printed, Cost), String> {
        let mut command = self
            .workshop
            .command(subject, self.kernel, self.options.size, runs)?;
        let run = process::run(&mut command).map_err(|error| error.to_string())?;
        if run.status != 0 {
            return Err(run.complaint());
        }
        // The runner alone prints nothing.
        let text = if run.output.is_empty() {
            "0"
        } else {
            run.output.as_str()
        };
        let printed = Printed::read(text).ok_or("it printed something else than a kernel does")?;
        Ok((printed, run.cost))
    }

    fn cold(&self, subject: &Subject, cell: &mut Cell) -> Result<(), String> {
        let (printed, cost) = self.run(subject, 1)?;
        cell.cold.costs.push(cost);
        cell.cold.inside.extend(printed.times);
        let before = cell.checksum.replace(printed.checksum);
        if before.is_some_and(|before| before != printed.checksum) {
            return Err(format!("two runs of {} differ", self.kernel));
        }
        Ok(())
    }

    fn calls(&self, subject: &Subject, runs: usize) -> Result<u64, String> {
        let mut command = self
            .workshop
            .command(subject, self.kernel, self.options.size, runs)?;
        command.env(ONE_THREAD.0, ONE_THREAD.1);
        process::system_calls(&mut command).map_err(|error| error.to_string())
    }

    fn prolonged(&self, subject: &Subject, cell: &Cell) -> Result<Prolonged, String> {
        let least = cell.cold.inside.iter().copied().min().unwrap_or(1).max(1);
        let fitting = usize::try_from(PROLONGED_NS / least).unwrap_or(usize::MAX);
        let repeats = fitting.clamp(LEAST_REPEATS, self.options.repeats.max(LEAST_REPEATS));
        let (printed, cost) = self.run(subject, repeats)?;
        let calls = cell.cold.calls.and_then(|once| {
            let more = self.calls(subject, COUNTED).ok()?.saturating_sub(once);
            Some(more as f64 / (COUNTED - 1) as f64)
        });
        Ok(Prolonged {
            times: printed.times,
            cost,
            calls,
        })
    }
}

/// Instances of loaded modules. An engine that does not take a module is told of by its cell.
fn warm(workshop: &Workshop<'_>, options: &Options, tell: &dyn Fn(&str)) -> Vec<Warm> {
    let mut all = Vec::new();
    let kernels = std::iter::once(NOTHING).chain(options.kernels.first().map(String::as_str));
    for kernel in kernels {
        tell(&format!("instances of {kernel}"));
        let program = workshop
            .suite
            .program(Build::Wasm, kernel, options.size, workshop.directory);
        let Ok(program) = program else {
            continue;
        };
        let modes = Mode::ALL.into_iter();
        all.extend(modes.filter_map(|mode| of_mode(workshop, options, mode, kernel, &program)));
    }
    all
}

fn of_mode(
    workshop: &Workshop<'_>,
    options: &Options,
    mode: Mode,
    kernel: &str,
    program: &Path,
) -> Option<Warm> {
    let file = match mode {
        Mode::Ahead => workshop.compiled(program).ok()?,
        _ => program.to_owned(),
    };
    let instances = options.instances.to_string();
    let mut command = workshop.runner.command();
    command.args(["warm", mode.name()]).arg(file);
    command.args([instances.as_str(), kernel, options.size.name(), "1"]);
    let run = process::run(&mut command)
        .ok()
        .filter(|run| run.status == 0)?;
    let line = |line: &str| {
        let (took, faults) = line.split_once(' ')?;
        Some((took.parse::<u64>().ok()?, faults.parse::<u64>().ok()?))
    };
    let lines: Vec<(u64, u64)> = run.output.lines().map(line).collect::<Option<_>>()?;
    let (times, faults) = lines.into_iter().unzip();
    Some(Warm {
        mode,
        kernel: kernel.to_owned(),
        times,
        faults,
    })
}
