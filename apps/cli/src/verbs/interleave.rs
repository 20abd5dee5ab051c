//! `metes interleave`: a recording of several threads in other orders.
//!
//! Invariant: what is printed as a bound is of all orders, and what was drawn says by which seed.

use metes_config::Config;
use metes_explore::report::{DemandFigures, HeapOver, Interleaved, Sharing, Spread};
use metes_interleave::{Document, Effort, Plan, Threads, Within, interleaved};

use crate::arguments::Interleave;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, DIM, POOR, Table};
use crate::own::Form;
use crate::quantity::{bytes, duration, grouped};
use crate::{heap, interrupt, progress, tracefile};

/// The heap for each thread, whose own code is driven.
const PER_THREAD: &str = "per-thread";
/// Threads listed, those with most requests.
const THREADS: usize = 16;

pub(crate) fn run(arguments: &Interleave, json: bool) -> Result<u8, Failure> {
    let (heaps, per_thread) = heaps(&arguments.heaps)?;
    let path = &arguments.trace;
    let trace = tracefile::read(path)?;
    if let Some(page) = &arguments.output {
        output::writable(page, Form::Page)?;
    }
    let wrong =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", path.display()));
    let threads = Threads::of(&trace).map_err(|error| wrong(&error))?;
    if threads.threads().len() < 2 {
        return Err(wrong(
            &"one thread made all requests, so there is one order: `metes replay` says what it takes",
        ));
    }
    let plan = Plan {
        heaps: &heaps,
        per_thread,
        shuffles: arguments.shuffles,
        seed: arguments.seed,
        within: arguments.within.map_or(Within::All, Within::Events),
        effort: Effort::default(),
    };
    let demand = DemandFigures::of(&metes_trace::profile(&trace));
    let stop = interrupt::flag()?;
    let goes_on = || !stop.load(std::sync::atomic::Ordering::Relaxed);
    let wheel = progress::spinner("other orders");
    let found = interleaved(&threads, demand, &plan, &goes_on);
    wheel.finish_and_clear();
    let found = found.map_err(|error| wrong(&error))?;
    let fails = found.heaps.iter().any(|heap| heap.failed > 0);
    let document = Document::of(output::name(path), found);
    if let Some(file) = &arguments.output {
        let page = document.page();
        let page =
            page.map_err(|error| Failure::input(format!("the page cannot be rendered: {error}")))?;
        output::export(file, Form::Page, page.as_bytes())?;
    }
    match json {
        true => output::json(&document)?,
        false => output::text(&text(&document.found))?,
    }
    if document.found.shuffles < arguments.shuffles {
        output::note("ended by hand: what was drawn until then counts");
    }
    Ok(if fails { DOES_NOT_HOLD } else { 0 })
}

/// The heaps, and whether one for each thread is among them.
fn heaps(named: &[String]) -> Result<(Vec<Config>, bool), Failure> {
    let default = ["tlsf", PER_THREAD].map(str::to_owned);
    let named = if named.is_empty() {
        &default[..]
    } else {
        named
    };
    let of_threads = |name: &&String| *name == PER_THREAD;
    let heaps = named.iter().filter(|name| !of_threads(name)).map(|name| {
        let heap = heap::resolve_on_host(name)?;
        metes_tune::need_addresses(&heap)?;
        Ok(heap)
    });
    let heaps: Result<Vec<Config>, Failure> = heaps.collect();
    Ok((heaps?, named.iter().any(|name| of_threads(&name))))
}

/// All of it, for a terminal.
fn text(found: &Interleaved) -> String {
    let drawn = match found.shuffles {
        0 => "no order drawn".to_owned(),
        1 => format!("one order drawn (seed {})", found.seed),
        many => format!(
            "{} orders drawn (seeds {} to {})",
            grouped(many),
            found.seed,
            found.seed.wrapping_add(u64::from(many) - 1)
        ),
    };
    let within = found.within.map_or(String::new(), |events| {
        format!(
            ", no request before one recorded more than {} earlier",
            grouped(events)
        )
    });
    let mut text = format!(
        "{BOLD}{} threads, {} requests{BOLD:#}; {drawn}{within}\n\n",
        grouped(found.threads),
        grouped(found.events)
    );
    text += &spreads(found).to_string();
    text += &live(found);
    text += &guarantees(&found.heaps);
    text += &format!("\n{BOLD}threads{BOLD:#}\n");
    text += &threads(found).to_string();
    text += "\n";
    text + &sharing(&found.sharing, found.events)
}

