//! What the templates of the Rust crate and of the README know of a description.
//!
//! Invariant: every number a template prints comes from here, computed from
//! the description; templates choose code, they do not calculate.

use metes_heap::compact::Partition;
use metes_heap::description::{DedicatedPool, GROWING_SPAN, General, IndexKind};
use metes_heap::index::list::{Fit, Order};
use metes_heap::store::Geometry;
use metes_heap::{Description, Levels, Links};
use minijinja::{Value, context};

use super::{Home, Options, Ranges};

/// The values for all templates.
pub(super) fn context(description: &Description, options: &Options) -> Value {
    let placed = Levels::of(description, options.levels);
    let levels: Vec<Value> = options.levels[..placed.count()]
        .iter()
        .map(|size| context! { size => size.unwrap_or(0) })
        .collect();
    let count = description.general.len();
    let pools: Vec<Value> = description
        .general
        .iter()
        .enumerate()
        .map(|(number, pool)| pool_context(description, options, &pool, number, count))
        .collect();
    let slabs = description.slabs();
    let objects: Vec<Value> = slabs
        .sizes()
        .map(|size| {
            context! { size => size, level => slabs.level() }
        })
        .collect();
    let partition = description.partition.map(|partition| {
        let Partition {
            smallest,
            largest,
            factor,
            granule,
            ..
        } = partition;
        context! { smallest => smallest, largest => largest, factor => factor, granule => granule }
    });
    let any =
        |wanted: fn(&IndexKind) -> bool| description.general.iter().any(|pool| wanted(&pool.index));
    let list = any(|index| matches!(index, IndexKind::List { .. }));
    let classes = any(|index| matches!(index, IndexKind::Classes { .. }));
    let buddy = any(|index| matches!(index, IndexKind::Buddy { .. }));
    let kingsley = any(|index| matches!(index, IndexKind::Kingsley));
    let single = any(single_links);
    let lea = any(|index| matches!(index, IndexKind::Lea { .. }));
    let fixed = any(|index| matches!(index, IndexKind::FixedSizes { .. }));
    let exact = any(|index| {
        matches!(
            index,
            IndexKind::FirstFit {
                by_class: false,
                ..
            }
        )
    });
    let by_class = any(|index| matches!(index, IndexKind::FirstFit { by_class: true, .. }));
    context! {
        summary => summary(description),
        pools => pools,
        objects => objects,
        slab => slabs.bytes(),
        partition => partition,
        levels => levels,
        increment => options.increment,
        hardened => options.hardened,
        mapped => options.mapped.map(|from| context! { from => from }),
        ranges => options.home.ranges().map(|ranges| ranges_context(description, ranges)),
        wasi => matches!(options.home, Home::Wasi(_)),
        kinds => context! { list => list, single => single, kept => kept(description.dedicated.iter()), classes => classes, kingsley => kingsley, lea => lea, fixed => fixed, buddy => buddy, exact => exact, by_class => by_class },
        dedicated_sizes => description.dedicated.iter().map(|pool| pool.size).collect::<Vec<_>>(),
    }
}

/// The memory of a heap that does not grow: of the C, and of the Rust, whose pools share theirs equally.
fn ranges_context(description: &Description, ranges: Ranges) -> Value {
    let slabs = description.slabs();
    let records = slabs.record_bytes() + 2 * slabs.slots();
    let tables = slabs.memory_words(0) * size_of::<usize>();
    let objects = ranges.slabs * (slabs.bytes() + records) + tables;
    let shares = description.general.len() + usize::from(!slabs.is_empty());
    let largest = ranges.pools.iter().copied().chain([objects]).max();
    context! {
        bytes => ranges.bytes(description),
        span => ranges.span,
        shared => shares * largest.unwrap_or(0).next_multiple_of(16),
    }
}

/// Whether an index is a list linked in one direction.
fn single_links(index: &IndexKind) -> bool {
    match index {
        IndexKind::List { links, .. } => *links == Links::Single,
        _ => false,
    }
}

