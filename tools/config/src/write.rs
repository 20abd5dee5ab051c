//! A [`Config`] to `heap.toml`, to a spec, to a name.
//!
//! Invariant: reading what is written gives the same configuration, up to
//! parameters without effect ([`Config::normal`]).

use std::fmt::Write;

use metes_heap::description::{DEDICATED, DedicatedPool, General, ObjectPoolKind};
use metes_heap::{Description, IndexKind};

use crate::document::ranged;
use crate::quantity::{spell_size, write_size};
use crate::{
    Arena, Config, DEFAULT_SLAB, GEOMETRY, Level, STORES, StoreKind, composite, names, partition,
};

/// Keys whose values are numbers in TOML; all others are strings.
const NUMBERS: [&str; 5] = ["depth", "max_fit", "second_level", "probes", "keep_up_to"];

pub(crate) fn to_toml(config: &Config) -> String {
    let mut text = String::new();
    if let (StoreKind::Moving(moving), Some(own)) = (config.store, &config.heap.partition) {
        text.push_str("[heap]\nname = \"compact-fit\"\n");
        for (key, value) in partition::write_moving(&moving, own) {
            line(&mut text, key, &quoted(&value));
        }
        return text;
    }
    let only = only_general(&config.heap).filter(|pool| pool.level == 0);
    if only.is_some() || config.store != StoreKind::Tagged {
        text.push_str("[heap]\n");
        if let Some(pool) = only {
            index(&mut text, "name", &pool);
        }
        if config.store != StoreKind::Tagged {
            line(&mut text, "store", &quoted(store_word(config.store)));
        }
    }
    let default = Arena::default();
    if config.arena != default {
        section(&mut text, "[arena]");
        if config.arena.increment != default.increment {
            line(&mut text, "increment", &write_size(config.arena.increment));
        }
        if config.arena.reserve != default.reserve {
            line(&mut text, "reserve", &write_size(config.arena.reserve));
        }
        if let Some(mapped) = config.arena.mapped {
            line(&mut text, "mapped", &write_size(mapped));
        }
        if let Some(pages) = config.arena.pages {
            line(&mut text, "pages", &quoted(&pages.to_string()));
        }
    }
    for level in &config.levels {
        section(&mut text, "[[level]]");
        write_level(&mut text, level);
    }
    if let Some(own) = &config.heap.partition {
        section(&mut text, "[partition]");
        for (key, value) in partition::write_partition(own, partition::STILL) {
            line(&mut text, key, &quoted(&value));
        }
    }
    for pool in config.heap.objects.iter() {
        section(&mut text, "[[pool]]");
        line(&mut text, "kind", "\"object\"");
        line(&mut text, "size", &write_size(pool.size));
        if pool.slab != DEFAULT_SLAB {
            line(&mut text, "slab", &write_size(pool.slab));
        }
        in_level(&mut text, pool.level, config);
    }
    let (ranges, general) = split(&config.heap);
    for pool in config.heap.dedicated.iter().chain(ranges) {
        section(&mut text, "[[pool]]");
        line(&mut text, "kind", "\"dedicated\"");
        line(&mut text, "size", &write_size(pool.size));
        for (key, value) in names::write_keeping(&pool) {
            line(&mut text, key, &quoted(&value));
        }
        in_level(&mut text, pool.level, config);
    }
    if only.is_none() {
        for pool in general {
            section(&mut text, "[[pool]]");
            line(&mut text, "kind", "\"general\"");
            if pool.from != 0 {
                line(&mut text, "from", &write_size(pool.from));
            }
            if pool.up_to != usize::MAX {
                line(&mut text, "up_to", &write_size(pool.up_to));
            }
            index(&mut text, "index", &pool);
            in_level(&mut text, pool.level, config);
        }
    }
    text
}

/// The only general pool, if there is but one.
fn only_general(heap: &Description) -> Option<General> {
    let mut pools = heap.general.iter();
    let first = pools.next()?;
    pools.next().is_none().then_some(first)
}

