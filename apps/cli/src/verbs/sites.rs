//! `metes sites`.
//!
//! Invariant: what is printed and what is written are of the same figures.

use std::path::Path;

use metes_sites::{
    By, Call, Figures, Inclusive, Sites, calls, folded, functions, interpreted, nameless, pprof,
};
use metes_trace::Trace;
use metes_trace::stacks::Ending;
use serde_json::{Value, json};

use crate::arguments;
use crate::error::Failure;
use crate::output::{self, BOLD, DIM, Table};
use crate::own::Form;
use crate::quantity::{bytes, grouped};
use crate::{heap, tracefile};

pub(crate) fn run(arguments: &arguments::Sites, json: bool) -> Result<u8, Failure> {
    writable(arguments)?;
    let mut trace = tracefile::read(&arguments.trace)?;
    if trace.stacks.is_empty() {
        return Err(Failure::input(format!(
            "{} has no call stacks: record the program again with `metes record --sites -o {} -- CMD`",
            output::name(&arguments.trace),
            output::name(&arguments.trace),
        )));
    }
    if arguments.interpreted {
        interpreted(&mut trace);
    }
    let by = By::from(arguments.by);
    let mut sites = Sites::of(&trace);
    if let Some(heap) = &arguments.heap {
        let heap = heap::resolve(heap)?;
        metes_tune::need_addresses(&heap)?;
        metes_sites::waste(&trace, &mut sites, &heap)
            .map_err(|error| Failure::input(error.to_string()))?;
    }
    let inclusive = functions(&trace.stacks, &sites, |figures| by.of(figures));
    write(arguments, &trace, &sites, by)?;
    match json {
        true => output::json(&document(arguments, &trace, &sites, &inclusive, by))?,
        false => output::text(&text(arguments, &trace, &sites, &inclusive, by))?,
    }
    Ok(0)
}

/// That the files can be written, before anything is computed.
fn writable(arguments: &arguments::Sites) -> Result<(), Failure> {
    let files = [
        ("--output", &arguments.output, Form::Page),
        ("--folded", &arguments.folded, Form::Plain),
        ("--pprof", &arguments.pprof, Form::Plain),
    ];
    let mut named: Vec<(&str, &Path)> = vec![("the trace", &arguments.trace)];
    for (option, path, form) in files {
        let Some(path) = path else { continue };
        if let Some((other, _)) = named.iter().find(|(_, other)| *other == path) {
            return Err(Failure::input(format!(
                "{option} and {other} name the same file: give each its own"
            )));
        }
        named.push((option, path));
        if form == Form::Page {
            output::writable(path, form)?;
        }
    }
    Ok(())
}

fn write(
    arguments: &arguments::Sites,
    trace: &Trace,
    sites: &Sites,
    by: By,
) -> Result<(), Failure> {
    if let Some(path) = &arguments.output {
        let page = metes_sites::page(trace, sites, by);
        let page =
            page.map_err(|error| Failure::input(format!("the page cannot be rendered: {error}")))?;
        output::export(path, Form::Page, page.as_bytes())?;
    }
    if let Some(path) = &arguments.folded {
        let folded = folded(&trace.stacks, sites, |figures| by.of(figures));
        output::export(path, Form::Plain, folded.as_bytes())?;
    }
    if let Some(path) = &arguments.pprof {
        let profile = pprof(trace, sites).map_err(|error| Failure::io("write", path, error))?;
        output::export(path, Form::Plain, &profile)?;
    }
    Ok(())
}

