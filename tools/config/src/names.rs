//! The usual names of heaps and the parameters that each takes.
//!
//! Invariant: `read(name, parameters)` of what [`write`] returns is the same
//! index with the same limits, for every index in [`normal`] form.

use std::ops::Range;

use metes_heap::description::{DedicatedPool, Invalid, LARGEST_SPAN, SMALLEST_SPAN};
use metes_heap::index::Limits;
use metes_heap::index::lea::LARGEST_KEPT;
use metes_heap::{Fit, IndexKind, Links, Order, SizeTable};

use crate::error::Error;
use crate::fields::Fields;
use crate::handles::HANDLE_HEAPS;
use crate::quantity::{read_size, spell_size};

/// Heaps that can be built, in the order in which they are listed.
pub(crate) const NAMES: [&str; 12] = [
    "first-fit",
    "next-fit",
    "best-fit",
    "worst-fit",
    "exact-fit",
    "segregated-fit",
    "half-fit",
    "tlsf",
    "buddy",
    "kingsley",
    "lea",
    "ose",
];

const FITS: [(&str, Fit); 5] = [
    ("first", Fit::First),
    ("next", Fit::Next),
    ("best", Fit::Best),
    ("worst", Fit::Worst),
    ("exact", Fit::Exact),
];
const ORDERS: [(&str, Order); 3] = [
    ("lifo", Order::Lifo),
    ("fifo", Order::Fifo),
    ("address", Order::Address),
];
/// Of first fit: in which way the first block is found.
const SEARCHES: [(&str, Search); 2] = [("list", Search::List), ("tree", Search::Tree)];
/// Of the tree: what it keeps of each group of granules, and whether that is a class.
const SUMMARIES: [(&str, bool); 2] = [("exact", false), ("class", true)];
const LINKS: [(&str, Links); 2] = [("single", Links::Single), ("double", Links::Double)];
/// Default of lea.
const KEEP_UP_TO: u32 = 128;
/// Default of TLSF.
const SECOND_LEVEL: u32 = 32;
const LARGEST_SECOND_LEVEL: u32 = 32;
/// The word for probes without limit.
const ALL: &str = "all";
/// The word for a merge or a split that does not happen.
const NEVER: &str = "never";

/// In which way first fit finds its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    List,
    Tree,
}

/// The index and limits without those parameters that have no effect on them.
pub(crate) fn normal(index: IndexKind, limits: Limits) -> (IndexKind, Limits) {
    match index {
        IndexKind::Buddy { .. }
        | IndexKind::Kingsley
        | IndexKind::FixedSizes { .. }
        | IndexKind::FirstFit { .. }
        | IndexKind::Lea { .. } => (index, Limits::NONE),
        _ => (index, limits),
    }
}

/// What `name` is with default parameters.
pub(crate) fn default_of(name: &str) -> Option<IndexKind> {
    let fit = |fit| Some(IndexKind::list(fit, Order::Address));
    match name {
        "first-fit" => fit(Fit::First),
        "next-fit" => fit(Fit::Next),
        "best-fit" => fit(Fit::Best),
        "worst-fit" => fit(Fit::Worst),
        "exact-fit" => fit(Fit::Exact),
        "segregated-fit" => Some(IndexKind::Classes {
            second_level: 1,
            probes: usize::MAX,
        }),
        "half-fit" => Some(IndexKind::tlsf(1)),
        "tlsf" => Some(IndexKind::tlsf(SECOND_LEVEL)),
        "buddy" => Some(IndexKind::Buddy { lowest: false }),
        "kingsley" => Some(IndexKind::Kingsley),
        "lea" => Some(IndexKind::Lea {
            keep_up_to: KEEP_UP_TO,
        }),
        "ose" => Some(IndexKind::FixedSizes {
            sizes: SizeTable::DEFAULT,
        }),
        _ => None,
    }
}

