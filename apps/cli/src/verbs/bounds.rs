//! `metes bounds`.

mod tables;
mod tandem;
mod trace;

use metes_config::{CompactGuarantee, GuaranteeError, Guaranteed, MappedPart, NamedPart};
use metes_heap::bounds::{Bound, Candidate, Demand, KeptList};
use metes_heap::compact::complexity::Configuration;
use metes_heap::complexity::Predictability;
use serde_json::{Value, json};

use crate::arguments::Bounds;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{BOLD, DIM};
use crate::quantity::{bytes, grouped};
use crate::{heap, output};

pub(crate) fn run(arguments: &Bounds, json: bool) -> Result<u8, Failure> {
    if let Some(path) = &arguments.tandem {
        return tandem::run(path, arguments.limit, json);
    }
    if let Some(path) = &arguments.trace {
        return trace::run(path, arguments, json);
    }
    // Without the one, the command line asks for all of the others.
    match (&arguments.heap, arguments.live, arguments.max_block) {
        (Some(heap), Some(live), Some(max_block)) => {
            let mut demand = Demand::new(live, max_block, arguments.min_block);
            if arguments.resizes {
                demand = demand.resizing();
            }
            let guaranteed = guaranteed(heap, demand)?;
            match json {
                true => output::json(&guaranteed_document(&guaranteed))?,
                false => output::text(&guaranteed_text(&guaranteed))?,
            }
            Ok(status(&guaranteed))
        }
        _ => tables::run(json),
    }
}

/// What the heap that is named guarantees for a demand.
fn guaranteed(heap: &str, demand: Demand) -> Result<Guaranteed, Failure> {
    Guaranteed::of(&heap::named(heap)?, demand).map_err(failure)
}

fn failure(error: GuaranteeError) -> Failure {
    match error {
        GuaranteeError::Bound(error) => Failure::Bound(error),
        GuaranteeError::Span { bytes } => Failure::input(format!(
            "no heap is laid out for {} bytes: give a smaller M",
            grouped(bytes)
        )),
    }
}

fn status(guaranteed: &Guaranteed) -> u8 {
    if guaranteed.holds() { 0 } else { DOES_NOT_HOLD }
}

fn guaranteed_document(guaranteed: &Guaranteed) -> Value {
    let mut whole = document(&guaranteed.name, &guaranteed.bound);
    whole["fragmentation"] = guaranteed.fragmentation.name().into();
    if let Some(compact) = &guaranteed.compact {
        whole["compact_fit"] = compact_document(compact);
    }
    if let Some(mapped) = guaranteed.mapped {
        whole["mapped"] = json!({
            "from": mapped.from,
            "pools_bytes": mapped.pools.map(number),
            "proof": MappedPart::PROOF,
        });
    }
    whole["parts"] = guaranteed.parts.iter().map(part_document).collect();
    whole["lists"] = guaranteed.lists.iter().map(list_document).collect();
    whole
}

fn list_document(kept: &KeptList) -> Value {
    json!({
        "size": kept.list.size,
        "limit": kept.list.limit,
        "block": kept.block,
        "live_bytes": kept.live,
    })
}

fn list_text(kept: &KeptList) -> String {
    let KeptList { list, block, live } = kept;
    let keeps = match list.limit {
        Some(most) => format!("at most {} blocks of {} B", grouped(most), grouped(*block)),
        None => format!("blocks of {} B without limit", grouped(*block)),
    };
    let adds = match live {
        Some(bytes) => format!("{} B more live behind it", grouped(*bytes)),
        None => "what is live behind it has no bound".to_owned(),
    };
    format!(
        "\n  {:<11} for requests of {} B: keeps {keeps}, {adds}\n",
        "list",
        grouped(list.size as u64)
    )
}

fn part_document(named: &NamedPart) -> Value {
    let NamedPart { name, part } = named;
    let mut whole = document(name, &part.bound);
    whole["live"] = part.demand.live.into();
    whole["from"] = part.demand.smallest.into();
    whole["up_to"] = part.demand.largest.into();
    whole
}

