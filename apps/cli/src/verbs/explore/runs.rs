//! `metes explore` over several traces.

use std::path::PathBuf;

use metes_explore::Arena;
use metes_explore::engine::{EXPLORATION, Folder, RESULTS};
use metes_tune::runs::{Document, Wish, explored, write_runs};
use metes_tune::{Lacking, Request};
use serde_json::json;

use super::{BUDGET, KIND, described};
use crate::arguments::Explore;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::results::Results;
use crate::verbs::runs;
use crate::verbs::tune::{Shown, no_choice};
use crate::{interrupt, output};

pub(super) fn run(arguments: &Explore, files: &[PathBuf], json: bool) -> Result<u8, Failure> {
    if arguments.space != "all" {
        return Err(Failure::input(format!(
            "--space {} is explored on one trace, and {} are given: leave it out, or give one",
            arguments.space,
            files.len()
        )));
    }
    if let Some(option) = described::only(arguments) {
        return Err(Failure::input(format!(
            "{option} is for described spaces, which are explored on one trace: leave it out"
        )));
    }
    let wanted = arguments.guarantee.weighed(arguments.objectives)?;
    let seconds = arguments.budget.unwrap_or(BUDGET);
    let mut shown = Shown::new(seconds / 2.0);
    let recordings = runs::read(files, &mut shown)?;
    // What is asked for in vain is told before anything is written.
    if wanted.asked() {
        wanted.of(&recordings.demand(), &Arena::HOST)?;
    }
    let results = Results::open(&arguments.output, KIND)?;
    if !arguments.fresh {
        Folder::may_be_suggested(&arguments.output)?;
    }
    let wish = Wish {
        request: Request {
            seconds,
            configurations: arguments.configurations,
            arena: Arena::HOST,
            mapped: arguments.mapped.unwrap_or_default().0,
            pages: None,
            guarantee: (wanted, recordings.demand()),
            over: arguments.over.into(),
            fresh: arguments.fresh,
            trace: files.first().cloned().unwrap_or_default(),
            stop: interrupt::flag()?,
        },
        preference: metes_explore::Preference::Balanced,
        heap_limit: None,
    };
    let found = explored(
        recordings,
        &wish,
        results.gathered(),
        &arguments.output,
        &mut shown,
    )
    .map_err(runs::cut_short)?;
    drop(shown);
    let document = Document::of(&found);
    let report = results.shown(&write_runs(results.gathered(), &document)?);
    results.replace()?;
    if json {
        runs::json(
            &document,
            &[
                ("report", json!(output::name(&report))),
                (
                    "results",
                    json!(output::name(&arguments.output.join(RESULTS))),
                ),
                (
                    "exploration",
                    json!(output::name(&arguments.output.join(EXPLORATION))),
                ),
            ],
        )?;
    } else {
        let mut text = runs::text(&document);
        text += &format!(
            "\nreport {}\nheaps  {}\n",
            report.display(),
            arguments.output.join("pareto").display()
        );
        output::text(&text)?;
    }
    if document.heap.is_none() {
        let lacking = Lacking::of(&found.one.searched.found, None);
        output::note(&no_choice(&lacking, None));
        return Ok(DOES_NOT_HOLD);
    }
    Ok(0)
}
