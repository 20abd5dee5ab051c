//! Modules tuned from end to end: predicted = measured, byte for byte and block by block.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metes_edge_heap::outline::{Outline, Request, SpliceError};
use metes_edge_heap::run::{Input, RunError, run};
use metes_edge_heap::splice::{Change, splice};
use metes_edge_heap::tune::{Error, Found, MODULE, OnHeap, Tuned, Tuning, arena};
use metes_explore::{Observer, Options, Preference, Replayer, Target, catalogue};
use metes_heap::Description;
use metes_heap::compact::Partition;
use metes_heap::description::{DedicatedPool, General, IndexKind, List, ObjectPoolKind};
use metes_heap::index::links::Links;
use metes_heap::index::list::{Fit, Order};
use metes_tune::Watch;

use crate::programs_of_rust::rust_on_crate;
use crate::support::{compiled, rust};

struct Nobody;
impl Observer for Nobody {
    fn progress(&mut self, _: u64, _: usize) {}
}
impl Watch for Nobody {}

fn input(arguments: &[&str]) -> Input {
    Input {
        arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        stdin: include_bytes!("../c/contract.c").repeat(4),
        stop: None,
    }
}

fn tuning<'a>(wasm: &'a [u8], arguments: &[&str], configurations: u64) -> Tuning<'a> {
    Tuning {
        wasm,
        input: input(arguments),
        seconds: 60.0,
        configurations: Some(configurations),
        preference: Preference::Balanced,
        heap_limit: None,
        guarantee: metes_explore::Wanted::default(),
        stop: Arc::default(),
    }
}

fn go(tuning: &Tuning<'_>, directory: &Path) -> Result<Found, Error> {
    tuning.run(directory, directory, &mut Nobody, &mut |_| {})
}

fn as_predicted(heap: &str, run: &OnHeap) {
    let (predicted, measured) = (&run.predicted, &run.measured);
    assert!(measured.events > 1000, "{heap}: {measured:?}");
    assert_eq!(measured.requests, predicted.requests, "{heap}");
    assert_eq!(measured.peak_live, predicted.peak_live, "{heap}");
    assert_eq!(measured.footprint, predicted.footprint, "{heap}");
    assert_eq!(measured.placements, predicted.placements, "{heap}");
    assert!(run.output_unchanged, "{heap}");
    assert!(run.equal() && run.holds(), "{heap}");
    assert!(predicted.footprint >= predicted.peak_live, "{heap}");
}

/// Tuned, and found to be as predicted.
fn tuned(tuning: &Tuning<'_>, directory: &Path) -> Box<Tuned> {
    let Found::Heap(tuned) = go(tuning, directory).expect("a tuning") else {
        panic!("no heap");
    };
    as_predicted(&tuned.config.name(), &tuned.run);
    // What is handed back is a module by itself.
    let module = std::fs::read(directory.join(MODULE)).expect("a module");
    let ran = run(&module, &tuning.input).expect("it runs");
    assert_eq!(
        (ran.stdout, ran.status),
        (
            tuned.recorded.before.stdout.clone(),
            tuned.recorded.before.status
        )
    );
    assert_eq!(ran.pages, ran.first_pages);
    tuned
}

