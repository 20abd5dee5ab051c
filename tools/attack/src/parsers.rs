//! The parsers.
//!
//! *Invariant:* a call returns whether bytes were accepted, and panics only where that is a fault.

mod meshes;
mod runs;

use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use metes_board::{About, Board, Writer, find};
use metes_bounds::{Contract, Tandem};
use metes_curve::script::{Found, Interpreter, Outcome, Script};
use metes_curve::{Algebra, Curve};
use metes_explore::engine::{
    Dialogue, Evaluator, Explorer, Folder, Form, Method, ObjectiveSet, Origin, Plan, Shard, Source,
    decode_rows, encode_rows, finish,
};
use metes_explore::{
    Events, EventsBuilder, Hierarchy, Operation, Options, Space, SpaceDescription,
};
use metes_leon3::{Configuration, Image, Machine, Model, Stop};
use metes_paging::{operations, replay::replay};
use metes_target_recorder::{Recorder, Target};
use metes_trace::{
    TouchOperation, TouchProfile, TouchReader, export_csv, import_csv, import_pytorch, import_rmm,
    read_parquet, write_parquet,
};

/// Something that reads foreign bytes.
#[derive(Clone, Copy, Debug)]
pub struct Parser {
    /// What it reads.
    pub name: &'static str,
    /// Whether bytes are accepted.
    pub accepts: fn(&[u8]) -> bool,
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const PARSERS: [Parser; 28] = [
    Parser {
        name: "csv",
        accepts: csv,
        seeds: csv_seeds,
    },
    Parser {
        name: "rmm",
        accepts: rmm,
        seeds: rmm_seeds,
    },
    Parser {
        name: "target",
        accepts: target,
        seeds: target_seeds,
    },
    Parser {
        name: "pickle",
        accepts: pickle,
        seeds: pickle_seeds,
    },
    Parser {
        name: "touches",
        accepts: touches,
        seeds: touch_seeds,
    },
    Parser {
        name: "page_operations",
        accepts: page_operations,
        seeds: page_operation_seeds,
    },
    Parser {
        name: "network",
        accepts: meshes::network,
        seeds: meshes::network_seeds,
    },
    Parser {
        name: "mesh_trace",
        accepts: meshes::mesh_trace,
        seeds: meshes::mesh_trace_seeds,
    },
    Parser {
        name: "platform",
        accepts: meshes::platform,
        seeds: meshes::platform_seeds,
    },
    Parser {
        name: "leon3",
        accepts: leon3,
        seeds: leon3_seeds,
    },
    Parser {
        name: "parquet",
        accepts: parquet,
        seeds: parquet_seeds,
    },
    Parser {
        name: "call_stacks",
        accepts: call_stacks,
        seeds: call_stack_seeds,
    },
    Parser {
        name: "heap_toml",
        accepts: heap_toml,
        seeds: heap_seeds,
    },
    Parser {
        name: "heap_spec",
        accepts: heap_spec,
        seeds: spec_seeds,
    },
    Parser {
        name: "script",
        accepts: script,
        seeds: script_seeds,
    },
    Parser {
        name: "curve_json",
        accepts: curve_json,
        seeds: curve_seeds,
    },
    Parser {
        name: "cases",
        accepts: cases,
        seeds: case_seeds,
    },
    Parser {
        name: "contract",
        accepts: contract,
        seeds: contract_seeds,
    },
    Parser {
        name: "tandem",
        accepts: tandem,
        seeds: tandem_seeds,
    },
    Parser {
        name: "levels",
        accepts: levels,
        seeds: level_seeds,
    },
    Parser {
        name: "space",
        accepts: space,
        seeds: space_seeds,
    },
    Parser {
        name: "folder",
        accepts: folder,
        seeds: folder_seeds,
    },
    Parser {
        name: "questions",
        accepts: questions,
        seeds: question_seeds,
    },
    Parser {
        name: "report",
        accepts: report,
        seeds: report_seeds,
    },
    Parser {
        name: "commands",
        accepts: runs::commands,
        seeds: runs::command_seeds,
    },
    Parser {
        name: "compared",
        accepts: runs::compared,
        seeds: runs::compared_seeds,
    },
    Parser {
        name: "results",
        accepts: results,
        seeds: result_seeds,
    },
    Parser {
        name: "board",
        accepts: board,
        seeds: board_seeds,
    },
];

/// The one of a name.
#[must_use]
pub fn parser(name: &str) -> Option<Parser> {
    PARSERS.into_iter().find(|parser| parser.name == name)
}

/// Pieces that a curve of an input may take: what little inputs may ask for is to be looked through
/// by the hundred thousand.
const LIMIT: u64 = 2_000;

fn algebra() -> Algebra {
    Algebra {
        limit: LIMIT,
        ..Algebra::default()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn csv(bytes: &[u8]) -> bool {
    let name = Path::new("x.csv");
    let Ok(trace) = import_csv(bytes, name) else {
        return false;
    };
    let mut text = Vec::new();
    export_csv(&trace, &mut text).expect("memory takes every byte");
    let again = import_csv(text.as_slice(), name).expect("what is exported is imported");
    assert_eq!((trace.ops(), trace.sizes()), (again.ops(), again.sizes()));
    let profile = metes_trace::profile(&trace);
    assert!(!profile.to_string().is_empty());
    true
}

fn csv_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "op,block,size,align,thread\na,0x10,64,16,0\nr,0x10,128\nx,0x10,0,16,0,3,4\nf,0x10\n",
        "a,1,64\na,2,9223372036854775807\nf,1\nf,2\n",
        "op,block,size,align,thread,reads8,writes8,read_bytes,write_bytes\na,1,8,16,1,2,3,4,5\n",
    ])
}

