//! The configurations of a described space: structures times kinds.
//!
//! Invariant: numbers `0..size` name every configuration once; parameters that
//! cannot matter are folded away before anything is counted.

use metes_config::Config;

use super::axes::{Axes, Axis, AxisError, AxisValues};
use super::description::SpaceDescription;
use super::error::SpaceError;
use super::folded::Folded;
use super::kinds::{self, Kinds};
use super::structure::{Plan, Structure};
use super::values::Fitted;

/// Most grid points of the structures, and of the kinds of one family.
const MOST_POINTS: u128 = 1 << 24;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    structures: Folded<Structure>,
    /// Kinds for one general pool, for two, and so on.
    kinds: Vec<Kinds>,
    /// Numbers before the end of each structure.
    ends: Vec<u64>,
    /// Names of the memory levels.
    pub(super) levels: Vec<String>,
    axes: Axes,
    /// Grid points.
    pub(super) raw: u128,
}

impl Grid {
    /// O(grid points of structures and of kinds), not of their product; `fitted` is what of a heap
    /// suits the trace.
    pub(super) fn new(
        description: &SpaceDescription,
        plan: &Plan<'_>,
        fitted: Fitted,
    ) -> Result<Self, SpaceError> {
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
        let kinds: Vec<Kinds> = (1..=most_pools)
            .map(|pools| Kinds::new(description, pools, fitted))
            .collect();
        let mut size = 0;
        let mut ends = Vec::with_capacity(structures.len());
        for structure in structures.values() {
            size += kinds[structure.pools() - 1].len() as u64;
            ends.push(size);
        }
        let (family, own) = kinds::axes(description);
        Ok(Grid {
            axes: Axes {
                structure: plan.axes(),
                family,
                kinds: own,
            },
            structures,
            kinds,
            ends,
            levels: plan.level_names().to_vec(),
            raw: structure_points * kind_points.iter().sum::<u128>(),
        })
    }

    pub(super) fn size(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Structure and kind of a number. O(log structures).
    fn locate(&self, number: u64) -> Option<(usize, usize)> {
        let structure = self.ends.partition_point(|&end| end <= number);
        self.structures.values().get(structure)?;
        Some((structure, (number - self.base(structure)) as usize))
    }

    fn base(&self, structure: usize) -> u64 {
        match structure {
            0 => 0,
            _ => self.ends[structure - 1],
        }
    }

    /// General pools whose kind is chosen.
    fn pools(&self, structure: usize) -> usize {
        self.structures.values()[structure].pools()
    }

    pub(super) fn describe(&self, number: u64) -> Option<Config> {
        let (structure, kind) = self.locate(number)?;
        let structure = &self.structures.values()[structure];
        let kind = self.kinds[structure.pools() - 1].get(kind)?;
        Some(structure.config(&kind, &self.levels))
    }

    pub(super) fn axes(&self) -> Vec<Axis> {
        self.axes.all()
    }

    pub(super) fn values(&self, number: u64) -> Option<AxisValues> {
        let (place, kind) = self.locate(number)?;
        let (family, digits) = self.kinds[self.pools(place) - 1].digits(kind)?;
        let structure = self.structures.digits(place as u32);
        Some(self.axes.values(&structure, family, &digits))
    }

    pub(super) fn number(&self, values: &AxisValues) -> Result<u64, AxisError> {
        let (structure, family, mut kind) = self.axes.point(values)?;
        let place = self.structures.at(&structure).ok_or(AxisError::NoHeap)? as usize;
        let kinds = &self.kinds[self.pools(place) - 1];
        // Kinds without limits of their own have dead ones in their grid.
        kind.resize(kinds.radices(family), 0);
        let kind = kinds.at(family, &kind).ok_or(AxisError::NoHeap)?;
        Ok(self.base(place) + kind as u64)
    }

    pub(super) fn neighbours(&self, number: u64) -> Vec<u64> {
        let Some((place, kind)) = self.locate(number) else {
            return Vec::new();
        };
        let pools = self.pools(place);
        let base = self.base(place);
        let kinds = &self.kinds[pools - 1];
        let mut found: Vec<u64> = kinds
            .neighbours(kind)
            .into_iter()
            .map(|other| base + other as u64)
            .collect();
        for other in self.structures.neighbours(place as u32) {
            let other = other as usize;
            let other_pools = self.pools(other);
            let same = match other_pools == pools {
                true => Some(kind),
                // Limits are told by the number of pools that have them.
                false => kinds.translate(kind, &self.kinds[other_pools - 1]),
            };
            found.extend(same.map(|kind| self.base(other) + kind as u64));
        }
        found
    }

    pub(super) fn cross(&self, a: u64, b: u64, coin: &mut dyn FnMut() -> bool) -> u64 {
        let (Some(first), Some(second)) = (self.locate(a), self.locate(b)) else {
            return a;
        };
        let crossed = self.structures.cross(first.0 as u32, second.0 as u32, coin);
        let place = crossed.map_or(first.0, |place| place as usize);
        let kinds = &self.kinds[self.pools(place) - 1];
        let here = |(own, kind): (usize, usize)| match self.pools(own) == self.pools(place) {
            true => Some(kind),
            false => self.kinds[self.pools(own) - 1].translate(kind, kinds),
        };
        match (here(first), here(second)) {
            (Some(one), Some(other)) => self.base(place) + kinds.cross(one, other, coin) as u64,
            _ => a,
        }
    }

    /// Of each family, the fullest and the plainest kind on every structure that differs
    /// from the plainest in one parameter.
    pub(super) fn guesses(&self) -> Vec<u64> {
        let mut structures = vec![0];
        structures.extend(self.structures.neighbours(0).iter().map(|&s| s as usize));
        let mut found = Vec::new();
        for place in structures {
            let kinds = &self.kinds[self.pools(place) - 1];
            let guesses = kinds.guesses().into_iter();
            found.extend(guesses.map(|kind| self.base(place) + kind as u64));
        }
        found
    }
}