#[test]
fn a_rust_module_is_predicted_block_by_block() {
    let wasm = rust("words.rs", &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let tuned = tuned(&tuning(&wasm, &["words", "fail"], 12), directory.path());
    assert_eq!(tuned.recorded.before.status, 3);
    let said = String::from_utf8_lossy(&tuned.recorded.before.stdout);
    assert!(
        said.contains(" most often") && said.contains("true"),
        "{said}"
    );
    // The emitted crate is an allocator for the target, and the program says the same on it.
    let other = rust_on_crate("words.rs", &directory.path().join("rust"));
    let ran = run(&other, &input(&["words", "fail"])).expect("it runs");
    assert_eq!(
        (ran.stdout, ran.status),
        (tuned.recorded.before.stdout.clone(), 3)
    );
}

#[test]
fn a_c_module_is_predicted_block_by_block() {
    let wasm = compiled(&["words.c"], false, &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let tuned = tuned(&tuning(&wasm, &["words", "3"], 12), directory.path());
    assert!(
        tuned.recorded.before.pages > tuned.recorded.before.first_pages,
        "its own allocator grows"
    );
    // Linked into the program, the emitted C is its malloc.
    let c = directory.path().join("c");
    let (adapter, heap) = (c.join("wasi.c"), c.join("heap.c"));
    let sources = [adapter, heap].map(|path| path.display().to_string());
    let linked = compiled(&["words.c"], false, &sources.each_ref().map(String::as_str));
    let ran = run(&linked, &input(&["words", "3"])).expect("it runs");
    assert_eq!(ran.stdout, tuned.recorded.before.stdout);
}

#[test]
fn every_named_heap_decides_as_predicted() {
    let wasm = compiled(&["words.c"], false, &[]);
    let tuning = tuning(&wasm, &["words", "2"], 1);
    let directory = tempfile::tempdir().expect("a directory");
    let recorded = tuning
        .record(directory.path(), &mut |_| {})
        .expect("a recording");
    let arena = arena(recorded.events.peak_live());
    let options = Options {
        arena,
        ..Options::default()
    };
    let mut tried = 0;
    for named in catalogue() {
        let config = arena.config(named.description);
        let run = tuning.on(&recorded, &config, &options, directory.path(), &mut Nobody);
        as_predicted(named.name, &run.expect("it runs"));
        tried += 1;
    }
    assert!(tried >= 10, "{tried}");
}

/// Heaps of several pools, each of which has something to do.
fn composites() -> Vec<(&'static str, Description)> {
    let list = IndexKind::List {
        fit: Fit::Best,
        order: Order::Lifo,
        depth_percent: 100,
        max_fit_percent: 0,
        links: Links::Double,
    };
    let tlsf = IndexKind::tlsf(16);
    let upto = |up_to, index| General {
        up_to,
        ..General::of(index)
    };
    let mut dedicated = Description::of(list);
    let mut objects = Description::of(tlsf);
    for size in [16, 40] {
        dedicated.dedicated.push(DedicatedPool {
            order: Order::Fifo,
            links: Links::Single,
            ..DedicatedPool::new(size, 0)
        });
        objects.objects.push(ObjectPoolKind {
            size: size.next_multiple_of(16),
            slab: 1024,
            level: 0,
        });
    }
    let pools = |all: &[General]| Description {
        general: List::from_slice(all),
        ..Description::of(tlsf)
    };
    let kingsley = IndexKind::Kingsley;
    let several = pools(&[upto(96, kingsley), upto(512, list), General::of(tlsf)]);
    // A pool in the midst: what is smaller or larger goes to the last.
    let ranged = pools(&[
        General {
            from: 32,
            ..upto(96, list)
        },
        General::of(tlsf),
    ]);
    let everything = Description {
        general: several.general,
        dedicated: List::from_slice(&[DedicatedPool::new(200, 0), DedicatedPool::new(700, 0)]),
        ..objects
    };
    let partition = Description {
        partition: Some(Partition {
            page: 4096,
            smallest: 16,
            largest: 1000,
            ..Partition::DEFAULT
        }),
        ..Description::of(tlsf)
    };
    vec![
        ("dedicated", dedicated),
        ("objects", objects),
        ("several", several),
        ("ranged", ranged),
        ("everything", everything),
        ("partition", partition),
    ]
}

#[test]
fn composites_of_c_and_rust_decide_as_predicted() {
    let modules = [
        (compiled(&["words.c"], false, &[]), None),
        (rust("words.rs", &[]), Some("words.rs")),
    ];
    for (wasm, source) in modules {
        let tuning = tuning(&wasm, &["words", "2"], 1);
        let directory = tempfile::tempdir().expect("a directory");
        let recorded = tuning
            .record(directory.path(), &mut |_| {})
            .expect("a recording");
        let arena = arena(recorded.events.peak_live());
        let options = Options {
            arena,
            ..Options::default()
        };
        for (name, heap) in composites() {
            let config = arena.config(heap);
            let run = tuning.on(&recorded, &config, &options, directory.path(), &mut Nobody);
            let run = run.expect("it runs");
            as_predicted(name, &run);
            // Every part of it serves something.
            let detail = Replayer::new().inspect(&heap, &recorded.events, &options);
            let parts = heap.general.len() + usize::from(!heap.slabs().is_empty());
            assert_eq!(detail.parts.len(), parts, "{name}");
            for part in &detail.parts {
                assert!(part.allocate.writes > 0, "{name}: {}", part.name);
            }
        }
        // The crate of the last one, whose pools share its memory, is an allocator, too.
        if let Some(source) = source {
            let other = rust_on_crate(source, &directory.path().join("rust"));
            let ran = run(&other, &tuning.input).expect("it runs");
            assert_eq!(ran.stdout, recorded.before.stdout);
        }
    }
}

#[test]
fn slabs_of_more_slots_than_words_account_for_are_not_joined() {
    let page = |page| {
        let partition = Partition {
            page,
            smallest: 16,
            largest: 1000,
            ..Partition::DEFAULT
        };
        Description {
            partition: Some(partition),
            ..Description::of(IndexKind::tlsf(16))
        }
    };
    assert!(Target::Wasm32.summarises(&page(16 << 10).slabs()));
    assert!(!Target::Wasm32.summarises(&page(32 << 10).slabs()));
    assert!(Target::Host.summarises(&page(32 << 10).slabs()));
}

#[test]
fn an_allocator_behind_rust_alone_is_replaced() {
    let wasm = rust("own.rs", &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let tuned = tuned(&tuning(&wasm, &["own"], 8), directory.path());
    assert_eq!(tuned.recorded.before.stdout, b"1333 4963\n");
}

#[test]
fn a_limit_below_every_heap_finds_nothing() {
    let wasm = compiled(&["words.c"], false, &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let tuning = Tuning {
        heap_limit: Some(100),
        ..tuning(&wasm, &["words", "2"], 4)
    };
    let found = go(&tuning, directory.path()).expect("a search");
    assert!(matches!(found, Found::Nothing(ref lacking) if lacking.footprint > Some(100)));
}

#[test]
fn a_module_that_reports_says_the_same() {
    let wasm = rust("words.rs", &[]);
    let change = Change {
        report: true,
        ..Change::default()
    };
    let telling = splice(&wasm, &change).expect("a module");
    let plain = run(&wasm, &input(&["words"])).expect("it runs");
    let told = run(&telling, &input(&["words"])).expect("it runs");
    assert_eq!(plain.stdout, told.stdout);
    assert!(plain.told.is_empty() && told.told.len() > 1000);
    // A change of nothing changes nothing.
    let same = splice(&wasm, &Change::default()).expect("a module");
    let same = run(&same, &input(&["words"])).expect("it runs");
    assert_eq!(
        (same.stdout, same.operators),
        (plain.stdout, plain.operators)
    );
}

#[test]
fn allocators_are_found_by_name() {
    let outline = Outline::new(&rust("words.rs", &[])).expect("an outline");
    for request in [
        Request::Malloc,
        Request::Free,
        Request::RustAlloc,
        Request::RustDealloc,
    ] {
        assert!(outline.allocator.contains_key(&request), "{request:?}");
    }
    let stripped = rust("words.rs", &["-Cstrip=symbols"]);
    assert!(matches!(
        Outline::new(&stripped),
        Err(SpliceError::NoAllocator)
    ));
    // What exports it needs no names.
    let exports = ["-Wl,-s", "-Wl,--export=malloc", "-Wl,--export=free"];
    let exporting = compiled(&["words.c"], false, &exports);
    assert!(Outline::new(&exporting).is_ok());
}

#[test]
fn what_is_no_module_is_told() {
    let whole = compiled(&["words.c"], false, &["-Wl,-s"]);
    let mut broken = whole.clone();
    // Within the code, which is most of a module without names.
    let at = broken.len() / 4;
    broken[at..at + 64].fill(0xff);
    for bytes in [
        &b""[..],
        b"\0asm",
        b"\x7fELF",
        &whole[..whole.len() / 2],
        &broken,
    ] {
        assert!(matches!(
            Outline::new(bytes),
            Err(SpliceError::Unreadable(_))
        ));
    }
    let empty = b"\0asm\x01\0\0\0";
    assert!(matches!(Outline::new(empty), Err(SpliceError::Memory)));
}

#[test]
fn what_cannot_be_tuned_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let traps = compiled(&["traps.c"], false, &[]);
    let error = go(&tuning(&traps, &["traps"], 4), directory.path());
    let Err(Error::Run(RunError::Trapped { words, .. })) = error else {
        panic!("{error:?}");
    };
    assert_eq!(words, "now\n");
    let grows = compiled(&["grows.c"], false, &[]);
    let error = go(&tuning(&grows, &["grows"], 4), directory.path());
    assert!(matches!(error, Err(Error::Grows(1))), "{error:?}");
    let reactor = compiled(
        &["nothing.c"],
        false,
        &[
            "-mexec-model=reactor",
            "-Wl,--export=malloc",
            "-Wl,--export=free",
        ],
    );
    let error = go(&tuning(&reactor, &["nothing"], 4), directory.path());
    assert!(
        matches!(error, Err(Error::Run(RunError::Refused(_)))),
        "{error:?}"
    );
}

#[test]
fn a_module_that_does_not_end_can_be_ended() {
    let endless = compiled(&["endless.c"], false, &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let tuning = tuning(&endless, &["endless"], 4);
    let stop: Arc<AtomicBool> = Arc::clone(&tuning.stop);
    let ender = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
    });
    let error = go(&tuning, directory.path());
    ender.join().expect("it ends");
    assert!(
        matches!(error, Err(Error::Run(RunError::Stopped))),
        "{error:?}"
    );
}
