//! A heap under random operations, good and bad, each answer of which is checked beside a naive
//! model.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;

use metes_device::heap::{Block, Refusal, Span};
use metes_device::sparse::{Pages, Plan, SparseRefusal};
use metes_heap::{BadFree, Corruption};

use crate::common::Random;
use crate::device::{Watched, said};
use crate::model::{Model, Part};

/// What the campaign asks of a heap.
pub(crate) trait Subject {
    type Place: Copy + Eq + Debug;

    fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<Self::Place>, SparseRefusal>;
    fn free(&mut self, place: Self::Place) -> Result<(), BadFree>;
    fn span(&self, place: Self::Place) -> Result<Span, BadFree>;
    fn used(&self) -> usize;
    fn in_use(&self) -> Vec<Span>;
    /// Bytes in free blocks, where the heap tells.
    fn free_bytes(&self) -> Option<u64>;
    fn check(&self) -> Result<(), Corruption>;
    /// The first address of its range.
    fn start(&self) -> u64;
    /// Of a heap on pages what they do.
    fn pages(&self) -> Option<Pages> {
        None
    }
    /// Whether a heap on pages sleeps.
    fn asleep(&self) -> bool {
        false
    }
    fn sleep(&mut self) -> Result<(), SparseRefusal> {
        Ok(())
    }
    fn wake(&mut self) -> Result<(), SparseRefusal> {
        Ok(())
    }
    fn trim(&mut self, _keep: u64) -> Result<u64, SparseRefusal> {
        Ok(0)
    }
}

/// What a heap was made for, and what it promises beside what every heap does.
pub(crate) struct Rules<P> {
    /// Bytes of the range.
    pub(crate) bytes: u64,
    pub(crate) granule: u64,
    /// Most blocks of the lists of a part.
    pub(crate) blocks: usize,
    /// Equal parts that no block crosses.
    pub(crate) parts: u64,
    /// The most granules of a free block while a request of so many is refused.
    pub(crate) refusable: fn(u64) -> u64,
    /// Whether a place that was freed never names another block.
    pub(crate) by_handle: bool,
    /// The place of an offset, where places are offsets.
    pub(crate) forge: fn(u64) -> Option<P>,
    /// Places that another, larger heap gave out, and that this one can never have given out.
    pub(crate) strangers: Vec<P>,
    /// Bytes of the slab in which a block is a slot.
    pub(crate) slab: fn(P) -> Option<u64>,
    /// Of a heap on pages.
    pub(crate) plan: Option<Plan>,
}

/// Kinds of requests and of phases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Regime {
    pub(crate) name: &'static str,
    /// The heap is small, so that it is nearly full most of the time.
    pub(crate) small: bool,
    /// Sizes are spread over so many doublings below `bytes >> shift`.
    pub(crate) shift: u32,
    pub(crate) doublings: u64,
    pub(crate) powers: bool,
    /// Alignments of up to so many bytes, as a power of two; 0 for a page.
    pub(crate) align: u32,
    /// Allocations of a hundred operations in phases of growth and of decline.
    pub(crate) grow: u64,
    pub(crate) shrink: u64,
    /// The heap is filled until it refuses, and emptied, again and again.
    pub(crate) drain: bool,
}

impl Regime {
    /// Of a hundred operations how many allocate.
    pub(crate) fn grows(&self, operation: u64, draining: bool) -> u64 {
        match (self.drain, draining, operation / 3000 % 2) {
            (true, true, _) => 0,
            (true, false, _) => 100,
            (false, _, 0) => self.grow,
            (false, ..) => self.shrink,
        }
    }
}

