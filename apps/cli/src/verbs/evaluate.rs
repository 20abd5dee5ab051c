//! `metes evaluate`.

use std::io::{self, BufRead, Write};
use std::path::Path;

use metes_explore::engine::{Answer, Dialogue, Evaluator, NO_GUARANTEE, ObjectiveSet, SpaceAxes};
use metes_explore::report::DemandFigures;
use metes_explore::{Arena, Options};
use serde_json::json;

use crate::arguments::Evaluate;
use crate::error::Failure;
use crate::output::{self, BOLD, Table};
use crate::quantity::{bytes, grouped};
use crate::{energy, space, tracefile};

pub(crate) fn run(arguments: &Evaluate, json: bool) -> Result<u8, Failure> {
    let text = space::find(&arguments.space)?;
    let trace = tracefile::read(&arguments.trace)?;
    let events = tracefile::events(&trace)?;
    let space = space::read(&text, &events)?;
    let hierarchy = match &arguments.levels {
        Some(levels) => {
            energy::need_accesses(&arguments.trace, &trace.provenance.command, &events)?;
            Some(energy::resolve(levels, space.levels())?)
        }
        None => None,
    };
    let wanted = arguments.guarantee.wanted()?;
    let terms = match wanted.asked() {
        true => Some(wanted.of(
            &DemandFigures::of(&metes_trace::profile(&trace)),
            &Arena::HOST,
        )?),
        false => None,
    };
    drop(trace);
    let options = Options::default();
    let mut evaluator = Evaluator::new(&space, &events, &options, ObjectiveSet::DEFAULT);
    if let Some(hierarchy) = &hierarchy {
        evaluator = evaluator.on(hierarchy)?;
    }
    if let Some(terms) = terms {
        evaluator = evaluator.guaranteeing(terms);
    }
    let axes = SpaceAxes::of(&space);
    let mut dialogue = Dialogue::new(evaluator);
    if arguments.lines && !json {
        return converse(&axes, &mut dialogue);
    }
    let mut questions: Vec<String> = (arguments.numbers.iter())
        .map(|number| number.to_string())
        .collect();
    if arguments.lines {
        questions = read_all()?;
    }
    let answers = (questions.iter())
        .map(|question| dialogue.answer(question).map_err(failure))
        .collect::<Result<Vec<Answer>, Failure>>()?;
    if json {
        let mut document = json!(axes);
        document["rows"] = json!(answers);
        output::json(&document)?;
    } else if questions.is_empty() {
        show_axes(&axes)?;
    } else {
        show(&answers)?;
    }
    Ok(0)
}

fn failure(error: metes_explore::engine::QuestionError) -> Failure {
    Failure::input(error.to_string())
}

fn unreadable(error: io::Error) -> Failure {
    Failure::io("read", Path::new("standard input"), error)
}

/// The questions of standard input, for one document.
fn read_all() -> Result<Vec<String>, Failure> {
    let lines = io::stdin().lock().lines();
    let questions = lines.collect::<io::Result<Vec<String>>>();
    let mut questions = questions.map_err(unreadable)?;
    questions.retain(|question| !question.trim().is_empty());
    Ok(questions)
}

/// The space, then an answer a line for each question as soon as it is asked. A
/// question that has none does not end it: whoever asks is told and asks on.
fn converse(axes: &SpaceAxes, dialogue: &mut Dialogue<'_>) -> Result<u8, Failure> {
    let mut stdout = io::stdout().lock();
    let mut say =
        |document: serde_json::Value| writeln!(stdout, "{document}").and_then(|()| stdout.flush());
    let mut first = None;
    let mut told = say(json!(axes));
    for (number, line) in io::stdin().lock().lines().enumerate() {
        if told.is_err() {
            break;
        }
        let line = line.map_err(unreadable)?;
        if line.trim().is_empty() {
            continue;
        }
        told = match dialogue.answer(&line) {
            Ok(answer) => say(json!(answer)),
            Err(error) => {
                first.get_or_insert_with(|| format!("line {}: {error}", number + 1));
                say(json!({ "error": error.to_string(), "no_heap": error.is_no_heap() }))
            }
        };
    }
    match told {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::io("write to", Path::new("standard output"), error));
        }
        _ => {}
    }
    first.map_or(Ok(0), |error| Err(Failure::input(error)))
}

/// The parameters of a space and their values.
fn show_axes(axes: &SpaceAxes) -> Result<(), Failure> {
    let mut text = format!(
        "{BOLD}{} heaps{BOLD:#} ({} grid points), the first {} to compare with\n",
        grouped(axes.space),
        axes.raw,
        axes.baselines
    );
    for axis in &axes.axes {
        let values: Vec<String> = axis.values.iter().map(ToString::to_string).collect();
        text += &format!("  {:<22} {}\n", axis.name, values.join(", "));
    }
    output::text(&text)
}

fn show(answers: &[Answer]) -> Result<(), Failure> {
    let priced = answers
        .iter()
        .any(|answer| answer.heap.metrics.time_ps != 0);
    let mut heads = vec![
        "number",
        "status",
        "footprint",
        "accesses",
        "cycles",
        "maximum",
    ];
    if priced {
        heads.extend(["energy", "time"]);
    }
    let guaranteed = answers
        .iter()
        .any(|answer| answer.heap.metrics.guarantee != 0);
    if guaranteed {
        heads.push("guarantee");
    }
    heads.push("");
    let mut table = Table::new(&heads);
    for Answer { heap, .. } in answers {
        let metrics = &heap.metrics;
        let mut cells = vec![
            heap.number.to_string(),
            heap.status.to_owned(),
            bytes(metrics.footprint),
            grouped(metrics.accesses),
            grouped(metrics.cycles),
            grouped(metrics.cycles_max),
        ];
        if priced {
            cells.push(energy::joule(metrics.energy_fj as f64 * 1e-15));
            cells.push(energy::seconds(metrics.time_ps as f64 * 1e-12));
        }
        if guaranteed {
            cells.push(match metrics.guarantee {
                NO_GUARANTEE => "none".to_owned(),
                guarantee => bytes(guarantee),
            });
        }
        cells.push(heap.heap.clone());
        table.row(anstyle::Style::new(), cells);
    }
    output::text(&table.to_string())
}
