//! Energy and time of a replay: from a trace with accesses to figures that can
//! be checked with a pencil.

use metes_trace::{Event, Op, Provenance, TraceBuilder};
use serde_json::Value;

use crate::support::{Place, recorded, refused, status, stderr, stdout};

/// Figures that are easy to multiply, at 100 MHz.
const LEVELS: &str = "[run]
clock_mhz = 100
[[level]]
name = \"near\"
size = \"64 KiB\"
read_nj = 1
write_nj = 2
latency_ns = 10
leakage_mw = 5
[[level]]
name = \"main\"
size = \"1 MiB..8 MiB\"
";

/// Requests up to 100 bytes near, all others in the main memory.
const HEAP: &str = "[[level]]
name = \"near\"
size = \"64 KiB\"
[[level]]
name = \"main\"
size = \"8 MiB\"
[[pool]]
kind = \"general\"
index = \"tlsf\"
up_to = 100
level = \"near\"
[[pool]]
kind = \"general\"
index = \"tlsf\"
level = \"main\"
";

/// A trace of two blocks, with accesses: 1000 and 500 of a small one, 7 and 9 of
/// a large one that is never freed.
fn with_accesses(place: &Place) {
    let mut builder = TraceBuilder::new();
    let mut plain = TraceBuilder::new();
    plain.alloc(0, 0, 64, 16).unwrap();
    let any = plain.finish(Provenance::default()).event(0).unwrap();
    let small = builder.alloc(0, 0, 64, 16).unwrap();
    let large = builder.alloc(0, 0, 4000, 16).unwrap();
    let mut push = |op, block, reads, writes| {
        let seq = builder.len() as u64;
        let event = Event {
            seq,
            op,
            block,
            reads,
            writes,
            ..any
        };
        builder.push(event).unwrap();
    };
    push(Op::Free, small, 1000, 500);
    push(Op::Access, large, 7, 9);
    let trace = builder.finish(Provenance {
        command: vec!["./program".to_owned(), "-x".to_owned()],
        access_word: 4,
        instructions: 997,
        ..Provenance::default()
    });
    metes_trace::write_parquet(&trace, &place.path("a.trace.parquet")).unwrap();
    place.write("levels.toml", LEVELS);
    place.write("heap.toml", HEAP);
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("a number, not {value}"))
}

#[test]
fn energy_is_counts_times_table() {
    let place = Place::new();
    with_accesses(&place);
    let arguments = [
        "replay",
        "a.trace.parquet",
        "--heap",
        "heap.toml",
        "--levels",
        "levels.toml",
    ];
    let (status_, document) = place.json(&arguments);
    assert_eq!(status_, 0, "{document}");
    let price = &document["price"];
    let [near, main] = price["levels"].as_array().unwrap().as_slice() else {
        panic!("two levels: {price}")
    };
    assert_eq!(near["application_reads"], 1000);
    assert_eq!(near["application_writes"], 500);
    assert_eq!(main["application_reads"], 7);
    assert_eq!(main["application_writes"], 9);
    // A record word takes two accesses of 32 bits.
    let reads = 1000.0 + 2.0 * number(&near["record_reads"]);
    let writes = 500.0 + 2.0 * number(&near["record_writes"]);
    assert_eq!(number(&near["reads"]), reads);
    assert!((number(&near["energy"]) - (reads + 2.0 * writes) * 1e-9).abs() < 1e-15);
    assert!((number(&near["time"]) - (reads + writes) * 1e-8).abs() < 1e-15);
    assert_eq!(main["size"], 8 << 20, "the heap asks for 8 MiB");
    assert!(
        main["source"]
            .as_str()
            .unwrap()
            .contains("sram_main 8 MiB (CACTI 6.5-P"),
        "{main}"
    );
    // Two allocations and a free of 20 cycles each, 997 instructions, at 10 ns.
    assert!((number(&price["compute_time"]) - 1057.0 * 1e-8).abs() < 1e-15);
    let sum = number(&near["energy"]) + number(&main["energy"]);
    assert!((number(&price["energy"]) - sum).abs() < 1e-18);
    let leaked = number(&near["leakage"]) / number(&price["time"]);
    assert!((leaked - 5e-3).abs() < 1e-6, "5 mW leak: {leaked}");

    let output = place.metes(&arguments);
    let text = stdout(&output);
    for wanted in [
        "near",
        "leakage",
        "over the run",
        "levels.toml:3",
        "at 100 MHz",
        "sram_main 8 MiB",
    ] {
        assert!(text.contains(wanted), "{wanted}:\n{text}");
    }
    let (_, records) = place.json(&[&arguments[..], &["--records-only"]].concat());
    assert_eq!(records["price"]["levels"][0]["application_reads"], 0);
    assert!(number(&records["price"]["energy"]) < number(&price["energy"]));
}

#[test]
fn energy_needs_accesses() {
    let place = recorded();
    let levels = ["--levels", "main=1MiB..8MiB"];
    let replay = |more: &[&str]| {
        let arguments = [&["replay", "t.trace.parquet", "--heap", "tlsf"], more].concat();
        place.metes(&arguments)
    };
    let wanted = [
        "t.trace.parquet",
        "metes record --accesses -- ",
        "--records-only",
    ];
    refused(&replay(&levels), &wanted);
    let output = replay(&[&levels[..], &["--records-only"]].concat());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("of the heap's records and copies alone"));
}

