//! `metes tune --target`: from an image for a machine without an operating system to its heap, and the proof that it fits.
//!
//! Invariant: an earlier result stays whole until the new one is; figures of a run are those of this one.

use std::path::Path;
use std::time::Duration;

use metes_emit::{Home, Ranges};
use metes_explore::engine::Folder;
use metes_trace::EmulatedError;
use metes_tune::Pass;
use metes_tune::image::{
    Counted, Error, IMAGE_FILES, ImageFound, ImageRun, ImageTuning, Instructions, Machine, TUNED,
    TunedImage, arena,
};
use serde_json::json;

use super::choice::Choice;
use super::{Shown, no_choice, summary};
use crate::arguments::{Tune, TuneTarget};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{BOLD, DIM, GOOD, POOR, Table};
use crate::quantity::{bytes, change, grouped};
use crate::results::{Kind, Results};
use crate::{interrupt, output};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let ended = |signal| Failure::ended(signal, "the tuning had not come to its end");
        match error {
            Error::Tune(metes_tune::Error::Ended(signal)) => ended(signal),
            Error::Stopped => ended(interrupt::asked_to_end().unwrap_or(libc::SIGINT)),
            // What the terminal sends reaches QEMU, too, which ends as if the image had.
            Error::Unended { .. }
            | Error::Died { .. }
            | Error::Emulated(EmulatedError::Silent { .. })
                if interrupt::was_met(libc::SIGINT) =>
            {
                ended(libc::SIGINT)
            }
            Error::Tune(error) => error.into(),
            Error::Emulated(error) => error.into(),
            error => Failure::input(error.to_string()),
        }
    }
}

/// The machine of a target, if it is none of programs.
pub(super) fn machine(target: TuneTarget) -> Option<Machine> {
    match target {
        TuneTarget::Host => None,
        TuneTarget::CortexM3 => Some(Machine::CortexM3),
        TuneTarget::Leon3 => Some(Machine::Leon3),
    }
}

pub(super) fn run(arguments: &Tune, machine: Machine, json: bool) -> Result<u8, Failure> {
    for (given, option) in [
        (!arguments.traces.is_empty(), "a trace"),
        (arguments.commands.is_some(), "--commands"),
        (arguments.process.is_some(), "--process"),
        (arguments.sites, "--sites"),
        (arguments.pages.is_some(), "--pages"),
        (arguments.beside.is_some(), "--beside"),
    ] {
        if given {
            return Err(Failure::input(format!(
                "{option} is of programs of the system, and --target {} of images without one: leave one of them out",
                machine.name()
            )));
        }
    }
    let [image] = arguments.command.as_slice() else {
        return Err(Failure::input(
            "an image has no arguments: give its file alone after --",
        ));
    };
    machine.need()?;
    let guarantee = arguments.guarantee.weighed(arguments.objectives)?;
    guarantee.check(&arena(machine, 0, &guarantee))?;
    let stop = interrupt::flag()?;
    // The names do not depend on the heap.
    let any = metes_config::resolve("tlsf").map_err(Failure::Heap)?;
    let home = Home::Bare(Ranges::single(0, 1, 0));
    let emitted = metes_tune::emit_for(&any, home)?.files;
    let mut files = IMAGE_FILES.to_vec();
    files.push(super::CUT_SHORT);
    files.extend(emitted.iter().filter_map(|file| file.path.to_str()));
    let kind = Kind {
        verb: "tune",
        files: &files,
    };
    let results = Results::open(&arguments.output, kind)?;
    Folder::may_be_suggested(&arguments.output)?;
    let tuning = ImageTuning {
        machine,
        image: Path::new(image),
        build: arguments.build.as_deref(),
        limit: Duration::from_secs_f64(arguments.run_seconds),
        pass: if json { Pass::ToStderr } else { Pass::On },
        seconds: arguments.budget,
        preference: arguments.prefer.into(),
        heap_limit: arguments.heap_limit,
        guarantee,
        stop,
    };
    let mut shown = Shown::new(arguments.budget);
    let found = tuning.run(results.gathered(), &arguments.output, &mut shown);
    drop(shown);
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            super::keep(results)?;
            return Err(error.into());
        }
    };
    results.replace()?;
    match found {
        ImageFound::Nothing(lacking) => {
            output::note(&no_choice(&lacking, arguments.heap_limit));
            Ok(DOES_NOT_HOLD)
        }
        ImageFound::Heap(tuned) => {
            match json {
                true => print_json(&tuned, &tuning, &arguments.output)?,
                false => output::text(&text(&tuned, &tuning, &arguments.output))?,
            }
            Ok(if tuned.holds() { 0 } else { DOES_NOT_HOLD })
        }
    }
}

