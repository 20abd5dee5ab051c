//! A heap to attack, as it is named: what stands for it under attack, what runs, and what is
//! known of it.
//!
//! Invariant: what stands for a heap while its memory is attacked ends with the footprint
//! that `metes replay` finds for the same requests.

use metes_config::{Config, GuaranteeError, HandleHeap, StoreKind};
use metes_explore::{
    BlockCount, Events, Replayer, moving, replay_block_table, replay_handles, smallest_arena,
};
use metes_heap::bounds::{self, Bound, Demand};
use metes_heap::compact::backing::RECORD;
use metes_heap::compact::complexity::Configuration;
use metes_heap::compact::{Kappa, MOVES, Options, Partition};
use serde::Serialize;

use crate::error::WorstError;
use crate::library::{Library, Make};
use crate::memory::Range;
use crate::shares::{Shares, parts};
use crate::subject::{Runnable, Running};
use crate::victim::{Replayed, Victim, options_of};
use crate::worst::Declared;

/// A heap to attack.
#[derive(Clone, Copy, Debug)]
pub enum Heap<'c> {
    /// One that gives addresses, or whose blocks move behind handles.
    Pointers(&'c Config),
    /// One that gives handles for other reasons.
    Handles(&'c HandleHeap),
}

impl<'c> From<&'c Config> for Heap<'c> {
    fn from(config: &'c Config) -> Self {
        Heap::Pointers(config)
    }
}

impl<'c> From<&'c HandleHeap> for Heap<'c> {
    fn from(heap: &'c HandleHeap) -> Self {
        Heap::Handles(heap)
    }
}

/// Most that one call does to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum PerCall {
    /// A free moves at most one page-block.
    Moves {
        /// κ; `None` for a heap that never moves a block.
        kappa: Option<u32>,
        /// β: bytes of the largest page-block of the demand.
        page_block: u64,
    },
    /// A call takes or gives back at most one object.
    Pieces {
        /// Blocks of the largest object of the demand.
        blocks: u64,
        /// Bytes of a block.
        block: u64,
    },
}

/// What a sequence comes to when it is replayed.
pub(crate) struct Ending {
    pub(crate) footprint: u64,
    /// Smallest arena that serves it.
    pub(crate) arena: Option<u64>,
    /// Smallest arena that serves it, in the bytes that a bound counts.
    pub(crate) in_bound: Option<u64>,
}

/// Bytes beyond several M of a heap that may take what it likes.
const ROOM: u64 = 4 << 20;
/// Least bytes of the arena of heaps whose instructions are counted.
const LEAST_ARENA: u64 = 1 << 16;

