//! What the templates know of a description.
//!
//! Invariant: every number a template prints comes from here, computed from
//! the description; templates choose code, they do not calculate.

use metes_heap::compact::Partition;
use metes_heap::description::{DedicatedPool, General, IndexKind};
use metes_heap::index::list::{Fit, Order};
use metes_heap::objects::GRANULE;
use metes_heap::store::Geometry;
use metes_heap::{Description, Levels, Links, Slabs, mapped};
use minijinja::{Value, context};

use super::Options;

/// The values for all templates.
pub(super) fn context(description: &Description, options: &Options) -> Value {
    let placed = Levels::of(description, options.levels);
    let levels: Vec<Value> = options.levels[..placed.count()]
        .iter()
        .map(|size| context! { size => size.unwrap_or(0) })
        .collect();
    let limited = options.levels[..placed.count()].iter().any(Option::is_some);
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
            context! {
                size => size,
                level => slabs.level(),
                slots => slabs.bytes() / size,
                reciprocal => (1_u64 << 32).div_ceil(size as u64),
            }
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
    // Helpers of which a compiler would say that nobody calls them.
    let lowest_bit = classes || lea || !objects.is_empty();
    let mut lists = description.dedicated.iter();
    let double = lists.any(|pool| pool.links == Links::Double) || any(|index| !single_links(index));
    let needs = context! {
        lowest_bit => lowest_bit,
        lowest_alone => lowest_bit || buddy,
        highest_bit => lowest_bit || buddy || kingsley || fixed,
        head_number => classes || lea,
        double => double,
    };
    context! {
        summary => summary(description),
        pools => pools,
        objects => objects,
        slab => slabs.bytes(),
        slots => slabs.slots(),
        summarised => slabs.summarised(),
        partition => partition,
        by_size => by_size(&slabs),
        object_level => placed.of_objects(),
        levels => levels,
        limited => limited,
        increment => options.increment,
        hardened => options.hardened,
        mapped => options.mapped.map(mapped_context),
        largest_object => slabs.largest(),
        classes => classes,
        needs => needs,
        kinds => context! { list => list, single => single, kept => kept(description.dedicated.iter()), classes => classes, kingsley => kingsley, lea => lea, fixed => fixed, buddy => buddy },
        dedicated_sizes => description.dedicated.iter().map(|pool| pool.size).collect::<Vec<_>>(),
    }
}

/// The rule of mapped blocks, in numbers.
fn mapped_context(from: usize) -> Value {
    context! {
        from => from,
        transient => mapped::TRANSIENT,
        blocks => mapped::MOST_BLOCKS,
        spare_share => mapped::SPARE_SHARE,
        entry => mapped::ENTRY,
        fewest_entries => mapped::FEWEST_ENTRIES,
    }
}

/// The number of the pool that serves a request, by its size in granules: rows of text.
fn by_size(slabs: &Slabs) -> Vec<Vec<usize>> {
    let sizes: Vec<usize> = slabs.sizes().collect();
    let pools: Vec<usize> = (0..=slabs.largest().div_ceil(GRANULE))
        .map(|granules| sizes.partition_point(|&size| size < granules * GRANULE))
        .collect();
    pools.chunks(24).map(<[usize]>::to_vec).collect()
}

/// Whether an index is a list linked in one direction.
fn single_links(index: &IndexKind) -> bool {
    match index {
        IndexKind::List { links, .. } => *links == Links::Single,
        _ => false,
    }
}

/// The heap in words, a line a pool.
fn summary(description: &Description) -> Vec<String> {
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
        text
    }));
    lines.extend(description.general.iter().map(|pool| pool_summary(&pool)));
    lines
}

fn pool_summary(pool: &General) -> String {
    let reach = match (pool.from, pool.up_to) {
        (0, usize::MAX) => "everything else".to_string(),
        (0, bytes) => format!("requests up to {bytes} bytes"),
        (bytes, usize::MAX) => format!("requests from {bytes} bytes"),
        (least, most) => format!("requests from {least} to {most} bytes"),
    };
    format!("{reach}: {}", index_summary(&pool.index))
}