/// The index named `name`, whose parameters are taken out of `fields`.
pub(crate) fn read(
    name: &str,
    at: Range<usize>,
    fields: &mut Fields<'_>,
) -> Result<(IndexKind, Limits), Error> {
    let Some(mut index) = default_of(name) else {
        return Err(unknown(name, at, fields));
    };
    if name == "first-fit" {
        if let Some((Search::Tree, _)) = fields.choice("search", &SEARCHES)? {
            return Ok((read_tree(fields)?, Limits::NONE));
        }
        for key in ["summary", "span"] {
            if let Some(at) = fields.unwanted(key) {
                let message =
                    format!("`{key}` is of the tree: give `search=tree`, or leave it out");
                return Err(fields.error(at, message));
            }
        }
    }
    match &mut index {
        IndexKind::List {
            order,
            depth_percent,
            max_fit_percent,
            links,
            ..
        } => {
            replace(order, fields.choice("order", &ORDERS)?);
            replace(depth_percent, fields.percent("depth", 1, 100)?);
            replace(max_fit_percent, fields.percent("max_fit", 100, u32::MAX)?);
            replace(links, fields.choice("links", &LINKS)?);
        }
        IndexKind::Classes {
            second_level,
            probes,
        } => {
            if name != "half-fit"
                && let Some((number, at)) =
                    fields.number("second_level", 1, LARGEST_SECOND_LEVEL)?
            {
                if !number.is_power_of_two() {
                    return Err(fields.error(
                        at,
                        format!("`second_level` must be a power of two from 1 to {LARGEST_SECOND_LEVEL}, not {number}"),
                    ));
                }
                *second_level = number;
            }
            if name != "half-fit" {
                replace(probes, fields.size("probes", &[(ALL, usize::MAX)])?);
            }
        }
        IndexKind::Buddy { lowest } => {
            let orders = [("lifo", false), ("address", true)];
            replace(lowest, fields.choice("order", &orders)?);
            return Ok((index, Limits::NONE));
        }
        IndexKind::Lea { keep_up_to } => {
            if let Some((size, at)) = fields.size("keep_up_to", &[(NEVER, 0)])? {
                if size > LARGEST_KEPT as usize || !size.is_multiple_of(16) {
                    let message = format!(
                        "`keep_up_to` must be a multiple of 16 up to {LARGEST_KEPT}, or \"{NEVER}\""
                    );
                    return Err(fields.error(at, message));
                }
                *keep_up_to = size as u32;
            }
            return Ok((index, Limits::NONE));
        }
        IndexKind::FixedSizes { sizes } => {
            replace(sizes, read_sizes(fields)?);
            return Ok((index, Limits::NONE));
        }
        IndexKind::Kingsley | IndexKind::FirstFit { .. } => return Ok((index, Limits::NONE)),
    }
    let mut limits = Limits::NONE;
    replace(
        &mut limits.coalesce_up_to,
        fields.size("coalesce_up_to", &[(NEVER, 0)])?,
    );
    replace(
        &mut limits.split_down_to,
        fields.size("split_down_to", &[(NEVER, usize::MAX)])?,
    );
    Ok((index, limits))
}

/// First fit by a tree, whose parameters are taken out of `fields`.
fn read_tree(fields: &mut Fields<'_>) -> Result<IndexKind, Error> {
    if let Some((order, at)) = fields.choice("order", &ORDERS)?
        && order != Order::Address
    {
        let message = "`search=tree` takes `order=address` only: leave out `order`, or `search`";
        return Err(fields.error(at, message));
    }
    for key in [
        "depth",
        "max_fit",
        "links",
        "coalesce_up_to",
        "split_down_to",
    ] {
        if let Some(at) = fields.unwanted(key) {
            let message = format!(
                "`search=tree` has no list, searches everything, and always merges and splits: leave out `{key}`, or `search`"
            );
            return Err(fields.error(at, message));
        }
    }
    let summary = fields.choice("summary", &SUMMARIES)?;
    let span = fields.size("span", &[])?;
    if let Some((span, at)) = &span
        && !(SMALLEST_SPAN..=LARGEST_SPAN).contains(span)
    {
        return Err(fields.error(at.clone(), Invalid::Span.to_string()));
    }
    Ok(IndexKind::FirstFit {
        by_class: summary.is_some_and(|(by_class, _)| by_class),
        span: span.map(|(span, _)| span),
    })
}

