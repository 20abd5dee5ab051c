//! The platform that the experiments assume: a scratchpad, a main memory, and
//! what a heap costs there.
//!
//! The hierarchy is that of the paper's section 6: scratchpads of 4 to 128 KiB,
//! main memories of 1 to 8 MiB, in powers of two, at 0.13 µm. Energy is CACTI's,
//! dynamic alone; leakage is kept apart. The clock is 200 MHz.
//!
//! Invariant: a heap is charged for the smallest main memory that holds what it
//! took. One that takes more than 8 MiB is charged as if these sufficed, which
//! favours it, and is marked.

use metes_explore::engine::Metrics;
use metes_explore::{
    Accesses, Arena, CostModel, Counts, EnergyError, Events, Hierarchy, LEVELS, Options, Replayer,
    Work,
};
use metes_heap::description::{General, List};
use metes_heap::{Description, IndexKind};

/// Both levels, as a specification of levels.
const LEVELS_TEXT: &str = "scratchpad=4KiB..128KiB,main=1MiB..8MiB";
/// The level of the scratchpad.
pub(crate) const SCRATCHPAD: u8 = 0;
/// The level of the main memory.
pub(crate) const MAIN: u8 = 1;
/// The largest main memory.
const MOST_MAIN: u64 = 8 << 20;
/// Memory is taken in steps of this: a device has no pages.
pub(crate) const INCREMENT: usize = 256;

/// What a heap costs on the platform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    /// Bytes taken, both levels together.
    pub(crate) footprint: u64,
    /// Words of 4 bytes that the heap itself reads and writes.
    pub(crate) own_accesses: u64,
    /// Share of all accesses that go to the scratchpad.
    pub(crate) near: f64,
    /// Dynamic energy, joule.
    pub(crate) energy: f64,
    /// Leakage over the run, joule.
    pub(crate) leakage: f64,
    /// Seconds.
    pub(crate) time: f64,
    /// Requests that failed.
    pub(crate) failed: u64,
    /// Whether it took more than the largest main memory.
    pub(crate) beyond: bool,
}

/// Prices heaps for one trace.
pub(crate) struct Platform<'e> {
    events: &'e Events,
    hierarchy: Hierarchy,
    /// Whether the program's accesses count, or the heap's alone.
    program: bool,
}

impl<'e> Platform<'e> {
    pub(crate) fn new(events: &'e Events) -> Result<Self, EnergyError> {
        let hierarchy = Hierarchy::spec(LEVELS_TEXT)?;
        Ok(Platform {
            events,
            hierarchy,
            program: true,
        })
    }

    /// The platform on which the heap's own accesses alone count, not the program's.
    pub(crate) fn heap_alone(mut self) -> Self {
        self.program = false;
        self
    }

    /// What the program does to its blocks, as far as it counts.
    fn application(&self) -> Accesses {
        match self.program {
            true => self.events.application(),
            false => Accesses::NONE,
        }
    }

    fn work(&self) -> Work {
        Work {
            application: self.application(),
            ..Work::of(self.events, &CostModel::default())
        }
    }

    /// Replays a heap with a scratchpad of so many bytes. O(events).
    pub(crate) fn cost(
        &self,
        replayer: &mut Replayer,
        heap: &Description,
        scratchpad: Option<usize>,
    ) -> Result<Cost, EnergyError> {
        let mut sizes = [None; LEVELS];
        sizes[usize::from(SCRATCHPAD)] = scratchpad;
        let options = Options {
            arena: Arena {
                increment: INCREMENT,
                levels: sizes,
                ..Arena::HOST
            },
            cost: CostModel::default(),
        };
        let (replay, _) = replayer.replay("", heap, self.events, &options);
        let mut counts = replay.levels;
        let main = &mut counts[usize::from(MAIN)];
        let beyond = main.footprint > MOST_MAIN;
        main.footprint = main.footprint.min(MOST_MAIN);
        if !self.program {
            for level in &mut counts {
                (level.application_reads, level.application_writes) = (0, 0);
            }
        }
        let word = self.events.access_word();
        let pricer = self.hierarchy.pricer(heap, &sizes, word)?;
        let price = pricer.price(&counts, &self.work())?;
        let near = &price.levels[usize::from(SCRATCHPAD)];
        let all: u64 = price.levels.iter().map(|own| own.reads + own.writes).sum();
        let application = self.application();
        let program_accesses = application.reads + application.writes;
        Ok(Cost {
            footprint: replay.footprint,
            own_accesses: all - program_accesses,
            near: (near.reads + near.writes) as f64 / all.max(1) as f64,
            energy: price.energy_fj as f64 * 1e-15,
            leakage: price.leakage_fj as f64 * 1e-15,
            time: price.time_ps as f64 * 1e-12,
            failed: replay.failed,
            beyond,
        })
    }

    /// Dynamic energy, in joule, of a heap that lies in the main memory alone and
    /// took and touched so much.
    pub(crate) fn in_main(&self, metrics: &Metrics) -> Result<f64, EnergyError> {
        let application = self.application();
        let mut counts = [Counts::default(); LEVELS];
        counts[usize::from(MAIN)] = Counts {
            record_reads: metrics.record_reads,
            record_writes: metrics.record_writes,
            application_reads: application.reads,
            application_writes: application.writes,
            footprint: metrics.footprint.min(MOST_MAIN),
            ..Counts::default()
        };
        let heap = in_main(&Description::of(IndexKind::Kingsley));
        let word = self.events.access_word();
        let pricer = self.hierarchy.pricer(&heap, &[None; LEVELS], word)?;
        Ok(pricer.price(&counts, &self.work())?.energy_fj as f64 * 1e-15)
    }
}

/// A heap with all its pools in the main memory.
pub(crate) fn in_main(heap: &Description) -> Description {
    let mut moved = *heap;
    moved.general = List::EMPTY;
    for pool in heap.general.iter() {
        moved.general.push(General {
            level: MAIN,
            ..pool
        });
    }
    moved.dedicated = List::EMPTY;
    for mut pool in heap.dedicated.iter() {
        pool.level = MAIN;
        moved.dedicated.push(pool);
    }
    moved.objects = List::EMPTY;
    for mut pool in heap.objects.iter() {
        pool.level = MAIN;
        moved.objects.push(pool);
    }
    moved
}
