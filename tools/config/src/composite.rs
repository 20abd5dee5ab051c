//! Heaps of several pools in a line: `objects 16/32 + dedicated:order=fifo 40/56 + tlsf`.
//!
//! Parts are joined by ` + `. A part is a name with parameters as in a spec; behind it stand the sizes of
//! `objects` and `dedicated`, or the range of a general pool (`from 4 KiB up to 64 KiB`), and where it lies
//! (`in near of 64 KiB`). Levels are counted in the order in which they are named.
//!
//! Invariant: [`parse`] of a [name](crate::Config::name) gives the same heap and store, and levels of the same
//! names and sizes; of the arena a name says what is mapped and nothing else.

use std::ops::Range;

use metes_heap::compact::Partition;
use metes_heap::description::{DedicatedPool, General, LEVELS, ObjectPoolKind};

use crate::document::Pools;
use crate::error::{Error, Source};
use crate::fields::Fields;
use crate::quantity::read_size;
use crate::spec::{self, Said};
use crate::{Config, GEOMETRY, Level, STORES, StoreKind, names, partition};

/// What joins parts.
pub(crate) const AND: &str = " + ";
/// The name of object pools.
pub(crate) const OBJECTS: &str = "objects";
/// The name of dedicated lists.
pub(crate) const DEDICATED: &str = "dedicated";
const FROM: &str = "from ";
const UP_TO: &str = "up to ";
const IN: &str = "in ";

/// Whether a text is of several parts, or of one with more behind it than parameters.
pub(crate) fn is_composite(text: &str) -> bool {
    let (first, more) = match text.split_once(AND) {
        Some((first, _)) => (first, true),
        None => (text, false),
    };
    let name = first.split([':', ' ']).next().unwrap_or(first);
    if [OBJECTS, DEDICATED].contains(&name) {
        return true;
    }
    let behind = || {
        [FROM, UP_TO, IN]
            .iter()
            .any(|word| first.contains(&format!(" {word}")))
    };
    let known = name == partition::NAME || names::NAMES.contains(&name);
    known && (more || behind())
}

/// Reads a heap of several pools; `source` is what errors call the text. `mapped` is from what size on
/// blocks are mapped where the text does not say it and the heap can.
pub(crate) fn parse(text: &str, source: &str, mapped: Option<usize>) -> Result<Config, Error> {
    let source = Source { name: source, text };
    let mut reader = Reader::new(source);
    let mut start = 0;
    for part in text.split(AND) {
        reader.part(start..start + part.len())?;
        start += part.len() + AND.len();
    }
    reader.finish(mapped)
}

/// What a part says behind its name and parameters.
struct Behind {
    /// What stands before it.
    head: Range<usize>,
    /// Sizes of pools, joined by `/`.
    sizes: Range<usize>,
    from: usize,
    up_to: usize,
    level: u8,
}

struct Reader<'a> {
    source: Source<'a>,
    pools: Pools,
    partition: Option<(Partition, Range<usize>)>,
    store: StoreKind,
    said: Said,
    levels: Vec<Level>,
    /// Whether a level was given by number: then none has a name.
    numbered: bool,
}

impl<'a> Reader<'a> {
    fn new(source: Source<'a>) -> Self {
        Reader {
            source,
            pools: Pools::default(),
            partition: None,
            store: StoreKind::Tagged,
            said: None,
            levels: Vec::new(),
            numbered: false,
        }
    }

    fn error(&self, at: Range<usize>, message: impl Into<String>) -> Error {
        self.source.error(at, message, None)
    }

