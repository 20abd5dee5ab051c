//! One heap for many runs, as `explore` and `tune` print it.
//!
//! Invariant: a ratio is that of two footprints on the same run; the run that decides is named.

use std::path::{Path, PathBuf};

use metes_tune::Watch;
use metes_tune::runs::{Document, Recording, Recordings};
use serde_json::Value;

use crate::error::Failure;
use crate::output::{self, BOLD, DIM, GOOD, POOR, Table};
use crate::quantity::{bytes, grouped};
use crate::tracefile;

/// Runs of a table in the terminal; the report has all.
const ROWS: usize = 12;
/// Characters of a run's name, and of a heap's.
const NAME: usize = 44;

/// Reads traces one by one; what is kept of each is its requests.
pub(super) fn read(files: &[PathBuf], watch: &mut dyn Watch) -> Result<Recordings, Failure> {
    let mut runs = Vec::new();
    for (number, path) in files.iter().enumerate() {
        watch.turn(number, files.len(), &path.display().to_string());
        let trace = tracefile::read(path).map_err(|failure| named(path, &failure))?;
        let name = name_of(path, files);
        let run = Recording::of(name, &trace, path);
        runs.push(run.map_err(|error| named(path, &error.into()))?);
    }
    Ok(Recordings::new(runs)?)
}

/// The failure with the file that it is about, if it does not say so itself.
fn named(path: &Path, failure: &Failure) -> Failure {
    let text = failure.to_string();
    let shown = path.display().to_string();
    match text.contains(&shown) {
        true => Failure::input(text),
        false => Failure::input(format!("{shown}: {text}")),
    }
}

/// A short name of a trace among others: that of its file, where no other is called so.
fn name_of(path: &Path, files: &[PathBuf]) -> String {
    let of = |path: &Path| {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let cut = name.strip_suffix(".trace.parquet").map(str::to_owned);
        cut.unwrap_or(name)
    };
    let own = of(path);
    let alike = files.iter().filter(|other| of(other) == own).count();
    match alike {
        1 => own,
        _ => path.display().to_string(),
    }
}

/// What is said of many runs that were cut short.
pub(super) fn cut_short(error: metes_tune::Error) -> Failure {
    match error {
        metes_tune::Error::Ended(signal) => Failure::ended(
            signal,
            "nothing of these runs is kept, and an earlier result is as it was",
        ),
        error => error.into(),
    }
}

/// The document of a verb, with what it wrote.
pub(super) fn json(document: &Document, further: &[(&str, Value)]) -> Result<(), Failure> {
    let value = serde_json::to_value(document);
    let mut value =
        value.map_err(|error| Failure::input(format!("the result is no JSON: {error}")))?;
    if let Value::Object(fields) = &mut value {
        for (key, value) in further {
            fields.insert((*key).to_owned(), value.clone());
        }
    }
    output::json(&value)
}

/// A name of so many characters at most: both its ends, as commands of a suite differ in either.
fn cut(name: &str, length: usize) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= length {
        return name.to_owned();
    }
    let (begin, end) = (length / 3, length - length / 3 - 1);
    let first = characters.iter().take(begin);
    let last = characters.iter().skip(characters.len() - end);
    first.chain([&'…']).chain(last).collect()
}

/// What is found, in the terminal.
pub(super) fn text(document: &Document) -> String {
    let mut text = String::new();
    let Some(heap) = &document.heap else {
        return text;
    };
    text += &format!("\n{BOLD}{heap}{BOLD:#}\n");
    if let Some(why) = &document.why {
        text += &format!("{DIM}{why}{DIM:#}\n");
    }
    let distinct = match document.distinct_runs == document.runs.len() as u64 {
        true => String::new(),
        false => format!(", {} of them different", grouped(document.distinct_runs)),
    };
    text += &format!(
        "\n  {:<9} {}{distinct}; {} heaps of {} tried on all in {:.1} s, {} unbeaten\n",
        "runs",
        grouped(document.runs.len() as u64),
        grouped(document.configurations),
        grouped(document.space),
        document.seconds,
        grouped(document.pareto.len() as u64),
    );
    if let Some(largest) = &document.largest {
        text += &format!(
            "  {:<9} {}, decided by {}\n",
            "largest",
            bytes(largest.footprint),
            cut(&largest.run, NAME)
        );
    }
    if let Some(mean) = &document.mean {
        let beside = match (mean.best_alone, mean.ratio) {
            (Some(best), Some(ratio)) => format!(
                "; with the best heap for each run alone {}; {ratio:.3} × that in the mean over the runs",
                bytes(best as u64)
            ),
            _ => String::new(),
        };
        text += &format!("  {:<9} {}{beside}\n", "mean", bytes(mean.footprint as u64));
    }
    if let Some(dearest) = &document.dearest {
        text += &format!(
            "  {:<9} {:.3} × the best heap for it alone: {}\n",
            "pays most",
            dearest.ratio,
            cut(&dearest.run, NAME)
        );
    }
    text += &format!("\n{}\n{}", runs(document), heaps(document));
    text += &verdict(document);
    text
}

