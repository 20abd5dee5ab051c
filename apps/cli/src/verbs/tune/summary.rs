//! What `tune` prints at its end.
//!
//! Invariant: every figure was computed or measured in this run; the words
//! "predicted = measured" stand only where they are equal.

use std::path::Path;

use metes_explore::report::{BoundFigures, Document, GuaranteeFigures, Interleaved};
use metes_explore::{Events, Exploration, Outcome};
use metes_trace::record::Ending;
use metes_tune::{Checked, Recorded, Tuned};

use crate::error::signal_name;
use crate::output::{BOLD, DIM, GOOD, POOR, Table};
use crate::quantity::{bytes, change, grouped, ratio};

pub(super) fn text(tuned: &Tuned, directory: &Path) -> String {
    let Tuned {
        recorded,
        events,
        searched,
        chosen,
        checked,
        document,
        page,
        ..
    } = tuned;
    let found = &searched.found;
    let mut text = String::new();
    text += &format!("\n{BOLD}{}{BOLD:#}\n", chosen.config.name());
    text += &format!("{DIM}{}{DIM:#}\n\n", chosen.why);
    text += &program(recorded, events);
    let threads = document.trace.threads;
    if threads > 1 {
        text += &format!(
            "  {:<9} {} made requests: their order differs from run to run, and with it \
             placement and footprint\n",
            "threads",
            grouped(u64::from(threads))
        );
    }
    if let Some(run) = &tuned.per_thread {
        text += &format!(
            "  {:<9} a heap for each: footprint {}, measured, not predicted, as its placements depend on scheduling \
             (metes run --heap {})\n",
            "",
            bytes(run.footprint),
            run.heap
        );
    }
    let interleaved = document.interleaved.as_ref();
    text += &interleaved.map_or(String::new(), orders);
    text += &format!("  {:<9} {}\n", "explored", explored(found));
    if let Some(from) = chosen.config.arena.mapped {
        text += &format!(
            "  {:<9} blocks of {} and more have pages of their own (--mapped no: none)\n",
            "mapped",
            bytes(from as u64)
        );
    }
    text += &bounds(document);
    let guarantee = document.guarantee.as_ref();
    text += &guarantee.map_or(String::new(), guarantee_text);
    text += "\n";
    text += &comparison(found, &chosen.outcome, events.peak_live()).to_string();
    text += &format!(
        "{DIM}cycles are modelled: the mean with copying; the maximum of one operation without what \
         it copies or the system maps, and what the largest copy adds{DIM:#}\n\n"
    );
    text += &verdict(checked, threads);
    text += &document
        .beside
        .as_ref()
        .map_or(String::new(), super::beside::text);
    text += &format!("\n  {:<9} {}\n", "report", page.display());
    text += &code(directory);
    text
}

/// Where the heap's code is.
pub(super) fn code(directory: &Path) -> String {
    format!(
        "  {:<9} {} (C), {} (Rust), {}\n",
        "code",
        directory.join("c").display(),
        directory.join("rust").display(),
        directory.join("heap.toml").display()
    )
}

fn program(recorded: &Recorded, events: &Events) -> String {
    let process = &recorded.process;
    let name = if process.of > 1 {
        format!("{}, one of {} processes", process.name, process.of)
    } else {
        process.name.clone()
    };
    let name = match &process.in_place_of {
        Some(before) => format!("{name} ({before} replaced itself by it)"),
        None => name,
    };
    format!(
        "  {:<9} {name}: {} requests, peak live {}\n",
        "program",
        grouped(events.len() as u64),
        bytes(events.peak_live())
    )
}

/// What other orders of the threads' requests come to on the chosen heap.
fn orders(found: &Interleaved) -> String {
    let live = &found.live;
    let mut text = String::new();
    if let Some(spread) = found.heaps.first().and_then(|heap| heap.drawn) {
        text += &format!(
            "  {:<9} {} other orders: footprint {} to {}, half of them up to {} (metes interleave)\n",
            "",
            grouped(found.shuffles),
            bytes(spread.least),
            bytes(spread.most),
            bytes(spread.median)
        );
    }
    text += &format!(
        "  {:<9} in any order at most {} live{}{}\n",
        "",
        bytes(live.bound),
        if live.exact { "" } else { " (a bound)" },
        match found.heaps.first().and_then(|heap| heap.guarantee) {
            Some(suffices) => format!(", for which {} suffice", bytes(suffices)),
            None => String::new(),
        }
    );
    let sharing = &found.sharing;
    text + &format!(
        "  {:<9} {} of {} requests follow another thread's, {} blocks are freed by another thread\n",
        "",
        grouped(sharing.switches),
        grouped(found.events),
        grouped(sharing.freed_elsewhere)
    )
}

