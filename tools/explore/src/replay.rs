//! A trace on a heap: what would have happened.
//!
//! [`Replayer`] keeps the record arrays between replays, so that a search over
//! thousands of heaps allocates them once. The index is monomorphised for heaps
//! of one general pool; heaps of several pools dispatch at run time.
//!
//! Invariant: the arrays are never the reason for a decision. A ledger takes its
//! spare records in order, so the last one is touched exactly when all were in
//! use at once; then the replay is repeated with twice as many.

use std::collections::HashMap;
use std::time::Instant;

use metes_config::Config;
use metes_heap::description::{GENERAL, IndexKind, LEVELS, List};
use metes_heap::index::any::AnyIndex;
use metes_heap::index::classes::{ChosenClasses, SizeClasses};
use metes_heap::index::first_fit::{Classes, Exact};
use metes_heap::index::list::ChosenList;
use metes_heap::index::{Index, Limits};
use metes_heap::{
    Buddy, Composite, Dedicated, Description, FixedSizes, Kingsley, Lea, Levels, ObjectPools,
    Record, Slabs,
};
use serde::{Deserialize, Serialize};

use crate::cost::CostModel;
use crate::detail::{self, Detail};
use crate::events::Events;
use crate::hierarchy::Counts;
use crate::mappings::foresee;
use crate::pools::{Arena, Counting, Many, Pools, RecordsAt, Single, store};
use crate::quick::{self, MANY_PROBES, QuickAny, QuickBuddy, QuickClasses, QuickList, QuickTree};
use crate::run::{self, Totals};
use crate::simulate::{Driven, Simulated};
use crate::target::Target;

/// Records that list heads and pseudo-blocks may take in one pool.
const HEADS: usize = 1152;

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Options {
    /// Where arenas end.
    pub arena: Arena,
    /// What operations cost.
    pub cost: CostModel,
}

impl Options {
    /// As a program's heap of this configuration runs: growing by its increment.
    pub fn of(config: &Config) -> Options {
        Options {
            arena: Arena::of(config),
            ..Options::default()
        }
    }
}

/// Most of something in one operation, by operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Most {
    /// In one allocation.
    pub allocate: u64,
    /// In one free.
    pub free: u64,
    /// In one resize.
    pub resize: u64,
}

impl From<[u64; 3]> for Most {
    fn from([allocate, free, resize]: [u64; 3]) -> Self {
        Most {
            allocate,
            free,
            resize,
        }
    }
}

impl Most {
    /// In any operation.
    pub fn any(&self) -> u64 {
        self.allocate.max(self.free).max(self.resize)
    }
}

/// What a replay found. Bytes and record words as integers, seconds as number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The heap, by name or specification.
    pub heap: String,
    /// Events replayed.
    pub events: u64,
    /// Allocations among them.
    pub allocations: u64,
    /// Frees among them.
    pub frees: u64,
    /// Resizes among them.
    pub resizes: u64,
    /// Largest sum of requested bytes of live blocks.
    pub peak_live: u64,
    /// Most live blocks.
    pub peak_blocks: u64,
    /// Bytes that the heap took from the system: arenas, slabs, their table.
    pub footprint: u64,
    /// Smallest fixed arena found in which no request fails, when asked for.
    pub smallest_arena: Option<u64>,
    /// Requests that failed.
    pub failed: u64,
    /// Record words read.
    pub record_reads: u64,
    /// Record words written.
    pub record_writes: u64,
    /// Most record words touched by one operation.
    pub most_accesses: Most,
    /// Bytes of records when most blocks were live: control structures, a
    /// header a live block of the general pools, the table of slabs, that of mapped blocks.
    pub record_bytes: u64,
    /// Those of the control structures and of the table of slabs alone.
    pub control_bytes: u64,
    /// Bytes that resizes copied.
    pub copied: u64,
    /// What was counted in each memory level.
    pub levels: [Counts; LEVELS],
    /// Modelled cycles of all operations.
    pub cycles: u64,
    /// Modelled cycles of an operation, in the mean over the events.
    pub cycles_mean: f64,
    /// Most modelled cycles of one operation, copying included.
    pub cycles_max: u64,
    /// Most modelled cycles of one operation without what it copied: the heap's own work.
    #[serde(default)]
    pub own_cycles_max: u64,
    /// Modelled cycles that went into copying blocks which moved.
    #[serde(default)]
    pub copy_cycles: u64,
    /// Most modelled cycles that one operation spent on copying a block.
    #[serde(default)]
    pub copy_cycles_max: u64,
    /// Most modelled cycles of one operation of each kind, copying included.
    pub most_cycles: Most,
    /// Hash of where every block was placed, in hexadecimal.
    pub placements: String,
    /// Hash of what was requested, in hexadecimal.
    pub requests: String,
    /// Events replayed in a second on one core, measured in this replay with
    /// hashes and curve kept.
    pub events_per_second: f64,
}