    fn part(&mut self, at: Range<usize>) -> Result<(), Error> {
        let mut behind = self.behind(at.clone())?;
        let mut head = behind.head.clone();
        let text = &self.source.text[head.clone()];
        let pools = [OBJECTS, DEDICATED];
        let name = text.split([':', ' ']).next().unwrap_or(text);
        let kind = pools.contains(&name);
        if kind {
            // Sizes stand between the parameters and the level.
            let end = head.start + text.find(' ').unwrap_or(text.len());
            let sizes = self.source.text[end..head.end].trim_start();
            behind.sizes = head.end - sizes.len()..head.end;
            head.end = end;
        }
        let (name, mut fields) = spec::split_at(self.source, head.clone())?;
        let name_at = head.start..head.start + name.len();
        let ranged = behind.from != 0 || behind.up_to != usize::MAX;
        if (kind || name == partition::NAME) && ranged {
            let message =
                format!("`{name}` takes no range of requests: leave out `from` and `up to`");
            return Err(self.error(at, message));
        }
        match name {
            OBJECTS => self.objects(&mut fields, &behind, at)?,
            DEDICATED => self.dedicated(&mut fields, &behind, at)?,
            partition::NAME => self.in_pages(&mut fields, name_at, at)?,
            _ => self.general(name, name_at, &mut fields, &behind, at)?,
        }
        fields.finish()
    }

    fn objects(
        &mut self,
        fields: &mut Fields<'_>,
        behind: &Behind,
        at: Range<usize>,
    ) -> Result<(), Error> {
        let slab = fields.size("slab", &[])?.map(|(size, _)| size);
        self.pools.slab = self.pools.slab.or(slab);
        for (size, _) in self.sizes(behind, &at, OBJECTS)? {
            let pool = ObjectPoolKind {
                size,
                slab: slab.unwrap_or(0),
                level: behind.level,
            };
            self.pools.objects.push((pool, at.clone()));
        }
        Ok(())
    }

    fn dedicated(
        &mut self,
        fields: &mut Fields<'_>,
        behind: &Behind,
        at: Range<usize>,
    ) -> Result<(), Error> {
        let mut list = DedicatedPool::new(0, behind.level);
        names::read_keeping(fields, &mut list)?;
        for (size, size_at) in self.sizes(behind, &at, DEDICATED)? {
            let pool = DedicatedPool { size, ..list };
            self.pools.dedicated.push((pool, size_at));
        }
        Ok(())
    }

    /// Pages of size classes in front of the pools.
    fn in_pages(
        &mut self,
        fields: &mut Fields<'_>,
        name_at: Range<usize>,
        at: Range<usize>,
    ) -> Result<(), Error> {
        if let Some((_, at)) = fields.text("behind")? {
            let message = "the parts that follow are behind it: leave out `behind`";
            return Err(self.error(at, message));
        }
        let compact = partition::read(name_at, fields)?;
        if matches!(compact.store, StoreKind::Moving(_)) {
            let message = "compact-fit whose blocks move has no pools beside it: leave out the other parts, or \
                           say `moving=no`";
            return Err(self.error(at, message));
        }
        if self.partition.is_some() {
            return Err(self.error(at, "there can be one partition into pages"));
        }
        self.partition = Some((compact.partition, at));
        Ok(())
    }

    fn general(
        &mut self,
        name: &str,
        name_at: Range<usize>,
        fields: &mut Fields<'_>,
        behind: &Behind,
        at: Range<usize>,
    ) -> Result<(), Error> {
        let (index, limits) = names::read(name, name_at, fields)?;
        // The last pool says where records live and what is mapped.
        if behind.up_to == usize::MAX {
            if let Some((store, _)) = fields.choice("store", &STORES)? {
                self.store = store;
            }
            if let Some(said) = fields.mappings()? {
                self.said = Some(said);
            }
        }
        let pool = General {
            from: behind.from,
            up_to: behind.up_to,
            index,
            limits,
            level: behind.level,
        };
        self.pools.general.push((pool, at));
        Ok(())
    }

    /// The sizes of pools, and where each stands.
    fn sizes(
        &self,
        behind: &Behind,
        at: &Range<usize>,
        name: &str,
    ) -> Result<Vec<(usize, Range<usize>)>, Error> {
        if behind.sizes.is_empty() {
            let message = format!("`{name}` needs sizes, as in `{name} 16/32`");
            return Err(self.error(at.clone(), message));
        }
        let mut start = behind.sizes.start;
        let read = self.source.text[behind.sizes.clone()]
            .split('/')
            .map(|text| {
                let at = start..start + text.len();
                start = at.end + 1;
                match read_size(text) {
                    Ok(size) => Ok((size, at)),
                    Err(why) => Err(self.error(at, why)),
                }
            });
        read.collect()
    }