/// How many heaps were judged, on what, in what time.
pub(crate) fn explored(found: &Exploration) -> String {
    let interrupted = if found.interrupted {
        " (interrupted)"
    } else {
        ""
    };
    let space = grouped(found.space);
    let time = format!("{:.1} s{interrupted}", found.seconds);
    let unbeaten = grouped(found.pareto.len() as u64);
    let whole = grouped(found.configurations);
    match found.sampled {
        None => format!("{whole} heaps of {space} tried in {time}, {unbeaten} unbeaten"),
        Some(sampled) => format!(
            "{} heaps of {space} judged on {} of the trace, {whole} of them whole, in {time}; \
             {unbeaten} of these unbeaten",
            grouped(sampled.configurations),
            match sampled.windows {
                1 => "a window".to_owned(),
                windows => format!("{windows} windows"),
            }
        ),
    }
}

/// What is proven of the chosen heap, and how many others have a bound.
pub(super) fn bounds(document: &Document) -> String {
    let chosen = document.heaps.iter().find(|heap| heap.chosen);
    let bounds = chosen.and_then(|heap| heap.bounds.as_ref());
    let time = match bounds {
        Some(BoundFigures { time, .. }) => format!(
            "allocate {}, free {}, resize {}",
            time.allocate, time.free, time.resize
        ),
        None => "none is known".to_owned(),
    };
    let space = match bounds.and_then(|bounds| bounds.heap_bytes) {
        Some(most) => format!(
            "{} suffice for every program with this peak of live bytes and these sizes",
            bytes(most)
        ),
        None => "no finite bound is known".to_owned(),
    };
    let unbeaten = document.configurations.pareto.len() as u64;
    let bounded = document.configurations.bounded;
    format!(
        "  {:<9} time: {time}\n  {:<9} space: {space} ({} of {} unbeaten heaps {} a bound)\n",
        "proven",
        "",
        grouped(bounded),
        grouped(unbeaten),
        if bounded == 1 { "has" } else { "have" }
    )
}

/// What the chosen heap guarantees, of what demand, and what that costs here.
pub(crate) fn guarantee_text(figures: &GuaranteeFigures) -> String {
    let demand = &figures.demand;
    let mut text = format!(
        "  {:<9} {} for M = {} live, n = {} largest, l = {} smallest\n",
        "guarantee",
        match figures.bytes {
            Some(most) => format!("{}, {} × live,", bytes(most), ratio(most, demand.live)),
            None => "none".to_owned(),
        },
        grouped(demand.live),
        grouped(demand.max_block),
        grouped(demand.min_block),
    );
    text += &format!(
        "  {:<9} useful is up to {}, {}{}\n",
        "",
        bytes(figures.limit),
        figures.sentence,
        if figures.useful {
            ""
        } else {
            ": this heap has none"
        },
    );
    if let (Some(without), Some(own)) = (&figures.without, figures.footprint) {
        text += &format!(
            "  {:<9} without one: {} at {}, so the guarantee costs {} of footprint here\n",
            "",
            without.spec,
            bytes(without.footprint),
            change(own, without.footprint),
        );
    }
    text
}

/// The chosen heap beside the named ones, by rising footprint.
pub(super) fn comparison(found: &Exploration, chosen: &Outcome, peak_live: u64) -> Table {
    let mut table = Table::new(&[
        "heap",
        "footprint",
        "× live",
        "than it",
        "cycles",
        "maximum",
        "copying",
    ]);
    let own = chosen.footprint;
    let mut row = |style, name: String, outcome: &Outcome, change: String| {
        table.row(
            style,
            vec![
                name,
                bytes(outcome.footprint),
                ratio(outcome.footprint, peak_live),
                change,
                format!("{:.1}", outcome.cycles_mean),
                grouped(outcome.own_cycles_max),
                grouped(outcome.copy_cycles_max),
            ],
        );
    };
    row(GOOD, "chosen".to_owned(), chosen, String::new());
    let mut named: Vec<&Outcome> = found.named.iter().filter(|heap| heap.failed == 0).collect();
    named.sort_by_key(|heap| (heap.footprint, heap.cycles));
    for heap in named {
        let name = heap.named.unwrap_or(&heap.heap).to_owned();
        row(
            anstyle::Style::new(),
            name,
            heap,
            change(heap.footprint, own),
        );
    }
    for heap in &found.unfinished {
        let Some(name) = heap.named else { continue };
        let known = match heap.at_least {
            Some(least) => format!("≥ {}", bytes(least.footprint)),
            None => "–".to_owned(),
        };
        let cells = [name, known.as_str(), "", "not finished in the budget"];
        table.row(DIM, cells.map(str::to_owned).to_vec());
    }
    table
}

