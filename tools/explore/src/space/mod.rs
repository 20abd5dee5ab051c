//! Spaces of heaps: what may be tried for a program.
//!
//! A [`Space`] is the grid of a [`SpaceDescription`] for a trace: structures
//! (pools, their sizes, levels, the growth) times kinds (index and limits).
//! Parameters that cannot matter are folded away before anything is counted, so
//! [`Space::size`] is exact and numbers `0..size` name every configuration once.
//! The heaps to compare with come first and have numbers of their own.
//!
//! Invariant: what a number names depends on the description and on the sizes
//! that the trace requests, on nothing else.

mod axes;
mod description;
mod error;
mod folded;
mod kinds;
mod parameters;
mod sizes;
mod structure;
mod suggested;
#[cfg(test)]
mod tests;
mod values;

use metes_config::{Config, Source};
use metes_heap::SizeTable;

pub use axes::{Axis, AxisError, AxisValue, AxisValues};
pub use description::{PAPER, PROTOTYPE, SpaceDescription};
pub use error::SpaceError;
pub use parameters::Parameters;
pub use suggested::{Point, Suggested};

use crate::events::Events;
use crate::fixed_sizes::fitted_sizes;
use axes::Axes;
use folded::Folded;
use kinds::Kinds;
use sizes::Sizes;
use structure::{Plan, Structure};

/// Most grid points of the structures, and of the kinds of one family.
const MOST_POINTS: u128 = 1 << 24;

/// Every configuration of a description for a trace, numbered.
#[derive(Clone, Debug)]
pub struct Space {
    baselines: Vec<(String, Config)>,
    structures: Folded<Structure>,
    /// Kinds for one general pool, for two, and so on.
    kinds: Vec<Kinds>,
    /// Numbers before the end of each structure, those of baselines included.
    ends: Vec<u64>,
    /// Names of the memory levels.
    levels: Vec<String>,
    axes: Axes,
    raw: u128,
    text: String,
}

impl Space {
    /// The space of a description for the sizes in a trace; `text` is what the
    /// description was read from and `name` what errors call it. O(events) and
    /// O(grid points of structures and of kinds), not of their product.
    ///
    /// # Errors
    /// [`SpaceError`] for a heap to compare with that is none, for a grid too
    /// large to number, and for one without a valid point.
    pub fn new(
        description: &SpaceDescription,
        events: &Events,
        text: &str,
        name: &str,
    ) -> Result<Self, SpaceError> {
        let sizes = Sizes::of(events);
        let plan = Plan::new(description, &sizes);
        let source = Source { name, text };
        let baselines = baselines(description, &plan, &source)?;
        let structure_points = plan.points();
        let kind_points = kinds::points(description);
        let most = kind_points.iter().copied().max().unwrap_or(0);
        if structure_points > MOST_POINTS || most > MOST_POINTS {
            return Err(SpaceError::TooLarge {
                structures: structure_points,
                kinds: most,
                most: MOST_POINTS,
            });
        }
        let structures = plan.fold();
        if structures.len() == 0 {
            return Err(SpaceError::NoPoint(plan.why_not()));
        }
        let pools = structures.values().iter().map(Structure::pools);
        let most_pools = pools.max().unwrap_or(1);
        let fitted = match description.wants_fitted_sizes() {
            true => fitted_sizes(events),
            false => SizeTable::DEFAULT,
        };
        let kinds: Vec<Kinds> = (1..=most_pools)
            .map(|pools| Kinds::new(description, pools, fitted))
            .collect();
        let mut size = baselines.len() as u64;
        let mut ends = Vec::with_capacity(structures.len());
        for structure in structures.values() {
            size += kinds[structure.pools() - 1].len() as u64;
            ends.push(size);
        }
        let (family, own) = kinds::axes(description);
        Ok(Space {
            axes: Axes {
                structure: plan.axes(),
                family,
                kinds: own,
            },
            baselines,
            structures,
            kinds,
            ends,
            levels: plan.level_names().to_vec(),
            raw: structure_points * kind_points.iter().sum::<u128>(),
            text: description.canonical(),
        })
    }

    /// Grid points of the description: the product of its numbers of values.
    pub fn raw(&self) -> u128 {
        self.raw
    }