fn text(tuned: &TunedImage, tuning: &ImageTuning<'_>, directory: &Path) -> String {
    let found = &tuned.searched.found;
    let mut text = format!("\n{BOLD}{}{BOLD:#}\n", tuned.config.name());
    text += &format!("{DIM}{}{DIM:#}\n\n", tuned.why);
    text += &format!(
        "  {:<9} {}: {} requests, peak live {}\n",
        "image",
        tuning.image.display(),
        grouped(tuned.events.len() as u64),
        bytes(tuned.events.peak_live())
    );
    text += &format!("  {:<9} {}\n", "explored", summary::explored(found));
    text += &summary::bounds(&tuned.document);
    let guarantee = tuned.document.guarantee.as_ref();
    text += &guarantee.map_or(String::new(), summary::guarantee_text);
    text += "\n";
    let peak_live = tuned.events.peak_live();
    text += &summary::comparison(found, &tuned.outcome, peak_live).to_string();
    text +=
        &format!("{DIM}cycles are modelled; words of 32 bits, blocks at multiples of 8{DIM:#}\n\n");
    text += &format!(
        "  {:<9} {} B in the image{}: {}\n",
        "memory",
        grouped(tuned.memory),
        tuned.run.as_ref().map_or(String::new(), |run| format!(
            ", and {} B of tables beside it",
            grouped(run.shown.tables)
        )),
        match tuned.guaranteed {
            true => "proved to suffice for the demand",
            false => "what this run takes (--guarantee: what suffices for any within its demand)",
        }
    );
    let figures = |name: &str, live: u64, footprint: u64| {
        format!(
            "  {name:<9} peak live {} B, footprint {} B\n",
            grouped(live),
            grouped(footprint)
        )
    };
    let predicted = &tuned.predicted;
    text += &figures("predicted", predicted.peak_live, predicted.footprint);
    match &tuned.run {
        None => text += "  not run on the heap: --build CMD says what links the image with it\n",
        Some(run) => {
            text += &figures("measured", run.shown.peak_live, run.shown.footprint);
            text += &format!("  {}\n", equality(tuned, run));
            text += &ended(tuned, run);
            text += &instructions(tuned, run, tuning.machine);
        }
    }
    text += &format!("\n  {:<9} {}\n", "report", tuned.page.display());
    if tuned.run.is_some() {
        text += &format!("  {:<9} {}\n", "image", directory.join(TUNED).display());
    }
    text + &summary::code(directory)
}

/// What the run on the heap says of the prediction.
fn equality(tuned: &TunedImage, run: &ImageRun) -> String {
    let events = grouped(run.shown.events);
    if tuned.equal() == Some(true) {
        return format!(
            "{GOOD}predicted = measured{GOOD:#}, and each of {events} requests lay where it was predicted"
        );
    }
    let first = run
        .shown
        .difference
        .as_ref()
        .map_or(String::new(), |first| {
            format!(
                "; the first difference is request {}: {} predicted, {} in the run",
                grouped(first.event + 1),
                first.recorded,
                first.again
            )
        });
    if run.shown.placements_equal {
        return format!(
            "{POOR}predicted ≠ measured{POOR:#}: each of {events} requests lay where it was predicted, but the heap was asked \
             for more than was recorded, before its recording began or after its end"
        );
    }
    if run.shown.requests_equal {
        return format!(
            "{POOR}predicted ≠ measured{POOR:#}: the image made {events} requests of the same sizes, but frees in another \
             order, or the heap is at fault{first}"
        );
    }
    format!(
        "{POOR}not comparable{POOR:#}: the image made {events} requests, {} were predicted; what it asks for depends on \
         addresses or on time{first}",
        grouped(tuned.predicted.events)
    )
}