fn part_text(named: &NamedPart) -> String {
    let NamedPart { name, part } = named;
    let bound = &part.bound;
    let size = match bound.heap_bytes {
        Some(size) => format!("{} B", grouped(size)),
        None => "no finite size is known".to_owned(),
    };
    let mut text = format!(
        "\n  {:<11} {name}: {size}\n  {:<11} {} to {}, M = {} live\n",
        "part",
        "requests",
        grouped(part.demand.smallest),
        grouped(part.demand.largest),
        grouped(part.demand.live)
    );
    match bound.used {
        Some(used) => {
            text += &format!("  {:<11} {}\n", "formula", used.formula);
            text += &format!("{DIM}  {:<11} {}{DIM:#}\n", "proof", used.proof);
        }
        None => text += &format!("  {:<11} {}\n", "note", bound.formula()),
    }
    text
}

fn guaranteed_text(guaranteed: &Guaranteed) -> String {
    let Guaranteed {
        name,
        demand,
        bound,
        fragmentation,
        compact,
        mapped,
        parts,
        lists,
    } = guaranteed;
    let mut whole = text(name, demand, bound, *fragmentation);
    whole += &compact.as_ref().map_or(String::new(), compact_text);
    whole += &mapped.map_or(String::new(), mapped_text);
    whole.extend(lists.iter().map(list_text));
    whole.extend(parts.iter().map(part_text));
    whole
}

fn mapped_text(part: MappedPart) -> String {
    let mut text = format!(
        "\n  {:<11} blocks of {} and more have pages of their own, of which calls to the system \
         have no bound on time\n",
        "mapped",
        bytes(part.from as u64)
    );
    if let Some(pools) = part.pools {
        text += &format!(
            "  {:<11} {} B of the pools, which the formula is of; the rest for mapped blocks\n",
            "of it",
            grouped(pools)
        );
        text += &format!("{DIM}  {:<11} {}{DIM:#}\n", "proof", MappedPart::PROOF);
    }
    text
}

fn compact_document(compact: &CompactGuarantee) -> Value {
    let configuration = |own: Configuration| {
        json!({
            "configuration": own.to_string(),
            "allocate": own.malloc().notation(),
            "free": own.free().notation(),
            "access": own.dereference().notation(),
            "latency": own.latency().notation(),
            "memory": own.memory(),
            "fragmentation": own.fragmentation(),
        })
    };
    json!({
        "configurations": compact.configurations().map(configuration),
        "kappa": compact.options.kappa.to_string(),
        "increment": compact.options.increment,
        "page_block_bytes": number(compact.bound.page_block),
        "latency_bytes": compact.latency_bytes().map(number),
        "size_class_fragmentation_bytes": compact.bound.size_class_bytes.map(number),
    })
}

fn compact_text(compact: &CompactGuarantee) -> String {
    let mut text = "\n  for n threads, by size class: m page-blocks a thread, π of a page, \
                    β bytes of one\n"
        .to_owned();
    for own in compact.configurations() {
        text += &format!(
            "  {:<11} allocate {}, free {}, latency {},\n  {:<11} memory {}, size-class \
             fragmentation {}\n",
            own.to_string(),
            own.malloc(),
            own.free(),
            own.latency(),
            "",
            own.memory(),
            own.fragmentation()
        );
    }
    text += &format!(
        "  {:<11} κ = {}, ι = {}, largest β = {} B",
        "here",
        compact.options.kappa,
        (compact.options.increment).map_or("∞".to_owned(), |bytes| format!("{bytes} B")),
        grouped(compact.bound.page_block)
    );
    if let (Some(bytes), Some(latency)) = (compact.bound.size_class_bytes, compact.latency_bytes())
    {
        text += &format!(
            ", min(β, ι) = {} B; Σ κ(π − 1)β = {} B over {} classes of an instance",
            grouped(latency),
            grouped(bytes),
            compact.bound.classes
        );
    }
    text + "\n"
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

fn text(name: &str, demand: &Demand, bound: &Bound, fragmentation: Predictability) -> String {
    let mut text = format!("{BOLD}{name}{BOLD:#}\n\n");
    let mut line = |name: &str, value: String| text += &format!("  {name:<11} {value}\n");
    line("allocate", bound.time.allocate.notation().to_owned());
    line("free", bound.time.free.notation().to_owned());
    line("resize", bound.time.resize.notation().to_owned());
    line("access", bound.time.access.notation().to_owned());
    let depends = match fragmentation {
        Predictability::Predictable => "depends on the number of allocations and frees alone",
        Predictability::Unpredictable => "depends on the order of allocations and frees",
    };
    line(
        "space",
        format!("{}: fragmentation {depends}", fragmentation.name()),
    );
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
    text
}
