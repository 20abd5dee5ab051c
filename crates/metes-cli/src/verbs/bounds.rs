//! `metes bounds`.

use metes_config::{Config, StoreKind};
use metes_heap::bounds::{self, Bound, Candidate, Demand, Geometry};
use metes_heap::index::Index;
use metes_heap::{AnyIndex, ByHandle, Ledger, store};
use serde_json::{Value, json};

use crate::arguments::Bounds;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{BOLD, DIM};
use crate::quantity::{bytes, grouped};
use crate::{heap, output};

pub(crate) fn run(arguments: &Bounds, json: bool) -> Result<u8, Failure> {
    let config = heap::resolve(&arguments.heap)?;
    if let Some(partition) = config.heap.partition {
        return Err(Failure::input(format!(
            "{}: no bound is computed for size classes in pages (of {} bytes here): ask for the \
             general heap alone",
            config.name(),
            partition.page
        )));
    }
    let mut demand = Demand::new(arguments.live, arguments.max_block, arguments.min_block);
    if arguments.resizes {
        demand = demand.resizing();
    }
    let bound = of(&config, &demand)?;
    if json {
        output::json(&document(&config, &bound))?;
    } else {
        show(&config, &demand, &bound)?;
    }
    Ok(match bound.heap_bytes {
        Some(_) => 0,
        None => DOES_NOT_HOLD,
    })
}

/// The guarantee of a heap in 64-bit memory.
pub(crate) fn of(config: &Config, demand: &Demand) -> Result<Bound, Failure> {
    let shape = store::Geometry::tagged(8);
    let outside = Geometry::outside(shape.granule as u64);
    let sizes = config.level_sizes();
    if config.store != StoreKind::Tagged {
        return bounds::described_in(&config.heap, &sizes, &outside, demand)
            .map_err(Failure::Bound);
    }
    // The list heads lie in the memory, and how many there are depends on its
    // size: the size found with the heads of a larger memory holds.
    let mut span = demand.live.saturating_mul(2);
    loop {
        let heads = heads(config, span, shape).ok_or_else(|| {
            Failure::input(format!(
                "no heap is laid out for {} bytes: give a smaller M",
                grouped(span)
            ))
        })?;
        let geometry = Geometry::of(&shape, heads);
        let bound = bounds::described_in(&config.heap, &sizes, &geometry, demand)
            .map_err(Failure::Bound)?;
        let needed = bound.heap_bytes.unwrap_or(0);
        if needed <= u128::from(span) || span == u64::MAX {
            return Ok(bound);
        }
        span = u64::try_from(needed)
            .unwrap_or(u64::MAX)
            .max(span.saturating_mul(2));
    }
}

/// Most list heads of a pool of this heap in a memory of `span` bytes; None if
/// no index is laid out for so many.
fn heads(config: &Config, span: u64, shape: store::Geometry) -> Option<usize> {
    let span = usize::try_from(span).unwrap_or(usize::MAX);
    let mut most = 0;
    for pool in config.heap.general.iter() {
        let mut index = AnyIndex::new(pool.index, pool.limits);
        most = most.max(Index::<Ledger<'_, ByHandle>>::heads(
            &mut index, span, shape,
        )?);
    }
    Some(most + config.heap.dedicated.len())
}

/// The document of the design, with what else is known about the bound.
pub(crate) fn document(config: &Config, bound: &Bound) -> Value {
    json!({
        "heap": config.name(),
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

fn show(config: &Config, demand: &Demand, bound: &Bound) -> Result<(), Failure> {
    let mut text = format!("{BOLD}{}{BOLD:#}\n\n", config.name());
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