/// The heap in words, a line a pool.
pub(super) fn summary(description: &Description) -> Vec<String> {
    let mut lines: Vec<String> = description
        .objects
        .iter()
        .map(|pool| format!("slots of {} bytes in slabs of {}", pool.size, pool.slab))
        .collect();
    if let Some(partition) = description.partition {
        lines.push(format!(
            "pages of {} bytes of {} size classes for requests up to {} bytes \
             (compact-fit without compaction)",
            partition.page,
            partition.classes(0).count(),
            partition.largest
        ));
    }
    lines.extend(description.dedicated.iter().map(|pool| {
        let mut text = format!(
            "a free list of their own for requests of {} bytes",
            pool.size
        );
        if pool.order != Order::Lifo {
            text += &format!(", {} order", order_name(pool.order));
        }
        if pool.links == Links::Single {
            text += ", single links";
        }
        if let Some(most) = pool.limit {
            text += &format!(", at most {most} blocks");
        }
        text
    }));
    lines.extend(description.general.iter().map(|pool| pool_summary(&pool)));
    lines
}

pub(super) fn pool_summary(pool: &General) -> String {
    let reach = match (pool.from, pool.up_to) {
        (0, usize::MAX) => "everything else".to_string(),
        (0, bytes) => format!("requests up to {bytes} bytes"),
        (bytes, usize::MAX) => format!("requests from {bytes} bytes"),
        (least, most) => format!("requests from {least} to {most} bytes"),
    };
    format!("{reach}: {}", index_summary(&pool.index))
}

fn index_summary(index: &IndexKind) -> String {
    match *index {
        IndexKind::List {
            fit,
            order,
            depth_percent,
            max_fit_percent,
            links,
        } => {
            let mut text = format!("{} fit, {} order", fit_name(fit), order_name(order));
            if depth_percent < 100 {
                text += &format!(", {depth_percent} % of the list searched");
            }
            if max_fit_percent > 0 {
                text += &format!(", blocks up to {max_fit_percent} % of the need");
            }
            if links == Links::Single {
                text += ", single links";
            }
            text
        }
        IndexKind::Classes {
            second_level,
            probes,
        } => match (second_level, probes) {
            (1, 0) => "half-fit".to_string(),
            (_, 0) => format!("TLSF, {second_level} classes a power of two"),
            (_, usize::MAX) => {
                format!("segregated fit, {second_level} classes a power of two")
            }
            _ => format!("segregated fit, {second_level} classes a power of two, {probes} probes"),
        },
        IndexKind::Kingsley => "Kingsley, powers of two without merging".to_string(),
        IndexKind::Lea { keep_up_to } => {
            format!("sorted bins, blocks up to {keep_up_to} bytes merged late")
        }
        IndexKind::FixedSizes { sizes } => {
            let sizes: Vec<String> = sizes.iter().map(|size| size.to_string()).collect();
            format!("blocks of {} bytes without merging", sizes.join(", "))
        }
        IndexKind::FirstFit { by_class, span } => {
            let by_class = if by_class { " of size classes" } else { "" };
            let span = span.map_or(String::new(), |span| format!(", up to {span} bytes"));
            format!("first fit by a tree{by_class}{span}")
        }
        IndexKind::Buddy { lowest: false } => "binary buddy".to_string(),
        IndexKind::Buddy { lowest: true } => "binary buddy, lowest address first".to_string(),
    }
}

fn fit_name(fit: Fit) -> &'static str {
    match fit {
        Fit::First => "first",
        Fit::Next => "next",
        Fit::Best => "best",
        Fit::Worst => "worst",
        Fit::Exact => "exact",
    }
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Lifo => "lifo",
        Order::Fifo => "fifo",
        Order::Address => "address",
    }
}

