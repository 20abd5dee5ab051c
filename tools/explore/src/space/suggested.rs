//! The heaps worth trying for a program of which nothing is known but its trace: too many to be
//! explored whole, made to be searched.
//!
//! A configuration is a *structure* (which object pools or which size classes of pages, which dedicated pools,
//! where two general pools are split) and a *kind* for each general pool (its
//! index and limits). All values come from the sizes that the program asks for.
//!
//! Parameters that cannot matter are folded away before anything is counted:
//! a maximum fit of exact fit, limits of heaps that have their own, a dedicated
//! pool whose requests all go to an object pool, a split below the largest
//! object pool.
//!
//! Invariant: numbers `0..size` name every configuration once.

use std::collections::HashMap;

use metes_config::Config;
use metes_heap::compact::Partition;
use metes_heap::description::{DEDICATED, DedicatedPool, General, List, OBJECTS, ObjectPoolKind};
use metes_heap::{Description, Fit, IndexKind, Limits, Links, Order, SizeTable};

use super::sizes::{COUNTS, LIMITS, Sizes, objects};
use crate::pools::Arena;

/// The named heap.
const LEA: IndexKind = IndexKind::Lea { keep_up_to: 128 };
/// The table of the named heap.
const OSE: IndexKind = IndexKind::FixedSizes {
    sizes: SizeTable::DEFAULT,
};
const FITS: [Fit; 5] = [Fit::First, Fit::Next, Fit::Best, Fit::Worst, Fit::Exact];
const ORDERS: [Order; 3] = [Order::Lifo, Order::Fifo, Order::Address];
const DEPTHS: [u32; 5] = [100, 50, 25, 10, 5];
const MAX_FITS: [u32; 5] = [0, 110, 125, 150, 200];
const SECOND_LEVELS: [u32; 6] = [1, 2, 4, 8, 16, 32];
const PROBES: [usize; 7] = [0, 1, 2, 4, 8, 16, usize::MAX];
const SLABS: [usize; 4] = [1024, 4096, 16384, 65536];

/// An index with its limits, canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    index: IndexKind,
    limits: Limits,
}

/// Everything but the kinds of the general pools, canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Structure {
    objects: List<ObjectPoolKind, OBJECTS>,
    dedicated: List<DedicatedPool, DEDICATED>,
    partition: Option<Partition>,
    split: Option<usize>,
}

/// What a configuration is made of: numbers of structure and kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    structure: u32,
    /// The second is 0 when there is one general pool.
    kinds: [u32; 2],
}

/// The choices that a structure is made of, before folding.
type Choice = [usize; 5];

/// All configurations that the sizes of a program suggest.
#[derive(Clone, Debug)]
pub(super) struct Suggested {
    structures: Vec<Structure>,
    /// Every choice of object set, slab, dedicated count, split and limit of dedicated lists, and the
    /// structure that it folds to.
    choices: HashMap<Choice, u32>,
    /// One choice for each structure.
    choice_of: Vec<Choice>,
    /// How many values each part of a choice has.
    radices: Choice,
    kinds: Vec<Kind>,
    numbers: HashMap<Kind, u32>,
    limits: Vec<Limits>,
    /// First fit by a tree, with sizes and by classes, laid out for what the program's demand needs;
    /// none where the emitted C is the heap.
    trees: Vec<IndexKind>,
    /// Numbers before the end of each structure.
    ends: Vec<u64>,
    /// How all of them grow.
    arena: Arena,
    /// Of each heap to compare with, its number here, if it is one of these.
    twins: Vec<Option<u64>>,
}

