//! Structures: everything of a heap but the kinds of its general pools.
//!
//! Invariant: a structure that is folded in is a valid heap with any kind.

use std::cmp::Reverse;

use metes_config::{Config, Level};
use metes_heap::compact::Partition;
use metes_heap::description::{
    DEDICATED, DedicatedPool, GENERAL, General, Invalid, LEVELS, List, OBJECTS, ObjectPoolKind,
};
use metes_heap::objects::{GRANULE, LARGEST};
use metes_heap::{Description, Geometry, IndexKind, Limits, Links, Order};

use super::axes::{Axis, AxisValue};
use super::description::SpaceDescription;
use super::folded::Folded;
use super::kinds::{Kind, axis, or};
use super::sizes::{Sizes, objects};
use super::values::{Count, Factor, Kept, Page, Set, Size, Word};

const GEOMETRY: Geometry = Geometry::tagged(8);
const SLAB: usize = metes_config::DEFAULT_SLAB;

/// A general pool whose kind is chosen, or one that stands for a dedicated pool
/// in a level of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pool {
    Open { up_to: usize, level: u8 },
    Alone(General),
}

impl Pool {
    /// Largest request, and smallest in reverse: the order of pools.
    fn rank(&self) -> (usize, Reverse<usize>) {
        match *self {
            Pool::Open { up_to, .. } => (up_to, Reverse(0)),
            Pool::Alone(pool) => (pool.up_to, Reverse(pool.from)),
        }
    }

    fn level(&self) -> u8 {
        match *self {
            Pool::Open { level, .. } => level,
            Pool::Alone(pool) => pool.level,
        }
    }
}

/// Everything but the kinds of the general pools, canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Structure {
    general: List<Pool, GENERAL>,
    dedicated: List<DedicatedPool, DEDICATED>,
    objects: List<ObjectPoolKind, OBJECTS>,
    partition: Option<Partition>,
    /// Bytes of the levels, where they have a size.
    sizes: [Option<usize>; LEVELS],
    increment: usize,
}

impl Structure {
    /// General pools whose kind is chosen.
    pub(super) fn pools(&self) -> usize {
        let open = |pool: &Pool| matches!(pool, Pool::Open { .. });
        self.general.iter().filter(open).count()
    }

    fn heap(&self, kind: &Kind) -> Description {
        let mut general = List::EMPTY;
        let mut kinds = kind.indexes.into_iter().zip(kind.limits);
        for pool in self.general.iter() {
            general.push(match pool {
                Pool::Alone(pool) => pool,
                Pool::Open { up_to, level } => {
                    let (index, limits) = kinds.next().unwrap_or((kind.indexes[0], Limits::NONE));
                    General {
                        up_to,
                        level,
                        limits,
                        ..General::of(index)
                    }
                }
            });
        }
        Description {
            general,
            dedicated: self.dedicated,
            objects: self.objects,
            partition: self.partition,
        }
    }

    pub(super) fn config(&self, kind: &Kind, levels: &[String]) -> Config {
        let mut config = Config::of(self.heap(kind));
        config.arena.increment = self.increment;
        config.levels = named_levels(levels.iter().zip(self.sizes));
        config
    }
}

