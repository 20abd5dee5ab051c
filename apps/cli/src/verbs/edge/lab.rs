//! `metes edge lab`.

use std::fmt::Write as _;
use std::path::PathBuf;

use anstyle::Style;
use metes_edge_lab::{
    Findings, KERNELS, LabError, Measured, Options, Own, PolyBench, Puzzle, Runner, Subject, Suite,
    Workshop,
};
use serde_json::{Value, json};

use crate::arguments::{EdgeLab, EdgeRunner};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::interrupt;
use crate::libraries;
use crate::output::{self, BOLD, DIM, GOOD, POOR, Table};
use crate::own::Form;
use crate::progress;

/// The runner as a program of its own, which starts in less time than this command.
const RUNNER: &str = "metes-edge-runner";

pub(crate) fn runner(arguments: &EdgeRunner) -> u8 {
    u8::try_from(metes_edge_lab::runner::main(&arguments.words)).unwrap_or(1)
}

/// The runner: beside this command, or else this command.
///
/// # Errors
/// When the system does not tell where this command lies.
pub(crate) fn own_runner() -> Result<Runner, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::input(format!("where this command lies is not known: {error}"))
    })?;
    let beside = own.with_file_name(RUNNER);
    Ok(match beside.is_file() {
        true => Runner {
            program: beside,
            words: Vec::new(),
        },
        false => Runner {
            program: own,
            words: ["edge", "runner"].map(Into::into).to_vec(),
        },
    })
}

/// A directory for programs, gone when it is dropped.
pub(crate) fn scratch() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new()
        .prefix("metes-edge-lab-")
        .tempdir()
        .map_err(|error| fail(LabError::Directory(error)))
}

pub(crate) fn fail(error: LabError) -> Failure {
    Failure::input(error.to_string())
}

pub(crate) fn run(arguments: &EdgeLab, json: bool) -> Result<u8, Failure> {
    let files = [
        (&arguments.output, Form::Page),
        (&arguments.csv, Form::Table),
        (&arguments.parquet, Form::Trace),
    ];
    for (path, form) in &files {
        if let Some(path) = path {
            output::writable(path, *form)?;
        }
    }
    let suite: Box<dyn Suite> = match &arguments.polybench {
        Some(directory) => Box::new(PolyBench::open(directory).map_err(fail)?),
        None => Box::new(Own),
    };
    let kernels = chosen("kernel", &arguments.kernels, &suite.kernels())?;
    let preload = libraries::preload().ok();
    let all = metes_edge_lab::all(preload.as_deref());
    let names: Vec<String> = all.iter().map(|subject| subject.name.to_owned()).collect();
    let wanted = chosen("subject", &arguments.subjects, &names)?;
    let subjects: Vec<Subject> = all
        .into_iter()
        .filter(|subject| {
            subject.name == "native" || wanted.iter().any(|name| name == subject.name)
        })
        .collect();
    let directory = scratch()?;
    let workshop = Workshop {
        suite: suite.as_ref(),
        runner: own_runner()?,
        directory: directory.path(),
    };
    if arguments.list {
        return list(&workshop, subjects, json);
    }
    let options = Options {
        kernels,
        size: arguments.size,
        runs: arguments.runs as usize,
        repeats: arguments.repeats as usize,
        instances: arguments.instances as usize,
        count_calls: true,
        stop: interrupt::flag()?,
    };
    let wheel = progress::spinner("building");
    let tell = |what: &str| wheel.set_message(what.to_owned());
    let measured = metes_edge_lab::measure(&workshop, subjects, &options, &tell);
    wheel.finish_and_clear();
    let measured = measured.map_err(fail)?;
    let findings = Findings::of(&measured);
    let command = std::env::args()
        .skip(1)
        .fold("metes".to_owned(), |line, word| line + " " + &word);
    let document = metes_edge_lab::document(&measured, &findings, &command);
    // A disk that is full takes no file; what was measured is shown then all the same.
    let written = write(arguments, &measured, &document);
    if json {
        output::json(&document)?;
    } else {
        output::text(&shown(&measured, &findings))?;
    }
    written?;
    if measured.interrupted {
        output::note("interrupted: this is what had been measured until then");
    }
    Ok(if measured.differences.is_empty() {
        0
    } else {
        DOES_NOT_HOLD
    })
}