/// Footprint and live bytes over the events: `[event, footprint, live]`,
/// ascending, one point wherever the footprint changes and some in between.
pub type Curve = Vec<(u64, u64, u64)>;

/// What a search needs of a replay. The default is that of a heap which cannot
/// even be set up in its arena: nothing done, not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) totals: Totals,
    /// Whether it came to the end.
    pub(crate) complete: bool,
    /// Requests that one general pool refused and another served.
    pub(crate) spilled: u64,
    /// Bytes of the range of slabs.
    pub(crate) slabs: u64,
    /// Bytes of the table of slabs.
    pub(crate) table: u64,
    /// Bytes of control structures in the arenas.
    pub(crate) control: u64,
}

/// A trace, by its length and most live blocks.
type Trace = (usize, usize);
/// What decides, more than all else, how many blocks a heap cuts a trace's memory into:
/// its limits on merging and splitting.
type Cutting = (Trace, List<Limits, GENERAL>);
/// What decides how many slabs its object pools take.
type Objects = (Trace, Slabs);

/// Replays traces, with arrays that are used again.
#[derive(Debug, Default)]
pub struct Replayer {
    records: Vec<Record>,
    slabs: Vec<usize>,
    slack: Vec<u16>,
    /// Records a pool, and slabs, where more than usual were needed, so that of many such
    /// heaps only the first is replayed again.
    records_needed: HashMap<Cutting, usize>,
    slabs_needed: HashMap<Objects, usize>,
    walks: bool,
}

impl Replayer {
    /// No arrays yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replays on the library's own indexes, which walk their lists link by link. Every
    /// figure is the same and takes longer: for tests, and to measure how much longer.
    pub fn walking() -> Self {
        Replayer {
            walks: true,
            ..Self::default()
        }
    }

    /// Replays a trace with all there is to know about it.
    ///
    /// Requests follow malloc's rules: size 0 is served as size 1, a resized
    /// block keeps its identity, a free of a failed request does nothing.
    /// Linear in events times the heap's own cost.
    pub fn replay(
        &mut self,
        heap: &str,
        description: &Description,
        events: &Events,
        options: &Options,
    ) -> (Replay, Curve) {
        let (replay, curve, _) =
            self.replay_while(heap, description, events, options, &mut |_| true);
        (replay, curve)
    }

