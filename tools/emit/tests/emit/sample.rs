//! Descriptions and operation sequences drawn from a seed.
//!
//! Invariant: a seed determines what is drawn, on every machine.

use metes_heap::compact::Partition;
use metes_heap::description::{
    DedicatedPool, Description, General, IndexKind, LEVELS, ObjectPoolKind,
};
use metes_heap::{Fit, Limits, Links, Order, SizeTable};

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }

    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// What is done to a heap; `id` names a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Allocate {
        id: usize,
        size: usize,
        align: usize,
    },
    Free {
        id: usize,
    },
    Resize {
        id: usize,
        size: usize,
        align: usize,
    },
}

/// So many operations on at most a few hundred blocks; at most one block an id.
pub(crate) fn operations(seed: u64, count: usize) -> Vec<Operation> {
    let mut random = Random::new(seed);
    let favourites: Vec<usize> = (0..4).map(|_| 1 + random.below(700)).collect();
    let mut live: Vec<usize> = Vec::new();
    let mut operations = Vec::with_capacity(count);
    for id in 0..count {
        // The number of blocks swings, so that the heap fills and drains.
        let full = if id / 500 % 2 == 0 { 300 } else { 40 };
        let align = match random.below(20) {
            0 => 1 << random.below(14),
            1 => 64,
            _ => random.one_of(&[1, 8, 16]),
        };
        let size = size(&mut random, &favourites);
        if live.len() > full || (!live.is_empty() && random.below(5) < 2) {
            let id = live.swap_remove(random.below(live.len()));
            operations.push(Operation::Free { id });
        } else if !live.is_empty() && random.below(6) == 0 {
            let id = random.one_of(&live);
            operations.push(Operation::Resize { id, size, align });
        } else {
            live.push(id);
            operations.push(Operation::Allocate { id, size, align });
        }
    }
    operations
}

fn size(random: &mut Random, favourites: &[usize]) -> usize {
    match random.below(100) {
        0..40 => random.one_of(favourites),
        40..75 => random.below(300),
        75..94 => random.below(6_000),
        // Some leave more slack than a header can say.
        94..99 => random.below(200_000),
        // More than there is, and more than there can be.
        _ => random.one_of(&[0, 3 << 20, 1 << 40, usize::MAX / 2, usize::MAX]),
    }
}

/// One description of each kind of index, and of each way to join them.
pub(crate) fn named() -> Vec<(&'static str, Description)> {
    let list = |fit, order, depth_percent, max_fit_percent| IndexKind::List {
        fit,
        order,
        depth_percent,
        max_fit_percent,
        links: Links::Double,
    };
    let single = |fit, order| IndexKind::List {
        fit,
        order,
        depth_percent: 100,
        max_fit_percent: 0,
        links: Links::Single,
    };
    let mut linked = Description::of(single(Fit::Next, Order::Fifo));
    for (size, order, links, limit) in [
        (24, Order::Fifo, Links::Single, Some(2)),
        (100, Order::Address, Links::Double, None),
        (300, Order::Lifo, Links::Single, Some(1)),
        (500, Order::Fifo, Links::Double, None),
    ] {
        linked.dedicated.push(DedicatedPool {
            order,
            links,
            limit,
            ..DedicatedPool::new(size, 0)
        });
    }
    let mut all_single = Description::of(single(Fit::First, Order::Lifo));
    for (size, order) in [(24, Order::Lifo), (100, Order::Fifo)] {
        all_single.dedicated.push(DedicatedPool {
            order,
            links: Links::Single,
            ..DedicatedPool::new(size, 0)
        });
    }
    let mut dedicated = Description::of(IndexKind::tlsf(16));
    for size in [24, 100, 120] {
        dedicated.dedicated.push(DedicatedPool::new(size, 0));
    }
    let mut everything = Description::of(IndexKind::tlsf(32));
    everything.general = metes_heap::description::List::EMPTY;
    for (up_to, index) in [
        (256, IndexKind::Kingsley),
        (4096, list(Fit::Best, Order::Lifo, 100, 0)),
        (usize::MAX, IndexKind::tlsf(32)),
    ] {
        everything.general.push(General {
            up_to,
            ..General::of(index)
        });
    }
    for size in [200, 1000] {
        everything.dedicated.push(DedicatedPool::new(size, 0));
    }
    for size in [32, 48, 128] {
        everything.objects.push(ObjectPoolKind {
            size,
            slab: 4096,
            level: 0,
        });
    }
    let tree = |by_class| IndexKind::FirstFit {
        by_class,
        span: Some(1 << 20),
    };
    let mut trees = Description::of(tree(true));
    trees.general = metes_heap::description::List::EMPTY;
    for (up_to, index) in [(500, tree(false)), (usize::MAX, tree(true))] {
        trees.general.push(General {
            up_to,
            ..General::of(index)
        });
    }
    for size in [24, 1000] {
        trees.dedicated.push(DedicatedPool::new(size, 0));
    }
    let small_pages = partitioned(Partition {
        page: 4096,
        smallest: 16,
        largest: 1000,
        ..Partition::DEFAULT
    });
    let few_classes = partitioned(Partition {
        page: 2048,
        smallest: 48,
        largest: 2048,
        factor: 1600,
        ..Partition::DEFAULT
    });
    let large_pages = partitioned(Partition {
        // As many page-blocks as words of 32 bits can tell apart.
        page: 65536,
        smallest: 64,
        largest: 9000,
        ..Partition::DEFAULT
    });
    let probing = IndexKind::Classes {
        second_level: 1,
        probes: usize::MAX,
    };
    vec![
        ("tlsf", Description::of(IndexKind::tlsf(32))),
        ("half-fit", Description::of(IndexKind::tlsf(1))),
        ("segregated-fit", Description::of(probing)),
        (
            "next-fit",
            Description::of(list(Fit::Next, Order::Address, 50, 150)),
        ),
        ("lea", Description::of(IndexKind::Lea { keep_up_to: 128 })),
        (
            "ose",
            Description::of(IndexKind::FixedSizes {
                sizes: SizeTable::DEFAULT,
            }),
        ),
        ("tree", Description::of(tree(false))),
        ("tree-by-class", Description::of(tree(true))),
        ("trees", trees),
        ("buddy", Description::of(IndexKind::Buddy { lowest: false })),
        (
            "lowest-buddy",
            Description::of(IndexKind::Buddy { lowest: true }),
        ),
        (
            "single-best",
            Description::of(single(Fit::Best, Order::Address)),
        ),
        ("single-links", linked),
        ("all-single", all_single),
        ("dedicated", dedicated),
        ("small-pages", small_pages),
        ("few-classes", few_classes),
        ("large-pages", large_pages),
        ("everything", everything),
    ]
}

