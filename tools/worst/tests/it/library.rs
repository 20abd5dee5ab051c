//! Heaps of handles, of several pools, and hardened ones: what is found of them is theirs.

use metes_config::{Config, HandleHeap};
use metes_explore::{BlockCount, Events, Replayer, moving, replay_block_table, replay_handles};
use metes_heap::compact::Options;
use metes_trace::read_parquet;
use metes_worst::{Heap, PerCall, Request, Worst, WorstError, options_of, worst};

/// What a spec names.
enum Named {
    Pointers(Box<Config>),
    Handles(HandleHeap),
}

impl Named {
    fn of(spec: &str) -> Self {
        match metes_config::handle_heap(spec) {
            Some(heap) => Named::Handles(heap.unwrap()),
            None => Named::Pointers(Box::new(metes_config::spec(spec).unwrap())),
        }
    }

    fn heap(&self) -> Heap<'_> {
        match self {
            Named::Pointers(config) => Heap::from(&**config),
            Named::Handles(heap) => heap.into(),
        }
    }
}

fn attack(spec: &str, request: &Request) -> Worst {
    worst(Named::of(spec).heap(), request, &mut |_, _| ()).unwrap()
}

const SMALL: Request = Request {
    live: 40_000,
    largest: 900,
    smallest: 24,
    operations: 300_000,
    counted: 4000,
    ..Request::ON_HOST
};

const HEAPS: [&str; 10] = [
    "compact-fit:kappa=1,page=4KiB,largest=2KiB",
    "compact-fit:kappa=3,page=4KiB,largest=2KiB",
    "compact-fit:kappa=1,page=4KiB,largest=2KiB,increment=64",
    "compact-fit:kappa=inf,page=4KiB,largest=2KiB",
    "compact-fit:moving=table,page=4KiB,largest=2KiB",
    "compact-fit:moving=table,kappa=inf,page=4KiB,largest=2KiB,granule=64",
    "compact-fit:moving=no",
    "compact-fit:moving=no,largest=512",
    "fragmented",
    "fragmented:block=64,shape=chain",
];

/// Footprint and peak as a replay of the saved trace has them.
fn replayed(named: &Named, events: &Events) -> (u64, u64) {
    let of = |replay: metes_explore::HandleReplay| {
        assert_eq!(replay.failed, 0);
        (replay.footprint, replay.peak_live)
    };
    match named {
        Named::Handles(HandleHeap::Fragmented(options)) => of(replay_handles(
            "",
            &mut BlockCount::new(*options, None),
            events,
        )),
        Named::Handles(HandleHeap::BlockTable(options)) => {
            of(replay_block_table("", options, events).unwrap())
        }
        Named::Pointers(config) => match config.store {
            metes_config::StoreKind::Moving(own) => {
                let options = Options {
                    partition: config.heap.partition.unwrap(),
                    kappa: own.kappa,
                    increment: None,
                };
                let found = moving::replay("", &options, events).unwrap();
                assert_eq!(found.failed, 0);
                (found.footprint, found.peak_live)
            }
            _ => {
                let options = options_of(config);
                let (found, _) = Replayer::new().replay("", &config.heap, events, &options);
                assert_eq!(found.failed, 0);
                (found.footprint, found.peak_live)
            }
        },
    }
}

#[test]
fn saved_traces_replay_to_what_was_found() {
    let directory = tempfile::tempdir().unwrap();
    for spec in HEAPS {
        let named = Named::of(spec);
        let found = attack(spec, &SMALL);
        assert!(found.holds, "{spec}: {found:?}");
        assert_eq!(found.refused_in_bound, 0, "{spec}");
        assert!(found.operations_in_bound > 50_000, "{spec}");
        let tightness = found.tightness.expect("a bound");
        assert!((0.05..=1.0).contains(&tightness), "{spec}: {tightness}");
        let names = found.save(directory.path()).unwrap();
        let read = |name| read_parquet(&directory.path().join(name)).unwrap();
        let events = Events::try_from(&read(names[0])).unwrap();
        let ending = (found.footprint, found.peak_live);
        assert_eq!(replayed(&named, &events), ending, "{spec}");
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        {
            assert_eq!(names.len(), 3);
            for (name, op) in [(names[1], "alloc"), (names[2], "free")] {
                assert_eq!(read(name).ops().last().unwrap().name(), op);
            }
        }
    }
}

