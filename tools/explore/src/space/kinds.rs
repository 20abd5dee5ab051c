//! Kinds of general pools: an index and, for each pool, its limits.
//!
//! Invariant: kinds are numbered family by family, each once.

use metes_heap::description::GENERAL;
use metes_heap::{Fit, IndexKind, Limits, Links, Order, SizeTable};

use super::axes::Axis;
use super::description::{Given, SpaceDescription};
use super::folded::Folded;
use super::values::{
    Count, Depth, Family, Fitted, Item, Keep, MaxFit, Probes, Set, Size, Summary, Table,
};

/// Indexes and limits of the general pools in order; those of pools that there
/// are not are the first one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) indexes: [IndexKind; GENERAL],
    pub(super) limits: [Limits; GENERAL],
}

/// The values of a parameter, or its default.
pub(super) fn or<T: Item>(given: &Given<T>, default: &[T]) -> Vec<T> {
    match given {
        Some(values) => values.get_ref().0.clone(),
        None => default.to_vec(),
    }
}

/// A parameter of some values.
pub(super) fn axis<T: Item>(name: &str, values: &[T]) -> Axis {
    Axis::new(name, values.iter().map(Item::value).collect())
}

/// The families of a description as a parameter, and the parameters of each.
pub(super) fn axes(description: &SpaceDescription) -> (Axis, Vec<Vec<Axis>>) {
    let ranges = Ranges::of(description, Fitted::NONE);
    let families = ranges.families.iter();
    (
        axis("general.index", &ranges.families),
        families.map(|&family| ranges.axes(family)).collect(),
    )
}

/// The values that kinds are made of.
struct Ranges {
    families: Vec<Family>,
    fits: Vec<Set<Fit>>,
    orders: Vec<Order>,
    links: Vec<Links>,
    max_fits: Vec<MaxFit>,
    depths: Vec<Depth>,
    second_levels: Vec<Count>,
    probes: Vec<Probes>,
    buddies: Vec<Order>,
    kept: Vec<Keep>,
    tables: Vec<Table>,
    summaries: Vec<Summary>,
    fitted: Fitted,
    coalescing: Vec<Count>,
    up_to: Vec<Size>,
    splitting: Vec<Count>,
    down_to: Vec<Size>,
}

impl Ranges {
    fn of(description: &SpaceDescription, fitted: Fitted) -> Self {
        let SpaceDescription {
            general,
            list,
            classes,
            buddy,
            lea,
            ose,
            tree,
            coalescing,
            splitting,
            ..
        } = description;
        Ranges {
            families: or(&general.index, &[Family::List]),
            fits: or(&list.fit, &[Set(vec![Fit::First])]),
            orders: or(&list.order, &[Order::Address]),
            links: or(&list.links, &[Links::Double]),
            max_fits: or(&list.max_fit, &[MaxFit(0)]),
            depths: or(&list.depth, &[Depth(100)]),
            second_levels: or(&classes.second_level, &[Count(32)]),
            probes: or(&classes.probes, &[Probes(0)]),
            buddies: or(&buddy.order, &[Order::Lifo]),
            kept: or(&lea.keep_up_to, &[Keep(128)]),
            tables: or(&ose.sizes, &[Table::Default]),
            summaries: or(&tree.summary, &[Summary::Exact]),
            fitted,
            coalescing: or(&coalescing.pools, &[Count(GENERAL)]),
            up_to: or(&coalescing.up_to, &[Size(None)]),
            splitting: or(&splitting.pools, &[Count(GENERAL)]),
            down_to: or(&splitting.down_to, &[Size(None)]),
        }
    }

    /// Numbers of values of a family's parameters, then of the limits'.
    fn radices(&self, family: Family) -> Vec<usize> {
        let mut radices = match family {
            Family::List => vec![
                self.fits.len(),
                self.orders.len(),
                self.links.len(),
                self.max_fits.len(),
                self.depths.len(),
            ],
            Family::Classes => vec![self.second_levels.len(), self.probes.len()],
            Family::Kingsley => Vec::new(),
            Family::Buddy => vec![self.buddies.len()],
            Family::Lea => vec![self.kept.len()],
            Family::Ose => vec![self.tables.len()],
            Family::Tree => vec![self.summaries.len()],
        };
        radices.extend([
            self.coalescing.len(),
            self.up_to.len(),
            self.splitting.len(),
            self.down_to.len(),
        ]);
        radices
    }

