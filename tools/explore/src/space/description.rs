//! A space as people write it down: for each parameter its values, in TOML.
//!
//! ```toml
//! [general]
//! count = [1, 2]            # general pools
//! split = [75, [64, 1024]]  # requests up to which the first ones serve
//! index = ["list"]          # list, classes, kingsley, buddy, lea, ose, tree
//! [list]
//! fit = ["first", ["best", "first"]] # one a pool, the last pool's last
//! order = ["fifo"]
//! max_fit = ["any", 150]    # percent of the need
//! depth = { from = 5, to = 100, step = 5 }  # percent of the list
//! [dedicated]
//! count = [0, 1, 2]         # sizes: the most frequent ones, unless `sizes` says
//! [coalescing]
//! pools = [0, 1]            # the last so many general pools merge
//! up_to = ["any", "4 KiB"]  # largest block that a merge makes
//! [splitting]
//! pools = [0, 1]
//! down_to = ["any", 64]     # smallest rest that a split leaves
//! ```
//!
//! Invariant: a description that this module returns has at least one point,
//! and no two of its limits contradict each other wherever they are used.

use std::ops::Range;

use metes_config::{Error, Source};
use metes_heap::description::{DEDICATED, GENERAL, LEVELS, OBJECTS};
use metes_heap::{Fit, Links, Order};
use serde::Deserialize;
use toml::Spanned;

use super::values::{
    Count, Depth, Factor, Family, Item, Keep, Kept, MaxFit, Page, Probes, Set, Size, Summary,
    Table, Values, Word,
};

/// Values of a parameter where the file gives some.
pub(super) type Given<T> = Option<Spanned<Values<T>>>;

/// What the parameters of a space may be, as read from TOML.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpaceDescription {
    pub(super) general: GeneralValues,
    pub(super) list: ListValues,
    pub(super) classes: ClassValues,
    pub(super) buddy: BuddyValues,
    pub(super) lea: LeaValues,
    pub(super) ose: OseValues,
    pub(super) tree: TreeValues,
    pub(super) dedicated: DedicatedValues,
    pub(super) objects: ObjectValues,
    pub(super) partition: PartitionValues,
    pub(super) coalescing: CoalescingValues,
    pub(super) splitting: SplittingValues,
    pub(super) arena: ArenaValues,
    pub(super) level: Vec<LevelValues>,
    pub(super) named: NamedValues,
}

/// General pools.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GeneralValues {
    pub(super) count: Given<Count>,
    pub(super) split: Given<Set<Size>>,
    pub(super) level: Given<Set<Word>>,
    pub(super) index: Given<Family>,
}

/// Searched lists.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ListValues {
    pub(super) fit: Given<Set<Fit>>,
    pub(super) order: Given<Order>,
    pub(super) links: Given<Links>,
    pub(super) max_fit: Given<MaxFit>,
    pub(super) depth: Given<Depth>,
}

/// Size classes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClassValues {
    pub(super) second_level: Given<Count>,
    pub(super) probes: Given<Probes>,
}

/// Buddies.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BuddyValues {
    pub(super) order: Given<Order>,
}

/// Best fit in sorted bins.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LeaValues {
    pub(super) keep_up_to: Given<Keep>,
}

/// A list for each of a few block sizes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OseValues {
    pub(super) sizes: Given<Table>,
}

/// First fit by a tree.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TreeValues {
    pub(super) summary: Given<Summary>,
}

/// Dedicated pools.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DedicatedValues {
    pub(super) count: Given<Count>,
    pub(super) sizes: Given<Size>,
    pub(super) level: Given<Set<Word>>,
    pub(super) order: Given<Order>,
    pub(super) links: Given<Links>,
    pub(super) limit: Given<Kept>,
}

/// Object pools.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ObjectValues {
    pub(super) count: Given<Count>,
    pub(super) sizes: Given<Size>,
    pub(super) slab: Given<Size>,
}

/// Pages of size classes: compact-fit without compaction.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PartitionValues {
    pub(super) page: Given<Page>,
    pub(super) smallest: Given<Size>,
    pub(super) largest: Given<Size>,
    pub(super) factor: Given<Factor>,
}

impl PartitionValues {
    /// Whether the section says anything.
    pub(super) fn given(&self) -> bool {
        let sizes = self.smallest.is_some() || self.largest.is_some();
        sizes || self.page.is_some() || self.factor.is_some()
    }
}

/// Which general pools merge, and how far.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CoalescingValues {
    pub(super) pools: Given<Count>,
    pub(super) up_to: Given<Size>,
}