fn named_levels<'n>(levels: impl Iterator<Item = (&'n String, Option<usize>)>) -> Vec<Level> {
    let level = |(name, size): (&'n String, Option<usize>)| Level {
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
    dedicated_levels: Vec<Vec<Option<u8>>>,
    dedicated_orders: Vec<Order>,
    dedicated_links: Vec<Links>,
    dedicated_limits: Vec<Kept>,
    object_counts: Vec<Count>,
    object_sizes: Vec<usize>,
    slabs: Vec<Size>,
    level_names: Vec<String>,
    level_sizes: Vec<Vec<Size>>,
    increments: Vec<Size>,
    pages: Vec<Page>,
    smallest: Vec<Size>,
    largest: Vec<Size>,
    factors: Vec<Factor>,
}

impl<'s> Plan<'s> {
    pub(super) fn new(description: &SpaceDescription, sizes: &'s Sizes) -> Self {
        let SpaceDescription {
            general,
            dedicated,
            objects,
            partition,
            arena,
            ..
        } = description;
        let none = match partition.given() {
            true => Page(Some(Partition::DEFAULT.page)),
            false => Page(None),
        };
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
            dedicated_levels: match &dedicated.level {
                None => vec![vec![None]],
                given => {
                    let sets = levels_of(given).into_iter();
                    sets.map(|set| set.into_iter().map(Some).collect())
                        .collect()
                }
            },
            dedicated_orders: or(&dedicated.order, &[Order::Lifo]),
            dedicated_links: or(&dedicated.links, &[Links::Double]),
            dedicated_limits: or(&dedicated.limit, &[Kept(None)]),
            object_counts: or(&objects.count, &[Count(0)]),
            object_sizes: given_sizes(&objects.sizes).unwrap_or_else(|| sizes.slots()),
            slabs: or(&objects.slab, &[Size(Some(SLAB))]),
            level_sizes: levels.iter().map(|l| or(&l.size, &[Size(None)])).collect(),
            increments: or(&arena.increment, &[Size(Some(4096))]),
            pages: or(&partition.page, &[none]),
            smallest: or(&partition.smallest, &[Size(Some(GRANULE))]),
            largest: or(&partition.largest, &[Size(Some(2048))]),
            factors: or(&partition.factor, &[Factor(Partition::DEFAULT.factor)]),
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
            self.dedicated_orders.len(),
            self.dedicated_links.len(),
            self.dedicated_limits.len(),
        ];
        radices.extend(self.level_sizes.iter().map(Vec::len));
        radices.extend([
            self.pages.len(),
            self.smallest.len(),
            self.largest.len(),
            self.factors.len(),
        ]);
        radices
    }

    /// The parameters of structures, those of [`radices`](Self::radices).
    pub(super) fn axes(&self) -> Vec<Axis> {
        let name = |level: u8| {
            let name = self.level_names.get(usize::from(level));
            name.map(|name| AxisValue::Word(name.clone()))
        };
        let names = |name: &str, sets: Vec<Vec<Option<AxisValue>>>| {
            let set =
                |set: Vec<Option<AxisValue>>| AxisValue::of(set.into_iter().flatten().collect());
            Axis::new(name, sets.into_iter().map(set).collect())
        };
        let general = self.general_levels.iter();
        let general = general.map(|set| set.iter().map(|&level| name(level)).collect());
        let dedicated = self.dedicated_levels.iter();
        let dedicated = dedicated.map(|set| set.iter().map(|level| name((*level)?)).collect());
        let mut axes = vec![
            axis("general.count", &self.counts),
            axis("general.split", &self.splits),
            names("general.level", general.collect()),
            axis("dedicated.count", &self.dedicated_counts),
            names("dedicated.level", dedicated.collect()),
            axis("objects.count", &self.object_counts),
            axis("objects.slab", &self.slabs),
            axis("arena.increment", &self.increments),
            axis("dedicated.order", &self.dedicated_orders),
            axis("dedicated.links", &self.dedicated_links),
            axis("dedicated.limit", &self.dedicated_limits),
        ];
        let levels = self.level_names.iter().zip(&self.level_sizes);
        axes.extend(levels.map(|(name, sizes)| {
            // A level without a size of its own has none to choose.
            let own = if sizes == &[Size(None)] {
                &[][..]
            } else {
                sizes
            };
            axis(&format!("level.{name}"), own)
        }));
        axes
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
            let structure = self.structure(digits)?;
            self.validate(&structure).is_ok().then_some(structure)
        })
    }

    /// What is wrong with the first structure.
    pub(super) fn why_not(&self) -> Invalid {
        let first = self.structure(&vec![0; self.radices().len()]);
        let wrong = first.and_then(|first| self.validate(&first).err());
        wrong.unwrap_or(Invalid::GeneralBounds)
    }

    fn validate(&self, structure: &Structure) -> Result<(), Invalid> {
        let kind = Kind {
            indexes: [IndexKind::Kingsley; GENERAL],
            limits: [Limits::NONE; GENERAL],
        };
        let heap = structure.heap(&kind);
        heap.validate(GEOMETRY.granule, GEOMETRY.header)
    }

    /// `None` where there are more general pools than a heap can have.
    fn structure(&self, digits: &[usize]) -> Option<Structure> {
        let partition = self.partition(&digits[11 + self.level_sizes.len()..]);
        // A partition leaves nothing for object pools.
        let objects = match partition {
            Some(_) => List::EMPTY,
            None => self.objects(
                self.object_counts[digits[5]].0,
                self.slabs[digits[6]].bytes(),
            ),
        };
        let largest = objects.iter().last().map_or(0, |pool| pool.size);
        let largest = partition.map_or(largest, |partition| partition.largest);
        let mut bounds: Vec<usize> = (self.splits[digits[1]].0.iter())
            .map(|size| size.bytes())
            .take(self.counts[digits[0]].0 - 1)
            // Object pools leave nothing for a pool of smaller requests.
            .filter(|&bound| bound > largest)
            .collect();
        bounds.push(usize::MAX);
        // Levels are given from the last pool backwards.
        let levels = &self.general_levels[digits[2]];
        let mut general: Vec<Pool> = Vec::new();
        for (pool, &up_to) in bounds.iter().enumerate() {
            let from_last = bounds.len() - 1 - pool;
            let level = levels[levels.len().saturating_sub(1 + from_last)];
            general.push(Pool::Open { up_to, level });
        }
        let count = self.dedicated_counts[digits[3]].0;
        let mut dedicated = Vec::new();
        // One in another level than the pool that serves its size stands alone.
        let mut alone = Vec::new();
        for (size, own) in self.dedicated(count, &self.dedicated_levels[digits[4]], largest) {
            let serving = general.iter().find(|pool| size <= pool.rank().0);
            let level = serving.map_or(0, Pool::level);
            let pool = DedicatedPool {
                order: self.dedicated_orders[digits[8]],
                links: self.dedicated_links[digits[9]],
                limit: self.dedicated_limits[digits[10]].0,
                ..DedicatedPool::new(size, own.unwrap_or(level))
            };
            match metes_config::ranged(pool) {
                Some(range) if pool.level != level => alone.push(Pool::Alone(range)),
                _ => dedicated.push(pool),
            }
        }
        general.append(&mut alone);
        general.sort_by_key(Pool::rank);
        if general.len() > GENERAL {
            return None;
        }
        let last = general.last().map_or(0, Pool::level);
        let mut leveled = List::EMPTY;
        for pool in objects.iter() {
            leveled.push(ObjectPoolKind {
                level: last,
                ..pool
            });
        }
        let used = |level: usize| {
            (level == 0 && partition.is_some())
                || general
                    .iter()
                    .any(|pool| usize::from(pool.level()) == level)
        };
        let mut sizes = [None; LEVELS];
        for (level, values) in self.level_sizes.iter().enumerate() {
            // The size of a level without pools is dead.
            let digit = if used(level) { digits[11 + level] } else { 0 };
            sizes[level] = values[digit].0;
        }
        dedicated.sort_unstable_by_key(|pool| pool.size);
        Some(Structure {
            general: List::from_slice(&general),
            dedicated: List::from_slice(&dedicated),
            objects: leveled,
            partition,
            sizes,
            increment: self.increments[digits[7]].bytes(),
        })
    }

    /// The partition of a page, a smallest block, a largest class and a factor.
    fn partition(&self, digits: &[usize]) -> Option<Partition> {
        let page = self.pages[digits[0]].0?;
        Some(Partition {
            page,
            smallest: self.smallest[digits[1]].bytes(),
            largest: self.largest[digits[2]].bytes(),
            factor: self.factors[digits[3]].0,
            granule: GRANULE,
        })
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

    /// Sizes of dedicated pools, the most frequent ones or the given ones in
    /// their order, with a level for each in the same order; none: that of the
    /// general pool behind it.
    fn dedicated(
        &self,
        count: usize,
        levels: &[Option<u8>],
        largest: usize,
    ) -> Vec<(usize, Option<u8>)> {
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
        let level = |rank: usize| levels[rank.min(levels.len() - 1)];
        let ranked = ranked.into_iter().enumerate();
        ranked.map(|(rank, size)| (size, level(rank))).collect()
    }

    /// Names of the levels.
    pub(super) fn level_names(&self) -> &[String] {
        &self.level_names
    }

    /// Gives a heap the surroundings of the space: its growth, and its levels,
    /// with every pool in the last one.
    pub(super) fn surround(&self, config: &mut Config) {
        config.arena.increment = self.increments[0].bytes();
        let last = self.level_names.len().saturating_sub(1) as u8;
        let sizes = self.level_sizes.iter().map(|values| values[0].0);
        config.levels = named_levels(self.level_names.iter().zip(sizes));
        let mut list = List::EMPTY;
        for mut pool in config.heap.general.iter() {
            pool.level = last;
            list.push(pool);
        }
        config.heap.general = list;
    }
}