fn rmm(bytes: &[u8]) -> bool {
    import_rmm(bytes, Path::new("x.log")).is_ok()
}

fn rmm_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "Thread,Time,Action,Pointer,Size,Stream\n1,14:21:19:998533,allocate,0x7f,256,0\n\
             1,14:21:20.5,allocate failure,0,1024,0\n2,3.25,free,0x7f,256,0x1\n",
    ])
}

fn target(bytes: &[u8]) -> bool {
    metes_trace::target::import(bytes, Path::new("line")).is_ok()
}

/// What it takes of a target to have one: it is one thread.
struct Alone;

// SAFETY: each recorder here is of one thread.
unsafe impl Target for Alone {
    const FREQUENCY: u32 = 1000;

    fn now() -> u32 {
        u32::MAX - 1
    }

    fn exclusively<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
}

/// Two batches and a ring.
fn target_seeds() -> Vec<Vec<u8>> {
    let recorder: Recorder<Alone, 4> = Recorder::new();
    let mut line = Vec::new();
    for block in 1..3 {
        recorder.allocated(16 * block, 5, 8);
        recorder.resizing(16 * block, 9, 8);
        recorder.resized(16 * block, 128 * block);
        recorder.send(|part| line.extend_from_slice(part));
    }
    recorder.freed(128);
    let (ring, length) = recorder.dump();
    // SAFETY: so many bytes of a recorder that nobody writes to now.
    let ring = unsafe { std::slice::from_raw_parts(ring, length) };
    vec![ring.to_vec(), [&line, ring].concat(), line]
}

fn pickle(bytes: &[u8]) -> bool {
    import_pytorch(bytes, Path::new("x.pickle"), None).is_ok()
}

fn pickle_seeds() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../../examples/traces/snapshot.pickle").to_vec(),
        b"\x80\x04}(X\x0d\0\0\0device_traces](](}(X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0addr\
          K\x07X\x04\0\0\0sizeK\x40ueeu."
            .to_vec(),
    ]
}

fn touches(bytes: &[u8]) -> bool {
    let read = |bytes: &[u8]| -> Result<Vec<TouchOperation>, _> {
        TouchReader::new(bytes, Path::new("x.touches")).collect()
    };
    let Ok(operations) = read(bytes) else {
        return false;
    };
    let mut text = String::new();
    let mut profile = TouchProfile::default();
    for operation in &operations {
        text += &format!("{operation}\n");
        profile.take(operation);
    }
    let again = read(text.as_bytes()).expect("what is written is read");
    assert_eq!(operations, again);
    assert!(profile.peak_touched_slices <= profile.peak_slices);
    assert_eq!(profile.operations, operations.len() as u64);
    true
}