/// The general pools that a dedicated pool in a level of its own stands for, as
/// such, and the others.
pub(crate) fn split(heap: &Description) -> (Vec<DedicatedPool>, Vec<General>) {
    let stands_for = |pool: &General| {
        let IndexKind::List { order, links, .. } = pool.index else {
            return None;
        };
        let dedicated = DedicatedPool {
            order,
            links,
            ..DedicatedPool::new(pool.up_to, pool.level)
        };
        (ranged(dedicated) == Some(*pool)).then_some(dedicated)
    };
    let (ranges, general): (Vec<General>, Vec<General>) =
        (heap.general.iter()).partition(|pool| stands_for(pool).is_some());
    let ranges: Vec<DedicatedPool> = ranges.iter().filter_map(stands_for).collect();
    // Read back, each must again be in another level than the pool of its size,
    // need a block of its own, and find room among the dedicated pools.
    let elsewhere = |range: &DedicatedPool| {
        let serving = general.iter().find(|pool| pool.sizes().contain(range.size));
        let twin = |pool: &DedicatedPool| {
            pool != range && GEOMETRY.block_for(pool.size) == GEOMETRY.block_for(range.size)
        };
        serving.is_some_and(|pool| pool.level != range.level)
            && !ranges.iter().any(twin)
            && !heap.dedicated.iter().any(|pool| twin(&pool))
    };
    if ranges.iter().all(elsewhere) && ranges.len() + heap.dedicated.len() <= DEDICATED {
        return (ranges, general);
    }
    (Vec::new(), heap.general.iter().collect())
}

fn section(text: &mut String, title: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(title);
    text.push('\n');
}