pub(crate) const REGIMES: [Regime; 5] = [
    Regime {
        name: "nearly full",
        small: true,
        shift: 4,
        doublings: 12,
        powers: false,
        align: 8,
        grow: 62,
        shrink: 48,
        drain: false,
    },
    Regime {
        name: "large and sparse",
        small: false,
        shift: 8,
        doublings: 16,
        powers: false,
        align: 10,
        grow: 60,
        shrink: 42,
        drain: false,
    },
    Regime {
        name: "powers of two",
        small: true,
        shift: 4,
        doublings: 12,
        powers: true,
        align: 8,
        grow: 60,
        shrink: 45,
        drain: false,
    },
    Regime {
        name: "aligned up to a page",
        small: true,
        shift: 5,
        doublings: 10,
        powers: false,
        align: 0,
        grow: 60,
        shrink: 45,
        drain: false,
    },
    Regime {
        name: "filled and drained",
        small: true,
        shift: 5,
        doublings: 10,
        powers: false,
        align: 8,
        grow: 100,
        shrink: 0,
        drain: true,
    },
];

/// What came of a trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) operations: u64,
    pub(crate) allocations: u64,
    pub(crate) refusals: u64,
    /// Of them, by reason.
    pub(crate) reasons: BTreeMap<&'static str, u64>,
    pub(crate) frees: u64,
    pub(crate) bad_frees: u64,
    pub(crate) bad_frees_found: u64,
    pub(crate) peak_blocks: usize,
    pub(crate) peak_bytes: u64,
    /// Blocks that were live when heaps ended, and were reported.
    pub(crate) leaks: u64,
    /// Maps and unmaps.
    pub(crate) maps: u64,
    /// Of a heap on pages, pages that were moved.
    pub(crate) moves: u64,
    /// Of a heap that is ordered by streams, waits of the host and orders of the device.
    pub(crate) waits: u64,
    pub(crate) orders: u64,
    /// Device calls that were made to fail.
    pub(crate) failures: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.allocations += other.allocations;
        self.refusals += other.refusals;
        self.frees += other.frees;
        self.bad_frees += other.bad_frees;
        self.bad_frees_found += other.bad_frees_found;
        self.peak_blocks = self.peak_blocks.max(other.peak_blocks);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.leaks += other.leaks;
        self.maps += other.maps;
        self.moves += other.moves;
        self.waits += other.waits;
        self.orders += other.orders;
        self.failures += other.failures;
        for (reason, count) in &other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
    }

    pub(crate) fn refused(&mut self, reason: &'static str) {
        self.refusals += 1;
        *self.reasons.entry(reason).or_default() += 1;
    }
}

/// Fails a trial unless something holds.
macro_rules! hold {
    ($condition:expr, $($said:tt)+) => {
        if !$condition {
            return Err(format!($($said)+));
        }
    };
}

pub(crate) use hold;

/// Linear looks at everything in a trial, for which Miri takes long.
pub(crate) const AUDITS: u64 = if cfg!(miri) { 2 } else { 32 };

/// Puts a heap through so many operations; `at` says which one it is at.
///
/// The heap is dropped at the end, in half of the cases with blocks in use.
///
/// # Errors
/// The first thing that does not hold.
pub(crate) fn run<S: Subject>(
    heap: S,
    rules: Rules<S::Place>,
    backend: &Watched,
    regime: Regime,
    operations: u64,
    seed: u64,
    at: &Cell<u64>,
) -> Result<Tally, String> {
    let leaves_blocks = seed & 1 == 0;
    let mut trial = Trial {
        model: Model::new(&rules),
        heap,
        rules,
        backend,
        regime,
        random: Random::new(seed),
        tally: Tally::default(),
        stale: Vec::new(),
        draining: false,
    };
    for operation in 0..operations {
        at.set(operation);
        trial.step(operation)?;
        trial.account()?;
        if operation % (operations / AUDITS).max(1) == 0 {
            trial.audit()?;
        }
    }
    trial.finish(leaves_blocks, operations)
}

/// A refusal's name in a [`Tally`].
pub(crate) fn reason(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Empty => "empty",
        Refusal::TooLarge { .. } => "too large",
        Refusal::Alignment(_) => "alignment",
        Refusal::NoBlock { .. } => "no block",
        Refusal::Blocks(_) => "blocks",
    }
}