fn touch_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "# Touches\na,0,9000\nw,0,0\nr,0,4096\na,1,64,4096\nf,0\nw,1,63\nf,1\n",
        "a,0,9223372036854775807\nr,0,9223372036854775806\na,1,1\n\na,2,0 # empty\nf,2\nw,1,0\n",
    ])
}

thread_local! {
    /// In memory: a million files are written and read.
    static FILE: tempfile::NamedTempFile =
        tempfile::NamedTempFile::new_in("/dev/shm").expect("room for a small file");
    static FOLDER: tempfile::TempDir =
        tempfile::TempDir::new_in("/dev/shm").expect("room for a small folder");
}

/// Runs on a file of these bytes.
fn in_file<T>(bytes: &[u8], run: impl FnOnce(&Path) -> T) -> T {
    FILE.with(|file| {
        let mut own = file.as_file();
        own.set_len(0).expect("it is ours");
        std::io::Seek::rewind(&mut own).expect("it is ours");
        own.write_all(bytes).expect("room for a small file");
        run(file.path())
    })
}

fn page_operations(bytes: &[u8]) -> bool {
    let Ok(read) = operations::read(bytes) else {
        return false;
    };
    let lines: Vec<String> = read.iter().map(ToString::to_string).collect();
    let again = operations::read(lines.join("\n").as_bytes());
    assert_eq!(
        again.ok().as_ref(),
        Some(&read),
        "what is shown reads the same"
    );
    let replayed = replay(&read, 1 << 8, 1 << 4).expect("there are pages and frames");
    assert_eq!(replayed.results.len(), read.len());
    true
}

fn page_operation_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "# a region\nm,2,4,rw\nw,3,7\nr,3\n\nm,5,1,r # not free\nu,2\nr,3\n",
        "m,0,4294967295,r\nm,4294967295,1,rw\nu,0\nw,255,18446744073709551615\n",
    ])
}

/// An image, and what it does at first.
fn leon3(bytes: &[u8]) -> bool {
    let Ok(image) = Image::read(bytes) else {
        return false;
    };
    let configuration = Configuration {
        cores: 2,
        memory: 1 << 20,
        model: Model::Caches,
        ..Configuration::default()
    };
    let Ok(mut machine) = Machine::with_image(&configuration, &image) else {
        return false;
    };
    let stop = machine.run(10_000, &mut ());
    assert!(stop != Stop::Limit || machine.instructions() == 10_000);
    let _ = image.symbol_at(machine.cores()[0].pc);
    true
}

fn leon3_seeds() -> Vec<Vec<u8>> {
    // A loop with a call, loads, stores, windows and a device; a trap while traps are off; what halts.
    let program = [
        0x0310_0000,
        0x8210_6100,
        0x9410_2008,
        0x7fff_fffd,
        0x0100_0000,
        0xd420_4000,
        0xd600_4000,
        0x9de3_bfa0,
        0x81e8_0000,
        0x9482_bfff,
        0x12bf_fffb,
        0xd83a_4000,
        0x1720_0000,
        0xd622_e100,
        0x9a1a_8001,
        0x91d0_2000,
    ];
    [&program[..], &[0x8000_0000], &[0x91d0_2000]]
        .map(|words| metes_leon3::image::elf(0x4000_0000, words))
        .to_vec()
}

fn parquet(bytes: &[u8]) -> bool {
    in_file(bytes, |path| read_parquet(path).is_ok())
}

fn parquet_seeds() -> Vec<Vec<u8>> {
    let trace = import_csv(&csv_seeds()[0][..], Path::new("x.csv")).expect("a trace");
    let folder = tempfile::tempdir().expect("room for a small folder");
    let path = folder.path().join("x.parquet");
    [trace, sited()]
        .map(|trace| {
            write_parquet(&trace, &path).expect("room for a small file");
            std::fs::read(&path).expect("it is there")
        })
        .to_vec()
}

