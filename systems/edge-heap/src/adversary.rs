//! Adversaries against the allocator of a module, and recorded requests played to it; the unit is the operator.
//!
//! The programs are those of the laboratory of worst cases (`metes-worst`), which see where blocks lie and what each call
//! took. Each is played with its first numbers; then those that came furthest are changed, one number at a time.
//!
//! Invariant: the same module, demand, seed and number of attacks find the same. What is found is a maximum of what was
//! tried, to be held against the [longest path](crate::longest), which is a bound.

use metes_explore::{Events, Operation, Random};
use metes_heap::bounds::Demand;
use metes_worst::{Attack, Program, Shape, Target};

use crate::fuel::{Allocator, Guest, GuestError};
use crate::traffic::{Most, first_request};

/// How allocators cut blocks here, near enough for an adversary: a word of record, multiples of 8.
const SHAPE: Shape = Shape {
    granule: 8,
    header: 4,
    minimum: 16,
};

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// What programs may ask: most bytes live, sizes.
    pub demand: Demand,
    /// Programs that are played, at least one of each kind.
    pub attacks: usize,
    /// Requests of each at the most.
    pub requests: u64,
    /// What chance decides.
    pub seed: u64,
}

impl Default for Search {
    /// Up to 2 MiB live in blocks of 1 byte to 64 KiB; 41 programs of up to 50 000 requests.
    fn default() -> Self {
        Search {
            demand: Demand::new(2 << 20, 64 << 10, 1),
            attacks: 41,
            requests: 50_000,
            seed: 1,
        }
    }
}

/// The most operators of one kind of call, and the kind of program that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hardest {
    /// Operators of the call.
    pub operators: u64,
    /// The program.
    pub program: &'static str,
}

/// What adversaries came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Of an allocation.
    pub allocate: Hardest,
    /// Of a free.
    pub free: Hardest,
    /// Programs played.
    pub attacks: usize,
    /// Requests of all.
    pub requests: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Pages by which memories grew, of all together.
    pub grown: u64,
}

/// An allocator as adversaries see it.
struct Victim {
    guest: Guest,
    /// Address and size by number; those in `vacant` are free.
    blocks: Vec<(u32, u32)>,
    vacant: Vec<u32>,
    work: u64,
    /// It trapped, and serves nothing any more.
    failed: Option<GuestError>,
}

impl Target for Victim {
    fn allocate(&mut self, size: u64) -> Option<u32> {
        let size = u32::try_from(size).ok()?;
        let place = match self.guest.allocate(size) {
            _ if self.failed.is_some() => return None,
            Ok((place, operators)) => {
                self.work += operators.0;
                place
            }
            Err(error) => {
                self.failed = Some(error);
                return None;
            }
        };
        if place == 0 {
            return None;
        }
        let number = match self.vacant.pop() {
            Some(number) => number,
            None => {
                self.blocks.push((0, 0));
                (self.blocks.len() - 1) as u32
            }
        };
        self.blocks[number as usize] = (place, size);
        Some(number)
    }

    fn free(&mut self, block: u32) {
        let (place, size) = self.blocks[block as usize];
        self.vacant.push(block);
        if self.failed.is_some() {
            return;
        }
        match self.guest.free(place, size) {
            Ok(operators) => self.work += operators.0,
            Err(error) => self.failed = Some(error),
        }
    }

    fn offset(&self, block: u32) -> Option<u64> {
        let (place, _) = self.blocks[block as usize];
        Some(u64::from(place) - SHAPE.header)
    }

    fn footprint(&self) -> u64 {
        self.guest.grown() << 16
    }

    fn work(&self) -> u64 {
        self.work
    }

    fn shape(&self) -> Shape {
        SHAPE
    }
}

/// Lets adversaries loose on an allocator. The first request, which takes possession of the memory, is made before.
///
/// # Errors
/// [`GuestError`] when there is no instance, or the allocator traps.
pub fn attack(allocator: &Allocator, search: &Search) -> Result<Found, GuestError> {
    let mut random = Random::new(search.seed);
    let mut found = Found::default();
    let mut hardest: [Option<Program>; 2] = [None; 2];
    let first = Program::all(&search.demand, &SHAPE);
    let attacks = search.attacks.max(first.len());
    let mut first = first.into_iter();
    for number in 0..attacks {
        let program = match (first.next(), hardest[number % 2]) {
            (Some(program), _) => program,
            (None, Some(program)) => program.mutate(&search.demand, &mut random),
            (None, None) => break,
        };
        let mut guest = allocator.guest()?;
        first_request(&mut guest)?;
        let mut victim = Victim {
            guest,
            blocks: Vec::new(),
            vacant: Vec::new(),
            work: 0,
            failed: None,
        };
        let mut attack = Attack::new(&mut victim, search.demand, search.requests, false);
        program.play(&mut attack);
        let outcome = attack.finish();
        if let Some(error) = victim.failed {
            return Err(error);
        }
        found.attacks += 1;
        found.requests += outcome.requests;
        found.refused += outcome.refused;
        found.grown += victim.guest.grown();
        let both = [&mut found.allocate, &mut found.free];
        let works = [outcome.allocate.work, outcome.free.work];
        for ((most, work), best) in both.into_iter().zip(works).zip(&mut hardest) {
            if work > most.operators || best.is_none() {
                *most = Hardest {
                    operators: work.max(most.operators),
                    program: program.name(),
                };
                *best = Some(program);
            }
        }
    }
    Ok(found)
}

/// Plays recorded requests to an allocator, behind its first request. Blocks are of a byte at the least.
///
/// # Errors
/// As [`attack`].
pub fn replay(guest: &mut Guest, events: &Events) -> Result<Most, GuestError> {
    let mut most = Most::default();
    let mut held = vec![(0, 0); events.slots()];
    for event in events.as_slice() {
        let held = &mut held[event.slot() as usize];
        let size = (event.size() as u32).max(1);
        let (place, old) = *held;
        match event.operation() {
            Operation::Allocate => {
                let (place, operators) = guest.allocate(size)?;
                most.allocate = most.allocate.max(operators.0);
                most.total += operators.0;
                most.calls += 1;
                most.refused += u64::from(place == 0);
                *held = (place, size);
            }
            // What was refused is not there to be freed.
            _ if place == 0 => {}
            Operation::Free => {
                let operators = guest.free(place, old)?;
                most.free = most.free.max(operators.0);
                most.total += operators.0;
                most.calls += 1;
                *held = (0, 0);
            }
            Operation::Resize => {
                let (moved, operators) = guest.resize(place, old, size)?;
                most.resize = most.resize.max(operators.0);
                match moved {
                    0 => most.refused += 1,
                    moved => *held = (moved, size),
                }
            }
        }
    }
    Ok(most)
}
