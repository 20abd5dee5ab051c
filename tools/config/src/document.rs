//! `heap.toml` to a [`Config`].
//!
//! Invariant: what is returned passes [`Description::validate`]; whatever is
//! refused is refused with the place of the key or value at fault.

use std::cmp::Reverse;
use std::ops::Range;

use metes_heap::compact::Partition;
use metes_heap::description::{
    DEDICATED, DedicatedPool, GENERAL, General, LEVELS, List, ObjectPoolKind,
};
use metes_heap::{Description, Fit, IndexKind, Limits};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Source, suggest};
use crate::fields::{Field, Fields, Value};
use crate::{Arena, Config, DEFAULT_SLAB, GEOMETRY, Level, STORES, StoreKind, names, partition};

/// What indexes of hosts are laid out for.
const LARGEST_LEVEL: usize = 1 << 36;

type At = Range<usize>;
type Item<'d, 'i> = (&'d DeTable<'i>, At);
/// Sizes of levels and where the document says so.
type Sizes = Vec<(usize, At)>;

/// Reads a `heap.toml`; `name` is what errors call it.
pub(crate) fn parse(text: &str, name: &str) -> Result<Config, Error> {
    let source = Source { name, text };
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        source.error(at, error.message().replace('\n', ", "), None)
    })?;
    let document = document.get_ref();
    let sections = ["heap", "pool", "partition", "arena", "level"];
    let stranger = document
        .keys()
        .filter(|key| !sections.contains(&key.get_ref().as_ref()))
        .min_by_key(|key| key.span().start);
    if let Some(key) = stranger {
        let word = key.get_ref();
        let help = suggest(word, sections);
        let message = format!("a heap.toml has no section `{word}`");
        return Err(source.error(key.span(), message, help));
    }
    let reader = Reader { source };
    let (levels, sizes) = reader.levels(&reader.tables(document, "level")?)?;
    let (arena, mapped_at) = match reader.table(document, "arena")? {
        Some(table) => reader.arena(table)?,
        None => Default::default(),
    };
    let Named {
        store,
        general,
        mut partition,
    } = match reader.table(document, "heap")? {
        Some(table) => reader.heap(table)?,
        None => Named::default(),
    };
    let pools = reader.tables(document, "pool")?;
    let mut heap = reader.pools(general, &pools, &levels)?;
    if let Some(table) = reader.table(document, "partition")? {
        let at = table.1.clone();
        if partition.is_some() {
            let message = "`[heap]` already gives the partition: leave out one of them";
            return Err(source.error(at, message, None));
        }
        partition = Some((reader.partition(table)?, at));
    }
    if let Some((partition, at)) = partition {
        heap.partition = Some(partition);
        let moving = matches!(store, StoreKind::Moving(_));
        if moving && (!pools.is_empty() || !levels.is_empty()) {
            let message = "compact-fit whose blocks move has neither pools nor memory levels \
                           beside it: leave them out, or say `moving = \"no\"`";
            return Err(source.error(at, message, None));
        }
        heap.validate(GEOMETRY.granule, GEOMETRY.header)
            .map_err(|why| source.error(at, why.to_string(), None))?;
    }
    let config = Config {
        heap,
        store,
        arena,
        levels,
    };
    if config.arena.mapped.is_some() {
        (config.can_map()).map_err(|why| source.error(mapped_at, why, None))?;
    }
    for (level, at) in sizes {
        crate::levels::verify(&config, level).map_err(|why| source.error(at, why, None))?;
    }
    Ok(config)
}

/// What `[heap]` says.
#[derive(Default)]
struct Named {
    store: StoreKind,
    general: Option<(General, At)>,
    partition: Option<(Partition, At)>,
}

struct Reader<'a> {
    source: Source<'a>,
}