/// A trace with call stacks, some of their calls by names.
fn sited() -> metes_trace::Trace {
    let mut events = metes_trace::TraceBuilder::new();
    let block = events.alloc_at(1, 5, 0, 100, 16).expect("a block");
    events.resize_at(2, 6, 0, block, 300, 16).expect("a block");
    events.free(7, 0, block).expect("a block");
    let mut trace = events.finish(metes_trace::Provenance::default());
    let mut stacks = metes_trace::StacksBuilder::default();
    let module = stacks.module(metes_trace::stacks::Module {
        path: "/bin/program".to_owned(),
        build_id: vec![7; 20],
    });
    let calls = [
        (Some(module), 0x1234),
        (None, 0x7f00_0000),
        (Some(module), 0x1000),
    ];
    stacks.stack(&calls, metes_trace::stacks::Ending::Whole);
    stacks.stack(&calls[1..], metes_trace::stacks::Ending::Cut);
    trace.stacks = stacks.finish();
    trace.stacks.name(|_, place| match place.module {
        Some(_) => vec![
            ("inner".to_owned(), "a.c".to_owned(), 7),
            ("main".to_owned(), String::new(), 0),
        ],
        None => Vec::new(),
    });
    trace
}

/// Whether bytes are the text of call stacks in a trace: compressed here, as mutations of what is compressed are hardly
/// ever whole.
fn call_stacks(bytes: &[u8]) -> bool {
    let Some(stacks) = metes_trace::stacks::from_bytes(bytes) else {
        return false;
    };
    for site in 0..=stacks.len() as u64 + 1 {
        let calls = stacks.calls(site);
        assert!(calls.count() <= metes_trace::stacks::MOST_DEEP);
        for node in stacks.calls(site) {
            let place = stacks.nodes()[node as usize].place;
            assert!(!stacks.plain(place).is_empty());
            assert!(stacks.names(place).count() <= bytes.len());
        }
    }
    let again = metes_trace::stacks::to_bytes(&stacks);
    assert_eq!(metes_trace::stacks::from_bytes(&again), Some(stacks));
    true
}

fn call_stack_seeds() -> Vec<Vec<u8>> {
    vec![metes_trace::stacks::to_bytes(&sited().stacks)]
}

fn heap_toml(bytes: &[u8]) -> bool {
    let Ok(config) = metes_config::parse(&text(bytes), "heap.toml") else {
        return false;
    };
    let written = config.to_toml();
    let again = metes_config::parse(&written, "heap.toml").expect("what is written is read");
    assert_eq!(config.heap, again.heap, "{written}");
    true
}

fn heap_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "[heap]\nname = \"tlsf\"\n[arena]\nincrement = 65536\n",
        "[heap]\nname = \"compact-fit:moving=no,page=4096\"\n",
        "[heap]\nname = \"best-fit\"\n[[pool]]\nsize = 64\nslab = 4096\n",
    ])
}

fn heap_spec(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let handles = metes_config::handle_heap(&text).is_some_and(|heap| heap.is_ok());
    handles || metes_config::spec(&text).is_ok()
}

fn spec_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "tlsf:second_level=32",
        "compact-fit:moving=table,page=1024,largest=512,kappa=2",
        "segregated:probes=4,second_level=8",
        "buddy",
    ])
}

fn script(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let script = match Script::parse(&text) {
        Ok(script) => script,
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1, "{error}");
            return false;
        }
    };
    let mut interpreter = Interpreter::new(algebra());
    for statement in script.statements().iter().take(64) {
        match interpreter.run(statement) {
            Ok(
                Outcome::Assigned {
                    found: Found::Curve(curve),
                    ..
                }
                | Outcome::Value(Found::Curve(curve)),
            ) => assert_eq!(Curve::from_json(&curve.to_json()).ok(), Some(curve)),
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    true
}

fn script_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "arrival := stair(0, 4, 3)\nservice := ratency(2, 3) * ratency(3, 1)\nhDev(arrival, service)\n\
         output := arrival / service\nassert(service <= ratency(2, 3))\nprintExpression(output)\n",
        "f := upp([(0, 0)] ](0, 3) 0 (1, 3)[, period([(1, 3)] ](1, 6) 0 (5, 6)[), 3, 4)\n\
         star(f /\\ bucket(1, 9))\ninv(f) comp f\nhShift(f, -7/3)\nvShift(f, 22/7)\nfloor(f *^ zero)\n",
        "n := 3/7\nf := periodic(4, 6, 1, n)\nplot(f, main=\"title\", xlim=[0, 12])\nf(n+)\nf -> 1\n",
    ])
}