/// Which general pools split, and how far.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SplittingValues {
    pub(super) pools: Given<Count>,
    pub(super) down_to: Given<Size>,
}

/// How the heap grows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ArenaValues {
    pub(super) increment: Given<Size>,
}

/// A memory level and the sizes it may have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LevelValues {
    pub(super) name: Spanned<String>,
    /// Left out: what `--levels` gives it, or no limit.
    #[serde(default)]
    pub(super) size: Given<Size>,
}

/// Heaps to compare with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NamedValues {
    pub(super) heaps: Option<Spanned<Vec<Spanned<String>>>>,
}

/// The space of the paper's packet study: 106 496 grid points.
pub const PAPER: &str = include_str!("paper.toml");

/// The space of the prototype on which search methods were compared: 102 400
/// grid points.
pub const PROTOTYPE: &str = include_str!("prototype.toml");

impl SpaceDescription {
    /// Reads a space; `name` is what errors call the text.
    ///
    /// # Errors
    /// Whatever is no space, with its place: unknown keys and words with the
    /// nearest known one, values out of range, limits that contradict each other,
    /// levels that do not exist.
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let source = Source { name, text };
        let description: SpaceDescription = toml::from_str(text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            let message = error.message().replace('\n', ", ");
            let (message, help) = unknown(&message);
            source.error(at, message, help)
        })?;
        description.check(&source)?;
        Ok(description)
    }

    fn check(&self, source: &Source<'_>) -> Result<(), Error> {
        let wrong = |at: Range<usize>, message: String| Err(source.error(at, message, None));
        let within = |given: &Given<Count>, least: usize, most: usize, what: &str| {
            let Some(values) = given else { return Ok(()) };
            let found = values.get_ref().0.iter();
            match found
                .copied()
                .find(|value| !(least..=most).contains(&value.0))
            {
                Some(Count(value)) => wrong(
                    values.span(),
                    format!("there can be {least} to {most} {what}, not {value}"),
                ),
                None => Ok(()),
            }
        };
        within(&self.general.count, 1, GENERAL, "general pools")?;
        within(&self.dedicated.count, 0, DEDICATED, "dedicated pools")?;
        within(&self.objects.count, 0, OBJECTS, "object pools")?;
        within(&self.coalescing.pools, 0, GENERAL, "pools with coalescing")?;
        within(&self.splitting.pools, 0, GENERAL, "pools with splitting")?;
        if let Some(values) = &self.classes.second_level
            && let Some(Count(value)) =
                (values.get_ref().0.iter()).find(|value| !value.0.is_power_of_two() || value.0 > 32)
        {
            let message = format!("`second_level` is a power of two from 1 to 32, not {value}");
            return wrong(values.span(), message);
        }
        if let Some(values) = &self.buddy.order
            && values.get_ref().0.contains(&Order::Fifo)
        {
            let message = "a buddy takes the block freed last (`lifo`) or the lowest (`address`)";
            return wrong(values.span(), message.to_owned());
        }
        self.check_splits(source)?;
        self.check_levels(source)?;
        self.check_pools(source)?;
        self.check_limits(source)
    }

    /// Every count of general pools needs splits for it, rising ones.
    fn check_splits(&self, source: &Source<'_>) -> Result<(), Error> {
        let most = most(&self.general.count, 1);
        let Some(splits) = &self.general.split else {
            return match &self.general.count {
                Some(count) if most > 2 => Err(source.error(
                    count.span(),
                    format!("{most} general pools need `split = [[A, B, ...]]`: {} sizes up to which each but the last one serves", most - 1),
                    None,
                )),
                _ => Ok(()),
            };
        };
        for Set(sizes) in &splits.get_ref().0 {
            let rising = sizes.windows(2).all(|pair| pair[0] < pair[1]);
            if sizes.iter().any(|size| size.0.is_none()) || !rising {
                let message = "sizes of a split must rise, and none can be `any`";
                return Err(source.error(splits.span(), message, None));
            }
            if sizes.len() + 1 < most {
                let message = format!(
                    "`{}` splits requests among {} pools, but `count` goes up to {most}",
                    Set(sizes.clone()).spelt(),
                    sizes.len() + 1,
                );
                return Err(source.error(splits.span(), message, None));
            }
        }
        Ok(())
    }

    fn check_levels(&self, source: &Source<'_>) -> Result<(), Error> {
        let names: Vec<&str> = self
            .level
            .iter()
            .map(|l| l.name.get_ref().as_str())
            .collect();
        if let Some(level) = self.level.get(LEVELS) {
            let message = format!("there can be at most {LEVELS} memory levels");
            return Err(source.error(level.name.span(), message, None));
        }
        for (number, level) in self.level.iter().enumerate() {
            let name = level.name.get_ref();
            if name.is_empty() || name.bytes().all(|byte| byte.is_ascii_digit()) {
                let message = "a level's name must not be empty or a number";
                return Err(source.error(level.name.span(), message, None));
            }
            if names[..number].contains(&name.as_str()) {
                let message = format!("there are two levels named `{name}`");
                return Err(source.error(level.name.span(), message, None));
            }
            if let Some(sizes) = &level.size
                && let Some(size) = (sizes.get_ref().0.iter()).find(|size| size.bytes() < SMALLEST)
            {
                let message = match size.0 {
                    None => format!(
                        "the size of level `{name}` must be given in bytes; leave `size` out for \
                         what --levels gives it, or else no limit"
                    ),
                    Some(bytes) => format!(
                        "level `{name}` of {bytes} bytes is too small for a pool: it needs {} more, \
                         {SMALLEST} at least",
                        SMALLEST - bytes
                    ),
                };
                return Err(source.error(sizes.span(), message, None));
            }
        }
        for given in [&self.general.level, &self.dedicated.level] {
            let Some(values) = given else { continue };
            for Word(name) in values.get_ref().0.iter().flat_map(|set| &set.0) {
                if !names.contains(&name.as_str()) {
                    let help = match names.is_empty() {
                        true => Some("levels are described by `[[level]]` sections".to_owned()),
                        false => metes_config::suggest(name, names.iter().copied()),
                    };
                    let message = format!("there is no memory level named `{name}`");
                    return Err(source.error(values.span(), message, help));
                }
            }
        }
        Ok(())
    }

    /// Sizes of pools where they are given: enough of them, and possible ones.
    fn check_pools(&self, source: &Source<'_>) -> Result<(), Error> {
        for (what, count, sizes) in [
            ("dedicated", &self.dedicated.count, &self.dedicated.sizes),
            ("object", &self.objects.count, &self.objects.sizes),
        ] {
            let (Some(sizes), wanted) = (sizes, most(count, 0)) else {
                continue;
            };
            let values = &sizes.get_ref().0;
            if values.iter().any(|size| size.0.is_none()) {
                let message =
                    format!("the size of a pool cannot be `any`: {what} pools have one size each");
                return Err(source.error(sizes.span(), message, None));
            }
            if values.len() < wanted {
                let message = format!(
                    "`count` goes up to {wanted} {what} pools, but there are {} sizes; leave `sizes` out to take those that the trace asks for most",
                    values.len()
                );
                return Err(source.error(sizes.span(), message, None));
            }
        }
        if let Some(slab) = &self.objects.slab
            && let Some(size) = (slab.get_ref().0.iter())
                .find(|size| !size.bytes().is_power_of_two() || size.bytes() < 512)
        {
            let message = format!(
                "a slab is a power of two of at least 512 bytes, not {}",
                size.spelt()
            );
            return Err(source.error(slab.span(), message, None));
        }
        if let Some(increment) = &self.arena.increment
            && let Some(size) = (increment.get_ref().0.iter())
                .find(|size| size.bytes() == 0 || size.bytes() % 16 != 0 || size.bytes() > 1 << 30)
        {
            let message = format!(
                "an increment is a multiple of 16 up to 1 GiB, not {}",
                size.spelt()
            );
            return Err(source.error(increment.span(), message, None));
        }
        Ok(())
    }

    /// Where every split leaves more than any merge may make, no merge can ever
    /// undo a split: such limits contradict each other.
    fn check_limits(&self, source: &Source<'_>) -> Result<(), Error> {
        let (Some(up_to), Some(down_to)) = (&self.coalescing.up_to, &self.splitting.down_to) else {
            return Ok(());
        };
        let used = most(&self.coalescing.pools, 1) > 0 && most(&self.splitting.pools, 1) > 0;
        let largest = up_to
            .get_ref()
            .0
            .iter()
            .map(|size| size.0.unwrap_or(usize::MAX))
            .max();
        let smallest = down_to.get_ref().0.iter().map(|size| size.bytes()).min();
        let (Some(largest), Some(smallest)) = (largest, smallest) else {
            return Ok(());
        };
        if !used || smallest <= largest {
            return Ok(());
        }
        let line = |at: Range<usize>| source.text[..at.start].matches('\n').count() + 1;
        let message = format!(
            "`down_to` in line {} leaves at least {smallest} bytes, but `up_to` in line {} merges up to {largest} bytes only: no merge could undo a split",
            line(down_to.span()),
            line(up_to.span()),
        );
        Err(source.error(
            down_to.span(),
            message,
            Some("lower `down_to` or raise `up_to`".to_owned()),
        ))
    }

    /// Whether a tree is among the values, which is laid out for what suits the trace.
    pub(super) fn wants_fitted_span(&self) -> bool {
        let families = self.general.index.iter().flat_map(|own| &own.get_ref().0);
        families.into_iter().any(|family| *family == Family::Tree)
    }

    /// Whether block sizes that suit the trace are among the values.
    pub(super) fn wants_fitted_sizes(&self) -> bool {
        let tables = self.ose.sizes.iter().flat_map(|tables| &tables.get_ref().0);
        tables.into_iter().any(|table| *table == Table::Fitted)
    }

    /// The text that tells spaces apart: the same for the same values, however
    /// they are spelt.
    pub(super) fn canonical(&self) -> String {
        fn put<T: Item>(text: &mut String, key: &str, given: &Given<T>) {
            if let Some(values) = given {
                let spelt: Vec<String> = values.get_ref().0.iter().map(Item::spelt).collect();
                text.push_str(&format!("{key}={};", spelt.join(",")));
            }
        }
        let mut text = String::new();
        put(&mut text, "general.count", &self.general.count);
        put(&mut text, "general.split", &self.general.split);
        put(&mut text, "general.level", &self.general.level);
        put(&mut text, "general.index", &self.general.index);
        put(&mut text, "list.fit", &self.list.fit);
        put(&mut text, "list.order", &self.list.order);
        put(&mut text, "list.links", &self.list.links);
        put(&mut text, "list.max_fit", &self.list.max_fit);
        put(&mut text, "list.depth", &self.list.depth);
        put(
            &mut text,
            "classes.second_level",
            &self.classes.second_level,
        );
        put(&mut text, "classes.probes", &self.classes.probes);
        put(&mut text, "buddy.order", &self.buddy.order);
        put(&mut text, "lea.keep_up_to", &self.lea.keep_up_to);
        put(&mut text, "ose.sizes", &self.ose.sizes);
        put(&mut text, "dedicated.count", &self.dedicated.count);
        put(&mut text, "dedicated.sizes", &self.dedicated.sizes);
        put(&mut text, "dedicated.level", &self.dedicated.level);
        put(&mut text, "dedicated.order", &self.dedicated.order);
        put(&mut text, "dedicated.links", &self.dedicated.links);
        put(&mut text, "dedicated.limit", &self.dedicated.limit);
        put(&mut text, "objects.count", &self.objects.count);
        put(&mut text, "objects.sizes", &self.objects.sizes);
        put(&mut text, "objects.slab", &self.objects.slab);
        put(&mut text, "partition.page", &self.partition.page);
        put(&mut text, "partition.smallest", &self.partition.smallest);
        put(&mut text, "partition.largest", &self.partition.largest);
        put(&mut text, "partition.factor", &self.partition.factor);
        put(&mut text, "coalescing.pools", &self.coalescing.pools);
        put(&mut text, "coalescing.up_to", &self.coalescing.up_to);
        put(&mut text, "splitting.pools", &self.splitting.pools);
        put(&mut text, "splitting.down_to", &self.splitting.down_to);
        put(&mut text, "arena.increment", &self.arena.increment);
        for level in &self.level {
            text.push_str(&format!("level {};", level.name.get_ref()));
            put(&mut text, level.name.get_ref(), &level.size);
        }
        if let Some(heaps) = &self.named.heaps {
            let names: Vec<&str> = heaps
                .get_ref()
                .iter()
                .map(|n| n.get_ref().as_str())
                .collect();
            text.push_str(&format!("named={};", names.join(" ")));
        }
        text
    }
}

/// The smallest level in which a pool can be: a list's control structure, a
/// block and the sentinel behind it.
const SMALLEST: usize = 256;

fn most(count: &Given<Count>, otherwise: usize) -> usize {
    let values = count.iter().flat_map(|values| &values.get_ref().0);
    values.map(|value| value.0).max().unwrap_or(otherwise)
}

/// Makes "unknown field `x`, expected one of `a`, `b`" an error of ours.
fn unknown(message: &str) -> (String, Option<String>) {
    let mut words = message.split('`').skip(1).step_by(2);
    match (message.starts_with("unknown field"), words.next()) {
        (true, Some(word)) => (
            format!("a space has no `{word}` here"),
            metes_config::suggest(word, words),
        ),
        _ => (message.to_owned(), None),
    }
}
