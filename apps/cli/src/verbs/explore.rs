//! `metes explore`.

use std::path::PathBuf;

use metes_explore::engine::{EXPLORATION, Folder, RESULTS};
use metes_explore::report::{DemandFigures, GuaranteeFigures};
use metes_explore::{Arena, Exploration, Outcome, Preference, choose};
use metes_tune::{Content, Lacking, Request, search, write_report};
use serde_json::json;

use crate::arguments::Explore;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, DIM, Table};
use crate::quantity::{bytes, grouped, ratio};
use crate::results::{Kind, Results};
use crate::search::{Bar, outcomes};
use crate::verbs::tune::no_choice;
use crate::verbs::tune::summary::{explored, guarantee_text};
use crate::{interrupt, progress, tracefile};

pub(super) mod described;
mod runs;

/// Seconds, unless the command line says.
const BUDGET: f64 = 30.0;
/// What is left.
const KIND: Kind<'_> = Kind {
    verb: "explore",
    files: &[
        RESULTS,
        EXPLORATION,
        "pareto/NNN.toml",
        "report.json",
        "report.html",
    ],
};

/// A space of which nothing is described: the trace suggests its heaps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    /// Every configuration.
    All,
    /// Those in which every operation takes constant time.
    ConstantTime,
    /// The named heaps with default parameters.
    Named,
}

pub(crate) fn run(arguments: &Explore, json: bool) -> Result<u8, Failure> {
    let files = tracefile::expand(&arguments.traces)?;
    let [trace] = files.as_slice() else {
        return runs::run(arguments, &files, json);
    };
    let space = match arguments.space.as_str() {
        "all" => Space::All,
        "constant-time" => Space::ConstantTime,
        "named" => Space::Named,
        _ => return described::run(arguments, trace, json),
    };
    if let Some(option) = described::only(arguments) {
        return Err(Failure::input(format!(
            "{option} is for described spaces: add --space paper or --space FILE.toml"
        )));
    }
    let wanted = arguments.guarantee.weighed(arguments.objectives)?;
    let path = trace;
    let trace = tracefile::read(path)?;
    let events = tracefile::events(&trace)?;
    // What is asked for in vain is told before anything is written.
    let demand = DemandFigures::of(&metes_trace::profile(&trace));
    if wanted.asked() {
        wanted.of(&demand, &Arena::HOST)?;
    }
    let results = Results::open(&arguments.output, KIND)?;
    if !arguments.fresh {
        Folder::may_be_suggested(&arguments.output)?;
    }
    let configurations = match space {
        Space::Named => Some(0),
        _ => arguments.configurations,
    };
    let seconds = arguments.budget.unwrap_or(BUDGET);
    let mut bar = Bar::begin(seconds);
    let request = Request {
        seconds,
        configurations,
        arena: Arena::HOST,
        mapped: arguments.mapped.unwrap_or_default().0,
        pages: None,
        guarantee: (wanted, demand),
        over: arguments.over.into(),
        fresh: arguments.fresh,
        trace: path.clone(),
        stop: interrupt::flag()?,
    };
    let searched = search(
        &events,
        &request,
        &arguments.output,
        results.gathered(),
        &mut bar,
    )?;
    drop(bar);
    let found = &searched.found;
    let front = match space {
        Space::ConstantTime => &found.constant_time,
        _ => &found.pareto,
    };
    let files = searched.write_front(front, results.gathered())?;
    let files: Vec<_> = files.iter().map(|file| results.shown(file)).collect();
    let wheel = progress::spinner("comparing heaps");
    let content = Content::new(&trace, &events, &searched, None);
    wheel.finish_and_clear();
    let relied_on = choose(found, Preference::Balanced);
    let terms = found.guaranteed.as_ref().map(|own| own.terms);
    let guarantee = terms.map(|terms| GuaranteeFigures::of(&terms, relied_on.as_ref()));
    let mut document = content.document(None);
    document.guarantee.clone_from(&guarantee);
    let report = results.shown(&write_report(results.gathered(), &document)?);
    results.replace()?;
    if json {
        output::json(&json!({
            "configurations": found.configurations,
            "distinct": found.distinct,
            "space": found.space,
            "mapped": searched.options.arena.mapped(),
            "pareto": outcomes(front, &files)?,
            "heap": relied_on.as_ref().map(|choice| &choice.outcome.heap),
            "why": relied_on.as_ref().map(|choice| &choice.why),
            "guarantee": guarantee,
            "seconds": found.seconds,
            "interrupted": found.interrupted,
            "sampled": found.sampled,
            "unfinished": found.unfinished,
            "events_per_second": found.events_per_second,
            "report": output::name(&report),
            "results": output::name(&arguments.output.join(RESULTS)),
            "exploration": output::name(&arguments.output.join(EXPLORATION)),
        }))?;
    } else {
        let mut text = summary(found);
        text += &format!(
            "\n{}\n",
            unbeaten(front, &files, events.peak_live(), wanted.weighed)
        );
        if let Some(choice) = &relied_on {
            text += &format!("{}\n{DIM}{}{DIM:#}\n", choice.outcome.heap, choice.why);
        }
        text += &guarantee.as_ref().map_or(String::new(), guarantee_text);
        text += &format!(
            "report {}\nheaps  {}\n",
            report.display(),
            arguments.output.join("pareto").display()
        );
        output::text(&text)?;
    }
    if wanted.limited() && !front.is_empty() && relied_on.is_none() {
        output::note(&no_choice(&Lacking::of(found, None), None));
        return Ok(DOES_NOT_HOLD);
    }
    if front.is_empty() {
        output::note("no heap serves every request of this trace");
        return Ok(DOES_NOT_HOLD);
    }
    Ok(0)
}

fn summary(found: &Exploration) -> String {
    let mut text = format!(
        "{}; {} different outcomes\n",
        explored(found),
        grouped(found.distinct)
    );
    for heap in &found.unfinished {
        text += &format!("{}\n", heap.sentence());
    }
    text
}

/// The heaps that nothing beats, by rising footprint.
fn unbeaten(front: &[Outcome], files: &[PathBuf], peak_live: u64, weighed: bool) -> Table {
    /// Rows shown; the report has all.
    const ROWS: usize = 20;
    /// Characters of a heap's name; its file says the rest.
    const NAME: usize = 48;
    let mut heads = vec!["heap", "file", "footprint", "× live", "cycles", "maximum"];
    if weighed {
        heads.push("guarantee");
    }
    let mut table = Table::new(&heads);
    for (outcome, file) in front.iter().zip(files).take(ROWS) {
        let mut name: String = outcome.heap.chars().take(NAME).collect();
        if name.len() < outcome.heap.len() {
            name += "…";
        }
        let mut cells = vec![
            name,
            file.file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            bytes(outcome.footprint),
            ratio(outcome.footprint, peak_live),
            format!("{:.1}", outcome.cycles_mean),
            grouped(outcome.cycles_max),
        ];
        if weighed {
            cells.push(outcome.guarantee.map_or_else(|| "none".to_owned(), bytes));
        }
        table.row(anstyle::Style::new(), cells);
    }
    if front.len() > ROWS {
        let more = format!("{} more", front.len() - ROWS);
        table.row(output::DIM, vec![more]);
    }
    table
}