fn curve_json(bytes: &[u8]) -> bool {
    let Ok(curve) = Curve::from_json(&text(bytes)) else {
        return false;
    };
    assert_eq!(
        Curve::from_json(&curve.to_json()).ok().as_ref(),
        Some(&curve)
    );
    let service = Curve::rate_latency(&2.into(), &3.into()).expect("in range");
    let algebra = algebra();
    let _ = algebra.convolution(&curve, &service);
    let _ = algebra.deconvolution(&curve, &service);
    let _ = algebra.subadditive_closure(&curve);
    let _ = algebra.horizontal_deviation(&curve, &service);
    true
}

fn curve_seeds() -> Vec<Vec<u8>> {
    let curves = [
        "stair(0, 4, 3)",
        "bucket(1, 9) * ratency(2, 3)",
        "delay(5) /\\ stair(7, 3, 2)",
    ];
    let json = |text: &&str| match Interpreter::default().evaluate(text) {
        Ok(Found::Curve(curve)) => curve.to_json().into_bytes(),
        _ => Vec::new(),
    };
    curves.iter().map(json).collect()
}

fn cases(bytes: &[u8]) -> bool {
    metes_curve::conformance::check(&text(bytes), &algebra()).is_ok()
}

fn case_seeds() -> Vec<Vec<u8>> {
    let curve = text(&curve_seeds()[0]);
    let case = |op: &str, operands: &str| {
        format!(
            "{{\"cases\":[{{\"id\":\"a-1\",\"op\":\"{op}\",\"operands\":{operands},\"expected\":{curve}}}]}}"
        )
    };
    vec![
        case(
            "minplus_convolution",
            &format!("{{\"f\":{curve},\"g\":{curve}}}"),
        )
        .into_bytes(),
        case(
            "vertical_shift",
            &format!("{{\"f\":{curve},\"shift\":\"5/3\"}}"),
        )
        .into_bytes(),
        case("floor", &format!("{{\"f\":{curve}}}")).into_bytes(),
    ]
}

fn contract(bytes: &[u8]) -> bool {
    let Ok(contract) = Contract::parse(&text(bytes)) else {
        return false;
    };
    let again = Contract::parse(&contract.to_toml()).expect("what is written is read");
    assert_eq!(again.to_toml(), contract.to_toml());
    let _ = contract.bound();
    for class in contract.classes() {
        let _ = class.arrival();
    }
    true
}

fn contract_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "axis = \"events\"\n\n[[class]]\nlargest = 1024\nburst = 58000\nrate = 100\nlifetime = 1780\n\n\
             [[class]]\nlargest = 262144\nburst = 400000\nrate = \"7/3\"\nlifetime = 900\n",
    ])
}

fn tandem(bytes: &[u8]) -> bool {
    Tandem::parse(&text(bytes)).is_ok_and(|tandem| tandem.bounds(&algebra()).is_ok())
}

fn tandem_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "[[server]]\nname = \"one\"\nservice = \"ratency(4, 2)\"\nstrict = true\norder = \"any\"\n\
             [[server]]\nname = \"two\"\nservice = \"ratency(3, 3)\"\norder = \"fifo\"\n\
             [[flow]]\nname = \"f\"\narrival = \"bucket(1, 8)\"\npath = [\"one\", \"two\"]\n\
             [[flow]]\nname = \"g\"\narrival = \"stair(0, 8, 4)\"\npath = [\"two\"]\n",
    ])
}

fn levels(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let specified = Hierarchy::spec(&text).is_ok();
    specified || Hierarchy::parse(&text, "levels.toml", Path::new("/dev/null")).is_ok()
}

fn level_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "scratchpad=64KiB,main=1MiB..8MiB",
        "[run]\nclock_mhz = 100\n[[level]]\nname = \"near\"\nsize = \"64KiB\"\n",
    ])
}

fn space(bytes: &[u8]) -> bool {
    SpaceDescription::parse(&text(bytes), "space.toml").is_ok()
}

fn space_seeds() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../../python/tests/space.toml").to_vec(),
        include_bytes!("../../../python/tests/pools.toml").to_vec(),
    ]
}