/// The condition in C under which a general pool takes requests of `size`; empty
/// if it takes all.
fn takes(pool: &General) -> String {
    let least = (pool.from > 0).then(|| format!("size >= {}U", pool.from));
    let most = (pool.up_to < usize::MAX).then(|| format!("size <= {}U", pool.up_to));
    let both: Vec<String> = least.into_iter().chain(most).collect();
    both.join(" && ")
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
    let suffix = if count == 1 {
        String::new()
    } else {
        number.to_string()
    };
    let halves = matches!(pool.index, IndexKind::Buddy { .. });
    // These never merge and always split, whatever the description's limits.
    let (coalesce, split) = match pool.index {
        IndexKind::Kingsley | IndexKind::FixedSizes { .. } => (0, 0),
        IndexKind::Lea { .. } => (usize::MAX, 0),
        _ => (pool.limits.coalesce_up_to, pool.limits.split_down_to),
    };
    let common = context! {
        prefix => format!("general{suffix}"),
        upper => format!("GENERAL{suffix}"),
        name => if count == 1 { "General pool".to_string() } else { format!("General pool {number}") },
        article => if count == 1 { "the general pool".to_string() } else { format!("general pool {number}") },
        summary => pool_summary(pool),
        number => number,
        takes => takes(pool),
        level => pool.level,
        level_size => options.levels[usize::from(pool.level)].unwrap_or(0),
        from => pool.from,
        up_to => pool.up_to,
        up_to_rust => if pool.up_to == usize::MAX { "usize::MAX".to_string() } else { pool.up_to.to_string() },
        halves => halves,
        wilderness => !halves && !matches!(pool.index, IndexKind::Classes { .. }),
        merges_all => !halves && coalesce == usize::MAX,
        coalesce => bytes(coalesce, "unlimited"),
        split => bytes(split, "never"),
        dedicated => description.dedicated_of(pool).next().is_some(),
        dedicated_64 => dedicated_blocks(description, pool, options.geometry(8)),
        dedicated_32 => dedicated_blocks(description, pool, options.geometry(4)),
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
            fit => fit_name(fit),
            order => order_name(order),
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
            let sizes: Vec<u32> = sizes.iter().collect();
            let largest = sizes.last().copied().unwrap_or(0);
            let first_power = (u64::from(largest) + 1).next_power_of_two();
            context! {
                kind => "fixed",
                sizes => sizes,
                first_power => first_power,
                first_power_log2 => first_power.ilog2(),
            }
        }
        IndexKind::Kingsley => context! { kind => "kingsley" },
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

/// What dedicated lists need beyond links in both directions and LIFO order.
fn kept(pools: impl Iterator<Item = DedicatedPool>) -> Value {
    let pools: Vec<DedicatedPool> = pools.collect();
    let any = |wanted: fn(&DedicatedPool) -> bool| pools.iter().any(wanted);
    let fifo = any(|pool| pool.order == Order::Fifo);
    let address = any(|pool| pool.order == Order::Address);
    let single = any(|pool| pool.links == Links::Single);
    let all_single = !any(|pool| pool.links == Links::Double);
    context! {
        any => fifo || address || single,
        fifo => fifo,
        address => address,
        single => single,
        all_single => all_single,
    }
}

/// The blocks that dedicated lists keep on a target with records of such sizes, each
/// once, and how each list is kept.
fn dedicated_blocks(description: &Description, general: &General, geometry: Geometry) -> Value {
    let mut blocks = Vec::new();
    let mut pools: Vec<DedicatedPool> = Vec::new();
    for pool in description.dedicated_of(general) {
        let Some(block) = geometry.block_for(pool.size) else {
            continue;
        };
        let block = match general.index {
            IndexKind::Kingsley | IndexKind::Buddy { .. } => block.next_power_of_two(),
            IndexKind::FixedSizes { sizes } => sizes.block_size(block),
            _ => block,
        };
        if !blocks.contains(&block) {
            blocks.push(block);
            pools.push(pool);
        }
    }
    let mask = |wanted: fn(&DedicatedPool) -> bool| {
        let lists = pools.iter().enumerate().filter(|(_, pool)| wanted(pool));
        lists.fold(0_u32, |mask, (list, _)| mask | 1 << list)
    };
    context! {
        blocks => blocks,
        fifo => mask(|pool| pool.order == Order::Fifo),
        address => mask(|pool| pool.order == Order::Address),
        single => mask(|pool| pool.links == Links::Single),
        orders => pools.iter().map(|pool| format!("{:?}", pool.order)).collect::<Vec<_>>(),
        links => pools.iter().map(|pool| format!("{:?}", pool.links)).collect::<Vec<_>>(),
    }
}
