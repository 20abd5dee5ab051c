//! Whatever is written is read back; whatever is read never panics.

use metes_config::{Arena, Config, Level, Moving, Pages, StoreKind, named, parse, spec};
use metes_heap::compact::{Kappa, Partition};
use metes_heap::description::{DedicatedPool, Description, General, List, ObjectPoolKind};
use metes_heap::{Fit, IndexKind, Limits, Links, Order, SizeTable};
use proptest::prelude::*;

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        Just(0),
        Just(usize::MAX),
        0..10_000usize,
        (0..60u32).prop_map(|shift| 1 << shift),
        any::<usize>(),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Lifo), Just(Order::Fifo), Just(Order::Address)]
}

fn links() -> impl Strategy<Value = Links> {
    prop_oneof![Just(Links::Single), Just(Links::Double)]
}

fn index() -> impl Strategy<Value = IndexKind> {
    let fit = prop_oneof![
        Just(Fit::First),
        Just(Fit::Next),
        Just(Fit::Best),
        Just(Fit::Worst),
        Just(Fit::Exact)
    ];
    let max_fit = prop_oneof![Just(0), 100..=u32::MAX];
    prop_oneof![
        (fit, order(), 1..=100u32, max_fit, links()).prop_map(
            |(fit, order, depth_percent, max_fit_percent, links)| IndexKind::List {
                fit,
                order,
                depth_percent,
                max_fit_percent,
                links,
            }
        ),
        (0..=5u32, size()).prop_map(|(log2, probes)| IndexKind::Classes {
            second_level: 1 << log2,
            probes,
        }),
        Just(IndexKind::Kingsley),
        (0..=16u32).prop_map(|granules| IndexKind::Lea {
            keep_up_to: granules * 16
        }),
        prop::collection::btree_set(1..1u32 << 26, 1..=8).prop_map(|sizes| {
            let sizes: Vec<u32> = sizes.into_iter().map(|size| size * 32).collect();
            IndexKind::FixedSizes {
                sizes: SizeTable::new(&sizes).unwrap(),
            }
        }),
        any::<bool>().prop_map(|lowest| IndexKind::Buddy { lowest }),
        (any::<bool>(), prop::option::of(4096..=32usize << 30))
            .prop_map(|(by_class, span)| IndexKind::FirstFit { by_class, span }),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (size(), size()).prop_map(|(coalesce_up_to, split_down_to)| Limits {
        coalesce_up_to,
        split_down_to,
    })
}

fn description(levels: u8) -> impl Strategy<Value = Description> {
    let level = 0..levels;
    let range = prop_oneof![Just(None), (1..100_000usize).prop_map(Some)];
    let general = (1..100_000usize, range, index(), limits(), level.clone());
    let general = prop::collection::vec(general, 1..=4);
    // What a dedicated pool in another level stands for.
    let ranged = (2..4000usize, level.clone(), order(), links());
    let ranged = prop::collection::vec(ranged, 0..=2);
    let limit = prop::sample::select(vec![None, Some(1), Some(16), Some(u32::MAX - 1)]);
    let dedicated = prop::collection::btree_map(1..4000usize, (order(), links(), limit), 0..=16);
    let objects = prop::collection::btree_set(1..=16usize, 0..=8);
    let slab = 9..=12u32;
    let partition = prop::option::of(partition());
    (general, ranged, dedicated, objects, slab, level, partition).prop_map(
        |(mut general, ranged, dedicated, objects, slab, level, partition)| {
            general.sort_by_key(|pool| pool.0);
            general.dedup_by_key(|pool| pool.0);
            let last = general.len() - 1;
            let mut general: Vec<General> = general
                .into_iter()
                .enumerate()
                .map(|(number, (up_to, from, index, limits, level))| General {
                    from: from
                        .filter(|&from| number != last && from <= up_to)
                        .unwrap_or(0),
                    up_to: if number == last { usize::MAX } else { up_to },
                    index,
                    limits,
                    level,
                })
                .collect();
            for (blocks, level, order, links) in ranged {
                let up_to = blocks * 16 - 8;
                let taken = general.iter().any(|pool| pool.up_to == up_to);
                if general.len() < 4 && !taken {
                    general.push(General {
                        from: if blocks == 2 { 0 } else { up_to - 15 },
                        up_to,
                        limits: Limits {
                            coalesce_up_to: 0,
                            split_down_to: 0,
                        },
                        level,
                        ..General::of(IndexKind::List {
                            fit: Fit::Exact,
                            order,
                            depth_percent: 100,
                            max_fit_percent: 0,
                            links,
                        })
                    });
                }
            }
            general.sort_by_key(|pool| pool.up_to);
            let mut heap = Description {
                general: List::from_slice(&general),
                dedicated: List::EMPTY,
                objects: List::EMPTY,
                partition,
            };
            for (size, (order, links, limit)) in dedicated {
                let size = size * 16;
                let level = heap.route(size).unwrap().level;
                heap.dedicated.push(DedicatedPool {
                    size,
                    level,
                    order,
                    links,
                    limit,
                });
            }
            let objects = objects.into_iter().filter(|_| partition.is_none());
            for size in objects {
                heap.objects.push(ObjectPoolKind {
                    size: size * 16,
                    slab: 1 << slab,
                    level,
                });
            }
            heap
        },
    )
}

fn partition() -> impl Strategy<Value = Partition> {
    (8..=16u32, 1..=64usize, 0..=4000usize, 1001..=3000u32)
        .prop_map(|(log2, smallest, more, factor)| Partition {
            page: 1 << log2,
            smallest: smallest * 16,
            largest: smallest * 16 + more,
            factor,
            ..Partition::DEFAULT
        })
        .prop_filter("classes that fit", |partition| {
            partition.validate(8).is_ok()
        })
}

fn levels() -> impl Strategy<Value = Vec<Level>> {
    let quantity = || prop::option::of(0.0..1e3f64);
    let level = (
        "[a-z \"\\\\é]{0,6}",
        prop::option::of(1 << 22..=1_usize << 36),
        quantity(),
        quantity(),
        quantity(),
    );
    prop::collection::vec(level, 0..4).prop_map(|levels| {
        levels
            .into_iter()
            .enumerate()
            .map(
                |(number, (name, size, read_energy, write_energy, latency))| Level {
                    name: format!("l{number}{name}"),
                    size,
                    read_energy,
                    write_energy,
                    latency,
                },
            )
            .collect()
    })
}

fn config() -> impl Strategy<Value = Config> {
    let store = prop_oneof![
        Just(StoreKind::Tagged),
        Just(StoreKind::Hardened),
        Just(StoreKind::Ledger),
        Just(StoreKind::LedgerDirect),
        Just(StoreKind::LedgerHashed)
    ];
    let arena = (1..=16384usize, 20..=36u32).prop_map(|(granules, log2)| Arena {
        increment: granules * 16,
        reserve: 1 << log2,
        ..Arena::default()
    });
    let pages = prop::option::of(prop_oneof![
        Just(Pages::Retain),
        (1..=1usize << 20).prop_map(Pages::Bounded),
        Just(Pages::Bounded(metes_config::BOUNDED)),
        Just(Pages::Graveyard),
        Just(Pages::Immediate),
    ]);
    let mapped = prop::option::of((4096..=1usize << 30, pages));
    levels()
        .prop_flat_map(move |levels| {
            let count = levels.len().max(1) as u8;
            (
                description(count),
                store.clone(),
                arena.clone(),
                Just(levels),
                mapped.clone(),
            )
        })
        .prop_map(|(heap, store, arena, levels, mapped)| {
            let mut config = Config {
                heap,
                store,
                arena,
                levels,
            };
            if config.can_map().is_ok() {
                config.arena.mapped = mapped.map(|(from, _)| from);
                config.arena.pages = mapped.and_then(|(_, pages)| pages);
            }
            config
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_valid_configuration_survives(config in config()) {
        prop_assert_eq!(config.heap.validate(16, 8), Ok(()));
        let text = config.to_toml();
        let read = parse(&text, "heap.toml").map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(&read, &config.normal(), "{}", text);
        if let Some(spelt) = config.spec() {
            let read = spec(&spelt).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(read, config.normal(), "{}", spelt);
        }
    }

    #[test]
    fn a_name_is_read_as_the_heap_that_it_names(config in config()) {
        let name = config.name();
        let read = spec(&name).map_err(|e| TestCaseError::fail(format!("{e}\n{name}")))?;
        // A level that is alone and has no size need not be named.
        prop_assert_eq!(&spec(&read.name()).unwrap(), &read, "{}", name);
        if config.levels.is_empty() {
            // What a host takes at once is no part of a heap's name.
            let (arena, own) = (Arena::default(), config.arena);
            let said = Arena { mapped: own.mapped, pages: own.pages, ..arena };
            prop_assert_eq!(&read, &Config { arena: said, ..config }.normal());
        }
    }

    #[test]
    fn every_spec_of_one_pool_survives(index in index(), limits in limits()) {
        let mut heap = Description::of(index);
        let pool = heap.general.iter().next().unwrap();
        heap.general = List::from_slice(&[General { limits, ..pool }]);
        let config = Config::of(heap);
        let spelt = config.spec().expect("one plain pool has a spec");
        let read = spec(&spelt).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(read, config.normal(), "{}", spelt);
    }

    #[test]
    fn every_compact_fit_survives(
        partition in partition(),
        kappa in prop::option::of(1..9u32),
        increment in prop::option::of(1..=256usize),
        moves in any::<bool>(),
        index in prop::sample::select(named()),
    ) {
        let mut config = index.1;
        config.heap.partition = Some(partition);
        if moves {
            config = Config::of(Description {
                partition: Some(partition),
                ..Description::of(IndexKind::tlsf(32))
            });
            config.store = StoreKind::Moving(Moving {
                kappa: kappa.map_or(Kappa::Infinite, Kappa::Finite),
                increment,
            });
        }
        let spelt = config.spec().expect("compact-fit has a spec");
        prop_assert_eq!(&config.name(), &spelt);
        let read = spec(&spelt).map_err(|e| TestCaseError::fail(format!("{e} {spelt}")))?;
        prop_assert_eq!(&read, &config, "{}", spelt);
        let text = config.to_toml();
        let read = parse(&text, "heap.toml").map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(&read, &config, "{}", text);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        if let Err(error) = parse(&text, "heap.toml") {
            let _ = (error.to_string(), error.one_line());
        }
        if let Err(error) = spec(&text) {
            let _ = (error.to_string(), error.one_line());
        }
    }

    #[test]
    fn mutated_files_never_panic(
        config in config(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6),
    ) {
        let mut bytes = config.to_toml().into_bytes();
        for (place, byte, edit) in edits {
            if bytes.is_empty() {
                break;
            }
            let place = place.index(bytes.len());
            match edit {
                0 => bytes[place] = byte,
                1 => { bytes.remove(place); }
                _ => bytes.insert(place, byte & 0x7f),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match parse(&text, "heap.toml") {
            Ok(config) => prop_assert!(config.heap.validate(16, 8).is_ok()),
            Err(error) => {
                let _ = (error.to_string(), error.one_line());
            }
        }
    }

    #[test]
    fn mutated_specs_never_panic(text in "[a-z_-]{0,8}:?([a-z_]{0,14}=?[a-zA-Z0-9 %é]{0,9},?){0,4}") {
        match spec(&text) {
            Ok(config) => prop_assert_eq!(config.heap.validate(16, 8), Ok(())),
            Err(error) => {
                let _ = (error.to_string(), error.one_line());
            }
        }
    }
}

#[test]
fn compact_fit_reads_as_it_looks() {
    let still = spec("compact-fit:moving=no,smallest=32,factor=1.25,behind=best-fit").unwrap();
    let partition = still.heap.partition.unwrap();
    assert_eq!(
        (
            partition.page,
            partition.smallest,
            partition.largest,
            partition.factor
        ),
        (16384, 32, 2048, 1250)
    );
    assert_eq!(still.store, StoreKind::Tagged);
    let text = "[heap]\nname = \"best-fit\"\n[partition]\nsmallest = 32\nfactor = 1.25\n";
    assert_eq!(parse(text, "heap.toml").unwrap(), still);
    let text = "[heap]\nname = \"compact-fit\"\nmoving = \"no\"\nsmallest = 32\n\
                factor = \"1.25\"\nbehind = \"best-fit\"\n";
    assert_eq!(parse(text, "heap.toml").unwrap(), still);
    let moving = spec("compact-fit").unwrap();
    let kappa = Kappa::Finite(1);
    let increment = None;
    assert_eq!(moving.store, StoreKind::Moving(Moving { kappa, increment }));
    assert_eq!(moving.heap.partition, Some(Partition::DEFAULT));
    assert_eq!(moving.spec().as_deref(), Some("compact-fit"));
}

#[test]
fn every_named_heap_has_its_name() {
    let named = named();
    assert_eq!(named.len(), 12);
    for (name, config) in named {
        assert_eq!(config.spec().as_deref(), Some(name));
        assert_eq!(config.name(), name);
        assert_eq!(spec(name).unwrap(), config);
        assert_eq!(parse(&config.to_toml(), "heap.toml").unwrap(), config);
        assert_eq!(config.heap.validate(16, 8), Ok(()));
    }
}

#[test]
fn files_read_as_they_look() {
    let text = r#"
        [arena]
        increment = "64 KiB"
        reserve = "8 GiB"

        [[level]]
        name = "scratchpad"
        size = "64 KiB"
        read_energy = 1.2e-10
        latency = 1

        [[level]]
        name = "dram"
        size = "1 GiB"

        [[pool]]
        kind = "object"
        size = 32
        slab = "8 KiB"

        [[pool]]
        kind = "object"
        size = 64

        [[pool]]
        kind = "dedicated"
        size = 72

        [[pool]]
        kind = "general"
        up_to = 512
        fit = "best"
        order = "fifo"
        depth = "50 %"
        max_fit = 150
        coalesce_up_to = "never"

        [[pool]]
        kind = "general"
        index = "tlsf"
        second_level = 8
        split_down_to = 64
        level = "dram"
    "#;
    let config = parse(text, "heap.toml").unwrap();
    assert_eq!(
        config.arena,
        Arena {
            increment: 65536,
            reserve: 8 << 30,
            mapped: None,
            pages: None,
        }
    );
    assert_eq!(config.levels.len(), 2);
    assert_eq!(config.levels[0].read_energy, Some(1.2e-10));
    assert_eq!(config.levels[0].latency, Some(1.0));
    let general: Vec<General> = config.heap.general.iter().collect();
    assert_eq!(
        general[0],
        General {
            from: 0,
            up_to: 512,
            index: IndexKind::List {
                fit: Fit::Best,
                order: Order::Fifo,
                depth_percent: 50,
                max_fit_percent: 150,
                links: Links::Double,
            },
            limits: Limits {
                coalesce_up_to: 0,
                split_down_to: 0
            },
            level: 0,
        }
    );
    assert_eq!(general[1].index, IndexKind::tlsf(8));
    assert_eq!(general[1].limits.split_down_to, 64);
    assert_eq!(general[1].level, 1);
    assert_eq!(
        config.name(),
        "objects:slab=8KiB 32/64 in scratchpad of 64 KiB + dedicated 72 in scratchpad of 64 KiB + \
         best-fit:order=fifo,depth=50,max_fit=150,coalesce_up_to=never up to 512 in scratchpad of 64 KiB + \
         tlsf:second_level=8,split_down_to=64 in dram of 1 GiB"
    );
    assert_eq!(parse(&config.to_toml(), "heap.toml").unwrap(), config);
}

#[test]
fn specs_read_as_they_look() {
    let config = spec("best-fit:order=address,depth=50,max_fit=150").unwrap();
    assert_eq!(config.spec().unwrap(), "best-fit:depth=50,max_fit=150");
    let config = spec("tlsf:second_level=32,store=ledger").unwrap();
    assert_eq!(config.store, StoreKind::Ledger);
    assert_eq!(config.spec().unwrap(), "tlsf:store=ledger");
    let config = spec("first-fit:links=single,order=lifo").unwrap();
    assert_eq!(config.spec().unwrap(), "first-fit:order=lifo,links=single");
    let config = spec("first-fit:search=list").unwrap();
    assert_eq!(config.spec().unwrap(), "first-fit");
    let config = spec("first-fit:order=address,span=64MiB,summary=class,search=tree").unwrap();
    assert_eq!(
        config.spec().unwrap(),
        "first-fit:search=tree,summary=class,span=64MiB"
    );
    let toml = "[heap]\nname = \"first-fit\"\nsearch = \"tree\"\nsummary = \"exact\"\n";
    let config = parse(toml, "heap.toml").unwrap();
    assert_eq!(config.spec().unwrap(), "first-fit:search=tree");
    let config = spec("first-fit:links=double").unwrap();
    assert_eq!(config.spec().unwrap(), "first-fit");
    assert!(spec("tlsf:links=single").is_err());
    let config = spec("ose:sizes=64/1 KiB/65536").unwrap();
    assert_eq!(config.spec().unwrap(), "ose:sizes=64/1024/65536");
    for wrong in [
        "",
        "64/",
        "64/32",
        "16",
        "80",
        "32/64/96/128/160/192/224/256/288",
    ] {
        assert!(spec(&format!("ose:sizes={wrong}")).is_err(), "{wrong}");
    }
}

/// A scratchpad and main memory; the pool of one size in the scratchpad.
const HIERARCHY: &str = r#"
[arena]
increment = 64

[[level]]
name = "scratchpad"
size = "2 KiB"
read_energy = 0.1

[[level]]
name = "main"

[[pool]]
kind = "dedicated"
size = 74
order = "fifo"
level = "scratchpad"

[[pool]]
kind = "dedicated"
size = 200
level = "main"

[[pool]]
kind = "general"
index = "tlsf"
second_level = 4
level = "main"
"#;

#[test]
fn a_dedicated_pool_in_another_level_takes_a_range() {
    let config = parse(HIERARCHY, "heap.toml").unwrap();
    assert_eq!(config.level_sizes(), [Some(2048), None, None, None]);
    assert_eq!(config.arena.increment, 64);
    let general: Vec<General> = config.heap.general.iter().collect();
    let exact = General {
        // All that need the block of 74 bytes and its header: 96 bytes.
        from: 73,
        up_to: 88,
        limits: Limits {
            coalesce_up_to: 0,
            split_down_to: 0,
        },
        ..General::of(IndexKind::list(Fit::Exact, Order::Fifo))
    };
    let main = General {
        level: 1,
        ..General::of(IndexKind::tlsf(4))
    };
    assert_eq!(general, [exact, main]);
    // The pool in the level of the general one stays a list in front of it.
    let lists: Vec<DedicatedPool> = config.heap.dedicated.iter().collect();
    assert_eq!(lists, [DedicatedPool::new(200, 1)]);
    assert_eq!(
        config.name(),
        "dedicated 200 in main + dedicated:order=fifo 88 in scratchpad of 2 KiB + tlsf:second_level=4 in main"
    );
    let written = config.to_toml();
    assert!(
        written.contains("kind = \"dedicated\"\nsize = 88\norder = \"fifo\"\n"),
        "{written}"
    );
    assert_eq!(parse(&written, "heap.toml").unwrap(), config, "{written}");
}

#[test]
fn what_a_line_of_pools_gets_wrong_is_said() {
    for (text, said) in [
        ("objects", "`objects` needs sizes"),
        ("objects 16/x + tlsf", "x"),
        ("objects 16/32", "a heap needs a general pool"),
        ("objects 15 + tlsf", "multiples of 16"),
        ("objects 16 up to 4KiB + tlsf", "takes no range"),
        ("dedicated:order=left 40 + tlsf", "`order` cannot be `left`"),
        ("dedicated:limit=0 40 + tlsf", "a whole number from 1"),
        (
            "dedicated:limit=4294967295 40 + tlsf",
            "a whole number from 1",
        ),
        ("dedicated:limit=few 40 + tlsf", "a whole number from 1"),
        (
            "dedicated:limit=8 40 in near + tlsf in main",
            "leave out its `limit`",
        ),
        ("dedicated 40 + tslf", "there is no heap named `tslf`"),
        ("tlsf 16 + tlsf", "there is no heap named `tlsf 16`"),
        ("tlsf up to 4KiB", "must take every size"),
        ("tlsf up to four + tlsf", "four"),
        ("tlsf up to 4KiB + tlsf up to 4KiB + tlsf", "must rise"),
        ("tlsf + ", "there is no heap named ``"),
        ("compact-fit + tlsf", "blocks move has no pools"),
        (
            "compact-fit:moving=no,behind=tlsf + tlsf",
            "leave out `behind`",
        ),
        ("tlsf in level 4", "one of 4 memory levels"),
        ("dedicated 40 in near + tlsf in level 1", "not both"),
        (
            "tlsf in near of 4KiB + best-fit in near of 8KiB",
            "one size",
        ),
        ("tlsf:mapped=64KiB in near of 4MiB", "mapped"),
    ] {
        let error = spec(text).expect_err(text).to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}
