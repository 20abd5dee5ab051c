//! Structures: everything of a heap but the kinds of its general pools.
//!
//! Invariant: a structure that is folded in is a valid heap with any kind.

use metes_config::{Config, Level};
use metes_heap::description::{
    DEDICATED, DedicatedPool, GENERAL, Invalid, List, OBJECTS, ObjectPoolKind,
};
use metes_heap::objects::{GRANULE, LARGEST};
use metes_heap::{Description, Geometry, IndexKind, Limits};

use super::description::SpaceDescription;
use super::folded::Folded;
use super::general;
use super::kinds::{Kind, or};
use super::sizes::{Sizes, objects};
use super::values::{Count, Set, Size, Word};
use crate::hierarchy::LEVELS;

const GEOMETRY: Geometry = Geometry::tagged(8);
const SLAB: usize = metes_config::DEFAULT_SLAB;

/// Everything but the kinds of the general pools, canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Structure {
    /// Largest request and level of each general pool.
    general: List<(usize, u8), GENERAL>,
    dedicated: List<DedicatedPool, DEDICATED>,
    objects: List<ObjectPoolKind, OBJECTS>,
    /// Bytes of the levels.
    sizes: [usize; LEVELS],
    increment: usize,
}

impl Structure {
    /// General pools.
    pub(super) fn pools(&self) -> usize {
        self.general.len()
    }

    fn heap(&self, kind: &Kind) -> Description {
        Description {
            general: general(self.general.iter(), kind),
            dedicated: self.dedicated,
            objects: self.objects,
        }
    }

    pub(super) fn config(&self, kind: &Kind, levels: &[(String, usize)]) -> Config {
        let mut config = Config::of(self.heap(kind));
        config.arena.increment = self.increment;
        config.levels = named_levels(levels.iter().map(|(name, _)| name).zip(self.sizes));
        config
    }
}

fn named_levels<'n>(levels: impl Iterator<Item = (&'n String, usize)>) -> Vec<Level> {
    let level = |(name, size): (&'n String, usize)| Level {
        name: name.clone(),
        size,
        read_energy: None,
        write_energy: None,
        latency: None,
    };
    levels.map(level).collect()
}

/// The values that structures are made of.
pub(super) struct Plan<'s> {
    sizes: &'s Sizes,
    counts: Vec<Count>,
    splits: Vec<Set<Size>>,
    general_levels: Vec<Vec<u8>>,
    dedicated_counts: Vec<Count>,
    dedicated_sizes: Option<Vec<usize>>,
    dedicated_levels: Vec<Vec<u8>>,
    object_counts: Vec<Count>,
    object_sizes: Vec<usize>,
    slabs: Vec<Size>,
    level_names: Vec<String>,
    level_sizes: Vec<Vec<Size>>,
    increments: Vec<Size>,
}

impl<'s> Plan<'s> {
    pub(super) fn new(description: &SpaceDescription, sizes: &'s Sizes) -> Self {
        let SpaceDescription {
            general,
            dedicated,
            objects,
            arena,
            ..
        } = description;
        let levels = &description.level;
        let level_names: Vec<String> = levels.iter().map(|l| l.name.get_ref().clone()).collect();
        let last = level_names.len().saturating_sub(1) as u8;
        let number = |Word(name): &Word| {
            let place = level_names.iter().position(|own| own == name);
            place.unwrap_or(0) as u8
        };
        let levels_of = |given: &_| {
            let sets: Vec<Set<Word>> = or(given, &[]);
            match sets.is_empty() {
                true => vec![vec![last]],
                false => (sets.iter())
                    .map(|Set(names)| names.iter().map(number).collect())
                    .collect(),
            }
        };
        let suggested: Vec<Set<Size>> = sizes
            .splits()
            .into_iter()
            .map(|split| Set(vec![Size(Some(split))]))
            .collect();
        let given_sizes = |given: &Option<_>| {
            given.as_ref().map(|_| {
                let sizes: Vec<Size> = or(given, &[]);
                sizes.into_iter().map(Size::bytes).collect()
            })
        };
        Plan {
            counts: or(&general.count, &[Count(1)]),
            splits: match or(&general.split, &suggested) {
                none if none.is_empty() => vec![Set(Vec::new())],
                splits => splits,
            },
            general_levels: levels_of(&general.level),
            dedicated_counts: or(&dedicated.count, &[Count(0)]),
            dedicated_sizes: given_sizes(&dedicated.sizes),
            dedicated_levels: levels_of(&dedicated.level),
            object_counts: or(&objects.count, &[Count(0)]),
            object_sizes: given_sizes(&objects.sizes).unwrap_or_else(|| sizes.slots()),
            slabs: or(&objects.slab, &[Size(Some(SLAB))]),
            level_sizes: levels.iter().map(|l| l.size.get_ref().0.clone()).collect(),
            increments: or(&arena.increment, &[Size(Some(4096))]),
            level_names,
            sizes,
        }
    }

    fn radices(&self) -> Vec<usize> {
        let mut radices = vec![
            self.counts.len(),
            self.splits.len(),
            self.general_levels.len(),
            self.dedicated_counts.len(),
            self.dedicated_levels.len(),
            self.object_counts.len(),
            self.slabs.len(),
            self.increments.len(),
        ];
        radices.extend(self.level_sizes.iter().map(Vec::len));
        radices
    }