fn spreads(found: &Interleaved) -> Table {
    let mut table = Table::new(&[
        "",
        "recorded",
        "least",
        "¼",
        "½",
        "¾",
        "most",
        "its seed",
        "at most live",
    ]);
    let mut row = |name: &str, recorded: u64, drawn: &Option<Spread>, reached: u64, failed: u64| {
        let mut cells = vec![name.to_owned(), bytes(recorded)];
        match drawn {
            Some(spread) => cells.extend([
                bytes(spread.least),
                bytes(spread.lower_quartile),
                bytes(spread.median),
                bytes(spread.upper_quartile),
                bytes(spread.most),
                spread.most_seed.to_string(),
            ]),
            None => cells.extend(vec!["–".to_owned(); 6]),
        }
        cells.push(bytes(reached));
        let style = if failed > 0 {
            POOR
        } else {
            anstyle::Style::new()
        };
        table.row(style, cells);
    };
    let of = &found.live;
    row("live", of.recorded, &of.drawn, of.reached, 0);
    for heap in &found.heaps {
        row(
            &heap.heap,
            heap.recorded,
            &heap.drawn,
            heap.at_reached,
            heap.failed,
        );
    }
    table
}

fn live(found: &Interleaved) -> String {
    let live = &found.live;
    let exact = match live.exact {
        true => "and some order has as much".to_owned(),
        false => format!("and some order has {}", bytes(live.reached)),
    };
    format!(
        "\n  {BOLD}no order has more than {} live{BOLD:#} ({} B), {exact};\n  {DIM}each thread at its own worst moment: {}; as \
         recorded: {}{DIM:#}\n",
        bytes(live.bound),
        grouped(live.bound),
        bytes(live.of_threads),
        bytes(live.recorded),
    )
}

fn guarantees(heaps: &[HeapOver]) -> String {
    let mut text = String::new();
    for heap in heaps {
        text += &match (heap.guarantee, heap.guarantee_recorded) {
            (Some(all), Some(recorded)) => format!(
                "  {}: {} suffice in any order ({} for the recorded live bytes)\n",
                heap.heap,
                bytes(all),
                bytes(recorded)
            ),
            _ if heap.heap == PER_THREAD => {
                format!(
                    "  {PER_THREAD}: its bound is by what each thread has of each class of sizes\n"
                )
            }
            _ => format!("  {}: no finite bound is known\n", heap.heap),
        };
        if heap.failed > 0 {
            text += &format!(
                "  {POOR}{}: {} requests fail in some order{POOR:#}\n",
                heap.heap,
                grouped(heap.failed)
            );
        }
    }
    text
}

fn threads(found: &Interleaved) -> Table {
    let mut table = Table::new(&[
        "thread",
        "requests",
        "allocations",
        "frees",
        "resizes",
        "most own live",
        "its freed by others",
        "frees of others'",
    ]);
    let mut threads = found.per_thread.clone();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.events));
    let more = threads.len().saturating_sub(THREADS);
    for thread in threads.iter().take(THREADS) {
        let counts = [
            thread.events,
            thread.allocations,
            thread.frees,
            thread.resizes,
        ];
        let mut cells = vec![thread.thread.to_string()];
        cells.extend(counts.map(grouped));
        cells.push(bytes(thread.peak_live));
        cells.extend([thread.freed_by_others, thread.freed_of_others].map(grouped));
        table.row(anstyle::Style::new(), cells);
    }
    if more > 0 {
        table.row(DIM, vec![format!("and {more} more")]);
    }
    table
}

/// What threads have to do with each other.
fn sharing(sharing: &Sharing, events: u64) -> String {
    let share = |count: u64| {
        let percent = 100.0 * count as f64 / events.max(1) as f64;
        format!("{} ({percent:.1} %)", grouped(count))
    };
    let mut text = format!(
        "  {:<10} {} requests follow one of another thread\n  {:<10} {} blocks, {}, are freed by another thread than \
         allocated them; {} resizes\n",
        "shared",
        share(sharing.switches),
        "",
        grouped(sharing.freed_elsewhere),
        bytes(sharing.freed_elsewhere_bytes),
        grouped(sharing.resized_elsewhere),
    );
    if sharing.taken.is_empty() {
        return text + &format!("  {:<10} not counted: the trace has no times\n", "lock");
    }
    for (number, taken) in sharing.taken.iter().enumerate() {
        let name = if number == 0 { "lock" } else { "" };
        text += &format!(
            "  {name:<10} held {}: {} requests would find it taken\n",
            duration(taken.held_ns),
            share(taken.operations)
        );
    }
    text
}