    /// Replays as long as `watch` says so; what was measured, and whether the replay came to its
    /// end. Requests follow malloc's rules, as in [`replay`](Self::replay).
    pub(crate) fn replay_while(
        &mut self,
        heap: &str,
        description: &Description,
        events: &Events,
        options: &Options,
        watch: &mut dyn FnMut(&Totals) -> bool,
    ) -> (Replay, Curve, Measured) {
        let mut record = run::Record::new(events.len(), 1000);
        let mut seconds = 0.0;
        let measured = self.measure(description, events, options, &mut |run| {
            record = run::Record::new(events.len(), 1000);
            let start = Instant::now();
            let result = run.go(Some(&mut record), watch);
            seconds = start.elapsed().as_secs_f64();
            result
        });
        let Totals { events: count, .. } = measured.totals;
        let totals = measured.totals;
        let header = options.arena.target.geometry().header as u64;
        let mapped = options.arena.mapped();
        let all_in_general = description.slabs().is_empty() && mapped.is_none();
        let (in_general, of_mapped) = if all_in_general || !measured.complete {
            (totals.peak_blocks, 0)
        } else {
            let mapped = foresee(events, mapped);
            let in_general = general_peak(description, events, &mapped.is_mapped);
            (in_general, mapped.record_bytes as u64)
        };
        let most_cycles = Most::from(totals.most_cycles);
        let replay = Replay {
            heap: heap.to_owned(),
            events: count as u64,
            allocations: totals.allocations,
            frees: totals.frees,
            resizes: totals.resizes,
            peak_live: totals.peak_live,
            peak_blocks: totals.peak_blocks,
            footprint: totals.footprint,
            smallest_arena: None,
            failed: totals.failed,
            record_reads: totals.reads,
            record_writes: totals.writes,
            most_accesses: totals.most_accesses.into(),
            record_bytes: measured.control + measured.table + header * in_general + of_mapped,
            control_bytes: measured.control + measured.table,
            copied: totals.copied,
            levels: totals.levels,
            cycles: totals.cycles,
            cycles_mean: totals.cycles as f64 / count.max(1) as f64,
            cycles_max: most_cycles.any(),
            own_cycles_max: totals.most_own_cycles,
            copy_cycles: totals.copy_cycles,
            copy_cycles_max: totals.most_copy_cycles,
            most_cycles,
            placements: format!("{:016x}", record.hashes.placements),
            requests: format!("{:016x}", record.hashes.requests),
            events_per_second: count as f64 / seconds.max(1e-9),
        };
        (replay, record.curve, measured)
    }

    /// Replays a trace and says what happens inside the heap: accesses by pool
    /// and cause, what each pool's memory is taken for, live bytes over the events.
    /// Linear in events times pools and the heap's own cost.
    pub fn inspect(
        &mut self,
        description: &Description,
        events: &Events,
        options: &Options,
    ) -> Detail {
        let mut detail = Detail::default();
        self.measure(description, events, options, &mut |run| {
            detail = Detail::of(description, options.arena.mapped());
            run.inspect(&mut detail);
            (Totals::default(), true)
        });
        detail
    }

    /// Replays without hashes and curve; `watch` may end it early.
    pub(crate) fn totals(
        &mut self,
        description: &Description,
        events: &Events,
        options: &Options,
        watch: &mut dyn FnMut(&Totals) -> bool,
    ) -> Measured {
        self.measure(description, events, options, &mut |run| run.go(None, watch))
    }

    /// Sets a heap up, lets `go` run it, and repeats with larger arrays while
    /// they were too small.
    pub(crate) fn measure(
        &mut self,
        description: &Description,
        events: &Events,
        options: &Options,
        go: &mut dyn FnMut(&mut dyn Run) -> (Totals, bool),
    ) -> Measured {
        let limits = description.general.iter().map(|pool| pool.limits);
        let limits: Vec<Limits> = limits.collect();
        let trace = (events.len(), events.slots());
        let cutting = (trace, List::from_slice(&limits));
        let heads = HEADS + trees(description, &options.arena);
        let usual = heads + 2 * events.slots() + 64;
        let mut records = self.records_needed.get(&cutting).copied().unwrap_or(usual);
        let cut = description.slabs();
        let objects = (trace, cut);
        let mut slabs = match cut.is_empty() {
            true => 0,
            false => {
                let usual = events.slots() / 16 + 64;
                self.slabs_needed.get(&objects).copied().unwrap_or(usual)
            }
        };
        loop {
            let pools = description.general.len();
            grow(&mut self.records, records * pools, Record::SPARE);
            let (words, slots) = (cut.memory_words(slabs), slabs * cut.slots());
            grow(&mut self.slabs, words, 0);
            grow(&mut self.slack, slots, 0);
            let mut setup = Setup {
                events,
                options,
                records: &mut self.records[..records * pools],
                slabs: &mut self.slabs[..words],
                slack: &mut self.slack[..slots],
                walks: self.walks || !quick::serves(&options.arena, events.len()),
            };
            let measured = setup.build(description, go);
            let exhausted = self.records[..records * pools]
                .chunks(records)
                .any(|part| part.last() != Some(&Record::SPARE));
            let all_slabs = slabs != 0 && measured.slabs as usize / cut.bytes() >= slabs;
            if !exhausted && !all_slabs {
                return measured;
            }
            if exhausted {
                records *= 2;
                self.records_needed.insert(cutting, records);
            }
            if all_slabs {
                slabs *= 2;
                self.slabs_needed.insert(objects, slabs);
            }
        }
    }
}