impl Suggested {
    /// Those that sizes suggest, beside heaps to compare with; trees are laid out for `span` bytes.
    pub(super) fn of(sizes: &Sizes, span: usize, arena: &Arena, named: &[Description]) -> Self {
        let limits = sizes.limits();
        let mut trees = Vec::new();
        if arena.target.is_host() {
            trees.extend([false, true].map(|by_class| IndexKind::FirstFit {
                by_class,
                span: Some(span),
            }));
        }
        let kinds = kinds(&limits, &trees);
        let numbers = kinds.iter().copied().zip(0..).collect();
        let object_sets = sizes.object_sets();
        let partitions = sizes.partitions();
        let splits = sizes.splits();
        let radices = [
            object_sets.len() + partitions.len(),
            SLABS.len(),
            COUNTS.len(),
            splits.len() + 1,
            LIMITS.len(),
        ];
        let mut structures = Vec::new();
        let mut known: HashMap<Structure, u32> = HashMap::new();
        let mut choices = HashMap::new();
        let mut choice_of = Vec::new();
        for position in 0..radices.iter().product() {
            let choice = digits(position, radices);
            let slab = SLABS[choice[1]];
            let objects = object_sets.get(choice[0]).map(|set| objects(set, slab));
            let objects = objects.unwrap_or(List::EMPTY);
            let partition = choice[0].checked_sub(object_sets.len());
            let partition = partition.and_then(|number| in_pages(partitions[number], slab));
            let largest = objects.iter().last().map_or(0, |pool| pool.size);
            let largest = partition.map_or(largest, |partition| partition.largest);
            let structure = Structure {
                objects,
                partition,
                dedicated: sizes.dedicated(COUNTS[choice[2]], LIMITS[choice[4]], largest),
                split: (choice[3] > 0)
                    .then(|| splits[choice[3] - 1])
                    .filter(|&split| split > largest),
            };
            let number = *known.entry(structure).or_insert_with(|| {
                structures.push(structure);
                choice_of.push(choice);
                structures.len() as u32 - 1
            });
            choices.insert(choice, number);
        }
        let mut ends = Vec::with_capacity(structures.len());
        let mut size = 0_u64;
        for structure in &structures {
            let pools = 1 + u32::from(structure.split.is_some());
            size += (kinds.len() as u64).pow(pools);
            ends.push(size);
        }
        let mut suggested = Suggested {
            structures,
            choices,
            choice_of,
            radices,
            kinds,
            numbers,
            limits,
            trees,
            ends,
            arena: *arena,
            twins: Vec::new(),
        };
        let twins = named.iter().map(|heap| suggested.plain(heap));
        suggested.twins = twins.collect();
        suggested
    }

