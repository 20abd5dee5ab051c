//! Adversaries: programs that ask a heap for what suits it least.
//!
//! Each is a recipe, a few numbers from which the requests follow together with
//! what the heap answers. So a recipe is all that a search need keep, change a
//! little, and play again.
//!
//! Invariant: a program's requests depend on its numbers, the demand and the
//! heap's answers alone.

mod chunks;
mod churn;
mod comb;
mod creep;
mod drift;
mod pages;
mod robson;
mod rover;
mod sieve;
mod staircase;
mod sweep;
mod zones;

use metes_explore::Random;
use metes_heap::bounds::Demand;

pub use chunks::Chunks;
pub use churn::Churn;
pub use comb::Comb;
pub use creep::Creep;
pub use drift::Drift;
pub use pages::Pages;
pub use robson::Robson;
pub use rover::Rover;
pub use sieve::Sieve;
pub use staircase::Staircase;
pub use sweep::Sweep;
pub use zones::Zones;

use crate::attack::Attack;
use crate::target::Shape;

/// An adversary with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// Robson's ramp of doubling blocks.
    Robson(Robson),
    /// Keeps the fewest bytes that leave no hole large enough.
    Sieve(Sieve),
    /// First fit's frontier, zone by zone.
    Zones(Zones),
    /// Cuts blocks into a hole and a pin, each time a little larger.
    Staircase(Staircase),
    /// Leads the rover of next fit to the hole that suits it least.
    Rover(Rover),
    /// Keeps the cheapest block of each aligned chunk.
    Chunks(Chunks),
    /// Keeps one block a page of every size.
    Pages(Pages),
    /// Fills and empties one size after another.
    Sweep(Sweep),
    /// Sizes that drift while memory stays full.
    Drift(Drift),
    /// A few blocks that move on and on.
    Creep(Creep),
    /// Every other block freed, then one that fits nowhere.
    Comb(Comb),
    /// Chance.
    Churn(Churn),
}

impl Program {
    /// The first recipe of each kind for a demand.
    pub fn all(demand: &Demand, shape: &Shape) -> Vec<Program> {
        let mut programs = Vec::new();
        programs.extend(Robson::first(demand, shape).map(Program::Robson));
        programs.extend(Sieve::first(demand).map(Program::Sieve));
        programs.extend(Zones::first().map(Program::Zones));
        programs.extend(Staircase::first(demand, shape).map(Program::Staircase));
        programs.extend(Rover::first(demand).map(Program::Rover));
        programs.extend(Chunks::first(demand, shape).map(Program::Chunks));
        programs.extend(Pages::first().map(Program::Pages));
        programs.extend(Sweep::first().map(Program::Sweep));
        programs.extend(Drift::first().map(Program::Drift));
        programs.extend(Creep::first(demand).map(Program::Creep));
        programs.extend(Comb::first(demand).map(Program::Comb));
        programs.extend(Churn::first().map(Program::Churn));
        programs
    }

    /// The kind in a few words.
    pub fn name(&self) -> &'static str {
        match self {
            Program::Robson(robson) if robson.adaptive => "Robson, adaptive",
            Program::Robson(_) => "Robson, oblivious",
            Program::Sieve(_) => "sieve",
            Program::Zones(_) => "zones",
            Program::Staircase(_) => "staircase",
            Program::Rover(_) => "rover",
            Program::Chunks(_) => "chunks",
            Program::Pages(_) => "pages",
            Program::Sweep(_) => "sweep",
            Program::Drift(_) => "drift",
            Program::Creep(_) => "creep",
            Program::Comb(_) => "comb",
            Program::Churn(_) => "churn",
        }
    }

    /// Plays it until it has nothing more to ask or the attack is over.
    pub fn play(&self, attack: &mut Attack<'_>) {
        match self {
            Program::Robson(program) => program.play(attack),
            Program::Sieve(program) => program.play(attack),
            Program::Zones(program) => program.play(attack),
            Program::Staircase(program) => program.play(attack),
            Program::Rover(program) => program.play(attack),
            Program::Chunks(program) => program.play(attack),
            Program::Pages(program) => program.play(attack),
            Program::Sweep(program) => program.play(attack),
            Program::Drift(program) => program.play(attack),
            Program::Creep(program) => program.play(attack),
            Program::Comb(program) => program.play(attack),
            Program::Churn(program) => program.play(attack),
        }
    }

    /// The program with one of its numbers changed, within the demand. O(1).
    pub fn mutate(&self, demand: &Demand, random: &mut Random) -> Program {
        match *self {
            Program::Robson(program) => Program::Robson(program.mutate(random)),
            Program::Sieve(program) => Program::Sieve(program.mutate(demand, random)),
            Program::Zones(program) => Program::Zones(program.mutate(random)),
            Program::Staircase(program) => Program::Staircase(program.mutate(demand, random)),
            Program::Rover(program) => Program::Rover(program.mutate(demand, random)),
            Program::Chunks(program) => Program::Chunks(program.mutate(random)),
            Program::Pages(program) => Program::Pages(program.mutate(random)),
            Program::Sweep(program) => Program::Sweep(program.mutate(random)),
            Program::Drift(program) => Program::Drift(program.mutate(random)),
            Program::Creep(program) => Program::Creep(program.mutate(demand, random)),
            Program::Comb(program) => Program::Comb(program.mutate(demand, random)),
            Program::Churn(program) => Program::Churn(program.mutate(random)),
        }
    }
}

/// A size of the demand: near `size`, or anywhere, one in four times at an end.
fn near(size: u64, demand: &Demand, random: &mut Random) -> u64 {
    let Demand {
        smallest, largest, ..
    } = *demand;
    let spread = (largest - smallest + 1) as usize;
    let other = match random.below(8) {
        0 => smallest,
        1 => largest,
        2 | 3 => smallest + random.below(spread) as u64,
        4 => size.saturating_add(16),
        5 => size.saturating_sub(16),
        6 => size + size / 8,
        _ => size - size / 8,
    };
    other.clamp(smallest, largest)
}