/// The runs that pay most.
fn runs(document: &Document) -> Table {
    let mut table = Table::new(&[
        "run",
        "requests",
        "peak live",
        "footprint",
        "best alone",
        "ratio",
        "",
    ]);
    let mut order: Vec<_> = document.runs.iter().collect();
    order.sort_by(|a, b| b.ratio.unwrap_or(0.0).total_cmp(&a.ratio.unwrap_or(0.0)));
    let largest = document
        .largest
        .as_ref()
        .map(|largest| largest.run.as_str());
    for run in order.iter().take(ROWS) {
        let best = run.best_alone.as_ref();
        let remark = match (run.equal, run.holds) {
            (Some(true), _) | (_, None) => "",
            (_, Some(true)) => "differs from run to run",
            (_, Some(false)) => "not as predicted",
        };
        let decides = if largest == Some(run.name.as_str()) {
            "largest"
        } else {
            ""
        };
        let remarks: Vec<&str> = [decides, remark]
            .into_iter()
            .filter(|one| !one.is_empty())
            .collect();
        table.row(
            anstyle::Style::new(),
            vec![
                cut(&run.name, NAME),
                grouped(run.events),
                bytes(run.peak_live),
                run.footprint.map_or_else(String::new, bytes),
                best.map_or_else(String::new, |best| bytes(best.footprint)),
                run.ratio
                    .map_or_else(String::new, |ratio| format!("{ratio:.3}")),
                remarks.join(", "),
            ],
        );
    }
    if order.len() > ROWS {
        let more = format!("{} more in the report", order.len() - ROWS);
        table.row(DIM, vec![more]);
    }
    table
}

/// The chosen heap beside the named ones, on all runs.
fn heaps(document: &Document) -> Table {
    let mut table = Table::new(&["heap", "largest", "mean", "cycles", "maximum"]);
    let chosen = document.chosen.iter();
    let rows = chosen.map(|heap| (GOOD, "chosen", heap));
    let named = document.heaps.iter();
    let rows = rows.chain(named.map(|heap| (anstyle::Style::new(), heap.heap.as_str(), heap)));
    for (style, name, heap) in rows {
        table.row(
            style,
            vec![
                cut(name, NAME),
                bytes(heap.footprint),
                bytes(heap.footprint_mean as u64),
                format!("{:.1}", heap.cycles_mean),
                grouped(heap.cycles_max),
            ],
        );
    }
    table
}

fn verdict(document: &Document) -> String {
    let runs = &document.runs;
    let checked = runs.iter().filter(|run| run.holds.is_some()).count();
    if checked == 0 {
        return String::new();
    }
    let equal = runs.iter().filter(|run| run.equal == Some(true)).count();
    let wrong: Vec<&str> = (runs.iter())
        .filter(|run| run.holds == Some(false))
        .map(|run| run.name.as_str())
        .collect();
    let changed = (runs.iter())
        .filter(|run| run.output_unchanged == Some(false))
        .count();
    let mut text = match (equal == checked, wrong.first()) {
        (true, _) => format!(
            "\n  {GOOD}predicted = measured{GOOD:#} in each of {} runs, and every block lay where it was predicted\n",
            grouped(checked as u64)
        ),
        (false, None) => format!(
            "\n  {GOOD}predicted = measured{GOOD:#} in {} of {} runs; the others ask for other things from run to run\n",
            grouped(equal as u64),
            grouped(checked as u64)
        ),
        (false, Some(first)) => format!(
            "\n  {POOR}predicted ≠ measured{POOR:#} in {} of {} runs: {}\n",
            grouped(wrong.len() as u64),
            grouped(checked as u64),
            cut(first, NAME)
        ),
    };
    text += &match changed {
        0 => format!("  {GOOD}output unchanged{GOOD:#}\n"),
        changed => format!("  {POOR}output differs{POOR:#} in {changed} runs\n"),
    };
    text
}