impl<'c> Heap<'c> {
    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Heap::Pointers(config) => config.name(),
            Heap::Handles(heap) => heap.spec(),
        }
    }

    /// The spec that says everything about it, if there is one.
    pub fn spec(&self) -> Option<String> {
        match self {
            Heap::Pointers(config) => config.normal().spec(),
            Heap::Handles(heap) => Some(heap.spec()),
        }
    }

    /// Refuses heaps that are not attacked.
    pub(crate) fn check(&self) -> Result<(), WorstError> {
        match self {
            Heap::Pointers(config) if !config.store.inside() && self.make().is_none() => {
                Err(WorstError::Outside {
                    heap: config.name(),
                })
            }
            _ => Ok(()),
        }
    }

    /// What it is made of, if no replay over a ledger stands for it.
    fn make(&self) -> Option<Make> {
        match self {
            Heap::Pointers(config) => match (config.store, config.heap.partition) {
                (StoreKind::Moving(moving), Some(partition)) => Some(Make::Moving(Options {
                    partition,
                    kappa: moving.kappa,
                    increment: moving.increment,
                })),
                _ => None,
            },
            Heap::Handles(heap) => Some(of_handles(heap)),
        }
    }

    /// What is counted: where no request reaches the heap behind the classes, these alone.
    fn counted(&self, demand: &Demand) -> Option<Make> {
        match (self.make(), self) {
            (None, Heap::Pointers(config)) => config
                .heap
                .partition
                .filter(|partition| demand.largest <= partition.largest as u64)
                .filter(|_| config.store == StoreKind::Tagged)
                .map(Make::Still),
            (make, _) => make,
        }
    }

    /// The bound of a demand.
    pub(crate) fn bound(&self, demand: &Demand) -> Result<Bound, WorstError> {
        Ok(match self {
            Heap::Pointers(config) => metes_config::guarantee(config, demand)?,
            Heap::Handles(HandleHeap::Fragmented(options)) => {
                bounds::fragmented(options, demand).map_err(GuaranteeError::Bound)?
            }
            Heap::Handles(HandleHeap::BlockTable(options)) => {
                bounds::block_table(options, MOVES as u64, demand).map_err(GuaranteeError::Bound)?
            }
        })
    }

    /// Heaps whose memory is attacked, and the bytes in which they must not refuse.
    pub(crate) fn attacked(
        &self,
        demand: &Demand,
        bound: &Bound,
    ) -> Result<(Box<dyn Victim + 'c>, Option<u64>), WorstError> {
        let bytes = bound.heap_bytes.and_then(|bytes| u64::try_from(bytes).ok());
        if let Some(make) = self.make() {
            return Ok((self.library(make, demand, bytes), bytes));
        }
        let Heap::Pointers(config) = *self else {
            return Err(WorstError::Unservable { heap: self.name() });
        };
        if bytes.is_none() || parts(&config.heap) == 1 {
            return Ok((Box::new(Replayed::new(config)), bytes));
        }
        let shares = Shares::bounded(config, demand)?;
        let bytes = shares.as_ref().map(Shares::total);
        Ok((Box::new(Replayed::with_shares(config, shares)), bytes))
    }

    fn library(&self, make: Make, demand: &Demand, bound: Option<u64>) -> Box<dyn Victim + 'c> {
        let room = bound.unwrap_or(0).max(demand.live.saturating_mul(16)) + ROOM;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Box::new(Library::new(make, room))
    }

    /// Heaps that guide the search for slow calls.
    pub(crate) fn guide(&self, demand: &Demand) -> Box<dyn Victim + 'c> {
        match self.run(demand) {
            Ran::Library(make) => self.library(make, demand, None),
            Ran::Config(config) => Box::new(Replayed::new(config)),
        }
    }

    /// Heaps on which instructions are counted.
    pub(crate) fn run(&self, demand: &Demand) -> Ran<'c> {
        match (self.counted(demand), *self) {
            (Some(make), _) => Ran::Library(make),
            (None, Heap::Pointers(config)) => Ran::Config(config),
            (None, Heap::Handles(heap)) => Ran::Library(of_handles(heap)),
        }
    }

    /// The arena of heaps whose instructions are counted: room for several M in each of its
    /// parts, so that few requests are refused.
    pub(crate) fn arena(&self, demand: &Demand) -> usize {
        let part = demand.live.saturating_mul(4).max(LEAST_ARENA) as usize;
        let parts = match self.run(demand) {
            Ran::Config(config) => parts(&config.heap),
            Ran::Library(_) => 1,
        };
        part.next_power_of_two().saturating_mul(parts)
    }

    /// What is declared of its allocations and frees.
    pub(crate) fn declares(&self, bound: &Bound) -> Declared {
        match self.make() {
            Some(Make::Moving(options)) => {
                let own = Configuration::of(&options, false);
                Declared {
                    allocate: own.malloc().notation(),
                    free: own.free().notation(),
                }
            }
            _ => Declared {
                allocate: bound.time.allocate.notation(),
                free: bound.time.free.notation(),
            },
        }
    }

    /// Most that one of its calls does to blocks, where that is bounded by the demand.
    pub(crate) fn per_call(&self, demand: &Demand) -> Option<PerCall> {
        match self.make()? {
            Make::Moving(options) | Make::Table(options) => Some(PerCall::Moves {
                kappa: match options.kappa {
                    Kappa::Finite(kappa) => Some(kappa),
                    Kappa::Infinite => None,
                },
                page_block: page_block(&options.partition, demand.largest),
            }),
            Make::Pieces(options) => Some(PerCall::Pieces {
                blocks: options.blocks(demand.largest),
                block: options.block as u64,
            }),
            Make::Still(_) => None,
        }
    }

    /// Replays requests as `metes replay` does.
    pub(crate) fn replay(&self, events: &Events) -> Result<Ending, WorstError> {
        let whole = |footprint, arena| Ending {
            footprint,
            arena,
            in_bound: arena,
        };
        let name = self.name();
        match (self.make(), self) {
            (Some(Make::Moving(options)), _) => {
                let found = moving::replay(&name, &options, events)
                    .map_err(|unfit| WorstError::Failed(unfit.to_string()))?;
                Ok(whole(found.footprint, found.smallest_arena))
            }
            (Some(Make::Table(options)), _) => {
                let found = replay_block_table(&name, &options, events)
                    .map_err(|unfit| WorstError::Failed(unfit.to_string()))?;
                Ok(whole(found.footprint, found.smallest_arena))
            }
            (Some(Make::Pieces(options)), _) => {
                let found = replay_handles(&name, &mut BlockCount::new(options, None), events);
                // What it takes where it may is what it needs.
                let arena = (found.failed == 0).then_some(found.footprint);
                Ok(whole(found.footprint, arena))
            }
            (None, Heap::Pointers(config)) => Ok(replay(config, events)),
            _ => Err(WorstError::Unservable { heap: name }),
        }
    }
}