/// Bytes and alignment of a request; a few can never be served.
pub(crate) fn request<P>(random: &mut Random, regime: Regime, rules: &Rules<P>) -> (u64, u64) {
    let most = (rules.bytes / rules.parts) >> regime.shift;
    let bytes = match random.below(1000) {
        0..3 => 0,
        3..6 => rules.bytes + 1 + random.below(1 << 40),
        6 => u64::MAX - random.below(1 << 20),
        7..15 => 1 + random.below(rules.bytes / 2),
        _ if regime.powers => 1 << random.below(u64::from(most.ilog2()) + 1),
        _ => 1 + (random.below(most) >> random.below(regime.doublings)),
    };
    let doublings = match regime.align {
        0 => rules.plan.map_or(16, |plan| plan.page.ilog2()),
        doublings => doublings,
    };
    let align = match random.below(200) {
        0 => 3 + random.below(1 << 20) * 4,
        1 => 0,
        2 => 1 << random.below(63),
        _ if regime.powers && bytes.is_power_of_two() => bytes,
        _ => 1 << random.below(u64::from(doublings) + 1),
    };
    (bytes, align)
}

struct Trial<'a, S: Subject> {
    heap: S,
    rules: Rules<S::Place>,
    model: Model<S::Place>,
    backend: &'a Watched,
    regime: Regime,
    random: Random,
    tally: Tally,
    /// Places that were freed, and where they were.
    stale: Vec<(S::Place, u64)>,
    draining: bool,
}