fn document(
    arguments: &arguments::Sites,
    trace: &Trace,
    sites: &Sites,
    inclusive: &[Inclusive],
    by: By,
) -> Value {
    let top = arguments.top as usize;
    let listed = sites
        .ordered(|figures| by.of(figures))
        .into_iter()
        .take(top);
    let listed: Vec<Value> = listed
        .map(|site| {
            let ending = trace.stacks.stack(site as u64).map(|stack| stack.ending);
            json!({
                "site": site,
                "figures": sites.figures[site],
                "calls": calls(&trace.stacks, site as u64),
                "cut": ending == Some(Ending::Cut),
                "broken": ending == Some(Ending::Broken),
            })
        })
        .collect();
    let unknown = sites.figures.first().cloned().unwrap_or_default();
    json!({
        "trace": output::name(&arguments.trace),
        "events": trace.len(),
        "by": by,
        "stacks": trace.stacks.len(),
        "allocations": sites.total(|figures| figures.allocations),
        "resizes": sites.total(|figures| figures.resizes),
        "bytes": sites.total(|figures| figures.bytes),
        "peak_live": sites.peak_live,
        "peak_event": sites.peak_event,
        "waste": arguments.heap.as_ref().map(|_| sites.total(|figures| figures.waste.unwrap_or(0))),
        "leaked_blocks": sites.total(|figures| figures.leaked_blocks),
        "leaked_bytes": sites.leaked,
        "temporary": sites.total(|figures| figures.temporary),
        "lifetimes": if sites.timed { "ns" } else { "events" },
        "without_stack": unknown,
        "calls": trace.stacks.places().len(),
        "calls_without_name": nameless(&trace.stacks),
        "sites": listed,
        "functions": inclusive.iter().take(top).collect::<Vec<_>>(),
        "page": arguments.output.as_deref().map(output::name),
        "folded": arguments.folded.as_deref().map(output::name),
        "pprof": arguments.pprof.as_deref().map(output::name),
    })
}

fn text(
    arguments: &arguments::Sites,
    trace: &Trace,
    sites: &Sites,
    inclusive: &[Inclusive],
    by: By,
) -> String {
    let top = arguments.top as usize;
    let mut text = totals(arguments, trace, sites);
    let ordered = sites.ordered(|figures| by.of(figures));
    let all = sites.total(|figures| by.of(figures));
    text += &format!("\n{BOLD}Sites, {}{BOLD:#}\n", heading(by));
    for &site in ordered.iter().take(top) {
        text += &line(&sites.figures[site], by, all, sites.timed);
        text += &stack(trace, site, arguments.calls as usize);
    }
    if ordered.is_empty() {
        text += "  none\n";
    } else if ordered.len() > top {
        let more = grouped((ordered.len() - top) as u64);
        text += &format!("  {DIM}{more} more: --top N{DIM:#}\n");
    }
    if !inclusive.is_empty() {
        text += &format!("\n{BOLD}Functions, {}{BOLD:#}\n", heading(by));
        text += &table(inclusive, by, top).to_string();
    }
    let files = [&arguments.output, &arguments.folded, &arguments.pprof];
    for (name, path) in ["page", "folded", "pprof"].into_iter().zip(files) {
        if let Some(path) = path {
            text += &format!("{name:<7} {}\n", path.display());
        }
    }
    text
}

/// What the whole trace asked for.
fn totals(arguments: &arguments::Sites, trace: &Trace, sites: &Sites) -> String {
    let total = |by: fn(&Figures) -> u64| grouped(sites.total(by));
    let mut text = format!(
        "{} allocations and {} resizes from {} call stacks; {} live at the peak\n",
        total(|figures| figures.allocations),
        total(|figures| figures.resizes),
        grouped(trace.stacks.len() as u64),
        bytes(sites.peak_live),
    );
    text += &format!(
        "{} blocks of {} were never freed\n",
        total(|figures| figures.leaked_blocks),
        bytes(sites.leaked),
    );
    let temporary = sites.total(|figures| figures.temporary);
    if temporary > 0 {
        text += &format!(
            "{} blocks were temporary: freed before their thread asked for anything else\n",
            grouped(temporary)
        );
    }
    if arguments.heap.is_some() {
        text += &format!(
            "{} taken by blocks beyond that at the peak, on {}\n",
            bytes(sites.total(|figures| figures.waste.unwrap_or(0))),
            arguments.heap.as_deref().unwrap_or_default(),
        );
    }
    let endings = (1..=trace.stacks.len() as u64).filter_map(|site| trace.stacks.stack(site));
    let (mut cut, mut broken) = (0, 0);
    for stack in endings {
        cut += u64::from(stack.ending == Ending::Cut);
        broken += u64::from(stack.ending == Ending::Broken);
    }
    let unknown = &sites.figures[0];
    let remarks = [
        (
            cut,
            "stacks are cut: more calls lie outside of those that are kept",
        ),
        (broken, "stacks end where no caller could be found"),
        (
            unknown.allocations + unknown.resizes,
            "requests have no stack",
        ),
        (
            nameless(&trace.stacks),
            "of the different calls have no name; `metes record` says why",
        ),
    ];
    for (count, what) in remarks {
        if count > 0 {
            text += &format!("{DIM}{} {what}{DIM:#}\n", grouped(count));
        }
    }
    text
}