fn of_handles(heap: &HandleHeap) -> Make {
    match heap {
        HandleHeap::Fragmented(options) => Make::Pieces(*options),
        HandleHeap::BlockTable(options) => Make::Table(*options),
    }
}

/// Bytes of the page-block of a request.
fn page_block(partition: &Partition, request: u64) -> u64 {
    let whole = request as usize + RECORD;
    let class = partition.classes(RECORD).find(|&bytes| bytes >= whole);
    class.unwrap_or(whole) as u64
}

/// Footprint over a ledger, and the smallest arena.
fn replay(config: &Config, events: &Events) -> Ending {
    let options = options_of(config);
    let mut replayer = Replayer::new();
    let (replay, _) = replayer.replay(&config.name(), &config.heap, events, &options);
    let limited = config.level_sizes().iter().any(Option::is_some);
    let arena = match limited {
        true => None,
        false => smallest_arena(&mut replayer, &config.heap, events, &options),
    };
    Ending {
        footprint: replay.footprint,
        arena: arena.as_ref().map(|arena| arena.bytes),
        // Bounds say what slabs take, and apart from it what their records do.
        in_bound: arena.map(|arena| arena.bytes - arena.table),
    }
}

/// A heap on which instructions are counted.
#[derive(Clone, Copy)]
pub(crate) enum Ran<'c> {
    Config(&'c Config),
    Library(Make),
}

impl Ran<'_> {
    /// What its code is called in `metes_heap`.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Ran::Library(Make::Moving(_)) => "CompactFit",
            Ran::Library(Make::Table(_)) => "CompactFit over a block table",
            Ran::Library(Make::Still(_)) => "NonCompacting",
            Ran::Library(Make::Pieces(_)) => "Fragmented",
            Ran::Config(config) if parts(&config.heap) > 1 => "Composite",
            Ran::Config(_) => "Heap",
        }
    }
}

impl Runnable for Ran<'_> {
    fn open<'m>(&self, memory: &'m mut Range) -> Option<Running<'m>> {
        match self {
            Ran::Config(config) => config.open(memory),
            Ran::Library(make) => make.open(memory),
        }
    }
}
