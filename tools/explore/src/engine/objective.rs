//! What an exploration minimises.
//!
//! Invariant: a point has one place for every objective there is; those that
//! are not chosen are zero in all points, so that dominance ignores them.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::row::Metrics;
use crate::pareto;

/// How many objectives there are.
pub(super) const OBJECTIVES: usize = 8;

/// The values of all objectives, zero for those that were not chosen.
pub type Point = [u64; OBJECTIVES];

/// Points that nothing beats, each with the number of its heap.
pub type Front = pareto::Front<OBJECTIVES, u64>;

/// A metric to be minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Objective {
    /// Bytes taken from the system.
    Footprint,
    /// Record and application words read and written.
    Accesses,
    /// Femtojoule.
    Energy,
    /// Picoseconds.
    Time,
    /// Modelled cycles of the whole trace.
    Cycles,
    /// Most modelled cycles of one operation.
    Worst,
    /// Bytes taken from the system by several runs together, and so in the mean.
    Mean,
    /// Bytes that are proved to suffice for a demand; a heap for which none are has more than any other.
    Guarantee,
}

impl Objective {
    /// All of them, in the order of the places of a point.
    pub const ALL: [Objective; OBJECTIVES] = [
        Objective::Footprint,
        Objective::Accesses,
        Objective::Energy,
        Objective::Time,
        Objective::Cycles,
        Objective::Worst,
        Objective::Mean,
        Objective::Guarantee,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Objective::Footprint => "footprint",
            Objective::Accesses => "accesses",
            Objective::Energy => "energy",
            Objective::Time => "time",
            Objective::Cycles => "cycles",
            Objective::Worst => "worst",
            Objective::Mean => "mean",
            Objective::Guarantee => "guarantee",
        }
    }

    /// Its value.
    pub const fn of(self, metrics: &Metrics) -> u64 {
        match self {
            Objective::Footprint => metrics.footprint,
            Objective::Accesses => metrics.accesses,
            Objective::Energy => metrics.energy_fj,
            Objective::Time => metrics.time_ps,
            Objective::Cycles => metrics.cycles,
            Objective::Worst => metrics.cycles_max,
            Objective::Mean => metrics.footprint_sum,
            Objective::Guarantee => metrics.guarantee,
        }
    }
}

/// The objectives of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectiveSet(u8);

impl ObjectiveSet {
    /// Footprint and accesses.
    pub const DEFAULT: ObjectiveSet = ObjectiveSet(0b11);

    /// Footprint, cycles, and most cycles of one operation: what heaps for a program on a host are
    /// told apart by.
    pub const HOST: ObjectiveSet = ObjectiveSet(
        1 << Objective::Footprint as u8
            | 1 << Objective::Cycles as u8
            | 1 << Objective::Worst as u8,
    );

    /// The same of heaps for several runs: also the mean footprint beside the largest.
    pub const RUNS: ObjectiveSet = ObjectiveSet(Self::HOST.0 | 1 << Objective::Mean as u8);

    /// The set of some objectives.
    pub fn of(objectives: &[Objective]) -> Self {
        let bits = objectives.iter().map(|&objective| 1 << objective as u8);
        ObjectiveSet(bits.fold(0, |all, bit: u8| all | bit))
    }

    /// Those in the set, in the order of [`Objective::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Objective> {
        let chosen = move |objective: &Objective| self.contains(*objective);
        Objective::ALL.into_iter().filter(chosen)
    }

    /// Whether an objective is in the set.
    pub const fn contains(self, objective: Objective) -> bool {
        self.0 & 1 << objective as u8 != 0
    }

    /// The same and one more.
    #[must_use]
    pub const fn with(self, objective: Objective) -> Self {
        ObjectiveSet(self.0 | 1 << objective as u8)
    }

    /// How many there are.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The point of some metrics.
    pub fn point(self, metrics: &Metrics) -> Point {
        Objective::ALL.map(|objective| match self.contains(objective) {
            true => objective.of(metrics),
            false => 0,
        })
    }
}

impl Default for ObjectiveSet {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for ObjectiveSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Objective::name).collect();
        f.write_str(&names.join(","))
    }
}

impl Serialize for ObjectiveSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Objective::name))
    }
}

impl FromStr for ObjectiveSet {
    type Err = String;

    /// Reads `footprint,accesses`.
    fn from_str(text: &str) -> Result<Self, String> {
        // A mean is of several runs, and a described space is explored on one.
        let one = Objective::ALL
            .into_iter()
            .filter(|own| *own != Objective::Mean);
        let names = || one.clone().map(Objective::name);
        let mut objectives = Vec::new();
        for word in text.split(',').map(str::trim) {
            let found = one.clone().find(|own| own.name() == word);
            let Some(objective) = found else {
                let help = metes_config::suggest(word, names()).unwrap_or_default();
                return Err(format!("there is no objective `{word}` ({help})"));
            };
            if objectives.contains(&objective) {
                return Err(format!("`{word}` is named twice"));
            }
            objectives.push(objective);
        }
        Ok(ObjectiveSet::of(&objectives))
    }
}
