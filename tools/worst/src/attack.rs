//! One attack: an adversary's requests to one heap, kept within the demand.
//!
//! Invariant: no more than M requested bytes are live at once and every request
//! is between l and n, whatever an adversary asks; so a refusal in a heap of its
//! bound contradicts the bound.

use metes_heap::bounds::Demand;

use crate::sequence::Sequence;
use crate::target::{Shape, Target};

/// A live block, as adversaries hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block(u32);

/// The call of one kind in which the heap worked most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heaviest {
    /// Steps of the heap in that call.
    pub work: u64,
    /// Which request of the attack it was, counted from zero.
    pub request: u64,
    /// Steps of the heap in all requests before it.
    pub before: u64,
}

/// An attack in progress, and what it has come to.
pub struct Attack<'t> {
    target: &'t mut dyn Target,
    demand: Demand,
    limit: u64,
    requests: u64,
    live: u64,
    peak_live: u64,
    refused: u64,
    footprint: u64,
    /// Highest end of a block so far.
    high: u64,
    /// Size and serial number of live blocks, by block.
    held: Vec<(u64, u32)>,
    written: Option<Sequence>,
    /// Steps of the heap before the attack, and up to the last request.
    begun: u64,
    work: u64,
    allocate: Heaviest,
    free: Heaviest,
}

/// What an attack came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests made.
    pub requests: u64,
    /// Most requested bytes live at once.
    pub peak_live: u64,
    /// Requests within the demand that were refused.
    pub refused: u64,
    /// Most bytes taken from the system.
    pub footprint: u64,
    /// The allocation in which the heap worked most.
    pub allocate: Heaviest,
    /// The free in which it did.
    pub free: Heaviest,
    /// The requests, if they were written down.
    pub sequence: Option<Sequence>,
}

impl<'t> Attack<'t> {
    /// An attack of at most `limit` requests on a new heap; `write` keeps them.
    pub fn new(target: &'t mut dyn Target, demand: Demand, limit: u64, write: bool) -> Self {
        let work = target.work();
        let footprint = target.footprint();
        Attack {
            target,
            demand,
            limit,
            requests: 0,
            live: 0,
            peak_live: 0,
            refused: 0,
            footprint,
            high: 0,
            held: Vec::new(),
            written: write.then(Sequence::new),
            begun: work,
            work,
            allocate: Heaviest::default(),
            free: Heaviest::default(),
        }
    }

    /// The demand that is kept.
    pub fn demand(&self) -> Demand {
        self.demand
    }

    /// How the heap cuts blocks.
    pub fn shape(&self) -> Shape {
        self.target.shape()
    }

    /// Whether no further request will be made.
    pub fn over(&self) -> bool {
        self.requests >= self.limit
    }

    /// Bytes that may still be requested before M is reached.
    pub fn room(&self) -> u64 {
        self.demand.live - self.live
    }

    /// Asks for a block. `None` if the demand does not allow it, the attack is
    /// over, or the heap refuses.
    pub fn allocate(&mut self, size: u64) -> Option<Block> {
        let Demand {
            smallest, largest, ..
        } = self.demand;
        if self.over() || size < smallest || size > largest || size > self.room() {
            return None;
        }
        let serial = match &mut self.written {
            Some(sequence) => sequence.allocate(size as u32),
            None => 0,
        };
        let block = self.target.allocate(size);
        let work = self.step();
        self.allocate = self.allocate.max(work);
        let Some(block) = block else {
            self.refused += 1;
            return None;
        };
        let index = block as usize;
        if index >= self.held.len() {
            self.held.resize(index + 1, (0, 0));
        }
        self.held[index] = (size, serial);
        self.live += size;
        self.peak_live = self.peak_live.max(self.live);
        self.footprint = self.footprint.max(self.target.footprint());
        if let Some(offset) = self.target.offset(block) {
            self.high = self.high.max(offset + self.shape().block(size));
        }
        Some(Block(block))
    }

    /// Frees a block. Nothing happens once the attack is over.
    pub fn free(&mut self, block: Block) {
        if self.over() {
            return;
        }
        let (size, serial) = self.held[block.0 as usize];
        self.target.free(block.0);
        if let Some(sequence) = &mut self.written {
            sequence.free(serial);
        }
        self.live -= size;
        let work = self.step();
        self.free = self.free.max(work);
        self.footprint = self.footprint.max(self.target.footprint());
    }

    /// Counts a request; what it cost the heap.
    fn step(&mut self) -> Heaviest {
        let now = self.target.work();
        let (work, before) = (now - self.work, self.work - self.begun);
        self.work = now;
        self.requests += 1;
        Heaviest {
            work,
            before,
            request: self.requests - 1,
        }
    }

    /// Requested bytes of a live block.
    pub fn size(&self, block: Block) -> u64 {
        self.held[block.0 as usize].0
    }

    /// Where a live block lies: its first byte and the one behind its end,
    /// record included. `None` where the heap does not say.
    pub fn place(&self, block: Block) -> Option<(u64, u64)> {
        let offset = self.target.offset(block.0)?;
        Some((offset, offset + self.shape().block(self.size(block))))
    }

    /// The highest end of a block so far.
    pub fn high(&self) -> u64 {
        self.high
    }

    /// Ends the attack.
    pub fn finish(self) -> Outcome {
        Outcome {
            requests: self.requests,
            peak_live: self.peak_live,
            refused: self.refused,
            footprint: self.footprint,
            allocate: self.allocate,
            free: self.free,
            sequence: self.written,
        }
    }
}

impl Heaviest {
    /// The heavier one, the earlier of equals.
    fn max(self, other: Heaviest) -> Heaviest {
        if other.work > self.work { other } else { self }
    }
}