impl<S: Subject> Trial<'_, S> {
    fn step(&mut self, operation: u64) -> Result<(), String> {
        self.tally.operations += 1;
        let chosen = self.random.below(1000);
        match chosen {
            0..40 => return self.free_badly(),
            40..43 if self.rules.plan.is_some() => return self.disturb(),
            _ => {}
        }
        let grow = self.regime.grows(operation, self.draining);
        if self.random.below(100) < grow {
            self.allocate()
        } else if self.model.blocks.is_empty() {
            self.draining = false;
            Ok(())
        } else {
            let chosen = self.random.below(self.model.offsets.len() as u64);
            self.free(chosen as usize)
        }
    }

    fn allocate(&mut self) -> Result<(), String> {
        let (bytes, align) = request(&mut self.random, self.regime, &self.rules);
        let before = self.heap.pages();
        match self.heap.allocate(bytes, align) {
            Ok(block) => self.served(block, bytes, align)?,
            Err(refusal) => {
                let reason = self
                    .refused(&refusal, bytes, align)
                    .map_err(|wrong| format!("{bytes} bytes at {align}: {refusal}; {wrong}"))?;
                self.tally.refused(reason);
                self.draining |= self.regime.drain && self.random.below(4) == 0;
            }
        }
        if let (Some(before), Some(after), Some(plan)) =
            (before, self.heap.pages(), self.rules.plan)
        {
            let moved = after.moved - before.moved;
            hold!(moved <= plan.moves, "one allocation moved {moved} pages");
        }
        Ok(())
    }

    fn served(&mut self, block: Block<S::Place>, bytes: u64, align: u64) -> Result<(), String> {
        let Block { place, offset } = block;
        let served = format!("{bytes} bytes at {align} lie at {offset:#x}: ");
        hold!(bytes > 0, "{served}a block of nothing");
        hold!(
            align.is_power_of_two() && offset & (align - 1) == 0,
            "{served}not aligned"
        );
        hold!(
            offset & (self.rules.granule - 1) == 0,
            "{served}not at a granule"
        );
        self.model
            .occupy(place, offset, bytes, &self.rules)
            .map_err(|wrong| served.clone() + wrong)?;
        hold!(
            self.heap.span(place)
                == Ok(Span {
                    offset,
                    requested: bytes
                }),
            "{served}the heap knows it as {:?}",
            self.heap.span(place)
        );
        self.covered(offset, bytes)?;
        self.tally.allocations += 1;
        self.tally.peak_blocks = self.tally.peak_blocks.max(self.model.blocks.len());
        self.tally.peak_bytes = self.tally.peak_bytes.max(self.model.requested);
        Ok(())
    }

    fn covered(&self, offset: u64, bytes: u64) -> Result<(), String> {
        let address = self.heap.start() + offset;
        hold!(
            self.heap.asleep() || self.backend.seen.borrow().covers(address, bytes),
            "no memory under {bytes} bytes at {offset:#x}"
        );
        Ok(())
    }

    /// The reason of a refusal, if that is due and says what is true.
    fn refused(
        &self,
        refusal: &SparseRefusal,
        bytes: u64,
        align: u64,
    ) -> Result<&'static str, String> {
        let plan = self.rules.plan;
        let pages = |plan: Plan| bytes.div_ceil(plan.page) + 1;
        match (refusal, plan) {
            (SparseRefusal::Place(refusal), _) => {
                self.no_place(*refusal, bytes, align)?;
                Ok(reason(*refusal))
            }
            (SparseRefusal::Pages { wanted, free, cap }, Some(plan)) => {
                let most = plan.cap / plan.page;
                let left = most - self.model.live_pages;
                hold!(*cap == most, "the cap is {most}");
                hold!(
                    *wanted > *free && *free <= left,
                    "{left} have no live block"
                );
                hold!(pages(plan) > left, "{left} are enough");
                Ok("pages")
            }
            (SparseRefusal::Budget { wanted, budget }, Some(plan)) => {
                hold!(*budget == plan.moves, "the budget is {}", plan.moves);
                hold!(
                    *wanted > *budget && *wanted <= pages(plan),
                    "{} would do",
                    pages(plan)
                );
                Ok("budget")
            }
            (SparseRefusal::Backend(_), Some(_)) => {
                hold!(
                    self.backend.seen.borrow().failures > self.tally.failures,
                    "no call was made to fail"
                );
                Ok("device")
            }
            _ => Err("there is no reason".to_owned()),
        }
    }

    fn no_place(&self, refusal: Refusal, bytes: u64, align: u64) -> Result<(), String> {
        let Rules {
            granule, blocks, ..
        } = self.rules;
        let part_bytes = self.rules.bytes / self.rules.parts;
        let due = if bytes == 0 {
            Refusal::Empty
        } else if !align.is_power_of_two() {
            Refusal::Alignment(align)
        } else if bytes > part_bytes {
            Refusal::TooLarge {
                wanted: bytes,
                bytes: part_bytes,
            }
        } else {
            // A heap of parts says why one of those refused that begin at such a multiple.
            let mut granules = bytes.div_ceil(granule);
            if align > granule {
                granules = granules.saturating_add(align / granule + 1);
            }
            let most = (self.rules.refusable)(granules);
            let mut said = false;
            for (number, part) in self.model.parts.iter().enumerate() {
                if (number as u64 * part_bytes) & (align - 1) != 0 {
                    continue;
                }
                if part.listed == blocks {
                    said |= refusal == Refusal::Blocks(blocks);
                    continue;
                }
                let free = part_bytes - part.requested;
                said |= refusal
                    == Refusal::NoBlock {
                        wanted: bytes,
                        free,
                    };
                let largest = part.largest_gap() / granule;
                hold!(
                    largest <= most,
                    "{largest} granules are free in one piece, at most {most} may be"
                );
            }
            hold!(said, "that is not why");
            return Ok(());
        };
        hold!(refusal == due, "due was {due:?}");
        Ok(())
    }

    fn free(&mut self, chosen: usize) -> Result<(), String> {
        let offset = self.model.offsets.swap_remove(chosen);
        let live = self.model.blocks[&offset];
        let known = self.heap.span(live.place);
        let wanted = Span {
            offset,
            requested: live.bytes,
        };
        hold!(
            known == Ok(wanted),
            "{wanted:?} is known as {known:?} before it is freed"
        );
        // It kept its memory all the while, wherever other pages went.
        self.covered(offset, live.bytes)?;
        if let Err(error) = self.heap.free(live.place) {
            return Err(format!("{wanted:?} cannot be freed: {error:?}"));
        }
        self.model.vacate(offset, &self.rules);
        self.tally.frees += 1;
        if self.stale.len() < 256 {
            self.stale.push((live.place, offset));
        } else {
            self.stale[self.random.below(256) as usize] = (live.place, offset);
        }
        if self.random.below(32) == 0 {
            self.must_refuse(live.place, "a block that was just freed")?;
        }
        Ok(())
    }

    /// Frees what is no block in use: freed before, inside of a block, between granules, outside
    /// of the range, or another heap's.
    fn free_badly(&mut self) -> Result<(), String> {
        let mut inside = |within: fn(&mut Random, u64, u64) -> u64| {
            let count = self.model.offsets.len() as u64;
            let chosen = (count > 0).then(|| self.random.below(count))?;
            let offset = self.model.offsets[chosen as usize];
            let bytes = self.model.blocks[&offset].bytes;
            let wrong = offset + within(&mut self.random, bytes, self.rules.granule);
            // The next block may begin where this one's last granule ends.
            let free = !self.model.blocks.contains_key(&wrong);
            free.then(|| (self.rules.forge)(wrong)).flatten()
        };
        let (place, what) = match self.tally.operations % 5 {
            0 => (
                inside(|random, bytes, granule| {
                    granule * (1 + random.below(bytes.div_ceil(granule)))
                }),
                "inside of a block",
            ),
            1 => (
                inside(|random, _, granule| 1 + random.below(granule - 1)),
                "between granules",
            ),
            2 => {
                let beyond = match self.random.below(3) {
                    0 => u64::MAX - self.random.below(1 << 20),
                    1 => self.rules.bytes,
                    _ => self.rules.bytes + self.random.below(1 << 40),
                };
                ((self.rules.forge)(beyond), "outside of the range")
            }
            3 => {
                let count = self.rules.strangers.len() as u64;
                let chosen = (count > 0).then(|| self.random.below(count) as usize);
                (
                    chosen.map(|chosen| self.rules.strangers[chosen]),
                    "another heap's",
                )
            }
            _ => (None, ""),
        };
        if let Some(place) = place {
            return self.must_refuse(place, what);
        }
        let count = self.stale.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let (place, offset) = self.stale[self.random.below(count) as usize];
        // An offset that was given out again names the new block.
        if self.rules.by_handle || !self.model.blocks.contains_key(&offset) {
            self.must_refuse(place, "freed before")?;
        }
        Ok(())
    }

    fn must_refuse(&mut self, place: S::Place, what: &str) -> Result<(), String> {
        self.tally.bad_frees += 1;
        let known = self.heap.span(place);
        hold!(known.is_err(), "{place:?}, {what}, is known as {known:?}");
        hold!(
            self.heap.free(place).is_err(),
            "{place:?}, {what}, was freed"
        );
        self.tally.bad_frees_found += 1;
        Ok(())
    }

    /// Of a heap on pages: gives pages back, sleeps and wakes, or has the device fail.
    fn disturb(&mut self) -> Result<(), String> {
        match self.random.below(40) {
            0..10 => {
                let keep = self.random.below(40);
                let trimmed = self.heap.trim(keep);
                self.may_fail(trimmed.map(drop), "trimming")?;
                let pages = self.heap.pages().unwrap_or_default();
                let failed = self.backend.seen.borrow().failures > self.tally.failures;
                hold!(
                    failed || pages.idle + pages.spare <= keep,
                    "{pages:?} after keeping {keep}"
                );
                self.forget_failures();
            }
            10 => {
                let slept = self.heap.sleep();
                let fine = slept.is_ok();
                self.may_fail(slept, "sleeping")?;
                self.forget_failures();
                hold!(self.heap.asleep(), "awake after sleeping");
                let created = self.backend.seen.borrow().created;
                hold!(!fine || created == 0, "{created} bytes after sleeping");
                let refused = self.heap.allocate(1, 1);
                hold!(
                    matches!(refused, Err(SparseRefusal::Asleep)),
                    "{refused:?} while asleep"
                );
                while let Err(error) = self.heap.wake() {
                    self.may_fail(Err(error), "waking")?;
                    self.forget_failures();
                    hold!(self.heap.asleep(), "awake after failing to wake");
                }
                self.forget_failures();
                let blocks = self.model.blocks.iter();
                for (&offset, live) in blocks {
                    self.covered(offset, live.bytes)?;
                }
            }
            _ => {
                let after = self.random.below(40);
                self.backend.seen.borrow_mut().fails_after = Some(after);
            }
        }
        Ok(())
    }

    /// An error is due only where a call of the device was made to fail.
    fn may_fail(&self, answer: Result<(), SparseRefusal>, what: &str) -> Result<(), String> {
        if let Err(error) = answer {
            let failed = self.backend.seen.borrow().failures > self.tally.failures;
            hold!(failed, "{what}: {error}");
        }
        Ok(())
    }

    fn forget_failures(&mut self) {
        self.tally.failures = self.backend.seen.borrow().failures;
    }

    /// What is known without a search, after every operation.
    fn account(&mut self) -> Result<(), String> {
        self.forget_failures();
        let (used, live) = (self.heap.used(), self.model.blocks.len());
        hold!(used == live, "{used} blocks are in use, {live} should be");
        let (Some(pages), Some(plan)) = (self.heap.pages(), self.rules.plan) else {
            return Ok(());
        };
        let seen = self.backend.seen.borrow();
        let live = self.model.live_pages;
        hold!(pages.live == live, "{pages:?}, but blocks touch {live}");
        let mapped = seen.mapped_bytes / plan.page;
        hold!(
            pages.live + pages.idle == mapped,
            "{pages:?}, but {mapped} are mapped"
        );
        let created = seen.created / plan.page;
        hold!(
            mapped + pages.spare == created,
            "{pages:?}, but there are {created}"
        );
        hold!(
            seen.created <= plan.cap,
            "{} bytes under a cap of {}",
            seen.created,
            plan.cap
        );
        Ok(())
    }

    /// Every block and every invariant; linear.
    fn audit(&self) -> Result<(), String> {
        self.heap.check().map_err(|error| format!("{error:?}"))?;
        let mut known = self.heap.in_use();
        known.sort_unstable_by_key(|span| span.offset);
        let expected = self.model.blocks.iter().map(|(&offset, live)| Span {
            offset,
            requested: live.bytes,
        });
        hold!(
            known.iter().copied().eq(expected),
            "the blocks in use are not those that are reported"
        );
        let gaps: u64 = self.model.parts.iter().map(Part::gap_bytes).sum();
        if let Some(free) = self.heap.free_bytes() {
            hold!(free == gaps, "{free} bytes are free, {gaps} should be");
        }
        Ok(())
    }

    /// The leak report, and what is left behind.
    fn finish(mut self, leaves_blocks: bool, operations: u64) -> Result<Tally, String> {
        self.backend.seen.borrow_mut().fails_after = None;
        self.audit()?;
        self.tally.leaks += self.model.blocks.len() as u64;
        if !leaves_blocks {
            while !self.model.blocks.is_empty() {
                self.free(self.model.blocks.len() - 1)?;
                self.account()?;
            }
            self.audit()?;
            hold!(self.heap.in_use().is_empty(), "leaks after the last free");
            let whole = self.model.parts.iter().all(|part| part.gaps.len() == 1);
            hold!(whole, "an empty heap has pieces");
            if self.rules.plan.is_none() && self.rules.parts == 1 {
                let all = self.heap.allocate(self.rules.bytes, 1);
                hold!(
                    all.as_ref().is_ok_and(|block| block.offset == 0),
                    "of an empty heap not all can be had: {all:?}"
                );
            }
        }
        self.tally.operations = operations;
        self.tally.maps = self.backend.seen.borrow().maps;
        self.tally.moves = self.heap.pages().map_or(0, |pages| pages.moved);
        drop(self.heap);
        self.backend.check_empty()?;
        Ok(self.tally)
    }
}

/// Runs a trial, and turns a panic of the heap's own checks into a failure.
pub(crate) fn caught<T>(trial: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(trial)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(said(text.unwrap_or("it panicked")))
    })
}