fn grow<T: Clone>(array: &mut Vec<T>, length: usize, fill: T) {
    if array.len() < length {
        array.resize(length, fill);
    }
}

/// Most list heads that a tree takes, whose number follows what it is laid out for.
fn trees(description: &Description, arena: &Arena) -> usize {
    let levels = Levels::of(description, arena.levels);
    let heads = description
        .general
        .iter()
        .enumerate()
        .map(|(number, pool)| {
            if !matches!(pool.index, IndexKind::FirstFit { .. }) {
                return 0;
            }
            let fixed = arena.fixed[number];
            let span = fixed.unwrap_or_else(|| levels.span(number, arena.span));
            let mut index = AnyIndex::new(pool.index, pool.limits);
            let heads = Index::<Counting<'_>>::heads(&mut index, span, arena.target.geometry());
            heads.unwrap_or(0)
        });
    heads.max().unwrap_or(0)
}

/// Most blocks that lie in general pools at once.
fn general_peak(description: &Description, events: &Events, is_mapped: &[bool]) -> u64 {
    use crate::events::Operation;
    let largest = description.slabs().largest();
    let mut general = vec![false; events.slots()];
    let (mut blocks, mut peak) = (0_u64, 0);
    for (event, is_mapped) in events.as_slice().iter().zip(is_mapped) {
        let entry = &mut general[event.slot() as usize];
        let is = match event.operation() {
            _ if *is_mapped => false,
            Operation::Allocate => event.size() > largest || event.align() > 16,
            // A block of a general pool stays in general pools.
            Operation::Resize => *entry || event.size() > largest,
            Operation::Free => false,
        };
        blocks = blocks + u64::from(is) - u64::from(*entry);
        *entry = is;
        peak = peak.max(blocks);
    }
    peak
}

/// A heap that is set up, to be run by a caller who knows what to keep of it.
pub(crate) trait Run {
    fn go(
        &mut self,
        keep: Option<&mut run::Record>,
        watch: &mut dyn FnMut(&Totals) -> bool,
    ) -> (Totals, bool);
    /// Runs it and fills in what happens inside.
    fn inspect(&mut self, detail: &mut Detail);
    /// Lets somebody else ask.
    fn drive(&mut self, drive: &mut dyn FnMut(&mut dyn Simulated));
}

struct Ready<'e, P> {
    events: &'e Events,
    cost: &'e CostModel,
    mapped: Option<usize>,
    target: Target,
    pools: P,
}

impl<P: Pools> Run for Ready<'_, P> {
    fn go(
        &mut self,
        keep: Option<&mut run::Record>,
        watch: &mut dyn FnMut(&Totals) -> bool,
    ) -> (Totals, bool) {
        let events = self.events;
        let pools = &mut self.pools;
        match keep {
            Some(record) => run::run(events, pools, self.cost, self.mapped, record, watch),
            None => run::run(events, pools, self.cost, self.mapped, &mut (), watch),
        }
    }

    fn inspect(&mut self, detail: &mut Detail) {
        detail::inspect(
            self.events,
            &mut self.pools,
            self.mapped,
            self.target,
            detail,
        );
    }

    fn drive(&mut self, drive: &mut dyn FnMut(&mut dyn Simulated)) {
        drive(&mut Driven::new(&mut self.pools));
    }
}

struct Setup<'s, 'e> {
    events: &'e Events,
    options: &'e Options,
    records: &'s mut [Record],
    slabs: &'s mut [usize],
    slack: &'s mut [u16],
    walks: bool,
}

type Go<'g> = dyn FnMut(&mut dyn Run) -> (Totals, bool) + 'g;