/// The index of a pool: `index = NAME`, or `fit = WORD` for a searched list.
pub(crate) fn read_keyed(fields: &mut Fields<'_>) -> Result<(IndexKind, Limits), Error> {
    let fit = fields.choice("fit", &FITS)?;
    match (fields.text("index")?, fit) {
        (Some((name, at)), None) if name == "list" => {
            Err(fields.error(at, "a list needs a `fit`, as in `fit = \"best\"`"))
        }
        (Some((name, at)), Some(_)) if name != "list" => Err(fields.error(
            at,
            format!("`index = \"{name}\"` already says which block serves: leave out `fit`"),
        )),
        (_, Some((fit, at))) => {
            let word = FITS.iter().find(|(_, own)| *own == fit);
            let name = word.map_or(String::new(), |(word, _)| format!("{word}-fit"));
            read(&name, at, fields)
        }
        (Some((name, at)), None) => read(&name, at, fields),
        (None, None) => {
            Err(fields.missing("a general pool needs an `index`, as in `index = \"tlsf\"`"))
        }
    }
}

/// The sizes of a table: `64/256/1 KiB`.
fn read_sizes(fields: &mut Fields<'_>) -> Result<Option<(SizeTable, Range<usize>)>, Error> {
    let Some((text, at)) = fields.text("sizes")? else {
        return Ok(None);
    };
    let mut sizes = Vec::new();
    for part in text.split('/') {
        let size = read_size(part).map_err(|why| fields.error(at.clone(), why))?;
        sizes.push(u32::try_from(size).unwrap_or(u32::MAX));
    }
    match SizeTable::new(&sizes) {
        Some(table) => Ok(Some((table, at))),
        None => Err(fields.error(
            at,
            "`sizes` must be up to 8 block sizes, rising multiples of 32 up to 2 GiB, \
             as in `64/256/1024`",
        )),
    }
}

/// Order, links and limit of a dedicated list.
pub(crate) fn read_keeping(fields: &mut Fields<'_>, pool: &mut DedicatedPool) -> Result<(), Error> {
    replace(&mut pool.order, fields.choice("order", &ORDERS)?);
    replace(&mut pool.links, fields.choice("links", &LINKS)?);
    let limit = fields.number("limit", 1, u32::MAX - 1)?;
    pool.limit = limit.map(|(most, _)| most);
    Ok(())
}

/// What of a dedicated list's order, links and limit differs from the defaults.
pub(crate) fn write_keeping(pool: &DedicatedPool) -> Vec<(&'static str, String)> {
    let default = DedicatedPool::new(pool.size, pool.level);
    let mut parameters = Vec::new();
    if pool.order != default.order {
        parameters.push(("order", word_of(&ORDERS, pool.order)));
    }
    if pool.links != default.links {
        parameters.push(("links", word_of(&LINKS, pool.links)));
    }
    if let Some(limit) = pool.limit {
        parameters.push(("limit", limit.to_string()));
    }
    parameters
}

fn replace<T>(own: &mut T, found: Option<(T, Range<usize>)>) {
    if let Some((value, _)) = found {
        *own = value;
    }
}

