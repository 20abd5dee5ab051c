//! `metes compare`: a gate.
//!
//! Invariant: the exit status says what the text says: 1 if and only if something is worse.

use std::path::{Path, PathBuf};

use metes_config::Config;
use metes_tune::regress::{Comparison, Facts, Thresholds, Unit, Verdict, compare};
use metes_tune::{DOCUMENT, TRACE};
use serde_json::json;

use crate::arguments::Compare;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, DIM, GOOD, POOR, Table};
use crate::own::Form;
use crate::quantity::{bytes, grouped};
use crate::{heap, tracefile};

/// What a side is made of.
enum Source {
    /// A recording, perhaps with the heap that was chosen for it.
    Trace(PathBuf, Option<PathBuf>),
    /// A result.
    Document(PathBuf),
}

pub(crate) fn run(arguments: &Compare, json: bool) -> Result<u8, Failure> {
    let before = source(&arguments.before)?;
    let after = source(&arguments.after)?;
    if let Some(path) = &arguments.output {
        output::writable(path, Form::Page)?;
    }
    let heap = match (&arguments.heap, &before) {
        (Some(heap), _) => heap.clone(),
        (None, Source::Trace(_, Some(heap))) => heap.display().to_string(),
        (None, _) => "tlsf".to_owned(),
    };
    let heap = heap::resolve_on_host(&heap)?;
    metes_tune::need_addresses(&heap)?;
    let (own, other) = (facts(&before, &heap)?, facts(&after, &heap)?);
    if own.runs.is_empty() != other.runs.is_empty() {
        return Err(Failure::input(format!(
            "{} is of many runs and {} of one: compare two of a kind",
            if own.runs.is_empty() {
                &arguments.after
            } else {
                &arguments.before
            }
            .display(),
            if own.runs.is_empty() {
                &arguments.before
            } else {
                &arguments.after
            }
            .display(),
        )));
    }
    let thresholds = Thresholds::with(&arguments.thresholds);
    let names = [&arguments.before, &arguments.after].map(|path| output::name(path));
    let found = compare((&names[0], &own), (&names[1], &other), &thresholds);
    if found.findings.is_empty() {
        return Err(Failure::input(format!(
            "{} and {} have nothing in common that could be compared",
            names[0], names[1]
        )));
    }
    if let Some(path) = &arguments.output {
        let page = found.page();
        let page =
            page.map_err(|error| Failure::input(format!("the page cannot be rendered: {error}")))?;
        output::export(path, Form::Page, page.as_bytes())?;
    }
    match json {
        true => output::json(&json!({
            "version": found.version,
            "before": found.before,
            "after": found.after,
            "worse": found.worse,
            "findings": found.findings,
            "thresholds": found.thresholds,
        }))?,
        false => output::text(&text(&found, arguments.output.as_deref()))?,
    }
    Ok(if found.worse > 0 { DOES_NOT_HOLD } else { 0 })
}

/// What a path is: looked at before anything is computed.
fn source(path: &Path) -> Result<Source, Failure> {
    if path.is_dir() {
        let (trace, document) = (path.join(TRACE), path.join(DOCUMENT));
        let chosen = path.join("heap.toml");
        // A trace says more than a report of it.
        if trace.is_file() {
            return Ok(Source::Trace(trace, chosen.is_file().then_some(chosen)));
        }
        return match document.is_file() {
            true => Ok(Source::Document(document)),
            false => Err(Failure::input(format!(
                "directory {} holds no result: give one that `metes tune` or `metes explore` wrote, a trace, or what \
                 they printed with --json",
                path.display()
            ))),
        };
    }
    let mut beginning = [0; 4];
    let file = std::fs::File::open(path);
    let mut file = file.map_err(|error| Failure::io("read", path, error))?;
    let length = std::io::Read::read(&mut file, &mut beginning);
    let length = length.map_err(|error| Failure::io("read", path, error))?;
    Ok(match &beginning[..length] {
        b"PAR1" => Source::Trace(path.to_owned(), None),
        _ => Source::Document(path.to_owned()),
    })
}

fn facts(source: &Source, heap: &Config) -> Result<Facts, Failure> {
    match source {
        Source::Trace(path, _) => {
            let trace = tracefile::read(path)?;
            let facts = Facts::of_trace(&trace, heap);
            facts.map_err(|error| Failure::input(format!("{}: {error}", path.display())))
        }
        Source::Document(path) => {
            let read = std::fs::read_to_string(path);
            let text = read.map_err(|error| Failure::io("read", path, error))?;
            Facts::of_document(&text).map_err(|error| {
                Failure::input(format!(
                    "{} cannot be compared: {error}; give a trace, a result of `metes tune` or `metes explore`, or what \
                     they print with --json",
                    path.display()
                ))
            })
        }
    }
}

/// What differs; nothing where nothing does.
fn text(found: &Comparison, page: Option<&Path>) -> String {
    let mut text = String::new();
    let mut table = Table::new(&["", "before", "after", "change", ""]);
    let mut rows = 0;
    for finding in found.differences() {
        rows += 1;
        let show = |value: f64| match finding.unit {
            Unit::Bytes => bytes(value as u64),
            Unit::Count => grouped(value as u64),
            Unit::Cycles => format!("{value:.1}"),
        };
        let (style, word) = match finding.verdict {
            Verdict::Worse => (POOR, "worse"),
            Verdict::Better => (GOOD, "better"),
            Verdict::Changed | Verdict::Same => (DIM, "within its threshold"),
        };
        let change = match finding.before > 0.0 {
            true => format!("{:+.1} %", (finding.after / finding.before - 1.0) * 100.0),
            false => String::new(),
        };
        table.row(
            style,
            vec![
                finding.what.clone(),
                show(finding.before),
                show(finding.after),
                change,
                word.to_owned(),
            ],
        );
    }
    if rows > 0 {
        text += &table.to_string();
    }
    let worse = found
        .findings
        .iter()
        .filter(|one| one.verdict == Verdict::Worse);
    for finding in worse {
        text += &format!(
            "{POOR}worse{POOR:#} {} [{}]\n",
            finding.sentence, finding.threshold
        );
    }
    if let (Some(page), true) = (page, rows > 0) {
        text += &format!("page  {}\n", page.display());
    }
    text
}