fn line(text: &mut String, key: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn index(text: &mut String, key: &str, pool: &General) {
    let (name, parameters) = names::write(pool.index, pool.limits);
    line(text, key, &quoted(&name));
    for (key, value) in parameters {
        let bare = NUMBERS.contains(&key) && value.parse::<i64>().is_ok();
        line(text, key, &if bare { value } else { quoted(&value) });
    }
}

/// Where a pool lies, if there are several levels.
fn place(level: u8, config: &Config) -> String {
    match config.levels.get(usize::from(level)) {
        Some(Level {
            name,
            size: Some(size),
            ..
        }) => format!(" in {name} of {}", spell_size(*size)),
        Some(own) if config.levels.len() > 1 => format!(" in {}", own.name),
        None if level > 0 => format!(" in level {level}"),
        _ => String::new(),
    }
}

fn in_level(text: &mut String, level: u8, config: &Config) {
    if level == 0 {
        return;
    }
    match config.levels.get(usize::from(level)) {
        Some(own) => line(text, "level", &quoted(&own.name)),
        None => line(text, "level", &level.to_string()),
    }
}

fn write_level(text: &mut String, level: &Level) {
    line(text, "name", &quoted(&level.name));
    if let Some(size) = level.size {
        line(text, "size", &write_size(size));
    }
    let quantities = [
        ("read_energy", level.read_energy),
        ("write_energy", level.write_energy),
        ("latency", level.latency),
    ];
    for (key, value) in quantities {
        if let Some(value) = value {
            line(text, key, &format!("{value:?}"));
        }
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn store_word(store: StoreKind) -> &'static str {
    let word = STORES.iter().find(|(_, own)| *own == store);
    word.map_or("tagged", |(word, _)| word)
}

/// The spec, where one says everything about the heap.
pub(crate) fn spec(config: &Config) -> Option<String> {
    let heap = &config.heap;
    let pool = only_general(heap)?;
    if let (StoreKind::Moving(moving), Some(own)) = (config.store, &heap.partition) {
        return Some(with(
            partition::NAME,
            &partition::write_moving(&moving, own),
        ));
    }
    let plain = heap.dedicated.is_empty()
        && heap.objects.is_empty()
        && pool.level == 0
        && pool.up_to == usize::MAX
        && config.levels.is_empty()
        && Arena {
            mapped: None,
            pages: None,
            ..config.arena
        } == Arena::default();
    match heap.partition {
        _ if !plain => None,
        None => Some(spell(&pool, config.store, Some(&config.arena))),
        Some(own) if config.store == StoreKind::Tagged => {
            let mut parameters = partition::write(&own, &pool)?;
            parameters.extend(write_mapped(&config.arena));
            Some(with(partition::NAME, &parameters))
        }
        Some(_) => None,
    }
}

/// A name with parameters behind it.
fn with(name: &str, parameters: &[(&'static str, String)]) -> String {
    let mut text = name.to_owned();
    for (number, (key, value)) in parameters.iter().enumerate() {
        let separator = if number == 0 { ':' } else { ',' };
        let value = value.replace(' ', "");
        let _ = write!(text, "{separator}{key}={value}");
    }
    text
}

/// A pool, and where it is the last one, what is mapped.
fn spell(pool: &General, store: StoreKind, arena: Option<&Arena>) -> String {
    let (text, mut parameters) = names::write(pool.index, pool.limits);
    if store != StoreKind::Tagged {
        parameters.push(("store", store_word(store).to_owned()));
    }
    parameters.extend(arena.into_iter().flat_map(write_mapped));
    with(&text, &parameters)
}

fn write_mapped(arena: &Arena) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let mapped = arena.mapped.map(|mapped| ("mapped", spell_size(mapped)));
    let pages = arena.pages.map(|pages| ("pages", pages.to_string()));
    mapped.into_iter().chain(pages)
}

/// The heap in a line: the spec, with the pools in front of it.
pub(crate) fn name(config: &Config) -> String {
    let mut parts = Vec::new();
    if let Some(own) = &config.heap.partition {
        if let Some(spec) = spec(config) {
            return spec;
        }
        let mut parameters = vec![("moving", "no".to_owned())];
        parameters.extend(partition::write_partition(own, partition::STILL));
        parts.push(with(partition::NAME, &parameters));
    }
    let objects: Vec<ObjectPoolKind> = config.heap.objects.iter().collect();
    if let Some(first) = objects.first() {
        let slab = (first.slab != DEFAULT_SLAB).then(|| ("slab", spell_size(first.slab)));
        let list = sizes(objects.iter().map(|pool| pool.size));
        let head = with(composite::OBJECTS, &Vec::from_iter(slab));
        parts.push(format!("{head} {list}{}", place(first.level, config)));
    }
    let (ranges, general) = split(&config.heap);
    let lists: Vec<DedicatedPool> = config.heap.dedicated.iter().collect();
    let alike = |a: &DedicatedPool, b: &DedicatedPool| DedicatedPool { size: b.size, ..*a } == *b;
    for lists in lists.chunk_by(alike).chain(ranges.chunks(1)) {
        let head = with(composite::DEDICATED, &names::write_keeping(&lists[0]));
        let list = sizes(lists.iter().map(|pool| pool.size));
        parts.push(format!("{head} {list}{}", place(lists[0].level, config)));
    }
    for pool in general {
        let last = pool.up_to == usize::MAX;
        let store = if last {
            config.store
        } else {
            StoreKind::Tagged
        };
        let spelt = spell(&pool, store, last.then_some(&config.arena));
        let from = match pool.from {
            0 => String::new(),
            from => format!(" from {}", spell_size(from)),
        };
        let up_to = match last {
            true => String::new(),
            false => format!(" up to {}", spell_size(pool.up_to)),
        };
        let place = place(pool.level, config);
        parts.push(format!("{spelt}{from}{up_to}{place}"));
    }
    parts.join(composite::AND)
}

fn sizes(sizes: impl Iterator<Item = usize>) -> String {
    let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
    sizes.join("/")
}