/// Those of the named descriptions, in their order.
pub(crate) fn some(names: &[&str]) -> Vec<(&'static str, Description)> {
    let mut chosen = named();
    chosen.retain(|(name, _)| names.contains(name));
    assert_eq!(chosen.len(), names.len(), "all of {names:?} exist");
    chosen
}

/// A description drawn from a seed, valid.
pub(crate) fn description(seed: u64) -> Description {
    let mut random = Random::new(seed);
    loop {
        let drawn = draw(&mut random);
        if drawn.validate(16, 8).is_ok() {
            return drawn;
        }
    }
}

fn draw(random: &mut Random) -> Description {
    let mut drawn = Description::of(IndexKind::Kingsley);
    drawn.general = metes_heap::description::List::EMPTY;
    let pools = 1 + random.below(3);
    let mut up_to = 0;
    for pool in 0..pools {
        up_to += 1 + random.below(2_000);
        let index = index(random);
        drawn.general.push(General {
            up_to: if pool + 1 == pools { usize::MAX } else { up_to },
            limits: Limits {
                coalesce_up_to: random.one_of(&[usize::MAX, usize::MAX, 0, 8_192]),
                split_down_to: random.one_of(&[0, 0, 100, usize::MAX]),
            },
            ..General::of(index)
        });
    }
    let mut size = 0;
    for _ in 0..random.below(4) {
        size += 1 + random.below(300);
        drawn.dedicated.push(DedicatedPool {
            order: random.one_of(&[Order::Lifo, Order::Fifo, Order::Address]),
            links: random.one_of(&[Links::Double, Links::Single]),
            limit: random.one_of(&[None, None, Some(1), Some(3)]),
            ..DedicatedPool::new(size, 0)
        });
    }
    let slab = random.one_of(&[2_048, 4_096, 16_384]);
    let mut size = 0;
    for _ in 0..random.below(4) {
        size += 16 * (1 + random.below(20));
        drawn.objects.push(ObjectPoolKind {
            size,
            slab,
            level: 0,
        });
    }
    if random.below(4) == 0 {
        drawn.objects = metes_heap::description::List::EMPTY;
        let smallest = 16 * (1 + random.below(6));
        drawn.partition = Some(Partition {
            page: random.one_of(&[2_048, 8_192, 32_768]),
            smallest,
            largest: smallest + random.below(1_500),
            factor: random.one_of(&[1_060, 1_125, 1_250, 1_500, 2_000]),
            ..Partition::DEFAULT
        });
    }
    drawn
}

/// Size classes in front of a general pool.
fn partitioned(partition: Partition) -> Description {
    Description {
        partition: Some(partition),
        ..Description::of(IndexKind::tlsf(32))
    }
}

/// A table of block sizes.
fn table(sizes: &[u32]) -> SizeTable {
    SizeTable::new(sizes).expect("rising multiples of 32")
}

fn index(random: &mut Random) -> IndexKind {
    match random.below(10) {
        0..4 => IndexKind::List {
            fit: random.one_of(&[Fit::First, Fit::Next, Fit::Best, Fit::Worst, Fit::Exact]),
            order: random.one_of(&[Order::Lifo, Order::Fifo, Order::Address]),
            depth_percent: random.one_of(&[100, 100, 1, 30]),
            max_fit_percent: random.one_of(&[0, 0, 100, 130]),
            links: random.one_of(&[Links::Double, Links::Single]),
        },
        4 | 5 => IndexKind::Classes {
            second_level: 1 << random.below(6),
            probes: random.one_of(&[0, 0, 3, usize::MAX]),
        },
        6 => IndexKind::Kingsley,
        8 => IndexKind::Lea {
            keep_up_to: random.one_of(&[0, 64, 128]),
        },
        7 => IndexKind::FixedSizes {
            sizes: random.one_of(&[SizeTable::DEFAULT, table(&[32, 96, 1536, 1568])]),
        },
        _ => IndexKind::Buddy {
            lowest: random.below(2) == 0,
        },
    }
}

