//! Heaps that are ordered by streams, on one memory and on pages, with the timeline of each
//! backend: as [`trial`](crate::trial), and besides no block, and no page, goes to a stream while
//! other work may still use it.

use metes_device::backend::timeline::{self, Stream};
use metes_device::fixed::FixedHeap;
use metes_device::heap::{Block, Refusal, Span};
use metes_device::sparse::{Pages, SparseRefusal};
use metes_device::stream_pages::SparseStreamHeap;
use metes_device::streams::{Crossing, Progress, StreamError, StreamHeap, Streams};
use metes_heap::store::ledger::Handle;
use metes_heap::{BadFree, Corruption};

use crate::clock::{Account, STREAMS, clock};
use crate::common::Random;
use crate::device::{Device, Watched, said};
use crate::matrix::{self, Work, by_handle, regimes};
use crate::model::{Model, Part};
use crate::trial::{AUDITS, REGIMES, Regime, Rules, Tally, hold, reason, request};

/// What the campaign asks of a heap that is ordered by streams.
pub(crate) trait Ordered {
    fn allocate(
        &mut self,
        stream: Stream,
        bytes: u64,
        align: u64,
    ) -> Result<Block<Handle>, StreamError>;
    fn free(&mut self, place: Handle) -> Result<(), StreamError>;
    fn use_on(&mut self, place: Handle, stream: Stream) -> Result<(), StreamError>;
    fn leave(&mut self, stream: Stream) -> Result<(), StreamError>;
    fn account(&mut self) -> &mut Account;
    fn span(&self, place: Handle) -> Result<Span, BadFree>;
    fn used(&self) -> usize;
    fn in_use(&self) -> Vec<Span>;
    /// Requested bytes and blocks of all streams.
    fn held(&self) -> (u64, u64);
    fn progress(&self) -> Progress;
    fn check(&self) -> Result<(), Corruption>;
    fn start(&self) -> u64;
    fn pages(&self) -> Option<Pages>;
    fn trim(&mut self, keep: u64) -> Result<u64, SparseRefusal>;
    fn sleep(&mut self) -> Result<(), SparseRefusal>;
    fn wake(&mut self) -> Result<(), SparseRefusal>;
}

/// On one memory.
pub(crate) type Whole = FixedHeap<Watched, StreamHeap<Account>>;

struct OnMemory(Whole);

struct OnPages(SparseStreamHeap<Watched, Account>);

/// They are used alike: through `$shared` and `$mutable` of `$heap`, but for `$own`.
macro_rules! ordered {
    ($type:ty, $heap:ident => $shared:expr, $mutable:expr, { $($own:item)* }) => {
        impl Ordered for $type {
            fn allocate(
                &mut self,
                stream: Stream,
                bytes: u64,
                align: u64,
            ) -> Result<Block<Handle>, StreamError> {
                let $heap = self;
                $mutable.allocate(stream, bytes, align)
            }

            fn free(&mut self, place: Handle) -> Result<(), StreamError> {
                let $heap = self;
                $mutable.free(place)
            }

            fn leave(&mut self, stream: Stream) -> Result<(), StreamError> {
                let $heap = self;
                $mutable.leave(stream)
            }

            fn account(&mut self) -> &mut Account {
                let $heap = self;
                $mutable.timeline()
            }

            fn span(&self, place: Handle) -> Result<Span, BadFree> {
                let $heap = self;
                $shared.span(place)
            }

            fn used(&self) -> usize {
                let $heap = self;
                $shared.used()
            }

            fn in_use(&self) -> Vec<Span> {
                let $heap = self;
                $shared.in_use()
            }

            fn held(&self) -> (u64, u64) {
                let $heap = self;
                $shared
                    .holders()
                    .fold((0, 0), |(bytes, blocks), (_, more, others)| {
                        (bytes + more, blocks + others)
                    })
            }

            fn progress(&self) -> metes_device::streams::Progress {
                let $heap = self;
                $shared.progress()
            }

            fn check(&self) -> Result<(), Corruption> {
                let $heap = self;
                $shared.check()
            }

            fn start(&self) -> u64 {
                self.0.range().start
            }

            $($own)*
        }
    };
}