    /// The parameters of a family, those of [`radices`](Self::radices), but for
    /// limits that it does not have.
    fn axes(&self, family: Family) -> Vec<Axis> {
        let mut axes = match family {
            Family::List => vec![
                axis("list.fit", &self.fits),
                axis("list.order", &self.orders),
                axis("list.links", &self.links),
                axis("list.max_fit", &self.max_fits),
                axis("list.depth", &self.depths),
            ],
            Family::Classes => vec![
                axis("classes.second_level", &self.second_levels),
                axis("classes.probes", &self.probes),
            ],
            Family::Kingsley => return Vec::new(),
            Family::Buddy => return vec![axis("buddy.order", &self.buddies)],
            Family::Lea => return vec![axis("lea.keep_up_to", &self.kept)],
            Family::Ose => return vec![axis("ose.sizes", &self.tables)],
            Family::Tree => return vec![axis("tree.summary", &self.summaries)],
        };
        axes.extend([
            axis("coalescing.pools", &self.coalescing),
            axis("coalescing.up_to", &self.up_to),
            axis("splitting.pools", &self.splitting),
            axis("splitting.down_to", &self.down_to),
        ]);
        axes
    }

    /// The kind at a grid point, canonical for so many pools.
    fn kind(&self, family: Family, digits: &[usize], pools: usize) -> Kind {
        let (own, limits) = digits.split_at(digits.len() - 4);
        let limits = match family {
            Family::List | Family::Classes => self.limits(limits, pools),
            Family::Kingsley | Family::Buddy | Family::Lea | Family::Ose | Family::Tree => {
                [Limits::NONE; GENERAL]
            }
        };
        let all = |index| [index; GENERAL];
        let indexes = match family {
            Family::List => self.lists(own, pools),
            Family::Classes => all(IndexKind::Classes {
                second_level: self.second_levels[own[0]].0 as u32,
                probes: self.probes[own[1]].0,
            }),
            Family::Kingsley => all(IndexKind::Kingsley),
            Family::Buddy => all(IndexKind::Buddy {
                lowest: self.buddies[own[0]] == Order::Address,
            }),
            Family::Lea => all(IndexKind::Lea {
                keep_up_to: self.kept[own[0]].0,
            }),
            Family::Tree => all(IndexKind::FirstFit {
                by_class: self.summaries[own[0]] == Summary::Class,
                span: Some(self.fitted.span),
            }),
            Family::Ose => all(IndexKind::FixedSizes {
                sizes: match self.tables[own[0]] {
                    Table::Default => SizeTable::DEFAULT,
                    Table::Fitted => self.fitted.table,
                    Table::Sizes(table) => table,
                },
            }),
        };
        Kind { indexes, limits }
    }

    /// The searched lists of so many pools. Fits are given from the last pool
    /// backwards, the first one for all before it.
    fn lists(&self, digits: &[usize], pools: usize) -> [IndexKind; GENERAL] {
        let Set(fits) = &self.fits[digits[0]];
        let list = |pool: usize| {
            let from_last = pools - 1 - pool.min(pools - 1);
            let fit = fits[fits.len().saturating_sub(1 + from_last)];
            IndexKind::List {
                fit,
                order: self.orders[digits[1]],
                links: self.links[digits[2]],
                max_fit_percent: match fit {
                    Fit::Exact => 0,
                    _ => self.max_fits[digits[3]].0,
                },
                depth_percent: self.depths[digits[4]].0,
            }
        };
        std::array::from_fn(|pool| list(if pool < pools { pool } else { 0 }))
    }

    /// The last so many general pools, those of the largest requests, merge and
    /// split; a limit of what no pool does is dead.
    fn limits(&self, digits: &[usize], pools: usize) -> [Limits; GENERAL] {
        let mut limits = [Limits::NONE; GENERAL];
        let merging = pools.saturating_sub(self.coalescing[digits[0]].0);
        let splitting = pools.saturating_sub(self.splitting[digits[2]].0);
        for (pool, limits) in limits.iter_mut().enumerate().take(pools) {
            limits.coalesce_up_to = match pool >= merging {
                true => self.up_to[digits[1]].0.unwrap_or(usize::MAX),
                false => 0,
            };
            limits.split_down_to = match pool >= splitting {
                true => self.down_to[digits[3]].bytes(),
                false => usize::MAX,
            };
        }
        limits
    }
}

