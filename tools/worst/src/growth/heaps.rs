//! The heaps whose growth is measured, each with what it declares.
//!
//! Every heap with a name is one, some of them also with the parameters that the slides assume,
//! and compact-fit in every configuration of the slides' concurrent table.

use metes_config::{Config, HandleHeap, StoreKind};
use metes_heap::Memory;
use metes_heap::bounds::Times;
use metes_heap::compact::complexity::{CONFIGURATIONS, Configuration, Cost};
use metes_heap::compact::{
    Granularity, Handle, Instances, Kappa, Options, Partition, Population, SharedCompactFit,
    Sharing,
};
use metes_heap::complexity::{Axis, Declaration};
use metes_heap::fragmented;

use super::{Declared, Operation, watched::Watched};
use crate::library::Make;
use crate::memory::Range;
use crate::subject::library::{ByHandle, Handles, by_handle};
use crate::subject::{Runnable, Running, Subject};

/// Classes for blocks of up to half the largest page: the least that a page may hold for a block
/// to have somewhere to move.
const MOVING: Partition = Partition {
    page: 1 << 16,
    smallest: 32,
    largest: (1 << 15) - 8,
    ..Partition::DEFAULT
};
/// The increment ι where the block grows.
const INCREMENT: usize = 256;

/// A heap of the study.
#[derive(Clone, Debug)]
pub struct Design {
    /// Its spec, or what there is instead of one.
    pub name: String,
    /// What it declares.
    pub declared: Declaration,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// With pointers, as its configuration says.
    Config(Box<Config>),
    /// Of the library itself.
    Make(Make),
}

fn compact(kappa: Kappa, increment: Option<usize>) -> Options {
    Options {
        partition: MOVING,
        kappa,
        increment,
    }
}

/// Every heap of the slides' overview and every other with a name, by default parameters and
/// those that the slides assume.
pub fn designs() -> Vec<Design> {
    let mut all: Vec<Design> = Vec::new();
    for (name, config) in metes_config::named() {
        all.push(Design::of(name, config));
        for spec in [
            "first-fit:order=lifo",
            "best-fit:order=lifo",
            "buddy:order=address",
        ] {
            if spec.starts_with(name)
                && let Ok(config) = metes_config::spec(spec)
            {
                all.push(Design::of(spec, config));
            }
        }
    }
    let full = compact(Kappa::Finite(1), None);
    let still = Options {
        kappa: Kappa::Infinite,
        ..full
    };
    let framed = Options {
        partition: Partition {
            granule: 64,
            smallest: 64,
            ..MOVING
        },
        ..full
    };
    let design = |name: &str, declared, make| Design {
        name: name.to_owned(),
        declared,
        kind: Kind::Make(make),
    };
    all.extend([
        design("compact-fit:kappa=1", full.declares(), Make::Moving(full)),
        design(
            "compact-fit, block table",
            full.declares_with_block_table(),
            Make::Table(framed),
        ),
        design(
            "compact-fit:moving=no",
            still.declares(),
            Make::Still(MOVING),
        ),
    ]);
    for shape in [fragmented::Shape::Chain, fragmented::Shape::Tree] {
        let options = fragmented::Options {
            shape,
            ..fragmented::Options::DEFAULT
        };
        let name = HandleHeap::Fragmented(options).spec();
        all.push(design(&name, shape.declares(), Make::Pieces(options)));
    }
    all
}

impl Design {
    fn of(name: &str, config: Config) -> Self {
        debug_assert_eq!(config.store, StoreKind::Tagged);
        Design {
            name: name.to_owned(),
            declared: config.heap.declares(),
            kind: Kind::Config(Box::new(config)),
        }
    }

    /// What is declared of one operation.
    pub(super) fn declares(&self, operation: Operation, axis: Axis) -> Option<Declared> {
        let Times {
            allocate,
            free,
            access,
            ..
        } = self.declared.times;
        let time = match operation {
            Operation::Allocate => allocate,
            Operation::Free => free,
            Operation::Access => access,
            Operation::Latency => return None,
        };
        Some(Declared {
            notation: time.notation(),
            growth: time.along(axis),
        })
    }

    /// Whether its blocks are those of compact-fit's classes.
    pub(super) fn has_pages(&self) -> bool {
        match self.kind {
            Kind::Make(make) => !matches!(make, Make::Pieces(_)),
            Kind::Config(_) => false,
        }
    }

    /// Whether its blocks are addresses in memory that is its own to the end.
    pub(super) fn has_addresses(&self) -> bool {
        matches!(self.kind, Kind::Config(_))
    }

    /// Whether it keeps sorted bins, and blocks aside.
    pub(super) fn has_bins(&self) -> bool {
        self.name == "lea"
    }

    pub(super) fn runnable(&self) -> Box<dyn Runnable> {
        match &self.kind {
            Kind::Config(config) => config.clone(),
            Kind::Make(make) => Box::new(*make),
        }
    }
}

/// A configuration of the slides' concurrent table, as one of its threads sees it.
#[derive(Clone, Copy, Debug)]
pub struct Concurrent(pub Configuration);

impl Concurrent {
    /// All of them.
    pub fn all() -> Vec<Concurrent> {
        CONFIGURATIONS.into_iter().map(Concurrent).collect()
    }

    fn cost(self, operation: Operation) -> Cost {
        match operation {
            Operation::Allocate => self.0.malloc(),
            Operation::Free => self.0.free(),
            Operation::Access => self.0.dereference(),
            Operation::Latency => self.0.latency(),
        }
    }

    pub(super) fn declares(self, operation: Operation, axis: Axis) -> Declared {
        let cost = self.cost(operation);
        Declared {
            notation: cost.notation(),
            growth: cost.along(axis),
        }
    }

    /// Whether ι makes sense of it.
    pub(super) fn has_increment(self) -> bool {
        self.0.incremental
    }

    /// The heap of it with an increment.
    pub(super) fn runnable(self, increment: Option<usize>) -> Box<dyn Runnable> {
        let kappa = match self.0.compacting {
            true => Kappa::Finite(1),
            false => Kappa::Infinite,
        };
        let increment = self.0.incremental.then_some(increment.unwrap_or(INCREMENT));
        let options = compact(kappa, increment);
        match self.0.shared {
            true => Box::new(Opened(move |memory| {
                let sharing = Sharing {
                    granularity: Granularity::Class,
                    threads: 2,
                };
                SharedCompactFit::new(&options, sharing, memory, Watched::new)
                    .ok()
                    .map(Handles)
            })),
            false => Box::new(Opened(move |memory| {
                let population = Population {
                    threads: 2,
                    instances: 2,
                    degree: 1,
                    spill: false,
                };
                let granularity = Granularity::Class;
                Instances::new(&options, granularity, population, memory, Watched::new)
                    .ok()
                    .map(Handles)
            })),
        }
    }
}

/// Opens a heap by a function of its memory.
struct Opened<F>(F);

impl<S: Subject + 'static, F: Fn(Memory) -> Option<S>> Runnable for Opened<F> {
    fn open<'m>(&self, memory: &'m mut Range) -> Option<Running<'m>> {
        // SAFETY: the range is borrowed for as long as the heap runs.
        let region = unsafe { Memory::from_raw(memory.base(), memory.length()) };
        Some(Running::new((self.0)(region)?, true))
    }
}

by_handle!(SharedCompactFit<Watched>, |heap, size| {
    SharedCompactFit::allocate(heap, size, 1)
});
by_handle!(Instances<Watched>, |heap, size| heap
    .member(0)
    .map_err(|_| metes_heap::compact::Refused::Exhausted)
    .and_then(|own| own.allocate(size, 1)));