fn folder(bytes: &[u8]) -> bool {
    for form in [Form::Measured, Form::Guaranteed] {
        if let Some(rows) = decode_rows(bytes, form) {
            let again = decode_rows(&encode_rows(&rows, form), form);
            assert_eq!(again.map(|rows| rows.len()), Some(rows.len()));
        }
    }
    FOLDER.with(|folder| {
        let units = folder.path().join("units");
        std::fs::create_dir_all(&units).expect("it is ours");
        for name in ["manifest.json", "origin.json", "seed", "000000"] {
            std::fs::write(units.join(name), bytes).expect("room for a small file");
        }
        let sound = |name: &str| {
            let from = small().folder.path().join("units").join(name);
            std::fs::copy(from, units.join(name)).expect("room for a small file");
            Folder::read(folder.path())
                .expect("its manifest is sound")
                .0
        };
        let manifest = Folder::read(folder.path()).is_ok_and(|(_, manifest)| {
            let _ = manifest.fingerprint();
            true
        });
        let folder = sound("manifest.json");
        let origin = folder.origin().is_ok();
        let units = [None, Some(0)].map(|unit| folder.rows(unit).is_some());
        manifest || origin || units.contains(&true)
    })
}

fn folder_seeds() -> Vec<Vec<u8>> {
    let small = small();
    let files = ["manifest.json", "origin.json", "seed", "000000"];
    let read = |name: &&str| std::fs::read(small.folder.path().join("units").join(name));
    files.iter().filter_map(|name| read(name).ok()).collect()
}

/// A small exploration, and the folder that it left.
struct Small {
    folder: tempfile::TempDir,
    evaluator: Evaluator<'static>,
}

const SMALL_SPACE: &str = "[general]\ncount = [1]\n[list]\nfit = [\"first\", \"best\"]\n\
                           order = [\"fifo\", \"address\"]\n[coalescing]\npools = [0, 1]\n";

fn small_events() -> Events {
    let mut builder = EventsBuilder::new();
    for block in 0..24 {
        let size = 16 + block * block * 37 % 900;
        builder
            .push(Operation::Allocate, block, size, 0)
            .expect("a new block");
        if block >= 6 {
            builder
                .push(Operation::Free, block - 6 + block % 2, 0, 0)
                .unwrap_or(());
        }
    }
    builder.finish()
}

/// The one small exploration of this thread, made when it is first asked for.
fn small() -> &'static Small {
    thread_local! {
        static SMALL: &'static Small = Box::leak(Box::new(explored()));
    }
    SMALL.with(|small| *small)
}

fn explored() -> Small {
    let description = SpaceDescription::parse(SMALL_SPACE, "small").expect("a space");
    let events: &'static Events = Box::leak(Box::new(small_events()));
    let space = Space::new(&description, events, SMALL_SPACE, "small").expect("a space");
    let space: &'static Space = Box::leak(Box::new(space));
    let explorer = Explorer::new(space, events, Plan::default(), 1);
    let folder = tempfile::TempDir::new_in("/dev/shm").expect("room for a small folder");
    let manifest = explorer.manifest(Method::Exhaustive, 0, 0);
    let units = Folder::open(folder.path(), &manifest, false).expect("it is ours");
    units
        .note_origin(&Origin {
            trace: "/x.parquet".into(),
            space_name: "small".to_owned(),
            space: SMALL_SPACE.to_owned(),
            levels: None,
            guarantee: None,
        })
        .expect("it is ours");
    let never = AtomicBool::new(false);
    explorer
        .run(&units, Shard::WHOLE, &never, &())
        .expect("room for a few units");
    let source = Source::Units(&units);
    finish(folder.path(), &manifest, explorer.evaluator(), source).expect("room for results");
    let evaluator = Evaluator::new(space, events, &Options::default(), ObjectiveSet::DEFAULT);
    Small { folder, evaluator }
}

/// Lines that ask for heaps, as `metes evaluate --lines` reads them.
fn questions(bytes: &[u8]) -> bool {
    thread_local! {
        static DIALOGUE: RefCell<Dialogue<'static>> =
            RefCell::new(Dialogue::new(small().evaluator.clone()));
    }
    DIALOGUE.with(|dialogue| {
        let mut dialogue = dialogue.borrow_mut();
        let mut answered = false;
        for line in text(bytes).lines().take(64) {
            match dialogue.answer(line) {
                Ok(answer) => {
                    serde_json::to_string(&answer).expect("an answer is a document");
                    answered = true;
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        answered
    })
}

fn question_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "17\n{\"number\": 3}\n0\n",
        "{\"values\": {\"list.fit\": \"best\", \"list.order\": \"address\"}}\n",
        "{\"values\": {\"coalescing.pools\": 1, \"general.count\": 1}}\n{\"values\": {}}\n",
    ])
}