#[cfg(test)]
pub(crate) use ordered;

ordered!(OnMemory, heap => heap.0.places(), heap.0.places_mut(), {
    fn use_on(&mut self, place: Handle, stream: Stream) -> Result<(), StreamError> {
        self.0.places_mut().use_on(place, stream)
    }

    fn pages(&self) -> Option<Pages> {
        None
    }

    fn trim(&mut self, _: u64) -> Result<u64, SparseRefusal> {
        Ok(0)
    }

    fn sleep(&mut self) -> Result<(), SparseRefusal> {
        Ok(())
    }

    fn wake(&mut self) -> Result<(), SparseRefusal> {
        Ok(())
    }
});

ordered!(OnPages, heap => heap.0, heap.0, {
    fn use_on(&mut self, place: Handle, stream: Stream) -> Result<(), StreamError> {
        self.0.use_on(place, stream)
    }

    fn pages(&self) -> Option<Pages> {
        Some(self.0.pages())
    }

    fn trim(&mut self, keep: u64) -> Result<u64, SparseRefusal> {
        self.0.trim(keep)
    }

    fn sleep(&mut self) -> Result<(), SparseRefusal> {
        self.0.sleep()
    }

    fn wake(&mut self) -> Result<(), SparseRefusal> {
        self.0.wake()
    }
});

/// Each regime another way of treating streams.
fn options(regime: Regime) -> Streams {
    let number = REGIMES.iter().position(|one| one.name == regime.name);
    let (batch, crossing) = [
        (16, Crossing::Wait),
        (16, Crossing::Order),
        (1, Crossing::Wait),
        (64, Crossing::Order),
        (u32::MAX, Crossing::Order),
    ][number.unwrap_or(0)];
    Streams { batch, crossing }
}

/// Streams share a small heap, or nothing would be waited for.
fn small(regime: Regime) -> Regime {
    Regime {
        small: true,
        ..regime
    }
}

pub(crate) fn fixed(device: Device, work: &Work) -> Result<Tally, String> {
    fixed_as(device, work, OnMemory)
}

/// With a heap as `wrap` makes it.
pub(crate) fn fixed_as<H: Ordered>(
    device: Device,
    work: &Work,
    wrap: fn(Whole) -> H,
) -> Result<Tally, String> {
    regimes(work, |regime, operations, seed| {
        let backend = device.open(false)?;
        let extent = matrix::extent(device, &backend, small(regime));
        let account = Account::new(clock(device)?);
        let heap = FixedHeap::new(backend.clone(), extent, |extent| {
            StreamHeap::new(extent, account, options(regime))
        })
        .map_err(said)?;
        let trial = Trial::new(wrap(heap), by_handle(extent), &backend, regime, seed)?;
        trial.run(operations, seed & 1 == 0, work)
    })
}

pub(crate) fn sparse(device: Device, work: &Work) -> Result<Tally, String> {
    regimes(work, |regime, operations, seed| {
        let backend = device.open(true)?;
        let mut plan = matrix::plan(&backend, small(regime));
        plan.moves = u64::MAX;
        let account = Account::new(clock(device)?);
        backend.seen.borrow_mut().ran = Some(account.ran.clone());
        let heap =
            SparseStreamHeap::new(backend.clone(), plan, account, options(regime)).map_err(said)?;
        let rules = Rules {
            plan: Some(plan),
            ..by_handle(metes_device::heap::Extent {
                bytes: plan.addresses,
                granule: plan.granule,
                blocks: plan.blocks,
            })
        };
        let trial = Trial::new(OnPages(heap), rules, &backend, regime, seed)?;
        trial.run(operations, seed & 1 == 0, work)
    })
}