    /// Different configurations, heaps to compare with included.
    pub fn size(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// How many heaps to compare with there are; they have the first numbers.
    pub fn baselines(&self) -> u64 {
        self.baselines.len() as u64
    }

    /// The values of all parameters in one line, the same however the space
    /// file spells them.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names of the memory levels, the nearest first; none where all memory is alike.
    pub fn levels(&self) -> &[String] {
        &self.levels
    }

    /// The name of a heap to compare with.
    pub fn named(&self, number: u64) -> Option<&str> {
        let (name, _) = self.baselines.get(usize::try_from(number).ok()?)?;
        Some(name)
    }

    /// Structure and kind of a number that is no baseline's.
    fn locate(&self, number: u64) -> Option<(usize, usize)> {
        if number < self.baselines() {
            return None;
        }
        let structure = self.ends.partition_point(|&end| end <= number);
        self.structures.values().get(structure)?;
        Some((structure, (number - self.base(structure)) as usize))
    }

    fn base(&self, structure: usize) -> u64 {
        match structure {
            0 => self.baselines(),
            _ => self.ends[structure - 1],
        }
    }

    /// The heap of a number below [`size`](Self::size), with its surroundings.
    /// O(log structures).
    pub fn describe(&self, number: u64) -> Option<Config> {
        if let Some((_, config)) = self.baselines.get(usize::try_from(number).ok()?) {
            return Some(config.clone());
        }
        let (structure, kind) = self.locate(number)?;
        let structure = &self.structures.values()[structure];
        let kind = self.kinds[structure.pools() - 1].get(kind)?;
        Some(structure.config(&kind, &self.levels))
    }

    /// What the parameters of a number are, as results show them.
    pub fn parameters(&self, number: u64) -> Option<Parameters> {
        Some(Parameters::of(&self.describe(number)?))
    }

    /// The parameters that configurations are chosen by, and their values.
    pub fn axes(&self) -> Vec<Axis> {
        self.axes.all()
    }

    /// The values of a number; `None` for heaps to compare with, which have
    /// none, and outside of the space. Parameters that cannot matter have their
    /// first value. O(log structures).
    pub fn values(&self, number: u64) -> Option<AxisValues> {
        let (place, kind) = self.locate(number)?;
        let (family, digits) = self.kinds[self.pools(place) - 1].digits(kind)?;
        let structure = self.structures.digits(place as u32);
        Some(self.axes.values(&structure, family, &digits))
    }

    /// The number of values; what is left out has its first value.
    ///
    /// # Errors
    /// [`AxisError`] for what the space does not have, and for values that
    /// together are no heap.
    pub fn number(&self, values: &AxisValues) -> Result<u64, AxisError> {
        let (structure, family, mut kind) = self.axes.point(values)?;
        let place = self.structures.at(&structure).ok_or(AxisError::NoHeap)? as usize;
        let kinds = &self.kinds[self.pools(place) - 1];
        // Kinds without limits of their own have dead ones in their grid.
        kind.resize(kinds.radices(family), 0);
        let kind = kinds.at(family, &kind).ok_or(AxisError::NoHeap)?;
        Ok(self.base(place) + kind as u64)
    }

    /// General pools whose kind is chosen.
    fn pools(&self, structure: usize) -> usize {
        self.structures.values()[structure].pools()
    }

    /// All numbers that differ in one parameter, ascending. A heap to compare
    /// with has none.
    pub fn neighbours(&self, number: u64) -> Vec<u64> {
        let Some((place, kind)) = self.locate(number) else {
            return Vec::new();
        };
        let pools = self.structures.values()[place].pools();
        let base = self.base(place);
        let kinds = &self.kinds[pools - 1];
        let mut found: Vec<u64> = kinds
            .neighbours(kind)
            .into_iter()
            .map(|other| base + other as u64)
            .collect();
        for other in self.structures.neighbours(place as u32) {
            let other = other as usize;
            let other_pools = self.structures.values()[other].pools();
            let same = match other_pools == pools {
                true => Some(kind),
                // Limits are told by the number of pools that have them.
                false => kinds.translate(kind, &self.kinds[other_pools - 1]),
            };
            found.extend(same.map(|kind| self.base(other) + kind as u64));
        }
        found.sort_unstable();
        found.dedup();
        found.retain(|&other| other != number);
        found
    }

    /// A configuration that has each parameter from one of two; `coin` says from
    /// which. The first where one of them is a heap to compare with.
    pub fn cross(&self, a: u64, b: u64, coin: &mut dyn FnMut() -> bool) -> u64 {
        let (Some(first), Some(second)) = (self.locate(a), self.locate(b)) else {
            return a;
        };
        let crossed = self.structures.cross(first.0 as u32, second.0 as u32, coin);
        let place = crossed.map_or(first.0, |place| place as usize);
        let pools = |place: usize| self.structures.values()[place].pools();
        let kinds = &self.kinds[pools(place) - 1];
        let here = |(own, kind): (usize, usize)| match pools(own) == pools(place) {
            true => Some(kind),
            false => self.kinds[pools(own) - 1].translate(kind, kinds),
        };
        match (here(first), here(second)) {
            (Some(one), Some(other)) => self.base(place) + kinds.cross(one, other, coin) as u64,
            _ => a,
        }
    }

    /// Where a search may begin that knows nothing but the trace: of each
    /// family, the fullest and the plainest kind on every structure that differs
    /// from the plainest in one parameter.
    pub fn guesses(&self) -> Vec<u64> {
        let mut structures = vec![0];
        structures.extend(self.structures.neighbours(0).iter().map(|&s| s as usize));
        let mut found = Vec::new();
        for place in structures {
            let kinds = &self.kinds[self.structures.values()[place].pools() - 1];
            let guesses = kinds.guesses().into_iter();
            found.extend(guesses.map(|kind| self.base(place) + kind as u64));
        }
        found
    }
}

/// The heaps to compare with, in the surroundings of the space.
fn baselines(
    description: &SpaceDescription,
    plan: &Plan<'_>,
    source: &Source<'_>,
) -> Result<Vec<(String, Config)>, SpaceError> {
    let mut heaps = Vec::new();
    match &description.named.heaps {
        None => {
            for (name, config) in metes_config::named() {
                heaps.push((name.to_owned(), config));
            }
        }
        Some(given) => {
            for name in given.get_ref() {
                let spec = name.get_ref();
                let config = metes_config::spec(spec).map_err(|error| {
                    let message = format!("`{spec}` is no heap: {}", error.message);
                    SpaceError::Text(source.error(name.span(), message, error.help))
                })?;
                if matches!(config.store, metes_config::StoreKind::Moving(_)) {
                    let message = format!(
                        "`{spec}` moves blocks, which no heap of a space does: say `moving=no`"
                    );
                    return Err(SpaceError::Text(source.error(name.span(), message, None)));
                }
                heaps.push((spec.clone(), config));
            }
        }
    }
    for (_, config) in &mut heaps {
        plan.surround(config);
    }
    Ok(heaps)
}