/// How the images ended, and what they wrote.
fn ended(tuned: &TunedImage, run: &ImageRun) -> String {
    let [recorded, plain] = run.statuses;
    if run.statuses != [tuned.status; 2] {
        return format!(
            "  {POOR}ended otherwise{POOR:#}: status {} before; on the heap {recorded} with the recorder, {plain} without\n",
            tuned.status
        );
    }
    match run.output_unchanged {
        true => format!("  {GOOD}output unchanged{GOOD:#}\n"),
        false => format!(
            "  status {plain} as before; the output is another one, as that of an image which prints times or addresses\n"
        ),
    }
}

/// Instructions in heap functions, before and after.
fn instructions(tuned: &TunedImage, run: &ImageRun, machine: Machine) -> String {
    let (Some(before), Some(after)) = (&tuned.counted, &run.counted) else {
        return format!(
            "  {:<9} not counted: the image has no clock (METES_RECORD_NOW, METES_RECORD_FREQUENCY)\n",
            "time"
        );
    };
    let mut table = Table::new(&[
        "instructions",
        "calls",
        "before: mean",
        "most",
        "on the heap: mean",
        "most",
        "",
    ]);
    for (name, before, after) in rows(before, after) {
        let mean = |of: Instructions| of.all.checked_div(of.calls).map_or(String::new(), grouped);
        let cells = vec![
            name.to_owned(),
            grouped(after.calls),
            mean(before),
            grouped(before.most),
            mean(after),
            grouped(after.most),
            change(after.all, before.all),
        ];
        table.row(anstyle::Style::new(), cells);
    }
    format!(
        "\n{table}{DIM}counted by {}; before: the heap of the recorded image{DIM:#}\n",
        machine.clock()
    )
}

fn rows(before: &Counted, after: &Counted) -> [(&'static str, Instructions, Instructions); 3] {
    [
        ("allocate", before.allocate, after.allocate),
        ("free", before.free, after.free),
        ("resize", before.resize, after.resize),
    ]
}

fn print_json(
    tuned: &TunedImage,
    tuning: &ImageTuning<'_>,
    directory: &Path,
) -> Result<(), Failure> {
    let choice = Choice {
        config: &tuned.config,
        why: &tuned.why,
        found: &tuned.searched.found,
        document: &tuned.document,
        outcome: &tuned.outcome,
        front: &tuned.front,
        page: &tuned.page,
        emitted: &tuned.emitted,
    };
    let run = tuned.run.as_ref();
    let shown = run.map(|run| &run.shown);
    let image = tuning.image;
    choice.print(json!({
        "predicted": {
            "peak_live": tuned.predicted.peak_live,
            "footprint": tuned.predicted.footprint,
        },
        "measured": shown.map(|shown| json!({
            "peak_live": shown.peak_live,
            "footprint": shown.footprint,
        })),
        "equal": tuned.equal(),
        "requests_equal": shown.map(|shown| shown.requests_equal),
        "placements_equal": shown.map(|shown| shown.placements_equal),
        "deterministic": shown.and_then(|shown| shown.requests_equal.then_some(true)),
        "difference": shown.and_then(|shown| shown.difference.as_ref()),
        "output_unchanged": run.map(|run| run.output_unchanged),
        "status": tuned.status,
        "statuses_on_heap": run.map(|run| run.statuses),
        "process": image.file_name().map(|name| name.to_string_lossy()),
        "events": tuned.predicted.events,
        "per_thread": null,
        "replaced_by": null,
        "target": tuning.machine.name(),
        "image": run.map(|_| output::name(&directory.join(TUNED))),
        "memory": {
            "bytes": tuned.memory,
            "tables": shown.map(|shown| shown.tables),
            "guaranteed": tuned.guaranteed,
        },
        "instructions": run.and_then(|run| Some(json!({
            "before": tuned.counted?,
            "after": run.counted?,
            "clock": tuning.machine.clock(),
        }))),
    }))
}