/// The error for a name that stands for no heap that can be built.
pub(crate) fn unknown(name: &str, at: Range<usize>, fields: &Fields<'_>) -> Error {
    if HANDLE_HEAPS.contains(&name) {
        let message = format!(
            "`{name}` gives handles, and here a program needs pointers: link it from \
             `metes_heap::{name}`, or judge it by `metes bounds` and `metes replay`"
        );
        return fields.error(at, message);
    }
    if name == crate::threads::NAME {
        let message = "`per-thread` puts blocks where the scheduling of threads leads it, which nothing predicts: run a program \
                       on it by `metes run --heap per-thread`, or METES_HEAP=per-thread";
        return fields.error(at, message);
    }
    if name == crate::partition::NAME {
        let message = "compact-fit is no index of a pool: name it in `[heap]`, or give size \
                       classes in a section `[partition]`";
        return fields.error(at, message);
    }
    fields.no_such(at, format!("there is no heap named `{name}`"), name, NAMES)
}

/// The name of an index and those parameters that differ from its defaults.
/// Parameter values are as in a spec: bare words, sizes with a unit.
pub(crate) fn write(index: IndexKind, limits: Limits) -> (String, Vec<(&'static str, String)>) {
    let (index, limits) = normal(index, limits);
    let mut parameters = Vec::new();
    let name = match index {
        IndexKind::List {
            fit,
            order,
            depth_percent,
            max_fit_percent,
            links,
        } => {
            if order != Order::Address {
                parameters.push(("order", word_of(&ORDERS, order)));
            }
            if depth_percent != 100 {
                parameters.push(("depth", depth_percent.to_string()));
            }
            if max_fit_percent != 0 {
                parameters.push(("max_fit", max_fit_percent.to_string()));
            }
            if links != Links::Double {
                parameters.push(("links", word_of(&LINKS, links)));
            }
            format!("{}-fit", word_of(&FITS, fit))
        }
        IndexKind::Classes {
            second_level: 1,
            probes: 0,
        } => "half-fit".to_owned(),
        IndexKind::Classes {
            second_level,
            probes: 0,
        } => {
            if second_level != SECOND_LEVEL {
                parameters.push(("second_level", second_level.to_string()));
            }
            "tlsf".to_owned()
        }
        IndexKind::Classes {
            second_level,
            probes,
        } => {
            if second_level != 1 {
                parameters.push(("second_level", second_level.to_string()));
            }
            if probes != usize::MAX {
                parameters.push(("probes", probes.to_string()));
            }
            "segregated-fit".to_owned()
        }
        IndexKind::Lea { keep_up_to } => {
            match keep_up_to {
                KEEP_UP_TO => {}
                0 => parameters.push(("keep_up_to", NEVER.to_owned())),
                size => parameters.push(("keep_up_to", size.to_string())),
            }
            "lea".to_owned()
        }
        IndexKind::FixedSizes { sizes } => {
            if sizes != SizeTable::DEFAULT {
                let spelt: Vec<String> = sizes.iter().map(|size| size.to_string()).collect();
                parameters.push(("sizes", spelt.join("/")));
            }
            "ose".to_owned()
        }
        IndexKind::Kingsley => "kingsley".to_owned(),
        IndexKind::FirstFit { by_class, span } => {
            parameters.push(("search", word_of(&SEARCHES, Search::Tree)));
            if by_class {
                parameters.push(("summary", word_of(&SUMMARIES, by_class)));
            }
            parameters.extend(span.map(|span| ("span", spell_size(span))));
            "first-fit".to_owned()
        }
        IndexKind::Buddy { lowest } => {
            if lowest {
                parameters.push(("order", "address".to_owned()));
            }
            "buddy".to_owned()
        }
    };
    match limits.coalesce_up_to {
        usize::MAX => {}
        0 => parameters.push(("coalesce_up_to", NEVER.to_owned())),
        size => parameters.push(("coalesce_up_to", spell_size(size))),
    }
    match limits.split_down_to {
        0 => {}
        usize::MAX => parameters.push(("split_down_to", NEVER.to_owned())),
        size => parameters.push(("split_down_to", spell_size(size))),
    }
    (name, parameters)
}

fn word_of<T: Copy + PartialEq>(words: &[(&str, T)], value: T) -> String {
    let word = words.iter().find(|(_, own)| *own == value);
    word.map_or(String::new(), |(word, _)| (*word).to_owned())
}
