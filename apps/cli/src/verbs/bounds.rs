//! `metes bounds`.

mod tables;
mod tandem;
mod trace;

use metes_config::{Config, GuaranteeError, HandleHeap};
use metes_heap::bounds::compact::CompactBound;
use metes_heap::bounds::{self, Bound, Candidate, Demand};
use metes_heap::compact::complexity::Configuration;
use metes_heap::compact::{MOVES, Options};
use metes_heap::complexity::Predictability;
use metes_heap::mapped;
use serde_json::{Value, json};

use crate::arguments::Bounds;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::heap::Named;
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
            Guaranteed::of(heap, demand)?.print(json)
        }
        _ => tables::run(json),
    }
}

/// What a heap guarantees for a demand.
struct Guaranteed {
    name: String,
    demand: Demand,
    bound: Bound,
    fragmentation: Predictability,
    compact: Option<Compact>,
    mapped: Option<MappedPart>,
}

/// What blocks that are mappings of their own add to a bound, which has them then.
struct MappedPart {
    /// From so many bytes on.
    from: usize,
    /// The bound on the pools alone.
    pools: Option<u128>,
}

impl MappedPart {
    /// Of a heap that may have mapped blocks where requests are as large as the demand's largest;
    /// adds them to the bound.
    fn add(config: &Config, demand: &Demand, bound: &mut Bound) -> Option<Self> {
        let from = config.arena.mapped?;
        if demand.largest < from as u64 {
            return None;
        }
        let pools = bound.heap_bytes;
        bound.heap_bytes = pools.map(|pools| mapped::most(from, pools, demand.live));
        Some(MappedPart { from, pools })
    }

    fn document(&self) -> Value {
        json!({
            "from": self.from,
            "pools_bytes": self.pools.map(number),
            "proof": MAPPED_PROOF,
        })
    }

    fn show(&self) -> String {
        let mut text = format!(
            "\n  {:<11} blocks of {} and more have pages of their own, of which calls to the system \
             have no bound on time\n",
            "mapped",
            bytes(self.from as u64)
        );
        if let Some(pools) = self.pools {
            text += &format!(
                "  {:<11} {} B of the pools, which the formula is of; the rest for mapped blocks\n",
                "of it",
                grouped(pools)
            );
            text += &format!("{DIM}  {:<11} {MAPPED_PROOF}{DIM:#}\n", "proof");
        }
        text
    }
}

/// Why what mapped blocks add is enough.
const MAPPED_PROOF: &str = "a mapped block has a quarter of the threshold at least, so at most k = M/(t/4) are mapped, and \
     less than a page each is beside their bytes; with the pools, a table of 2k entries and 1/32 \
     for pages that are kept";

impl Guaranteed {
    fn of(heap: &str, demand: Demand) -> Result<Self, Failure> {
        let named = heap::named(heap)?;
        let (name, mut bound) = match &named {
            Named::Pointers(config) => (config.name(), of(config, &demand)?),
            Named::Handles(heap) => (heap.spec(), of_handles(heap, &demand)?),
        };
        let (declared, options) = match &named {
            Named::Pointers(config) => (config.declares(), config.compact_fit()),
            Named::Handles(heap) => (heap.declares(), None),
        };
        let compact = options
            .map(|options| Compact::new(options, &demand))
            .transpose()?;
        let mapped = match &named {
            Named::Pointers(config) => MappedPart::add(config, &demand, &mut bound),
            Named::Handles(_) => None,
        };
        Ok(Guaranteed {
            name,
            demand,
            bound,
            fragmentation: declared.fragmentation,
            compact,
            mapped,
        })
    }

    fn document(&self) -> Value {
        let mut document = document(&self.name, &self.bound);
        document["fragmentation"] = self.fragmentation.name().into();
        if let Some(compact) = &self.compact {
            document["compact_fit"] = compact.document();
        }
        if let Some(mapped) = &self.mapped {
            document["mapped"] = mapped.document();
        }
        document
    }

    fn text(&self) -> String {
        let Guaranteed {
            name,
            demand,
            bound,
            fragmentation,
            compact,
            mapped,
        } = self;
        let mut text = text(name, demand, bound, *fragmentation);
        text += &compact
            .as_ref()
            .map_or(String::new(), |compact| compact.show());
        text += &mapped
            .as_ref()
            .map_or(String::new(), |mapped| mapped.show());
        text
    }

    fn print(&self, json: bool) -> Result<u8, Failure> {
        if json {
            output::json(&self.document())?;
        } else {
            output::text(&self.text())?;
        }
        Ok(self.status())
    }

    fn status(&self) -> u8 {
        match self.bound.heap_bytes {
            Some(_) => 0,
            None => DOES_NOT_HOLD,
        }
    }
}

/// What is known of compact-fit in the terms of its slides.
struct Compact {
    options: Options,
    bound: CompactBound,
}

impl Compact {
    fn new(options: Options, demand: &Demand) -> Result<Self, Failure> {
        let bound =
            bounds::compact::compact_fit(&options, MOVES as u64, demand).map_err(Failure::Bound)?;
        Ok(Compact { options, bound })
    }

    /// One heap for all threads, and one for each.
    fn configurations(&self) -> [Configuration; 2] {
        [true, false].map(|shared| Configuration::of(&self.options, shared))
    }

    /// Bytes that nobody can interrupt: min(β, ι) of the largest class in reach.
    fn latency_bytes(&self) -> Option<u128> {
        let increment = self
            .options
            .increment
            .map_or(u128::MAX, |bytes| bytes as u128);
        let moves = self.bound.size_class_bytes.is_some();
        moves.then(|| self.bound.page_block.min(increment))
    }

    fn document(&self) -> Value {
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
            "configurations": self.configurations().map(configuration),
            "kappa": self.options.kappa.to_string(),
            "increment": self.options.increment,
            "page_block_bytes": number(self.bound.page_block),
            "latency_bytes": self.latency_bytes().map(number),
            "size_class_fragmentation_bytes": self.bound.size_class_bytes.map(number),
        })
    }

    fn show(&self) -> String {
        let mut text = "\n  for n threads, by size class: m page-blocks a thread, π of a page, \
                        β bytes of one\n"
            .to_owned();
        for own in self.configurations() {
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
            self.options.kappa,
            (self.options.increment).map_or("∞".to_owned(), |bytes| format!("{bytes} B")),
            grouped(self.bound.page_block)
        );
        if let (Some(bytes), Some(latency)) = (self.bound.size_class_bytes, self.latency_bytes()) {
            text += &format!(
                ", min(β, ι) = {} B; Σ κ(π − 1)β = {} B over {} classes of an instance",
                grouped(latency),
                grouped(bytes),
                self.bound.classes
            );
        }
        text + "\n"
    }
}

/// The guarantee of a heap of handles.
fn of_handles(heap: &HandleHeap, demand: &Demand) -> Result<Bound, Failure> {
    match heap {
        HandleHeap::Fragmented(options) => bounds::fragmented(options, demand),
        HandleHeap::BlockTable(options) => bounds::block_table(options, MOVES as u64, demand),
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
