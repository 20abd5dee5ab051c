//! `metes bounds`.

use metes_config::{Config, GuaranteeError, HandleHeap};
use metes_heap::bounds::{self, Bound, Candidate, Demand};
use serde_json::{Value, json};

use crate::arguments::Bounds;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::heap::Named;
use crate::output::{BOLD, DIM};
use crate::quantity::{bytes, grouped};
use crate::{heap, output};

pub(crate) fn run(arguments: &Bounds, json: bool) -> Result<u8, Failure> {
    let named = heap::named(&arguments.heap)?;
    let mut demand = Demand::new(arguments.live, arguments.max_block, arguments.min_block);
    if arguments.resizes {
        demand = demand.resizing();
    }
    let (name, bound) = match &named {
        Named::Pointers(config) => (config.name(), of(config, &demand)?),
        Named::Handles(heap) => (heap.spec(), of_handles(heap, &demand)?),
    };
    if json {
        output::json(&document(&name, &bound))?;
    } else {
        show(&name, &demand, &bound)?;
    }
    Ok(match bound.heap_bytes {
        Some(_) => 0,
        None => DOES_NOT_HOLD,
    })
}

/// The guarantee of a heap of handles.
fn of_handles(heap: &HandleHeap, demand: &Demand) -> Result<Bound, Failure> {
    match heap {
        HandleHeap::Fragmented(options) => bounds::fragmented(options, demand),
    }
    .map_err(Failure::Bound)
}

/// The guarantee of a heap in 64-bit memory.
pub(crate) fn of(config: &Config, demand: &Demand) -> Result<Bound, Failure> {
    metes_config::guarantee(config, demand).map_err(|error| match error {
        GuaranteeError::Bound(error) => Failure::Bound(error),
        GuaranteeError::Span { bytes } => Failure::input(format!(
            "no heap is laid out for {} bytes: give a smaller M",
            grouped(bytes)
        )),
    })
}

/// The document of the design, with what else is known about the bound.
pub(crate) fn document(name: &str, bound: &Bound) -> Value {
    json!({
        "heap": name,
        "time": {
            "allocate": bound.time.allocate.notation(),
            "free": bound.time.free.notation(),
            "resize": bound.time.resize.notation(),
            "access": bound.time.access.notation(),
        },
        "heap_bytes": bound.heap_bytes.map(number),
        "formula": bound.formula().to_string(),
        "citation": bound.citation(),
        "proof": bound.used.map(|used| used.proof),
        "standing": bound.used.map(|used| used.standing.name()),
        "method": bound.used.map(|used| used.method),
        "outside_bytes": number(bound.outside_bytes),
        "necessary_bytes": number(bound.necessary_bytes),
        "note": bound.note,
        "others": bound.others.iter().flatten().map(other).collect::<Vec<_>>(),
    })
}

fn other(candidate: &Candidate) -> Value {
    json!({
        "method": candidate.method,
        "heap_bytes": number(candidate.bytes),
        "standing": candidate.standing.name(),
        "formula": candidate.formula.to_string(),
        "citation": candidate.citation,
        "proof": candidate.proof,
    })
}

/// An integer; one beyond 64 bits as its digits.
fn number(value: u128) -> Value {
    u64::try_from(value).map_or_else(|_| value.to_string().into(), Value::from)
}

fn show(name: &str, demand: &Demand, bound: &Bound) -> Result<(), Failure> {
    let mut text = format!("{BOLD}{name}{BOLD:#}\n\n");
    let mut line = |name: &str, value: String| text += &format!("  {name:<11} {value}\n");
    line("allocate", bound.time.allocate.notation().to_owned());
    line("free", bound.time.free.notation().to_owned());
    line("resize", bound.time.resize.notation().to_owned());
    line("access", bound.time.access.notation().to_owned());
    let demanded = format!(
        "M = {} live, n = {} largest, l = {} smallest",
        grouped(demand.live),
        grouped(demand.largest),
        grouped(demand.smallest)
    );
    line("demand", demanded);
    match bound.heap_bytes {
        Some(size) => line(
            "suffices",
            format!(
                "{} = {BOLD}{} B{BOLD:#} of memory, {:.2} × M",
                bytes(size),
                grouped(size),
                size as f64 / demand.live as f64
            ),
        ),
        None => line("suffices", "no finite size is known".to_owned()),
    }
    if bound.outside_bytes > 0 {
        line("and outside", format!("{} B", grouped(bound.outside_bytes)));
    }
    line(
        "necessary",
        format!(
            "{} B for any heap that does not move blocks (Robson)",
            grouped(bound.necessary_bytes)
        ),
    );
    if let Some(note) = bound.note {
        line("note", note.to_owned());
    }
    for (title, candidate) in bound
        .used
        .iter()
        .map(|used| ("bound", used))
        .chain(bound.others.iter().flatten().map(|other| ("also", other)))
    {
        text += &format!(
            "\n  {title:<11} {}, {}: {} B\n",
            candidate.method,
            candidate.standing.name(),
            grouped(candidate.bytes)
        );
        text += &format!("  {:<11} {}\n", "formula", candidate.formula);
        text += &format!("  {:<11} {}\n", "source", candidate.citation);
        text += &format!("{DIM}  {:<11} {}{DIM:#}\n", "proof", candidate.proof);
    }
    output::text(&text)
}