#[test]
fn levels_that_do_not_go_with_the_heap() {
    let place = Place::new();
    with_accesses(&place);
    let replay = |heap: &str, levels: &str| {
        place.metes(&[
            "replay",
            "a.trace.parquet",
            "--heap",
            heap,
            "--levels",
            levels,
        ])
    };
    refused(
        &replay("heap.toml", "main=1MiB"),
        &["near, main", "those of --levels main", "same order"],
    );
    refused(
        &replay("heap.toml", "near=4KiB,main=8MiB"),
        &["64 KiB in level `near`", "at most 4 KiB"],
    );
    refused(
        &replay("tlsf", "main=1MiB@nowhere"),
        &["no table `nowhere`", "sram, cache"],
    );
    refused(
        &replay("tlsf", "main=16MiB"),
        &["16 MiB is outside", "4 KiB to 8 MiB"],
    );
    place.write("bad.toml", &LEVELS.replace("write_nj = 2", "write_nj = -2"));
    refused(
        &replay("tlsf", "bad.toml"),
        &["bad.toml:7:12", "`write_nj` must be a number from 0"],
    );
    place.write("two.toml", &HEAP.replace("[[level]]\nname = \"near\"\nsize = \"64 KiB\"\n[[level]]\nname = \"main\"\nsize = \"8 MiB\"\n", "").replace("\"near\"", "0").replace("\"main\"", "1"));
    refused(
        &replay("two.toml", "main=8MiB"),
        &["pools in memory level 1", "only 1 (main)"],
    );
}

#[test]
fn a_level_too_small_says_by_how_much() {
    let place = Place::new();
    with_accesses(&place);
    let output = place.metes(&[
        "replay",
        "a.trace.parquet",
        "--heap",
        "tlsf",
        "--levels",
        "pad=4KiB",
    ]);
    assert_eq!(status(&output), 1);
    let text = stderr(&output);
    assert!(
        text.contains("level `pad` of 4 KiB is too small for its pools by 4096 bytes"),
        "{text}"
    );
    let (status, document) = place.json(&[
        "replay",
        "a.trace.parquet",
        "--heap",
        "tlsf",
        "--levels",
        "pad=4KiB",
    ]);
    assert_eq!(status, 1);
    assert_eq!(document["too_small"][0]["lacking"], 4096);
    assert_eq!(document["price"], Value::Null);
}

/// The heap with figures that are easy to multiply.
fn with_figures() -> String {
    let figures = "read_energy = 1e-9\nwrite_energy = 2e-9\nlatency = 10\n";
    HEAP.replace(
        "size = \"64 KiB\"\n",
        &format!("size = \"64 KiB\"\n{figures}"),
    )
    .replace(
        "size = \"8 MiB\"\n",
        &format!("size = \"8 MiB\"\n{figures}"),
    )
}

#[test]
fn levels_of_the_heap_itself_have_a_price() {
    let place = Place::new();
    with_accesses(&place);
    place.write("own.toml", &with_figures());
    let replay = ["replay", "a.trace.parquet", "--heap", "own.toml"];
    let (code, document) = place.json(&replay);
    assert_eq!(code, 0, "{document}");
    let price = &document["price"];
    let near = &price["levels"][0];
    let reads = 1000.0 + 2.0 * number(&near["record_reads"]);
    let writes = 500.0 + 2.0 * number(&near["record_writes"]);
    assert!((number(&near["energy"]) - (reads + 2.0 * writes) * 1e-9).abs() < 1e-15);
    assert!((number(&near["time"]) - (reads + writes) * 1e-8).abs() < 1e-15);
    assert_eq!(near["source"], "own.toml, level `near`");
    assert_eq!(number(&price["leakage"]), 0.0);

    // Those of the command line count before them, and that is said.
    let over = [&replay[..], &["--levels", "levels.toml"]].concat();
    let output = place.metes(&over);
    assert!(
        stderr(&output).contains("figures of --levels count"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).contains("levels.toml:3"));
    let (_, records) = place.json(&[&replay[..], &["--records-only"]].concat());
    assert_eq!(records["price"]["levels"][0]["application_reads"], 0);
    refused(
        &place.metes(&[
            "replay",
            "a.trace.parquet",
            "--heap",
            "tlsf",
            "--records-only",
        ]),
        &["add --levels", "`read_energy`"],
    );

    place.write(
        "half.toml",
        &with_figures().replacen("latency = 10\n", "", 1),
    );
    refused(
        &place.metes(&["replay", "a.trace.parquet", "--heap", "half.toml"]),
        &[
            "half.toml does not say `latency` of level `near`",
            "--levels",
        ],
    );
    place.write("unit.toml", &with_figures().replace("1e-9", "35"));
    refused(
        &place.metes(&["replay", "a.trace.parquet", "--heap", "unit.toml"]),
        &["`read_energy` of level `near`", "joules a word"],
    );
}

#[test]
fn a_heap_with_figures_needs_no_accesses_to_be_replayed() {
    let place = recorded();
    place.write("own.toml", &with_figures());
    let output = place.metes(&["replay", "t.trace.parquet", "--heap", "own.toml"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("metes record --accesses"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).contains("footprint"));
}

#[test]
fn spaces_and_levels_must_name_the_same_levels() {
    let place = Place::new();
    with_accesses(&place);
    let space = "[[level]]\nname = \"near\"\nsize = \"4 KiB\"\n[[level]]\nname = \"main\"\n";
    place.write("s.toml", space);
    let explore = |levels: &str| {
        place.metes(&[
            "explore",
            "a.trace.parquet",
            "--space",
            "s.toml",
            "--levels",
            levels,
        ])
    };
    refused(
        &explore("far=64KiB,main=8MiB"),
        &["near, main", "far, main", "same order"],
    );
    // A level without a size has that of --levels.
    let output = explore("near=4KiB,main=1MiB..8MiB");
    assert_eq!(status(&output), 0, "{}", stderr(&output));
}