impl<'a> Reader<'a> {
    /// The table called `key`, if there is one.
    fn table<'d, 'i>(
        &self,
        document: &'d DeTable<'i>,
        key: &str,
    ) -> Result<Option<Item<'d, 'i>>, Error> {
        let Some(value) = document.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Table(table) => Ok(Some((table, value.span()))),
            _ => Err(self.source.error(
                value.span(),
                format!("`{key}` must be a section: write `[{key}]` above its keys"),
                None,
            )),
        }
    }

    /// The tables in the array called `key`.
    fn tables<'d, 'i>(
        &self,
        document: &'d DeTable<'i>,
        key: &str,
    ) -> Result<Vec<Item<'d, 'i>>, Error> {
        let message = format!("each {key} must be a section of its own: write `[[{key}]]`");
        let Some(value) = document.get(key) else {
            return Ok(Vec::new());
        };
        let DeValue::Array(array) = value.get_ref() else {
            return Err(self.source.error(value.span(), message, None));
        };
        let item = |value: &'d Spanned<DeValue<'i>>| match value.get_ref() {
            DeValue::Table(table) => Ok((table, value.span())),
            _ => Err(self.source.error(value.span(), message.clone(), None)),
        };
        array.iter().map(item).collect()
    }

    fn fields(&self, (table, at): &Item<'_, '_>, what: &str) -> Fields<'a> {
        let fields = table.iter().map(|(key, value)| Field {
            key: key.get_ref().to_string(),
            key_at: key.span(),
            value: read_value(value.get_ref()),
            at: value.span(),
        });
        Fields::new(self.source, what, at.clone(), fields.collect())
    }

    /// `[arena]`, and where it says what is mapped.
    fn arena(&self, table: Item<'_, '_>) -> Result<(Arena, At), Error> {
        let mut fields = self.fields(&table, "the arena");
        let mut arena = Arena::default();
        if let Some((size, at)) = fields.size("increment", &[])? {
            if size == 0 || !size.is_multiple_of(GEOMETRY.granule) || size > 1 << 30 {
                let message = "`increment` must be a multiple of 16 from 16 to 1 GiB";
                return Err(fields.error(at, message));
            }
            arena.increment = size;
        }
        if let Some((size, at)) = fields.size("reserve", &[])? {
            if !(1 << 20..=1 << 36).contains(&size) {
                let message = "`reserve` must be from 1 MiB to 64 GiB";
                return Err(fields.error(at, message));
            }
            arena.reserve = size;
        }
        let mut mapped_at = fields.at();
        if let Some(((mapped, pages), at)) = fields.mappings()? {
            (arena.mapped, arena.pages, mapped_at) = (mapped, pages, at);
        }
        fields.finish()?;
        Ok((arena, mapped_at))
    }

    /// The memory levels, and where each size stands.
    fn levels(&self, tables: &[Item<'_, '_>]) -> Result<(Vec<Level>, Sizes), Error> {
        let mut levels: Vec<Level> = Vec::new();
        let mut places = Vec::new();
        for table in tables {
            let mut fields = self.fields(table, "a memory level");
            let Some((name, at)) = fields.text("name")? else {
                return Err(fields.missing("a memory level needs a `name`"));
            };
            if name.is_empty() || name.bytes().all(|b| b.is_ascii_digit()) {
                return Err(fields.error(at, "a level's name must not be empty or a number"));
            }
            if levels.iter().any(|level| level.name == name) {
                return Err(fields.error(at, format!("there are two levels named `{name}`")));
            }
            let size = fields.size("size", &[])?;
            if let Some((0, at)) = size {
                return Err(fields.error(at, "a memory level cannot be empty"));
            }
            if let Some((_, at)) = size.as_ref().filter(|(size, _)| *size > LARGEST_LEVEL) {
                let message = "a memory level has at most 64 GiB: leave out the `size` of one \
                               without limit";
                return Err(fields.error(at.clone(), message));
            }
            let size = size.map(|(size, at)| {
                places.push((levels.len(), at));
                size
            });
            let level = Level {
                name,
                size,
                read_energy: fields.quantity("read_energy")?,
                write_energy: fields.quantity("write_energy")?,
                latency: fields.quantity("latency")?,
            };
            let table_at = fields.at();
            fields.finish()?;
            if levels.len() == LEVELS {
                let message = "there can be at most 4 memory levels";
                return Err(self.source.error(table_at, message, None));
            }
            levels.push(level);
        }
        Ok((levels, places))
    }

    /// `[partition]`: size classes in front of the pools.
    fn partition(&self, table: Item<'_, '_>) -> Result<Partition, Error> {
        let mut fields = self.fields(&table, "the partition");
        let at = fields.at();
        let read = partition::read_partition(&mut fields, partition::STILL, at, 0)?;
        fields.finish()?;
        Ok(read)
    }

    /// `[heap]`: store, and the general pool if it is named there.
    fn heap(&self, table: Item<'_, '_>) -> Result<Named, Error> {
        let mut fields = self.fields(&table, "the heap");
        if let Some((name, at)) = fields.text("name")? {
            if name == partition::NAME {
                fields.call(format!("`{name}`"));
                let compact = partition::read(at.clone(), &mut fields)?;
                fields.finish()?;
                return Ok(Named {
                    store: compact.store,
                    general: Some((compact.behind, at.clone())),
                    partition: Some((compact.partition, at)),
                });
            }
            fields = self.fields(&table, "the heap");
        }
        let store = fields.choice("store", &STORES)?;
        let general = match fields.text("name")? {
            None => None,
            Some((name, at)) => {
                let (index, limits) = names::read(&name, at.clone(), &mut fields)?;
                fields.call(format!("`{name}`"));
                let pool = General {
                    limits,
                    ..General::of(index)
                };
                Some((pool, at))
            }
        };
        fields.finish()?;
        let store = store.map_or(StoreKind::Tagged, |(store, _)| store);
        Ok(Named {
            store,
            general,
            partition: None,
        })
    }

    fn pools(
        &self,
        named: Option<(General, At)>,
        tables: &[Item<'_, '_>],
        levels: &[Level],
    ) -> Result<Description, Error> {
        let mut pools = Pools::default();
        let named_at = named.as_ref().map(|(_, at)| at.clone());
        pools.general.extend(named);
        for table in tables {
            let mut fields = self.fields(table, "a pool");
            let kinds = [
                ("general", Kind::General),
                ("dedicated", Kind::Dedicated),
                ("object", Kind::Object),
            ];
            let Some((kind, _)) = fields.choice("kind", &kinds)? else {
                let message = "a pool needs a `kind`: general, dedicated or object";
                return Err(fields.missing(message));
            };
            let level = self.level(&mut fields, levels)?;
            let at = fields.at();
            match kind {
                Kind::General if named_at.is_some() => {
                    let message = "`[heap]` already names the heap that serves everything: \
                                   leave out its `name`, or this pool";
                    return Err(fields.error(at, message));
                }
                Kind::General => {
                    fields.call("a general pool");
                    let (index, limits) = names::read_keyed(&mut fields)?;
                    let up_to = fields
                        .size("up_to", &[])?
                        .map_or(usize::MAX, |(size, _)| size);
                    let from = fields.size("from", &[])?.map_or(0, |(size, _)| size);
                    let pool = General {
                        from,
                        up_to,
                        index,
                        limits,
                        level,
                    };
                    pools.general.push((pool, at));
                }
                Kind::Dedicated => {
                    fields.call("a dedicated pool");
                    let size = self.pool_size(&mut fields, "dedicated")?;
                    let mut pool = DedicatedPool::new(size, level);
                    names::read_keeping(&mut fields, &mut pool)?;
                    pools.dedicated.push((pool, at));
                }
                Kind::Object => {
                    fields.call("an object pool");
                    let size = self.pool_size(&mut fields, "object")?;
                    let slab = fields.size("slab", &[])?.map(|(size, _)| size);
                    pools.slab = pools.slab.or(slab);
                    pools.objects.push((
                        ObjectPoolKind {
                            size,
                            slab: slab.unwrap_or(0),
                            level,
                        },
                        at,
                    ));
                }
            }
            fields.finish()?;
        }
        pools.describe(&self.source)
    }

    fn pool_size(&self, fields: &mut Fields<'_>, kind: &str) -> Result<usize, Error> {
        match fields.size("size", &[])? {
            Some((size, _)) => Ok(size),
            None => Err(fields.missing(&format!("a pool of kind `{kind}` needs a `size`"))),
        }
    }

    /// The number of a level given by name or number.
    fn level(&self, fields: &mut Fields<'_>, levels: &[Level]) -> Result<u8, Error> {
        let Some((word, at)) = fields.word_or_number("level")? else {
            return Ok(0);
        };
        let by_name = levels.iter().position(|level| level.name == word);
        let number = by_name.or_else(|| word.parse().ok());
        let most = if levels.is_empty() {
            LEVELS
        } else {
            levels.len()
        };
        match number.filter(|&number| number < most) {
            Some(number) => Ok(number as u8),
            None => {
                let names = levels.iter().map(|level| level.name.as_str());
                let message = format!("there is no memory level `{word}`: add a `[[level]]`");
                Err(fields.no_such(at, message, &word, names))
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    General,
    Dedicated,
    Object,
}

/// Pools as read, each with its place.
#[derive(Default)]
pub(crate) struct Pools {
    pub(crate) general: Vec<(General, At)>,
    pub(crate) dedicated: Vec<(DedicatedPool, At)>,
    /// A slab of zero bytes stands for one that is not said.
    pub(crate) objects: Vec<(ObjectPoolKind, At)>,
    /// The first slab that is said.
    pub(crate) slab: Option<usize>,
}

impl Pools {
    /// Sorts and verifies. Each kind is verified by growing prefixes, so that
    /// the pool with which a description ceases to be valid is the one shown.
    pub(crate) fn describe(mut self, source: &Source<'_>) -> Result<Description, Error> {
        sort(&mut self.general);
        self.dedicated.sort_by_key(|(pool, _)| pool.size);
        self.objects.sort_by_key(|(pool, _)| pool.size);
        let slab = self.slab.unwrap_or(DEFAULT_SLAB);
        for (pool, _) in self.objects.iter_mut().filter(|(pool, _)| pool.slab == 0) {
            pool.slab = slab;
        }
        let plain = Description::of(IndexKind::tlsf(32));
        prefixes::<_, DEDICATED>(source, &self.dedicated, "dedicated", |dedicated| {
            let mut heap = plain;
            for pool in dedicated.iter() {
                heap.dedicated.push(DedicatedPool { level: 0, ..pool });
            }
            heap
        })?;
        let objects = prefixes(source, &self.objects, "object", |objects| {
            let mut heap = plain;
            heap.objects = objects;
            heap
        })?;
        let last = self.last(source)?;
        let dedicated = self.expand(source)?;
        let general: List<General, GENERAL> =
            prefixes(source, &self.general, "general", |general| {
                // All but the last prefix lack a pool for everything.
                let mut closed = general;
                let open = general.iter().last().is_none_or(|pool| pool != last);
                if open && general.len() < GENERAL {
                    closed.push(last);
                }
                let mut heap = plain;
                heap.general = closed;
                heap
            })?;
        Ok(Description {
            general,
            dedicated,
            objects,
            partition: None,
        })
    }

    /// The last general pool, which must take every size.
    fn last(&self, source: &Source<'_>) -> Result<General, Error> {
        let Some((last, at)) = self.general.last() else {
            let message = "a heap needs a general pool: add `[heap]` with a `name`, \
                           or a `[[pool]]` of kind \"general\"";
            return Err(source.error(0..0, message, None));
        };
        if last.up_to != usize::MAX {
            let message = "the last general pool must take every size: leave out its `up_to`";
            return Err(source.error(at.clone(), message, None));
        }
        if last.from != 0 {
            let message = format!(
                "no pool takes requests below {} bytes: leave out the `from` of this pool, \
                 the last one, or add a general pool for them behind it",
                last.from
            );
            return Err(source.error(at.clone(), message, None));
        }
        Ok(*last)
    }

    /// Dedicated pools that lie in another level than the general pool that
    /// serves their size become general pools for the requests that need their
    /// block; the others remain and are returned.
    fn expand(&mut self, source: &Source<'_>) -> Result<List<DedicatedPool, DEDICATED>, Error> {
        let mut remaining = List::EMPTY;
        let mut ranges = Vec::new();
        for (pool, at) in &self.dedicated {
            let serving = self
                .general
                .iter()
                .find(|(general, _)| general.sizes().contain(pool.size));
            match serving.zip(ranged(*pool)) {
                Some(((general, _), range)) if general.level != pool.level => {
                    if pool.limit.is_some() {
                        let message = "a dedicated pool in another level than the general pool that serves its \
                                       size is a pool of its own and keeps all its blocks: leave out its `limit`";
                        return Err(source.error(at.clone(), message, None));
                    }
                    ranges.push((range, at.clone()));
                }
                _ => {
                    remaining.push(*pool);
                }
            }
        }
        self.general.extend(ranges);
        sort(&mut self.general);
        Ok(remaining)
    }
}

/// The order of general pools: by rising largest request, and of pools with the
/// same one the narrower first; otherwise as written.
fn sort(general: &mut [(General, At)]) {
    general.sort_by_key(|(pool, _)| (pool.up_to, Reverse(pool.from)));
}

/// The general pool that stands for a dedicated pool in a level of its own: for
/// the requests that need its block, exact fit, never merged. Blocks are cut
/// from the wilderness and from nothing else, so none is split.
pub fn ranged(pool: DedicatedPool) -> Option<General> {
    let block = GEOMETRY.block_for(pool.size)?;
    let up_to = block - GEOMETRY.header;
    let from = match block > GEOMETRY.minimum {
        true => up_to - GEOMETRY.granule + 1,
        false => 0,
    };
    Some(General {
        from,
        up_to,
        index: IndexKind::List {
            fit: Fit::Exact,
            order: pool.order,
            depth_percent: 100,
            max_fit_percent: 0,
            links: pool.links,
        },
        limits: Limits {
            coalesce_up_to: 0,
            split_down_to: 0,
        },
        level: pool.level,
    })
}

fn prefixes<T: Copy, const N: usize>(
    source: &Source<'_>,
    pools: &[(T, At)],
    kind: &str,
    describe: impl Fn(List<T, N>) -> Description,
) -> Result<List<T, N>, Error> {
    let mut list = List::EMPTY;
    for (pool, at) in pools {
        if !list.push(*pool) {
            let message = format!("there can be at most {N} {kind} pools");
            return Err(source.error(at.clone(), message, None));
        }
        describe(list)
            .validate(GEOMETRY.granule, GEOMETRY.header)
            .map_err(|why| source.error(at.clone(), why.to_string(), None))?;
    }
    Ok(list)
}

fn read_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Other("integer too large"),
        },
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(Value::Other("float"), Value::Float),
        other => Value::Other(other.type_str()),
    }
}