impl Setup<'_, '_> {
    fn build(&mut self, description: &Description, go: &mut Go<'_>) -> Measured {
        let mut general = description.general.iter();
        let (Some(pool), None) = (general.next(), general.next()) else {
            return self.many(description, go);
        };
        if !description.slabs().is_empty() {
            return self.many(description, go);
        }
        let limits = pool.limits;
        match pool.index {
            kind if self.walks => self.single(description, AnyIndex::new(kind, limits), go),
            IndexKind::List {
                fit,
                order,
                depth_percent,
                max_fit_percent,
                links,
            } => {
                let parameters = ChosenList {
                    fit,
                    order,
                    depth_percent,
                    max_fit_percent,
                    links,
                    limits,
                };
                self.single(description, QuickList::with(parameters), go)
            }
            IndexKind::Classes {
                second_level,
                probes,
            } => {
                let parameters = ChosenClasses {
                    second_level_log2: second_level.trailing_zeros(),
                    probes,
                    limits,
                };
                if probes >= MANY_PROBES {
                    self.single(description, QuickClasses::with(parameters), go)
                } else {
                    self.single(description, SizeClasses::with(parameters), go)
                }
            }
            IndexKind::Kingsley => self.single(description, Kingsley::new(), go),
            IndexKind::Lea { keep_up_to } => self.single(description, Lea::new(keep_up_to), go),
            IndexKind::FixedSizes { sizes } => self.single(description, FixedSizes::new(sizes), go),
            IndexKind::FirstFit {
                by_class: false, ..
            } => self.single(description, QuickTree::<Exact>::new(), go),
            IndexKind::FirstFit { by_class: true, .. } => {
                self.single(description, QuickTree::<Classes>::new(), go)
            }
            IndexKind::Buddy { lowest: false } => {
                self.single(description, Buddy::<false>::new(), go)
            }
            IndexKind::Buddy { lowest: true } => self.single(description, QuickBuddy::new(), go),
        }
    }

    fn single<I>(&mut self, description: &Description, index: I, go: &mut Go<'_>) -> Measured
    where
        I: for<'a> Index<Counting<'a>>,
    {
        if description.dedicated.is_empty() {
            return self.one(index, description, go);
        }
        let pools = description.dedicated.iter();
        let geometry = self.options.arena.target.geometry();
        let dedicated = Dedicated::describe::<Counting<'_>>(pools, geometry, index);
        self.one(dedicated, description, go)
    }

    fn one<I>(&mut self, index: I, description: &Description, go: &mut Go<'_>) -> Measured
    where
        I: for<'a> Index<Counting<'a>>,
    {
        match Single::new(index, self.records, &self.options.arena, description) {
            Some(pools) => finish(self.events, self.options, pools, go),
            None => Measured::default(),
        }
    }

    fn many(&mut self, description: &Description, go: &mut Go<'_>) -> Measured {
        if self.walks {
            self.composite(description, AnyIndex::new, go)
        } else {
            self.composite(description, QuickAny::new, go)
        }
    }

    fn composite<I>(
        &mut self,
        description: &Description,
        index: fn(IndexKind, Limits) -> I,
        go: &mut Go<'_>,
    ) -> Measured
    where
        I: for<'a> Index<Counting<'a>>,
    {
        let length = self.records.len() / description.general.len().max(1);
        let mut at = [RecordsAt::of(&[]); GENERAL];
        for (at, part) in at.iter_mut().zip(self.records.chunks(length.max(1))) {
            *at = RecordsAt::of(part);
        }
        let mut parts = self.records.chunks_mut(length.max(1));
        let objects = ObjectPools::new(&description.slabs(), self.slabs, self.slack);
        let target = self.options.arena.target;
        let composite = Composite::describe_with(
            description,
            index,
            |_| store(parts.next().unwrap_or_default(), target),
            objects,
        );
        match Many::new(composite, at, self.options.arena, description) {
            Some(pools) => finish(self.events, self.options, pools, go),
            None => Measured::default(),
        }
    }
}

fn finish<P: Pools>(events: &Events, options: &Options, pools: P, go: &mut Go<'_>) -> Measured {
    let control = pools.control() as u64;
    let mut ready = Ready {
        events,
        cost: &options.cost,
        mapped: options.arena.mapped(),
        target: options.arena.target,
        pools,
    };
    let (totals, complete) = go(&mut ready);
    let (slabs, table) = ready.pools.slabs();
    Measured {
        totals,
        complete,
        spilled: ready.pools.spilled(),
        slabs: slabs as u64,
        table: table as u64,
        control,
    }
}
