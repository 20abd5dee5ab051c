//! What goes wrong, and when, by a seed.
//!
//! *Invariant:* a plan is a function of its seed, its span and its count; its faults are in the order of their times.

use metes_random::{Random, mix};
use serde::Serialize;

use crate::supply::Kind;
use crate::truth::Probe;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The mission's cycle.
    pub at: u64,
    /// What.
    pub what: What,
}

/// Where a bit flips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Where {
    /// In a partition.
    Partition,
    /// In what the image initialises, code included.
    Image,
    /// Anywhere in RAM.
    Anywhere,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A bit of RAM flips: the part, and which of its bits, as a fraction of 2⁶⁴.
    BitFlip {
        /// In which part.
        place: Where,
        /// Which bit of it.
        which: u64,
    },
    /// A converter gives the same code for so many cycles.
    StuckConverter {
        /// Whose.
        probe: Probe,
        /// For how long.
        cycles: u64,
    },
    /// The next byte of a telecommand is lost.
    LostCommandByte,
    /// The next byte to a supply is lost.
    LostSupplyByte {
        /// To which.
        supply: Kind,
    },
    /// The next tick does not interrupt.
    LostTick,
    /// The next tick interrupts so many cycles late.
    LateTick {
        /// How many.
        cycles: u64,
    },
    /// The whole unit is reset.
    Reset,
    /// The high voltage trips, if it is on.
    SupplyTrip,
}

impl What {
    /// Its kind, in words that logs and reports use.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            What::BitFlip {
                place: Where::Partition,
                ..
            } => "bit flip in a partition",
            What::BitFlip {
                place: Where::Image,
                ..
            } => "bit flip in the image",
            What::BitFlip {
                place: Where::Anywhere,
                ..
            } => "bit flip in memory",
            What::StuckConverter { .. } => "stuck converter",
            What::LostCommandByte => "lost byte of a telecommand",
            What::LostSupplyByte { .. } => "lost byte to a supply",
            What::LostTick => "lost tick",
            What::LateTick { .. } => "late tick",
            What::Reset => "reset",
            What::SupplyTrip => "supply trip",
        }
    }
}

/// `count` faults of `seed` between cycles `from` and `until`, at cores of `frequency` Hz.
#[must_use]
pub fn plan(seed: u64, count: usize, from: u64, until: u64, frequency: u32) -> Vec<Fault> {
    let mut random = Random::new(mix(seed ^ 0xfa17));
    let milli = u64::from(frequency) / 1000;
    let mut plan: Vec<Fault> = (0..count)
        .map(|_| {
            let at = from + random.below((until - from).max(1));
            let what = match random.below(100) {
                0..20 => What::BitFlip {
                    place: Where::Anywhere,
                    which: random.next(),
                },
                20..25 => What::BitFlip {
                    place: Where::Partition,
                    which: random.next(),
                },
                25..30 => What::BitFlip {
                    place: Where::Image,
                    which: random.next(),
                },
                30..40 => What::StuckConverter {
                    probe: Probe::ALL[random.below(3) as usize],
                    cycles: random.between(1, 500) * milli,
                },
                40..50 => What::LostCommandByte,
                50..65 => What::LostSupplyByte {
                    supply: if random.below(2) == 0 {
                        Kind::High
                    } else {
                        Kind::Low
                    },
                },
                65..78 => What::LostTick,
                78..91 => What::LateTick {
                    cycles: random.between(1, 9) * milli / 10,
                },
                91..94 => What::Reset,
                _ => What::SupplyTrip,
            };
            Fault { at, what }
        })
        .collect();
    plan.sort_by_key(|fault| fault.at);
    plan
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_plan_has_every_kind_and_is_the_same_again() {
        let plan = || super::plan(4, 10_000, 1000, 8_640_000_000_000, 100_000_000);
        let all = plan();
        assert_eq!(all, plan());
        assert_eq!(all.len(), 10_000);
        assert!(all.is_sorted_by_key(|fault| fault.at));
        assert!(all[0].at >= 1000);
        let kinds: std::collections::BTreeSet<_> =
            all.iter().map(|fault| fault.what.name()).collect();
        assert_eq!(kinds.len(), 10);
    }
}