/// Those that are named, or all.
fn chosen(kind: &str, named: &[String], all: &[String]) -> Result<Vec<String>, Failure> {
    if named.is_empty() {
        return Ok(all.to_vec());
    }
    match named.iter().find(|name| !all.contains(name)) {
        Some(name) => Err(Failure::input(format!(
            "there is no {kind} named {name}: there are {}",
            all.join(", ")
        ))),
        None => Ok(named.to_vec()),
    }
}

/// Writes every file that can be written; the first that cannot is told of.
fn write(arguments: &EdgeLab, measured: &Measured, document: &Value) -> Result<(), Failure> {
    let put = |path: &Option<PathBuf>, bytes: &dyn Fn() -> Result<Vec<u8>, Failure>| match path {
        Some(path) => output::write_file(path, &bytes()?),
        None => Ok(()),
    };
    let page = put(&arguments.output, &|| {
        Ok(metes_edge_lab::page(document).into_bytes())
    });
    let csv = put(&arguments.csv, &|| {
        Ok(metes_edge_lab::csv(measured).into_bytes())
    });
    let parquet = put(&arguments.parquet, &|| {
        metes_edge_lab::parquet(measured).map_err(|error| {
            Failure::input(format!("the runs cannot be written as Parquet: {error}"))
        })
    });
    page.and(csv).and(parquet)
}

fn list(workshop: &Workshop<'_>, subjects: Vec<Subject>, json: bool) -> Result<u8, Failure> {
    let wheel = progress::spinner("trying");
    let tried: Vec<(Subject, Option<String>)> = subjects
        .into_iter()
        .map(|subject| {
            wheel.set_message(subject.name.to_owned());
            let why = subject.absent.clone().or_else(|| workshop.trial(&subject));
            (subject, why)
        })
        .collect();
    wheel.finish_and_clear();
    if json {
        let subjects: Vec<Value> = tried
            .iter()
            .map(|(subject, why)| {
                json!({
                    "name": subject.name, "engine": subject.engine, "mode": subject.mode,
                    "layer": subject.layer.name(), "start": subject.start, "allocator": subject.allocator,
                    "vectors": subject.vectors, "absent": why,
                })
            })
            .collect();
        output::json(&json!({ "kernels": workshop.suite.kernels(), "subjects": subjects }))?;
        return Ok(0);
    }
    let mut table = Table::left(&["kernel", "of", "computes"]);
    for name in workshop.suite.kernels() {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
        let (family, about) =
            kernel.map_or(("", ""), |kernel| (kernel.family.name(), kernel.about));
        table.row(
            Style::new(),
            vec![name, family.to_owned(), about.to_owned()],
        );
    }
    let mut subjects = Table::left(&["subject", "layer", "engine", "allocator", "vectors", ""]);
    for (subject, why) in tried {
        let style = if why.is_some() { DIM } else { Style::new() };
        let mode = if subject.mode.is_empty() {
            String::new()
        } else {
            format!(", {}", subject.mode)
        };
        subjects.row(
            style,
            vec![
                subject.name.to_owned(),
                subject.layer.name().to_owned(),
                format!("{}{mode}", subject.engine),
                subject.allocator.to_owned(),
                subject.vectors.to_owned(),
                why.map_or_else(String::new, |why| format!("cannot be had here: {why}")),
            ],
        );
    }
    output::text(&format!("{table}\n{subjects}"))?;
    Ok(0)
}