fn pool_context(
    description: &Description,
    options: &Options,
    pool: &General,
    number: usize,
    count: usize,
) -> Value {
    // These never merge and always split, whatever the description's limits.
    let (coalesce, split) = match pool.index {
        IndexKind::Kingsley | IndexKind::FixedSizes { .. } => (0, 0),
        IndexKind::Lea { .. } | IndexKind::FirstFit { .. } => (usize::MAX, 0),
        _ => (pool.limits.coalesce_up_to, pool.limits.split_down_to),
    };
    let common = context! {
        article => if count == 1 { "the general pool".to_string() } else { format!("general pool {number}") },
        summary => pool_summary(pool),
        number => number,
        level => pool.level,
        from => pool.from,
        up_to_rust => if pool.up_to == usize::MAX { "usize::MAX".to_string() } else { pool.up_to.to_string() },
        coalesce => bytes(coalesce, "unlimited"),
        split => bytes(split, "never"),
        dedicated => description.dedicated_of(pool).next().is_some(),
        dedicated_64 => dedicated_context(&dedicated_blocks(description, pool, options.geometry(8))),
        dedicated_32 => dedicated_context(&dedicated_blocks(description, pool, options.geometry(4))),
        kept => kept(description.dedicated_of(pool)),
    };
    let index = match pool.index {
        IndexKind::List {
            fit,
            order,
            depth_percent,
            max_fit_percent,
            links,
        } => context! {
            kind => "list",
            fit_variant => format!("{fit:?}"),
            order_variant => format!("{order:?}"),
            depth => depth_percent,
            max_fit => max_fit_percent,
            single => links == Links::Single,
        },
        IndexKind::Classes {
            second_level,
            probes,
        } => context! {
            kind => "classes",
            log2 => second_level.trailing_zeros(),
            probes => bytes(probes, "unlimited"),
        },
        IndexKind::Lea { keep_up_to } => context! { kind => "lea", keep_up_to => keep_up_to },
        IndexKind::FixedSizes { sizes } => {
            context! { kind => "fixed", sizes => sizes.iter().collect::<Vec<u32>>() }
        }
        IndexKind::Kingsley => context! { kind => "kingsley" },
        IndexKind::FirstFit { by_class, span } => {
            context! { kind => "tree", by_class => by_class, span => span.unwrap_or(GROWING_SPAN) }
        }
        IndexKind::Buddy { lowest } => context! { kind => "buddy", lowest => lowest },
    };
    context! { ..index, ..common }
}

/// A number, or what its largest value stands for.
fn bytes(number: usize, largest: &str) -> String {
    match number {
        usize::MAX => largest.to_string(),
        number => number.to_string(),
    }
}

/// Whether dedicated lists need more than links in both directions and LIFO order, and whether some have a limit.
fn kept(pools: impl Iterator<Item = DedicatedPool>) -> Value {
    let (mut any, mut limited) = (false, false);
    for pool in pools {
        limited |= pool.limit.is_some();
        any |= limited || pool.order != Order::Lifo || pool.links == Links::Single;
    }
    context! { any => any, limited => limited }
}

/// The blocks that dedicated lists keep on a target with records of such sizes, each
/// once, and how each list is kept.
pub(super) fn dedicated_blocks(
    description: &Description,
    general: &General,
    geometry: Geometry,
) -> Vec<(usize, DedicatedPool)> {
    let mut lists: Vec<(usize, DedicatedPool)> = Vec::new();
    for pool in description.dedicated_of(general) {
        let Some(block) = geometry.block_for(pool.size) else {
            continue;
        };
        let block = match general.index {
            IndexKind::Kingsley | IndexKind::Buddy { .. } => block.next_power_of_two(),
            IndexKind::FixedSizes { sizes } => sizes.block_size(block),
            _ => block,
        };
        if lists.iter().all(|(listed, _)| *listed != block) {
            lists.push((block, pool));
        }
    }
    lists
}

fn dedicated_context(lists: &[(usize, DedicatedPool)]) -> Value {
    let text = |of: fn(&DedicatedPool) -> String| -> Vec<String> {
        lists.iter().map(|(_, pool)| of(pool)).collect()
    };
    context! {
        blocks => lists.iter().map(|(block, _)| *block).collect::<Vec<_>>(),
        orders => text(|pool| format!("{:?}", pool.order)),
        links => text(|pool| format!("{:?}", pool.links)),
        limits => text(|pool| match pool.limit {
            Some(most) => most.to_string(),
            None => "u32::MAX".to_owned(),
        }),
    }
}