fn heading(by: By) -> &'static str {
    match by {
        By::Allocations => "most allocations first",
        By::Bytes => "most bytes requested first",
        By::Peak => "most bytes live at the peak first",
        By::Leaked => "most bytes never freed first",
        By::Temporary => "most temporary blocks first",
    }
}

/// A figure as it is shown.
fn shown(by: By, figure: u64) -> String {
    match by {
        By::Allocations | By::Temporary => grouped(figure),
        By::Bytes | By::Peak | By::Leaked => bytes(figure),
    }
}

/// The figures of a site, in a line.
fn line(figures: &Figures, by: By, all: u64, timed: bool) -> String {
    let own = by.of(figures);
    let mut text = format!(
        "  {BOLD}{}{BOLD:#} ({:.1} %)  {DIM}{} allocations",
        shown(by, own),
        own as f64 / all.max(1) as f64 * 100.0,
        grouped(figures.allocations)
    );
    if figures.resizes > 0 {
        text += &format!(", {} resizes", grouped(figures.resizes));
    }
    text += &format!(" of {}", bytes(figures.bytes));
    if figures.peak_blocks > 0 && by != By::Peak {
        text += &format!(", {} at the peak", bytes(figures.peak_bytes));
    }
    if let Some(waste) = figures.waste.filter(|waste| *waste > 0) {
        text += &format!(", {} wasted there", bytes(waste));
    }
    if figures.leaked_blocks > 0 && by != By::Leaked {
        text += &format!(", {} never freed", bytes(figures.leaked_bytes));
    }
    if figures.temporary > 0 && by != By::Temporary {
        text += &format!(", {} temporary", grouped(figures.temporary));
    }
    if let Some(lifetime) = figures.lifetime {
        let median = match timed {
            true => time(lifetime.median),
            false => format!("{} events", grouped(lifetime.median)),
        };
        text += &format!(", freed after {median} (median)");
    }
    text + &format!("{DIM:#}\n")
}

/// Nanoseconds as people read them.
fn time(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        // What the recorder's clock tells apart.
        0..100 => "less than 100 ns".to_owned(),
        100..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} µs", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.1} s", value / 1e9),
    }
}

/// The innermost calls of a site.
fn stack(trace: &Trace, site: usize, most: usize) -> String {
    let calls = calls(&trace.stacks, site as u64);
    if calls.is_empty() {
        return "      stack not known\n".to_owned();
    }
    let mut text: String = calls
        .iter()
        .take(most)
        .map(|call| format!("      {}\n", one_line(call)))
        .collect();
    if calls.len() > most {
        text += &format!("      {DIM}… {} more{DIM:#}\n", calls.len() - most);
    }
    text
}

fn one_line(call: &Call) -> String {
    shortened(&metes_quantity::printable(&call.text()), 110)
}

fn table(functions: &[Inclusive], by: By, top: usize) -> Table {
    let mut table = Table::new(&["function", "all", "itself", ""]);
    for function in functions.iter().take(top) {
        let module = function.module.rsplit('/').next().unwrap_or_default();
        table.row(
            anstyle::Style::new(),
            vec![
                shortened(&metes_quantity::printable(&function.function), 60),
                shown(by, function.all),
                shown(by, function.own),
                metes_quantity::printable(module).into_owned(),
            ],
        );
    }
    table
}

/// A name of at most so many characters, which keeps its beginning and its end, where file and line are.
fn shortened(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    const END: usize = 26;
    let kept: String = name.chars().take(most - END - 1).collect();
    let end: String = name.chars().skip(count - END).collect();
    format!("{kept}…{end}")
}