fn shown(measured: &Measured, findings: &Findings) -> String {
    let mut starts = Table::new(&[
        "start",
        "ms",
        "over native",
        "page faults",
        "system calls",
        "",
    ]);
    for start in &findings.starts {
        starts.row(
            Style::new(),
            vec![
                start.subject.to_owned(),
                format!("{:.2}", start.ms),
                format!("{:.1}x", start.ratio),
                start.faults.to_string(),
                start
                    .calls
                    .map_or("-".to_owned(), |calls| calls.to_string()),
                start.layer.to_owned(),
            ],
        );
    }
    let mut text = format!("{starts}\n");
    if !findings.steady.is_empty() {
        text += &format!("{}\n", long(findings));
    }
    if let Some(puzzle) = &findings.puzzle {
        explain(&mut text, puzzle);
    }
    for subject in &measured.subjects {
        if let Some(why) = &subject.absent {
            let _ = writeln!(
                text,
                "  {DIM}{} cannot be had here: {why}{DIM:#}",
                subject.name
            );
        }
    }
    for cell in &measured.cells {
        if let Some(why) = &cell.failure {
            let _ = writeln!(
                text,
                "  {POOR}{} by {} failed: {why}{POOR:#}",
                cell.kernel, cell.subject
            );
        }
    }
    match measured.differences.as_slice() {
        [] => {
            _ = writeln!(
                text,
                "\n{GOOD}every checksum is that of native code{GOOD:#}"
            )
        }
        all => {
            for what in all {
                let _ = writeln!(text, "{POOR}{what}{POOR:#}");
            }
        }
    }
    text
}

/// Long runs: what explains them, kernel by kernel.
fn long(findings: &Findings) -> Table {
    const SHOWN: [(&str, &str); 5] = [
        ("native-retained", "kept"),
        ("native-metes", "Metes"),
        ("native-musl", "musl"),
        ("cranelift", "wasm"),
        ("cranelift-simd", "wasm simd"),
    ];
    let heads: Vec<&str> = ["long run", "native ms", "faults"]
        .into_iter()
        .chain(SHOWN.map(|(_, head)| head))
        .chain(["fastest"])
        .collect();
    let mut table = Table::new(&heads);
    for steady in &findings.steady {
        let of = |name: &str| steady.by.iter().find(|by| by.subject == name);
        let native = of("native");
        let mut cells = vec![
            steady.kernel.clone(),
            native.map_or("-".to_owned(), |by| format!("{:.3}", by.ms)),
            native.map_or("-".to_owned(), |by| format!("{:.0}", by.faults)),
        ];
        cells
            .extend(SHOWN.map(|(name, _)| {
                of(name).map_or("-".to_owned(), |by| format!("{:.2}x", by.ratio))
            }));
        cells.push(steady.fastest.to_owned());
        table.row(Style::new(), cells);
    }
    table
}

fn explain(text: &mut String, puzzle: &Puzzle) {
    let _ = writeln!(
        text,
        "{BOLD}WebAssembly is faster than native code in {} of {} kernels, and in {} once native code keeps its \
         memory{BOLD:#}",
        puzzle.wasm_beats_default, puzzle.kernels, puzzle.wasm_beats_retained
    );
    let [default, retained, sandbox] = puzzle.faults;
    let _ = writeln!(
        text,
        "  page faults of a run: {default:.0} native, {retained:.0} native that keeps its memory, {sandbox:.0} WebAssembly"
    );
    let mut line = |what: &str, value: Option<f64>, unit: &str| {
        if let Some(value) = value {
            let _ = writeln!(text, "  {what}: {value:.2}{unit}");
        }
    };
    line("a page fault", puzzle.fault_ns, " ns");
    line(
        "native that keeps its memory over native",
        puzzle.retained,
        "x",
    );
    line(
        "WebAssembly over native, neither with vectors",
        puzzle.without_vectors,
        "x",
    );
    line(
        "WebAssembly over native that keeps its memory, both with vectors",
        puzzle.with_vectors,
        "x",
    );
    line("vectors in WebAssembly", puzzle.vectors_of_wasm, "x");
    line("vectors in native code", puzzle.vectors_of_native, "x");
    text.push('\n');
}