fn verdict(checked: &Checked, threads: u32) -> String {
    let mut text = String::new();
    let predicted = &checked.predicted;
    let figures = |name: &str, live: u64, footprint: u64| {
        format!(
            "  {name:<9} peak live {} B, footprint {} B\n",
            grouped(live),
            grouped(footprint)
        )
    };
    text += &figures("predicted", predicted.peak_live, predicted.footprint);
    match &checked.measured {
        Some(measured) => {
            text += &figures("measured", measured.peak_live, measured.footprint);
        }
        None => {
            text += &format!(
                "  {:<9} nothing: the process {}\n",
                "measured",
                match &checked.replaced_by {
                    Some(_) => "replaced itself by another program",
                    None => "ended without running its exit handlers",
                }
            );
        }
    }
    text += &format!("  {}\n", equality(checked));
    if threads > 1 && checked.measured.is_some() && !checked.equal() {
        text += &format!(
            "  the likely cause: {threads} threads race for the order of their requests\n"
        );
    }
    text += &format!("  {}\n", output(checked));
    text
}

fn equality(checked: &Checked) -> String {
    if let Some(next) = &checked.replaced_by {
        return format!(
            "{POOR}not comparable{POOR:#}: the program replaced itself by {next}, and its heap \
             ended with it; tune {next} instead, without --process"
        );
    }
    let Some(measured) = &checked.measured else {
        return format!("{POOR}the prediction could not be checked{POOR:#}");
    };
    let events = grouped(measured.events);
    if checked.equal() {
        let again = match &checked.difference {
            None => String::new(),
            Some(difference) => format!(
                "\n  the first run differed from those after it at event {} ({}, then {}): \
                 predicted from a second recording",
                grouped(difference.event),
                difference.recorded,
                difference.again
            ),
        };
        return format!(
            "{GOOD}predicted = measured{GOOD:#}, and each of {events} requests lay where it was \
             predicted{again}"
        );
    }
    if checked.requests_equal() {
        let figures = match checked.figures_equal() {
            true => format!("{GOOD}peak and footprint as predicted{GOOD:#}, but"),
            false => format!("{POOR}predicted ≠ measured{POOR:#}:"),
        };
        return format!(
            "{figures} not every block lay where it was predicted;\n  the program made {events} \
             requests of the same sizes, but frees in another order (some sort or hash by \
             address), or the heap is at fault"
        );
    }
    match (&checked.difference, checked.deterministic) {
        (Some(difference), _) => format!(
            "{POOR}not comparable{POOR:#}: the program asks for other things in each run \
             ({events} requests, {} predicted);\n  two recordings differ first at event {}: {}, \
             then {}",
            grouped(checked.predicted.events),
            grouped(difference.event),
            difference.recorded,
            difference.again
        ),
        (None, Some(true)) => format!(
            "{POOR}predicted ≠ measured{POOR:#}: two recordings agree, but on the emitted heap \
             the program made {events} requests, not the {} predicted",
            grouped(checked.predicted.events)
        ),
        _ => format!(
            "{POOR}not comparable{POOR:#}: the program made {events} requests, {} were predicted",
            grouped(checked.predicted.events)
        ),
    }
}

fn output(checked: &Checked) -> String {
    if checked.output_unchanged {
        return match checked.ending {
            Ending::Exit(0) => format!("{GOOD}output unchanged{GOOD:#}"),
            Ending::Exit(status) => {
                format!("{GOOD}output unchanged{GOOD:#}, exit status {status} as before")
            }
            Ending::Signal(signal) => format!("ended by {} as before", signal_name(signal)),
        };
    }
    if checked.output_varies {
        return "output not comparable: it differs from run to run also without Metes".to_owned();
    }
    format!("{POOR}output changed{POOR:#}")
}