    /// Number of different configurations.
    pub(super) fn size(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Numbers before those of a structure.
    fn base(&self, structure: usize) -> u64 {
        structure
            .checked_sub(1)
            .map_or(0, |previous| self.ends[previous])
    }

    /// What a number below [`size`](Self::size) is made of. O(log structures).
    fn point(&self, number: u64) -> Option<Point> {
        let structure = self.ends.partition_point(|&end| end <= number);
        let split = self.structures.get(structure)?.split.is_some();
        let rest = number - self.base(structure);
        let kinds = self.kinds.len() as u64;
        let second = if split { (rest / kinds) as u32 } else { 0 };
        Some(Point {
            structure: structure as u32,
            kinds: [(rest % kinds) as u32, second],
        })
    }

    fn number(&self, point: Point) -> u64 {
        let [first, second] = point.kinds.map(u64::from);
        self.base(point.structure as usize) + first + second * self.kinds.len() as u64
    }

    /// The number of a heap of one general pool and no other.
    fn plain(&self, heap: &Description) -> Option<u64> {
        let kind = canonical(heap.general.iter().next()?.index, Limits::NONE);
        let number = *self.numbers.get(&kind)?;
        let structure = *self.choices.get(&[0; 5])?;
        let point = Point {
            structure,
            kinds: [number, 0],
        };
        (self.heap(point) == *heap).then(|| self.number(point))
    }

    /// The number here of a heap to compare with.
    pub(super) fn twin(&self, baseline: usize) -> Option<u64> {
        *self.twins.get(baseline)?
    }

    /// Which heap to compare with a number is.
    pub(super) fn twin_of(&self, number: u64) -> Option<usize> {
        self.twins.iter().position(|twin| *twin == Some(number))
    }

    /// The heap of a number, growing as all do. O(log structures).
    pub(super) fn describe(&self, number: u64) -> Option<Config> {
        Some(self.arena.config(self.heap(self.point(number)?)))
    }

    fn heap(&self, point: Point) -> Description {
        let structure = &self.structures[point.structure as usize];
        let mut general = List::EMPTY;
        let bounds = [structure.split, Some(usize::MAX)];
        for (up_to, kind) in bounds.into_iter().flatten().zip(point.kinds) {
            let Kind { index, limits } = self.kinds[kind as usize];
            general.push(General {
                up_to,
                limits,
                ..General::of(index)
            });
        }
        Description {
            general,
            dedicated: structure.dedicated,
            objects: structure.objects,
            partition: structure.partition,
        }
    }

    /// All numbers that differ in one parameter, and some of them several times.
    pub(super) fn neighbours(&self, number: u64) -> Vec<u64> {
        let Some(point) = self.point(number) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let choice = self.choice_of[point.structure as usize];
        for axis in 0..choice.len() {
            for value in 0..self.radices[axis] {
                let mut other = choice;
                other[axis] = value;
                found.push(self.number(self.on(self.choices[&other], point.kinds)));
            }
        }
        let pools = match self.structures[point.structure as usize].split {
            Some(_) => 2,
            None => 1,
        };
        for pool in 0..pools {
            let kind = self.kinds[point.kinds[pool] as usize];
            for other in self.similar(kind) {
                let mut kinds = point.kinds;
                kinds[pool] = self.numbers[&other];
                found.push(self.number(Point { kinds, ..point }));
            }
        }
        found
    }

    /// Kinds on a structure: what is split has two, the same where only one is known.
    fn on(&self, structure: u32, kinds: [u32; 2]) -> Point {
        let split = self.structures[structure as usize].split.is_some();
        let second = match (split, kinds[1]) {
            (false, _) => 0,
            (true, 0) => kinds[0],
            (true, kind) => kind,
        };
        Point {
            structure,
            kinds: [kinds[0], second],
        }
    }

    /// A number that has each parameter from one of two; `coin` says from which.
    pub(super) fn cross(&self, a: u64, b: u64, coin: &mut dyn FnMut() -> bool) -> u64 {
        let (Some(first), Some(second)) = (self.point(a), self.point(b)) else {
            return a;
        };
        let mut choice = self.choice_of[first.structure as usize];
        let others = self.choice_of[second.structure as usize];
        for (own, other) in choice.iter_mut().zip(others) {
            *own = if coin() { *own } else { other };
        }
        let mut kinds = first.kinds;
        for (own, other) in kinds.iter_mut().zip(second.kinds) {
            *own = if coin() { *own } else { other };
        }
        self.number(self.on(self.choices[&choice], kinds))
    }

    /// Kinds that differ from one in a single parameter.
    fn similar(&self, kind: Kind) -> Vec<Kind> {
        let Kind { index, limits } = kind;
        let mut indexes = vec![
            IndexKind::tlsf(32),
            IndexKind::list(Fit::Best, Order::Lifo),
            IndexKind::list(Fit::First, Order::Address),
            IndexKind::Kingsley,
            OSE,
            LEA,
            IndexKind::Buddy { lowest: false },
            IndexKind::Buddy { lowest: true },
        ];
        indexes.extend(&self.trees);
        match index {
            IndexKind::List {
                fit,
                order,
                depth_percent,
                max_fit_percent,
                links,
            } => {
                let list = |fit, order, depth_percent, max_fit_percent| IndexKind::List {
                    fit,
                    order,
                    depth_percent,
                    max_fit_percent,
                    links,
                };
                indexes.extend(FITS.map(|fit| list(fit, order, depth_percent, max_fit_percent)));
                indexes
                    .extend(ORDERS.map(|order| list(fit, order, depth_percent, max_fit_percent)));
                indexes.extend(DEPTHS.map(|depth| list(fit, order, depth, max_fit_percent)));
                indexes.extend(MAX_FITS.map(|most| list(fit, order, depth_percent, most)));
            }
            IndexKind::Classes {
                second_level,
                probes,
            } => {
                let classes = |second_level, probes| IndexKind::Classes {
                    second_level,
                    probes,
                };
                indexes.extend(SECOND_LEVELS.map(|level| classes(level, probes)));
                indexes.extend(PROBES.map(|probes| classes(second_level, probes)));
            }
            IndexKind::FirstFit { .. } => indexes.push(IndexKind::list(Fit::First, Order::Address)),
            IndexKind::Kingsley
            | IndexKind::Lea { .. }
            | IndexKind::FixedSizes { .. }
            | IndexKind::Buddy { .. } => {}
        }
        let mut kinds: Vec<Kind> = indexes
            .into_iter()
            .map(|index| canonical(index, limits))
            .collect();
        for other in &self.limits {
            let one = (other.coalesce_up_to == limits.coalesce_up_to)
                != (other.split_down_to == limits.split_down_to);
            if one {
                kinds.push(canonical(index, *other));
            }
        }
        kinds
    }
}

/// A partition into pages of so many bytes, if they hold its classes.
fn in_pages(partition: Partition, page: usize) -> Option<Partition> {
    let partition = Partition {
        page,
        largest: partition.largest.min(page),
        ..partition
    };
    partition.validate(0).is_ok().then_some(partition)
}

fn digits(mut position: usize, radices: Choice) -> Choice {
    radices.map(|radix| {
        let digit = position % radix;
        position /= radix;
        digit
    })
}

/// Folds parameters that cannot matter for the index.
fn canonical(index: IndexKind, limits: Limits) -> Kind {
    match index {
        IndexKind::List {
            fit: Fit::Exact,
            order,
            depth_percent,
            links,
            ..
        } => Kind {
            index: IndexKind::List {
                fit: Fit::Exact,
                order,
                depth_percent,
                max_fit_percent: 0,
                links,
            },
            limits,
        },
        IndexKind::Kingsley
        | IndexKind::Lea { .. }
        | IndexKind::FixedSizes { .. }
        | IndexKind::FirstFit { .. }
        | IndexKind::Buddy { .. } => Kind {
            index,
            limits: Limits::NONE,
        },
        _ => Kind { index, limits },
    }
}

/// Every canonical kind, once.
fn kinds(limits: &[Limits], trees: &[IndexKind]) -> Vec<Kind> {
    let mut indexes = Vec::new();
    for second_level in SECOND_LEVELS {
        for probes in PROBES {
            indexes.push(IndexKind::Classes {
                second_level,
                probes,
            });
        }
    }
    for fit in FITS {
        for order in ORDERS {
            for depth_percent in DEPTHS {
                for max_fit_percent in MAX_FITS {
                    if fit == Fit::Exact && max_fit_percent != 0 {
                        continue;
                    }
                    indexes.push(IndexKind::List {
                        fit,
                        order,
                        depth_percent,
                        max_fit_percent,
                        links: Links::Double,
                    });
                }
            }
        }
    }
    let mut kinds = vec![
        canonical(IndexKind::Kingsley, Limits::NONE),
        canonical(OSE, Limits::NONE),
        canonical(LEA, Limits::NONE),
        canonical(IndexKind::Buddy { lowest: false }, Limits::NONE),
        canonical(IndexKind::Buddy { lowest: true }, Limits::NONE),
    ];
    kinds.extend(trees.iter().map(|&tree| canonical(tree, Limits::NONE)));
    for index in indexes {
        kinds.extend(limits.iter().map(|&limits| Kind { index, limits }));
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Events, EventsBuilder, Operation};
    use crate::fitted_span::fitted_span;
    use std::collections::HashSet;

    fn events() -> Events {
        let mut builder = EventsBuilder::new();
        for serial in 0..1000_u64 {
            let size = [24, 48, 1514, 66, 4000][(serial * serial % 5) as usize];
            builder.push(Operation::Allocate, serial, size, 0).unwrap();
        }
        builder.finish()
    }

    fn suggested() -> Suggested {
        let named: Vec<_> = crate::catalogue()
            .iter()
            .map(|own| own.description)
            .collect();
        let events = events();
        Suggested::of(
            &Sizes::of(&events, Arena::HOST.target),
            fitted_span(&events, &Arena::HOST),
            &Arena::HOST,
            &named,
        )
    }

    fn heap(space: &Suggested, number: u64) -> Description {
        space.describe(number).unwrap().heap
    }

    #[test]
    fn every_number_is_another_valid_heap() {
        let space = suggested();
        let size = space.size();
        let numbers: Vec<u64> = (0..40_000).map(|n| n * (size / 40_000)).collect();
        let heaps: HashSet<Description> =
            numbers.iter().map(|&number| heap(&space, number)).collect();
        assert_eq!(heaps.len(), numbers.len());
        for heap in &heaps {
            assert_eq!(heap.validate(16, 8), Ok(()), "{heap:?}");
        }
        for number in numbers {
            assert_eq!(space.number(space.point(number).unwrap()), number);
        }
        assert!(space.describe(size).is_none());
        assert!(space.describe(size - 1).is_some());
    }

    #[test]
    fn neighbours_and_crosses_are_heaps_of_the_space() {
        let space = suggested();
        let mut coin = false;
        for number in (0..space.size()).step_by((space.size() / 500) as usize) {
            let neighbours = space.neighbours(number);
            assert!(neighbours.iter().any(|&other| other != number));
            for other in neighbours {
                assert!(other == number || heap(&space, other) != heap(&space, number));
                assert_eq!(heap(&space, other).validate(16, 8), Ok(()));
            }
            let other = space.size() - 1 - number;
            let crossed = space.cross(number, other, &mut || {
                coin = !coin;
                coin
            });
            assert_eq!(heap(&space, crossed).validate(16, 8), Ok(()));
            assert_eq!(space.cross(number, other, &mut || true), number);
        }
    }

    #[test]
    fn every_named_heap_is_in_the_space() {
        let space = suggested();
        for (place, named) in crate::catalogue().iter().enumerate() {
            let twin = space.twin(place).expect(named.name);
            assert_eq!(heap(&space, twin), named.description, "{}", named.name);
            assert_eq!(space.twin_of(twin), Some(place));
        }
    }
}