struct Trial<'a, H: Ordered> {
    heap: H,
    rules: Rules<Handle>,
    model: Model<Handle>,
    backend: &'a Watched,
    regime: Regime,
    random: Random,
    tally: Tally,
    streams: Vec<Stream>,
    capturing: Option<usize>,
    /// By offset of a block in use, by slot: the last work that uses it, and for whom it is.
    uses: std::collections::BTreeMap<u64, ([u64; STREAMS], usize)>,
    /// By granule, by slot: the last work of blocks that were there.
    last: Vec<[u64; STREAMS]>,
    stale: Vec<Handle>,
    draining: bool,
}

impl<'a, H: Ordered> Trial<'a, H> {
    fn new(
        mut heap: H,
        rules: Rules<Handle>,
        backend: &'a Watched,
        regime: Regime,
        seed: u64,
    ) -> Result<Self, String> {
        let clock = &mut heap.account().clock;
        let streams = (0..STREAMS).map(|number| clock.join(number));
        let streams = streams.collect::<Result<_, _>>()?;
        Ok(Trial {
            model: Model::new(&rules),
            last: vec![[0; STREAMS]; (rules.bytes / rules.granule) as usize],
            heap,
            rules,
            backend,
            regime,
            random: Random::new(seed),
            tally: Tally::default(),
            streams,
            capturing: None,
            uses: Default::default(),
            stale: Vec::new(),
            draining: false,
        })
    }

    fn run(mut self, operations: u64, leaves_blocks: bool, work: &Work) -> Result<Tally, String> {
        for operation in 0..operations {
            work.at.set(operation);
            self.step(operation)?;
            self.account()?;
            if operation % (operations / AUDITS).max(1) == 0 {
                self.audit()?;
            }
        }
        self.tally.operations = operations;
        self.finish(leaves_blocks)
    }

    fn step(&mut self, operation: u64) -> Result<(), String> {
        let slot = self.random.below(STREAMS as u64) as usize;
        let stream = self.streams[slot];
        match self.random.below(1000) {
            0..40 => self.misuse(stream),
            40..43 if self.rules.plan.is_some() => self.disturb(),
            43..130 => self.work_on(slot),
            130..180 => {
                let Trial { heap, random, .. } = self;
                heap.account().pass(stream, random)
            }
            180..190 => self.capture(slot),
            190 if self.capturing.is_none() && self.random.below(4) == 0 => self.leave(slot),
            _ if self.random.below(100) < self.regime.grows(operation, self.draining) => {
                self.allocate(slot)
            }
            _ if self.model.offsets.is_empty() => {
                self.draining = false;
                Ok(())
            }
            _ => self.free(),
        }
    }

    fn allocate(&mut self, slot: usize) -> Result<(), String> {
        let (bytes, align) = request(&mut self.random, self.regime, &self.rules);
        match self.heap.allocate(self.streams[slot], bytes, align) {
            Ok(block) => self.served(block, bytes, align, slot)?,
            Err(refusal) => {
                let reason = self
                    .refused(&refusal, bytes, align, slot)
                    .map_err(|wrong| format!("{bytes} bytes at {align}: {refusal}; {wrong}"))?;
                self.tally.refused(reason);
                self.draining |= self.regime.drain && self.random.below(4) == 0;
            }
        }
        Ok(())
    }

    fn served(
        &mut self,
        block: Block<Handle>,
        bytes: u64,
        align: u64,
        slot: usize,
    ) -> Result<(), String> {
        let Block { place, offset } = block;
        let served = format!("{bytes} bytes at {align} lie at {offset:#x}: ");
        hold!(
            self.capturing != Some(slot),
            "{served}its stream is captured"
        );
        hold!(
            bytes > 0 && align.is_power_of_two() && offset & (align - 1) == 0,
            "{served}not aligned"
        );
        self.model
            .occupy(place, offset, bytes, &self.rules)
            .map_err(|wrong| served.clone() + wrong)?;
        let wanted = Span {
            offset,
            requested: bytes,
        };
        hold!(
            self.heap.span(place) == Ok(wanted),
            "{served}the heap knows it as {:?}",
            self.heap.span(place)
        );
        let before = self.heap.account().before_next(slot);
        let granule = self.rules.granule;
        let granules = (offset / granule) as usize..(offset + bytes).div_ceil(granule) as usize;
        for last in &self.last[granules] {
            for (other, (last, before)) in last.iter().zip(before).enumerate() {
                hold!(
                    *last <= before,
                    "{served}work {last} of stream {other} may still use it"
                );
            }
        }
        let mut used = [0; STREAMS];
        used[slot] = self.heap.account().issue(slot);
        self.uses.insert(offset, (used, slot));
        self.used_by(offset, bytes, slot, used[slot])?;
        self.tally.allocations += 1;
        self.tally.peak_blocks = self.tally.peak_blocks.max(self.model.blocks.len());
        self.tally.peak_bytes = self.tally.peak_bytes.max(self.model.requested);
        Ok(())
    }