#[test]
fn the_same_seed_finds_the_same() {
    for spec in HEAPS {
        let [first, second] = [(); 2].map(|()| attack(spec, &SMALL));
        assert_eq!(first.instructions, second.instructions, "{spec}");
        assert_eq!(first.program, second.program, "{spec}");
        for (one, other) in [
            (&first.traces.space, &second.traces.space),
            (&first.traces.allocate, &second.traces.allocate),
            (&first.traces.free, &second.traces.free),
        ] {
            assert_eq!(one, other, "{spec}");
        }
    }
}

/// A free that moves a block costs more than any that does not, and more the larger the block;
/// what takes blocks one by one costs more the larger the request.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn instructions_follow_the_declarations() {
    let of = |spec: &str, largest| {
        let request = Request {
            largest,
            operations: 1,
            counted: 30_000,
            ..SMALL
        };
        let found = attack(spec, &request).instructions;
        (found.allocate.unwrap(), found.free.unwrap())
    };
    let kappa = |kappa: &str| format!("compact-fit:kappa={kappa},page=4KiB,largest=4088");
    let (small, large) = (of(&kappa("1"), 200), of(&kappa("1"), 2000));
    let still = of(&kappa("inf"), 2000);
    assert!(
        large.1 > small.1 && large.1 > still.1,
        "{small:?} {large:?}"
    );
    // O(1): allocations, and frees of heaps that move nothing.
    assert!(large.0 < 2 * small.0, "{small:?} {large:?}");
    assert!(still.0 < 400 && still.1 < 400, "{still:?}");
    let no = of("compact-fit:moving=no", 2000);
    assert!(no.0 < 200 && no.1 < 200, "{no:?}");
    for spec in [
        "fragmented",
        "compact-fit:moving=table,page=4KiB,largest=4088",
    ] {
        let (small, large) = (of(spec, 100), of(spec, 1000));
        assert!(large.0 > 3 * small.0, "{spec}: {small:?} {large:?}");
        assert!(large.1 > small.1 + 400, "{spec}: {small:?} {large:?}");
    }
}

#[test]
fn what_one_call_does_is_bounded_by_the_demand() {
    let per_call = |spec: &str| {
        let request = Request {
            operations: 1,
            counted: 0,
            ..SMALL
        };
        attack(spec, &request).per_call
    };
    assert_eq!(
        per_call("compact-fit:kappa=2,page=4KiB,largest=2KiB"),
        Some(PerCall::Moves {
            kappa: Some(2),
            // 908 bytes with the record; four such page-blocks fit a page.
            page_block: 1024,
        })
    );
    assert_eq!(
        per_call("fragmented:block=64,shape=chain"),
        Some(PerCall::Pieces {
            blocks: 904_u64.div_ceil(60),
            block: 64,
        })
    );
    assert_eq!(per_call("tlsf"), None);
}

const COMPOSITE: &str = r#"
[[pool]]
kind = "object"
size = 64

[[pool]]
kind = "general"
index = "best-fit"
up_to = 500

[[pool]]
kind = "general"
index = "tlsf"
"#;

#[test]
fn several_pools_are_attacked_in_the_bytes_of_their_bounds() {
    let config = metes_config::parse(COMPOSITE, "heap.toml").unwrap();
    let found = worst(&config, &SMALL, &mut |_, _| ()).unwrap();
    assert!(found.holds, "{found:?}");
    assert_eq!(found.refused_in_bound, 0);
    assert!(found.operations_in_bound > 50_000);
    assert_eq!(found.code, "Composite");
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    assert!(found.instructions.allocate > Some(30) && found.instructions.free > Some(30));
}

#[test]
fn hardened_heaps_are_attacked_and_take_more_instructions() {
    let (plain, hardened) = (
        attack("tlsf", &SMALL),
        attack("tlsf:store=hardened", &SMALL),
    );
    assert!(hardened.holds);
    assert_eq!(hardened.footprint, plain.footprint);
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    assert!(hardened.instructions.free > plain.instructions.free);
}

#[test]
fn records_outside_are_refused_with_a_remedy() {
    for spec in ["tlsf:store=ledger", "buddy:store=ledger-hashed"] {
        let config = metes_config::spec(spec).unwrap();
        let error = worst(&config, &Request::ON_HOST, &mut |_, _| ()).unwrap_err();
        assert!(matches!(error, WorstError::Outside { .. }));
        let text = error.to_string();
        assert!(text.contains("leave out `store`") && text.contains("metes bounds"));
    }
}