/// Grid points of each family.
pub(super) fn points(description: &SpaceDescription) -> Vec<u128> {
    let ranges = Ranges::of(description, Fitted::NONE);
    let points = |family: &Family| {
        let radices = ranges.radices(*family).into_iter();
        radices.map(|radix| radix as u128).product()
    };
    ranges.families.iter().map(points).collect()
}

/// Every kind for some number of general pools.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    families: Vec<Folded<Kind>>,
}

impl Kinds {
    /// Kinds for so many general pools, with what of them suits
    /// the trace.
    pub(super) fn new(description: &SpaceDescription, pools: usize, fitted: Fitted) -> Self {
        let ranges = Ranges::of(description, fitted);
        let fold = |&family: &Family| {
            Folded::new(ranges.radices(family), |digits| {
                Some(ranges.kind(family, digits, pools))
            })
        };
        Kinds {
            families: ranges.families.iter().map(fold).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.families.iter().map(Folded::len).sum()
    }

    /// Family and number within it.
    fn locate(&self, mut kind: usize) -> Option<(usize, usize)> {
        for (family, folded) in self.families.iter().enumerate() {
            if kind < folded.len() {
                return Some((family, kind));
            }
            kind -= folded.len();
        }
        None
    }

    fn base(&self, family: usize) -> usize {
        self.families[..family].iter().map(Folded::len).sum()
    }

    pub(super) fn get(&self, kind: usize) -> Option<Kind> {
        let (family, number) = self.locate(kind)?;
        self.families[family].values().get(number).copied()
    }

    /// Family and first grid point of a kind.
    pub(super) fn digits(&self, kind: usize) -> Option<(usize, Vec<usize>)> {
        let (family, number) = self.locate(kind)?;
        Some((family, self.families[family].digits(number as u32)))
    }

    /// How many parameters the grid of a family has.
    pub(super) fn radices(&self, family: usize) -> usize {
        self.families[family].radices()
    }

    /// The kind of a grid point of a family.
    pub(super) fn at(&self, family: usize, digits: &[usize]) -> Option<usize> {
        let number = self.families[family].at(digits)?;
        Some(self.base(family) + number as usize)
    }

    /// Kinds one parameter away, and the plainest of every other family.
    pub(super) fn neighbours(&self, kind: usize) -> Vec<usize> {
        let Some((own, number)) = self.locate(kind) else {
            return Vec::new();
        };
        let base = self.base(own);
        let near = self.families[own].neighbours(number as u32).into_iter();
        let mut found: Vec<usize> = near.map(|other| base + other as usize).collect();
        let others = (0..self.families.len()).filter(|&family| family != own);
        found.extend(others.map(|family| self.base(family)));
        found
    }

    /// The kind of the same parameters for another number of pools.
    pub(super) fn translate(&self, kind: usize, other: &Kinds) -> Option<usize> {
        let (family, number) = self.locate(kind)?;
        let same = self.families[family].same(number as u32, &other.families[family])?;
        Some(other.base(family) + same as usize)
    }

    /// A kind that has each parameter from one of two; that of the first where
    /// they are of different families.
    pub(super) fn cross(&self, a: usize, b: usize, coin: &mut dyn FnMut() -> bool) -> usize {
        match (self.locate(a), self.locate(b)) {
            (Some((family, own)), Some((other, far))) if family == other => {
                let folded = &self.families[family];
                let crossed = folded.cross(own as u32, far as u32, coin);
                crossed.map_or(a, |number| self.base(family) + number as usize)
            }
            _ => a,
        }
    }

    /// The first, the middle and the last kind of each family.
    pub(super) fn guesses(&self) -> Vec<usize> {
        let mut found = Vec::new();
        for (family, folded) in self.families.iter().enumerate() {
            let (base, count) = (self.base(family), folded.len());
            found.extend([base, base + count / 2, base + count - 1]);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
