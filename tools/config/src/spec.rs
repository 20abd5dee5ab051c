//! Specs: `tlsf`, `tlsf:second_level=8,store=ledger`, `best-fit:depth=50`.
//!
//! Invariant: [`parse`] accepts what [`write`](crate::write) calls a spec, and
//! gives back the same heap.

use std::ops::Range;

use metes_heap::description::General;
use metes_heap::{Description, IndexKind};

use crate::error::{Error, Source};
use crate::fields::{Field, Fields, Value};
use crate::{Config, GEOMETRY, Pages, STORES, StoreKind, names, partition};

/// Reads a spec; `source` is what errors call the text. `mapped` is from what size on blocks are
/// mapped where the text does not say it and the heap can.
pub(crate) fn parse(text: &str, source: &str, mapped: Option<usize>) -> Result<Config, Error> {
    let source = Source { name: source, text };
    let (mut config, said) = read(source)?;
    map(&mut config, said, mapped, source)?;
    Ok(config)
}

/// Puts what was said of mapped blocks into a configuration; where nothing was, `mapped` if it can.
pub(crate) fn map(
    config: &mut Config,
    said: Said,
    mapped: Option<usize>,
    source: Source<'_>,
) -> Result<(), Error> {
    match said {
        Some(((said, pages), at)) => {
            if said.is_some() {
                (config.can_map()).map_err(|why| source.error(at, why, None))?;
            }
            (config.arena.mapped, config.arena.pages) = (said, pages);
        }
        None if config.can_map().is_ok() => config.arena.mapped = mapped,
        None => {}
    }
    Ok(())
}

/// What a spec says of mapped blocks, if anything, and where.
pub(crate) type Said = Option<((Option<usize>, Option<Pages>), Range<usize>)>;

/// The heap, and what is said of mapped blocks.
fn read(source: Source<'_>) -> Result<(Config, Said), Error> {
    let text = source.text;
    let (name, mut fields) = split(source)?;
    if name == partition::NAME {
        let compact = partition::read(0..name.len(), &mut fields)?;
        let mapped = fields.mappings()?;
        fields.finish()?;
        let config = Config {
            store: compact.store,
            ..Config::of(compact.describe())
        };
        return Ok((config, mapped));
    }
    let (index, limits) = names::read(name, 0..name.len(), &mut fields)?;
    let heap = of(index, limits);
    heap.validate(GEOMETRY.granule, GEOMETRY.header)
        .map_err(|why| source.error(0..text.len(), why.to_string(), None))?;
    let store = fields.choice("store", &STORES)?;
    let mapped = fields.mappings()?;
    fields.finish()?;
    let config = Config {
        store: store.map_or(StoreKind::Tagged, |(store, _)| store),
        ..Config::of(heap)
    };
    Ok((config, mapped))
}

/// The name that a spec begins with, and its parameters.
pub(crate) fn split(source: Source<'_>) -> Result<(&str, Fields<'_>), Error> {
    split_at(source, 0..source.text.len())
}

/// The same of a part of a text.
pub(crate) fn split_at(source: Source<'_>, at: Range<usize>) -> Result<(&str, Fields<'_>), Error> {
    let text = &source.text[at.clone()];
    let (name, parameters) = match text.split_once(':') {
        Some((name, parameters)) => (name, Some(parameters)),
        None => (text, None),
    };
    let mut items = Vec::new();
    if let Some(parameters) = parameters {
        let mut start = at.start + name.len() + 1;
        for item in parameters.split(',') {
            items.push(read_item(&source, item, start, &items)?);
            start += item.len() + 1;
        }
    }
    let name_at = at.start..at.start + name.len();
    let fields = Fields::new(source, format!("`{name}`"), name_at, items);
    Ok((name, fields))
}

/// One general pool for everything.
pub(crate) fn of(index: IndexKind, limits: metes_heap::Limits) -> Description {
    let mut heap = Description::of(index);
    let only = heap
        .general
        .iter()
        .next()
        .map(|pool| General { limits, ..pool });
    if let Some(only) = only {
        heap.general = metes_heap::description::List::from_slice(&[only]);
    }
    heap
}

fn read_item(
    source: &Source<'_>,
    item: &str,
    start: usize,
    before: &[Field],
) -> Result<Field, Error> {
    let at: Range<usize> = start..start + item.len();
    let Some((key, value)) = item.split_once('=') else {
        let message = format!("`{item}` is not a parameter: write `key=value`");
        return Err(source.error(at, message, None));
    };
    if before.iter().any(|field| field.key == key) {
        let message = format!("`{key}` is given twice");
        return Err(source.error(at, message, None));
    }
    Ok(Field {
        key: key.to_owned(),
        key_at: start..start + key.len(),
        value: Value::Text(value.to_owned()),
        at: start + key.len() + 1..at.end,
    })
}