/// A heap in memory levels: the sizes of the levels that have one, and what
/// memory comes in multiples of.
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) description: Description,
    pub(crate) sizes: [Option<usize>; LEVELS],
    pub(crate) increment: usize,
}

/// Each way to place pools in levels.
pub(crate) fn placed() -> Vec<Level> {
    let any = General::of;
    let near = |from, up_to, index| General {
        from,
        up_to,
        ..any(index)
    };
    let far = |index, level| General {
        level,
        ..any(index)
    };
    let exact = |from, up_to, order| General {
        limits: Limits {
            coalesce_up_to: 0,
            split_down_to: 0,
        },
        ..near(from, up_to, IndexKind::list(Fit::Exact, order))
    };
    let list = metes_heap::description::List::from_slice;
    let of = |name: &str, general: &[General], sizes, increment| Level {
        name: name.to_string(),
        description: Description {
            general: list(general),
            ..Description::of(IndexKind::Kingsley)
        },
        sizes,
        increment,
    };
    let best = IndexKind::list(Fit::Best, Order::Address);
    let mut kept = of(
        "kept in both levels",
        &[near(0, 700, IndexKind::tlsf(4)), far(best, 1)],
        [Some(16 << 10), None, None, None],
        256,
    );
    for size in [24, 500] {
        kept.description.dedicated.push(DedicatedPool::new(size, 0));
    }
    kept.description
        .dedicated
        .push(DedicatedPool::new(2_000, 1));
    let mut slabs = of(
        "slabs in the scratchpad",
        &[
            near(0, 300, IndexKind::Kingsley),
            far(IndexKind::tlsf(8), 1),
        ],
        [Some(20 << 10), None, None, None],
        64,
    );
    for size in [32, 128] {
        slabs.description.objects.push(ObjectPoolKind {
            size,
            slab: 2_048,
            level: 0,
        });
    }
    vec![
        of(
            "two sizes in a scratchpad",
            &[
                exact(73, 88, Order::Lifo),
                exact(185, 200, Order::Fifo),
                far(IndexKind::tlsf(16), 1),
            ],
            [Some(4 << 10), None, None, None],
            64,
        ),
        of(
            "three levels for everything",
            &[
                any(IndexKind::tlsf(2)),
                far(best, 1),
                far(IndexKind::Buddy { lowest: false }, 2),
            ],
            [Some(8 << 10), Some(64 << 10), None, None],
            64,
        ),
        of(
            "overlapping ranges",
            &[
                near(40, 100, best),
                near(0, 100, IndexKind::Kingsley),
                General {
                    level: 1,
                    ..near(60, 4_000, IndexKind::Buddy { lowest: true })
                },
                far(IndexKind::list(Fit::Next, Order::Lifo), 2),
            ],
            [Some(6_000), Some(20_000), None, None],
            16,
        ),
        kept,
        slabs,
    ]
}

/// A heap in levels drawn from a seed, valid.
pub(crate) fn level(seed: u64) -> Level {
    let mut random = Random::new(seed);
    loop {
        let mut drawn = draw(&mut random);
        // One more pool in front of them, in a scratchpad of its own.
        let from = random.one_of(&[0, 0, 33, 100]);
        let mut general = vec![General {
            from,
            up_to: from + 1 + random.below(600),
            ..General::of(index(&mut random))
        }];
        general.extend(
            drawn
                .general
                .iter()
                .map(|pool| General { level: 1, ..pool }),
        );
        general.sort_by_key(|pool| pool.up_to);
        drawn.general = metes_heap::description::List::from_slice(&general);
        let dedicated: Vec<DedicatedPool> = drawn.dedicated.iter().collect();
        drawn.dedicated = metes_heap::description::List::EMPTY;
        for pool in dedicated {
            let level = drawn.route(pool.size).map_or(1, |general| general.level);
            drawn.dedicated.push(DedicatedPool { level, ..pool });
        }
        let objects: Vec<ObjectPoolKind> = drawn.objects.iter().collect();
        let level = random.below(2) as u8;
        drawn.objects = metes_heap::description::List::EMPTY;
        for pool in objects {
            drawn.objects.push(ObjectPoolKind { level, ..pool });
        }
        // The size holds the first region of any index: lists of 32 classes a
        // power of two take a few KiB.
        let size = random.one_of(&[12 << 10, 20 << 10, 48 << 10]);
        let increment = random.one_of(&[16, 64, 256, 4_096]);
        if drawn.validate(16, 8).is_ok() {
            return Level {
                name: format!("{drawn:?}, {size} near, by {increment}"),
                description: drawn,
                sizes: [Some(size), None, None, None],
                increment,
            };
        }
    }
}