    /// Work was issued that uses bytes, which must have memory.
    fn used_by(&mut self, offset: u64, bytes: u64, slot: usize, work: u64) -> Result<(), String> {
        let address = self.heap.start() + offset;
        let mut seen = self.backend.seen.borrow_mut();
        hold!(
            seen.covers(address, bytes),
            "no memory under {bytes} bytes at {offset:#x}"
        );
        seen.used_by(address, bytes, slot, work);
        Ok(())
    }

    fn refused(
        &mut self,
        refusal: &StreamError,
        bytes: u64,
        align: u64,
        slot: usize,
    ) -> Result<&'static str, String> {
        let Rules {
            bytes: all,
            granule,
            blocks,
            plan,
            ..
        } = self.rules;
        if let StreamError::Timeline(timeline::Error::Capturing(_)) = refusal {
            hold!(self.capturing == Some(slot), "it is not captured");
            return Ok("captured");
        }
        let part: &Part = &self.model.parts[0];
        let due = if bytes == 0 {
            Some(Refusal::Empty)
        } else if !align.is_power_of_two() {
            Some(Refusal::Alignment(align))
        } else if bytes > all {
            Some(Refusal::TooLarge {
                wanted: bytes,
                bytes: all,
            })
        } else if part.listed == blocks {
            Some(Refusal::Blocks(blocks))
        } else {
            None
        };
        match (refusal, due) {
            (StreamError::Refused(refusal), Some(due)) => {
                hold!(*refusal == due, "due was {due:?}");
                Ok(reason(due))
            }
            (
                StreamError::OutOfMemory {
                    wanted,
                    stream,
                    total,
                    in_use,
                    own,
                },
                None,
            ) => {
                let of_the_slot = |(offset, (_, owner)): (&u64, &([u64; STREAMS], usize))| {
                    (*owner == slot).then(|| self.model.blocks[offset].bytes)
                };
                let ours: u64 = self.uses.iter().filter_map(of_the_slot).sum();
                hold!(
                    (*wanted, *stream, *total) == (bytes, self.streams[slot], all),
                    "it was another request"
                );
                hold!(
                    (*in_use, *own) == (self.model.requested, ours),
                    "{} are in use, {ours} of them its own",
                    self.model.requested
                );
                let mut granules = bytes.div_ceil(granule);
                if align > granule {
                    granules = granules.saturating_add(align / granule + 1);
                }
                let (largest, most) = (
                    part.largest_gap() / granule,
                    (self.rules.refusable)(granules),
                );
                // What a captured stream freed cannot be waited for.
                hold!(
                    largest <= most || self.capturing.is_some(),
                    "{largest} granules are free in one piece, at most {most} may be"
                );
                Ok("out of memory")
            }
            (StreamError::Pages(refusal), None) => {
                let plan = plan.ok_or("there are no pages")?;
                let left = plan.cap / plan.page - self.model.live_pages;
                let failed = self.backend.seen.borrow().failures > self.tally.failures;
                let (reason, due) = match refusal {
                    SparseRefusal::Pages { wanted, free, .. } => (
                        "pages",
                        wanted > free && bytes.div_ceil(plan.page) + 1 > left,
                    ),
                    // The page of a stream that is being captured cannot move.
                    SparseRefusal::Timeline(timeline::Error::Capturing(_)) => {
                        ("captured pages", self.capturing.is_some())
                    }
                    SparseRefusal::Backend(_) => ("device", failed),
                    _ => ("", false),
                };
                hold!(due, "{left} pages are left");
                Ok(reason)
            }
            (_, due) => Err(format!("due was {due:?}")),
        }
    }

    fn free(&mut self) -> Result<(), String> {
        let chosen = self.random.below(self.model.offsets.len() as u64) as usize;
        self.free_one(chosen)
    }

    fn free_one(&mut self, chosen: usize) -> Result<(), String> {
        let offset = self.model.offsets.swap_remove(chosen);
        let live = self.model.blocks[&offset];
        if let Err(error) = self.heap.free(live.place) {
            return Err(format!(
                "{} bytes at {offset:#x} cannot be freed: {error}",
                live.bytes
            ));
        }
        self.model.vacate(offset, &self.rules);
        if let Some((used, _)) = self.uses.remove(&offset) {
            let granule = self.rules.granule;
            let end = (offset + live.bytes).div_ceil(granule) as usize;
            for last in &mut self.last[(offset / granule) as usize..end] {
                for (last, used) in last.iter_mut().zip(used) {
                    *last = used.max(*last);
                }
            }
        }
        self.tally.frees += 1;
        if self.stale.len() < 256 {
            self.stale.push(live.place);
        } else {
            self.stale[self.random.below(256) as usize] = live.place;
        }
        Ok(())
    }

    /// Frees and uses what is no block in use.
    fn misuse(&mut self, stream: Stream) -> Result<(), String> {
        let from = match self.random.below(4) {
            0 => &self.rules.strangers,
            _ => &self.stale,
        };
        if from.is_empty() {
            return Ok(());
        }
        let place = from[self.random.below(from.len() as u64) as usize];
        self.tally.bad_frees += 1;
        let used = self.heap.use_on(place, stream);
        hold!(
            matches!(used, Err(StreamError::BadFree(_))),
            "{place:?}, no block in use, is used: {used:?}"
        );
        let freed = self.heap.free(place);
        hold!(
            matches!(freed, Err(StreamError::BadFree(_))),
            "{place:?}, no block in use, is freed: {freed:?}"
        );
        self.tally.bad_frees_found += 1;
        Ok(())
    }

    /// More work on a block, of its own stream or another.
    fn work_on(&mut self, slot: usize) -> Result<(), String> {
        let count = self.model.offsets.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let offset = self.model.offsets[self.random.below(count) as usize];
        let live = self.model.blocks[&offset];
        self.heap
            .use_on(live.place, self.streams[slot])
            .map_err(said)?;
        let work = self.heap.account().issue(slot);
        if let Some((used, _)) = self.uses.get_mut(&offset) {
            used[slot] = work;
        }
        self.used_by(offset, live.bytes, slot, work)
    }

    fn capture(&mut self, slot: usize) -> Result<(), String> {
        let (slot, begins) = match self.capturing.take() {
            None => (slot, true),
            Some(slot) => (slot, false),
        };
        let stream = self.streams[slot];
        let captures = self.heap.account().clock.capture(stream, begins)?;
        self.capturing = (captures && begins).then_some(slot);
        Ok(())
    }

    /// A stream is left, and comes again under another name.
    fn leave(&mut self, slot: usize) -> Result<(), String> {
        let stream = self.streams[slot];
        self.heap.leave(stream).map_err(said)?;
        let refused = self.heap.allocate(stream, 1, 1);
        hold!(
            matches!(
                refused,
                Err(StreamError::Timeline(timeline::Error::NoStream(_)))
            ),
            "a stream that was left is given {refused:?}"
        );
        self.streams[slot] = self.heap.account().clock.join(slot)?;
        hold!(
            self.streams[slot].slot() == slot,
            "another place for the stream"
        );
        Ok(())
    }

    /// Gives pages back, sleeps and wakes, or has the device fail.
    fn disturb(&mut self) -> Result<(), String> {
        match self.random.below(40) {
            0..10 => {
                let keep = self.random.below(40);
                let trimmed = self.heap.trim(keep);
                self.may_fail(trimmed.map(drop), "trimming")
            }
            10 if self.capturing.is_none() => {
                let streams = self.streams.clone();
                self.heap.account().synchronize(&streams)?;
                let slept = self.heap.sleep();
                self.may_fail(slept, "sleeping")?;
                let refused = self.heap.allocate(streams[0], 1, 1);
                hold!(
                    matches!(refused, Err(StreamError::Pages(SparseRefusal::Asleep))),
                    "{refused:?} while asleep"
                );
                while let Err(error) = self.heap.wake() {
                    self.may_fail(Err(error), "waking")?;
                    self.tally.failures = self.backend.seen.borrow().failures;
                }
                Ok(())
            }
            _ => {
                let after = self.random.below(40);
                self.backend.seen.borrow_mut().fails_after = Some(after);
                Ok(())
            }
        }
    }

    /// An error is due where a call of the device was made to fail, or a stream is captured.
    fn may_fail(&self, answer: Result<(), SparseRefusal>, what: &str) -> Result<(), String> {
        if let Err(error) = answer {
            let failed = self.backend.seen.borrow().failures > self.tally.failures;
            hold!(failed || self.capturing.is_some(), "{what}: {error}");
        }
        Ok(())
    }

    /// What is known without a search, after every operation.
    fn account(&mut self) -> Result<(), String> {
        let seen = self.backend.seen.borrow();
        self.tally.failures = seen.failures;
        if let Some(taken) = &seen.taken_early {
            return Err(taken.clone());
        }
        let (used, live) = (self.heap.used(), self.model.blocks.len());
        hold!(used == live, "{used} blocks are in use, {live} should be");
        let held = self.heap.held();
        hold!(
            held == (self.model.requested, live as u64),
            "streams hold {held:?} bytes and blocks, {} and {live} should be",
            self.model.requested
        );
        let (Some(pages), Some(plan)) = (self.heap.pages(), self.rules.plan) else {
            return Ok(());
        };
        let counted = (pages.live, pages.live + pages.idle);
        let due = (self.model.live_pages, seen.mapped_bytes / plan.page);
        hold!(
            counted == due,
            "{counted:?} pages live and mapped, not {due:?}"
        );
        let created = seen.created / plan.page;
        hold!(
            counted.1 + pages.spare == created && seen.created <= plan.cap,
            "{pages:?}, but there are {created}"
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
        Ok(())
    }

    /// The leak report, and what is left behind.
    fn finish(mut self, leaves_blocks: bool) -> Result<Tally, String> {
        self.backend.seen.borrow_mut().fails_after = None;
        if let Some(slot) = self.capturing {
            self.capture(slot)?;
        }
        self.audit()?;
        self.tally.leaks += self.model.blocks.len() as u64;
        if !leaves_blocks {
            while !self.model.offsets.is_empty() {
                self.free_one(self.model.offsets.len() - 1)?;
                self.account()?;
            }
        }
        for stream in self.streams.clone() {
            self.heap.leave(stream).map_err(said)?;
        }
        self.audit()?;
        if !leaves_blocks {
            hold!(
                self.model.parts[0].gaps.len() == 1,
                "an empty heap has pieces"
            );
            // As much as there is memory for comes in one piece.
            let all = self.rules.plan.map_or(self.rules.bytes, |plan| plan.cap);
            let stream = self.heap.account().clock.join(0)?;
            let whole = self.heap.allocate(stream, all, 1);
            hold!(
                whole.as_ref().is_ok_and(|block| block.offset == 0),
                "of an empty heap not all can be had: {whole:?}"
            );
            self.heap.leave(stream).map_err(said)?;
        }
        self.tally.maps = self.backend.seen.borrow().maps;
        self.tally.moves = self.heap.pages().map_or(0, |pages| pages.moved);
        let Progress { waits, orders, .. } = self.heap.progress();
        (self.tally.waits, self.tally.orders) = (waits, orders);
        drop(self.heap);
        if let Some(taken) = &self.backend.seen.borrow().taken_early {
            return Err(taken.clone());
        }
        self.backend.check_empty()?;
        Ok(self.tally)
    }
}