    /// Range and level.
    fn behind(&mut self, at: Range<usize>) -> Result<Behind, Error> {
        let text = &self.source.text[at.clone()];
        let (rest, level) = match text.find(" in ") {
            Some(before) => (
                at.start..at.start + before,
                self.level(at.start + before + 1 + IN.len()..at.end)?,
            ),
            None => (at, 0),
        };
        let (rest, up_to) = self.bound(rest, UP_TO)?;
        let (head, from) = self.bound(rest, FROM)?;
        Ok(Behind {
            sizes: head.end..head.end,
            head,
            from: from.unwrap_or(0),
            up_to: up_to.unwrap_or(usize::MAX),
            level,
        })
    }

    /// The size behind a word, and what stands before it.
    fn bound(&self, at: Range<usize>, word: &str) -> Result<(Range<usize>, Option<usize>), Error> {
        let text = &self.source.text[at.clone()];
        let Some(before) = text.find(&format!(" {word}")) else {
            return Ok((at, None));
        };
        let size_at = at.start + before + 1 + word.len()..at.end;
        let size = read_size(&self.source.text[size_at.clone()]);
        let size = size.map_err(|why| self.error(size_at, why))?;
        Ok((at.start..at.start + before, Some(size)))
    }

    /// The number of a level that is named here, perhaps for the first time.
    fn level(&mut self, at: Range<usize>) -> Result<u8, Error> {
        let text = &self.source.text[at.clone()];
        let number = text
            .strip_prefix("level ")
            .and_then(|text| text.parse().ok());
        if let Some(number) = number {
            self.numbered = true;
            if usize::from(number) >= LEVELS {
                return Err(self.error(at, "a pool lies in one of 4 memory levels, counted from 0"));
            }
            return Ok(number);
        }
        let sized = text
            .rsplit_once(" of ")
            .map(|(name, size)| (name, read_size(size)));
        let (name, size) = match sized {
            Some((name, Ok(size))) => (name, Some(size)),
            _ => (text, None),
        };
        let known = self.levels.iter().position(|level| level.name == name);
        let own = match known {
            Some(own) => own,
            None if name.is_empty() || self.levels.len() == LEVELS => {
                return Err(
                    self.error(at, "there are at most 4 memory levels, and each has a name")
                );
            }
            None => {
                self.levels.push(Level {
                    name: name.to_owned(),
                    size: None,
                    read_energy: None,
                    write_energy: None,
                    latency: None,
                });
                self.levels.len() - 1
            }
        };
        let level = &mut self.levels[own];
        if size == Some(0) || level.size.is_some() && size.is_some() && level.size != size {
            return Err(self.error(at, "a memory level has one size, and that is not zero"));
        }
        level.size = level.size.or(size);
        Ok(own as u8)
    }

    fn finish(mut self, mapped: Option<usize>) -> Result<Config, Error> {
        let source = self.source;
        let whole = 0..source.text.len();
        if self.numbered && !self.levels.is_empty() {
            let message = "levels have names or numbers, not both";
            return Err(source.error(whole, message, None));
        }
        // One level without a size is what a heap without levels lies in.
        if self.levels.len() == 1 && self.levels[0].size.is_none() {
            self.levels.clear();
        }
        let mut config = Config {
            store: self.store,
            levels: self.levels,
            ..Config::of(self.pools.describe(&source)?)
        };
        if let Some((partition, at)) = self.partition {
            config.heap.partition = Some(partition);
            let valid = config.heap.validate(GEOMETRY.granule, GEOMETRY.header);
            valid.map_err(|why| source.error(at, why.to_string(), None))?;
        }
        spec::map(&mut config, self.said, mapped, source)?;
        for level in 0..config.levels.len() {
            let fits = crate::levels::verify(&config, level);
            fits.map_err(|why| source.error(whole.clone(), why, None))?;
        }
        Ok(config)
    }
}