    /// Grid points.
    pub(super) fn points(&self) -> u128 {
        self.radices()
            .into_iter()
            .map(|radix| radix as u128)
            .product()
    }

    /// Every valid structure once.
    pub(super) fn fold(&self) -> Folded<Structure> {
        Folded::new(self.radices(), |digits| {
            let structure = self.structure(digits);
            self.validate(&structure).is_ok().then_some(structure)
        })
    }

    /// What is wrong with the first structure.
    pub(super) fn why_not(&self) -> Invalid {
        let first = self.structure(&vec![0; self.radices().len()]);
        self.validate(&first)
            .err()
            .unwrap_or(Invalid::NoGeneralPool)
    }

    fn validate(&self, structure: &Structure) -> Result<(), Invalid> {
        let kind = Kind {
            index: IndexKind::Kingsley,
            limits: [Limits::NONE; GENERAL],
        };
        let heap = structure.heap(&kind);
        heap.validate(GEOMETRY.granule, GEOMETRY.header)
    }

    fn structure(&self, digits: &[usize]) -> Structure {
        let objects = self.objects(
            self.object_counts[digits[5]].0,
            self.slabs[digits[6]].bytes(),
        );
        let largest = objects.iter().last().map_or(0, |pool| pool.size);
        let mut bounds: Vec<usize> = (self.splits[digits[1]].0.iter())
            .map(|size| size.bytes())
            .take(self.counts[digits[0]].0 - 1)
            // Object pools leave nothing for a pool of smaller requests.
            .filter(|&bound| bound > largest)
            .collect();
        bounds.push(usize::MAX);
        // Levels are given from the last pool backwards.
        let levels = &self.general_levels[digits[2]];
        let mut general = List::EMPTY;
        for (pool, &bound) in bounds.iter().enumerate() {
            let from_last = bounds.len() - 1 - pool;
            let level = levels.len().saturating_sub(1 + from_last);
            general.push((bound, levels[level]));
        }
        let dedicated = self.dedicated(
            self.dedicated_counts[digits[3]].0,
            &self.dedicated_levels[digits[4]],
            largest,
        );
        let used = |level: usize| {
            general.iter().any(|(_, own)| usize::from(own) == level)
                || dedicated
                    .iter()
                    .any(|pool| usize::from(pool.level) == level)
        };
        let mut sizes = [0; LEVELS];
        for (level, values) in self.level_sizes.iter().enumerate() {
            // The size of a level without pools is dead.
            let digit = if used(level) { digits[8 + level] } else { 0 };
            sizes[level] = values[digit].bytes();
        }
        Structure {
            general,
            dedicated,
            objects,
            sizes,
            increment: self.increments[digits[7]].bytes(),
        }
    }

    /// Object pools for the most frequent sizes, as far as a slab can hold them.
    fn objects(&self, count: usize, slab: usize) -> List<ObjectPoolKind, OBJECTS> {
        let mut set: Vec<usize> = (self.object_sizes.iter())
            .map(|size| size.next_multiple_of(GRANULE))
            .filter(|&size| size <= LARGEST)
            .take(count)
            .collect();
        set.sort_unstable();
        set.dedup();
        objects(&set, slab)
    }

    /// Dedicated pools for the most frequent sizes, or for the given ones in
    /// their order, with a level for each in the same order.
    fn dedicated(
        &self,
        count: usize,
        levels: &[u8],
        largest: usize,
    ) -> List<DedicatedPool, DEDICATED> {
        let ranked: Vec<usize> = match &self.dedicated_sizes {
            None => self.sizes.frequent(largest, count),
            Some(sizes) => {
                let mut blocks = Vec::new();
                for &size in sizes.iter().take(count) {
                    let block = GEOMETRY.block_for(size);
                    if size > largest && block.is_some() && !blocks.contains(&block) {
                        blocks.push(block);
                    }
                }
                let sizes = blocks.into_iter().flatten();
                sizes.map(|block| block - GEOMETRY.header).collect()
            }
        };
        let mut pools: Vec<DedicatedPool> = ranked
            .into_iter()
            .enumerate()
            .map(|(rank, size)| DedicatedPool {
                size,
                level: levels[rank.min(levels.len() - 1)],
            })
            .collect();
        pools.sort_unstable_by_key(|pool| pool.size);
        List::from_slice(&pools)
    }

    /// Names and first sizes of the levels.
    pub(super) fn levels(&self) -> Vec<(String, usize)> {
        let sizes = self.level_sizes.iter().map(|values| values[0].bytes());
        self.level_names.iter().cloned().zip(sizes).collect()
    }

    /// Gives a heap the surroundings of the space: its growth, and its levels,
    /// with every pool in the last one.
    pub(super) fn surround(&self, config: &mut Config) {
        config.arena.increment = self.increments[0].bytes();
        let levels = self.levels();
        let last = levels.len().saturating_sub(1) as u8;
        config.levels = named_levels(levels.iter().map(|(name, size)| (name, *size)));
        let mut list = List::EMPTY;
        for mut pool in config.heap.general.iter() {
            pool.level = last;
            list.push(pool);
        }
        config.heap.general = list;
    }
}