/// The document of a report, to be rendered again.
fn report(bytes: &[u8]) -> bool {
    let Ok(page) = metes_explore::report::page_again(&text(bytes)) else {
        return false;
    };
    // Nothing in the document ends the element that it stands in.
    let (_, rest) = page.split_once(DATA).expect("the page has its data");
    let (data, _) = rest.split_once("</script>").expect("the element ends");
    serde_json::from_str::<serde_json::Value>(data).expect("the document is there whole");
    true
}

const DATA: &str = "<script id=\"data\" type=\"application/json\">";

fn report_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "{\"version\": 1, \"program\": \"</script><b>\", \"profile\": {\"sizes\": []}, \"heaps\": [1.5]}",
        "{\"version\":1}",
    ])
}

/// What an exploration left, each file in turn of these bytes and the others sound; the page and the tables
/// of what is accepted are made.
fn results(bytes: &[u8]) -> bool {
    const EXPLORED: [&str; 4] = [
        "results.parquet",
        "exploration.json",
        "profile.json",
        "report.json",
    ];
    thread_local! {
        static PLACE: tempfile::TempDir = sound(&EXPLORED);
    }
    PLACE.with(|place| {
        let mut accepted = 0;
        for name in EXPLORED {
            let path = place.path().join(name);
            let before = std::fs::read(&path).ok();
            std::fs::write(&path, bytes).expect("room for a small file");
            let read = metes_explorer::Folder::read(place.path());
            match before {
                Some(before) => std::fs::write(&path, before),
                None => std::fs::remove_file(&path),
            }
            .expect("it is ours");
            let Ok(folder) = read else { continue };
            accepted += 1;
            let table = metes_explorer::export::csv(&folder.columns);
            assert!(table.lines().count() > folder.columns.rows());
            for row in 0..folder.columns.rows() {
                let number = folder.columns.integer("number", row).unwrap_or(0);
                let _ = folder.heap(number);
            }
        }
        accepted > 0
    })
}

/// A folder of files, those that the small exploration left.
fn sound(names: &[&str]) -> tempfile::TempDir {
    let place = tempfile::TempDir::new_in("/dev/shm").expect("room for a small folder");
    for name in names {
        if let Ok(content) = std::fs::read(small().folder.path().join(name)) {
            std::fs::write(place.path().join(name), content).expect("room for a small file");
        }
    }
    place
}

fn result_seeds() -> Vec<Vec<u8>> {
    let explored = ["results.parquet", "exploration.json"];
    let read = |name| std::fs::read(small().folder.path().join(name)).expect("it was written");
    explored.map(read).to_vec()
}

fn board(bytes: &[u8]) -> bool {
    in_file(bytes, |path| match Board::open(path) {
        Ok(board) => board.read().is_ok(),
        Err(_) => false,
    })
}

fn board_seeds() -> Vec<Vec<u8>> {
    let about = About {
        serial: 7,
        start: 1 << 40,
        page: 4096,
        pages: 4,
        granule: 64,
        device: "a device",
    };
    let written = Writer::create(&about).expect("room for a small board");
    let own = std::process::id();
    let boards = find().into_iter().flatten();
    let mut boards = boards.filter(|board| board.header().process == own);
    let file = boards
        .next()
        .map(|board| std::fs::read(board.path()).expect("it is ours"));
    drop(written);
    vec![file.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mutator;

    /// Seeds are what they are meant to be, or mutations of them would test little.
    #[test]
    fn each_parser_accepts_a_seed() {
        for parser in PARSERS {
            let accepted = (parser.seeds)().iter().any(|seed| (parser.accepts)(seed));
            assert!(accepted, "{}", parser.name);
        }
    }

    #[test]
    fn mutations_are_accepted_or_refused() {
        for parser in PARSERS {
            let seeds = (parser.seeds)();
            for number in 0..300 {
                let _ = (parser.accepts)(&Mutator::new(number).input(&seeds));
            }
        }
    }
}
