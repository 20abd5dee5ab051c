//! Large blocks as mappings of their own: predicted to the byte, and sound.

use crate::support::{Place, status, stderr, stdout};

/// Blocks that come, grow, shrink and go around thresholds; what is in them is verified.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;
static size_t draw(size_t most)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state >> 20) % most;
}
static size_t size_of_block(void)
{
    switch (draw(4)) {
    case 0: return 1 + draw(2000);
    case 1: return 1 + draw(40000);
    case 2: return 120000 + draw(24000);
    default: return 1 + draw(3000000);
    }
}
static unsigned char *blocks[48];
static size_t sizes[48];

/* The ends, and one byte of each page. */
static int holds(unsigned char *block, size_t from, size_t size, int set, unsigned char with)
{
    for (size_t at = from; at < size; at += 4096) {
        if (set) block[at] = with;
        if (block[at] != with) return 0;
    }
    if (size == 0) return 1;
    if (set) block[size - 1] = with;
    return block[size - 1] == with;
}

int main(void)
{
    for (int step = 0; step < 6000; step += 1) {
        const size_t at = draw(48);
        const unsigned char with = (unsigned char)(at + 1);
        if (blocks[at] != NULL && !holds(blocks[at], 0, sizes[at], 0, with)) return 3;
        const size_t size = size_of_block();
        if (blocks[at] == NULL) {
            if (draw(3) == 0) {
                blocks[at] = calloc(1, size);
                if (!holds(blocks[at], 0, size, 0, 0)) return 4;
            } else if (draw(8) == 0) {
                const size_t align = (size_t)16 << draw(12);
                blocks[at] = aligned_alloc(align, size);
                if ((uintptr_t)blocks[at] % align != 0) return 5;
            } else {
                blocks[at] = malloc(size);
            }
            if (blocks[at] == NULL) return 6;
            sizes[at] = size;
        } else if (draw(3) == 0) {
            free(blocks[at]);
            blocks[at] = NULL;
            continue;
        } else {
            /* By little steps as well as to any size. */
            const size_t new = draw(2) == 0 ? sizes[at] + draw(60000) : size;
            blocks[at] = realloc(blocks[at], new);
            if (blocks[at] == NULL) return 7;
            const size_t kept = new < sizes[at] ? new : sizes[at];
            if (kept < new && kept > 4096 && !holds(blocks[at], 0, kept / 4096 * 4096 - 4095, 0, with))
                return 8;
            sizes[at] = new;
        }
        holds(blocks[at], 0, sizes[at], 1, with);
    }
    puts("sound");
    return 0;
}
"#;

/// What is predicted and measured.
const FIGURES: [&str; 7] = [
    "requests",
    "placements",
    "footprint",
    "peak_live",
    "allocations",
    "frees",
    "resizes",
];

#[test]
fn what_mapped_blocks_take_is_predicted_to_the_byte() {
    let place = Place::new();
    place.compile("large", PROGRAM, &["-O1"]);
    let recorded = place.metes(&["record", "-o", "large.parquet", "--", "./large"]);
    assert_eq!(status(&recorded), 0, "{}", stderr(&recorded));
    for heap in [
        "tlsf:mapped=128KiB",
        "tlsf:mapped=4KiB",
        "best-fit:mapped=1MiB",
        "kingsley:mapped=64KiB",
        "tlsf:store=hardened,mapped=128KiB",
        "compact-fit:moving=no,mapped=32KiB",
        "tlsf:mapped=no",
        "tlsf:pages=retain,mapped=32KiB",
        "tlsf:pages=bounded(3)",
        "tlsf:store=hardened,pages=graveyard,mapped=32KiB",
        "best-fit:pages=immediate,mapped=4KiB",
    ] {
        let (code, predicted) = place.json(&["replay", "large.parquet", "--heap", heap]);
        assert_eq!(code, 0, "{heap}");
        let ran = place.metes(&["--json", "run", "--heap", heap, "--", "./large"]);
        let (code, measured) = crate::support::parsed(&ran);
        assert_eq!(code, 0, "{heap}: {}", stderr(&ran));
        let process = &measured["processes"][0];
        for figure in FIGURES {
            assert_eq!(process[figure], predicted[figure], "{figure} on {heap}");
        }
        let managed = heap.contains("pages=");
        assert_eq!(process["pages"].is_object(), managed, "{process}");
        // Verified records are not emitted as C; nor is a manager, which decides nothing.
        if managed || heap.contains("hardened") {
            continue;
        }
        let measured = emitted(&place, heap, "./large");
        for figure in FIGURES {
            assert_eq!(
                measured[figure], predicted[figure],
                "{figure} on {heap}, emitted"
            );
        }
    }
}

/// What the emitted library of a heap reports of a program.
fn emitted(place: &Place, heap: &str, program: &str) -> serde_json::Value {
    let made = place.metes(&["emit", "--heap", heap, "--build", "-o", "emitted"]);
    assert_eq!(status(&made), 0, "{}", stderr(&made));
    let _ = std::fs::remove_file(place.path("report.json"));
    let ran = std::process::Command::new(place.path(program))
        .env("LD_PRELOAD", place.path("emitted/c/libheap.so"))
        .env("METES_REPORT", place.path("report.json"))
        .output()
        .expect("the program runs");
    assert_eq!(
        (status(&ran), stdout(&ran)),
        (0, "sound\n".to_owned()),
        "{heap}"
    );
    serde_json::from_str(&place.read("report.json")).expect("a report")
}

#[test]
fn a_buffer_that_grows_takes_what_it_holds() {
    let place = Place::new();
    let source = include_str!("../../../../examples/programs/grow.c");
    place.compile("grow", source, &["-O1"]);
    // 16 MB live, which the pools alone grew to many times as much for.
    let words = ["./grow", "steps", "8000000", "4096", "4080"];
    let footprint = |heap: &str| {
        let (code, document) = place.json(&[&["run", "--heap", heap, "--"], &words[..]].concat());
        assert_eq!(code, 0);
        document["footprint"].as_u64().expect("a report")
    };
    let (default, without) = (footprint("tlsf"), footprint("tlsf:mapped=no"));
    assert!(default < 18_000_000, "{default}");
    assert!(default < without, "{default} {without}");
}

#[test]
fn heaps_that_cannot_map_say_why() {
    let place = Place::new();
    place.write(
        "levels.toml",
        "[heap]\nname = \"tlsf\"\n[arena]\nmapped = \"128KiB\"\n[[level]]\nname = \"near\"\n",
    );
    for (heap, words) in [
        ("levels.toml", "lie in no memory level"),
        (
            "tlsf:store=ledger,mapped=128KiB",
            "only heaps with boundary tags",
        ),
        ("tlsf:mapped=100", "from 4 KiB to 1 GiB"),
        ("tlsf:mapped=maybe", "is not a size"),
        ("tlsf:pages=graveyrad", "did you mean `graveyard`?"),
        ("tlsf:pages=bounded(0)", "a whole number of pages from 1"),
        ("tlsf:pages=bounded(x", "a whole number of pages from 1"),
        ("tlsf:pages=retain,mapped=no", "none is mapped"),
        (
            "tlsf:store=ledger,pages=graveyard",
            "only heaps with boundary tags",
        ),
    ] {
        let output = place.metes(&["run", "--heap", heap, "--", "true"]);
        crate::support::refused(&output, &[words]);
        assert_eq!(stdout(&output), "");
    }
}

/// What `tune` chooses for a program that grows maps its large blocks, and takes what the program
/// holds; `explore` compares heaps that do.
#[test]
fn tuned_programs_grow_by_pages() {
    let place = Place::new();
    let source = include_str!("../../../../examples/programs/grow.c");
    place.compile("grow", source, &["-O1"]);
    let words = ["./grow", "steps", "8000000", "4096", "4080"];
    let tune = |more: &[&str]| {
        let options = [&["tune", "--budget", "1", "-o", "out"], more, &["--"]].concat();
        let (code, document) = place.json(&[&options[..], &words].concat());
        assert_eq!(code, 0, "{document}");
        document
    };
    let document = tune(&[]);
    assert_eq!(document["mapped"], 128 << 10, "{document}");
    assert_eq!(document["equal"], true, "{document}");
    assert_eq!(document["placements_equal"], true, "{document}");
    assert_eq!(document["predicted"], document["measured"], "{document}");
    let [live, footprint] = ["peak_live", "footprint"].map(|key| {
        let value = document["measured"][key].as_f64();
        value.expect("a number")
    });
    assert!(footprint <= 1.1 * live, "{document}");
    // Who reads the heap sees it, and so does who replays it.
    assert!(place.read("out/heap.toml").contains("mapped = \"128 KiB\""));
    let report: serde_json::Value =
        serde_json::from_str(&place.read("out/report.json")).expect("JSON");
    let spec = report["chosen"]["spec"].as_str().expect("a heap");
    assert!(spec.contains("mapped=128KiB"), "{spec}");
    let said = |fragment: &str| report["assumptions"].to_string().contains(fragment);
    assert!(said("Blocks of 131072 bytes and more"), "{report}");
    let trace = "out/program.trace.parquet";
    let (code, replayed) = place.json(&["replay", trace, "--heap", "out/heap.toml"]);
    assert_eq!(code, 0);
    assert_eq!(replayed["footprint"], document["predicted"]["footprint"]);
    // Without.
    let without = tune(&["--mapped", "no"]);
    assert!(without["mapped"].is_null(), "{without}");
    assert!(!place.read("out/heap.toml").contains("mapped"));
    // The search alone does the same.
    let explore = |more: &[&str]| {
        let options = ["explore", trace, "--configurations", "20", "-o", "found"];
        let (code, document) = place.json(&[&options[..], more].concat());
        assert_eq!(code, 0, "{document}");
        document
    };
    let found = explore(&[]);
    assert_eq!(found["mapped"], 128 << 10);
    let best = &found["pareto"][0];
    let heap = best["heap"].as_str().expect("a heap");
    assert!(heap.contains("mapped=128KiB"), "{heap}");
    let toml = best["toml"].as_str().expect("a path");
    let (_, replayed) = place.json(&["replay", trace, "--heap", toml]);
    assert_eq!(replayed["footprint"], best["footprint"]);
    assert_eq!(explore(&["--mapped", "1MiB"])["mapped"], 1 << 20);
    assert!(explore(&["--mapped", "no"])["mapped"].is_null());
    for (options, words) in [
        (["--mapped", "1KiB"], "from 4 KiB to 1 GiB"),
        (["--space", "paper"], "described space map nothing"),
    ] {
        let all = ["explore", trace, "-o", "other", "--mapped", "1MiB"];
        let all = match options[0] {
            "--mapped" => [&all[..4], &options[..]].concat(),
            _ => [&all[..], &options[..]].concat(),
        };
        crate::support::refused(&place.metes(&all), &[words]);
    }
}

/// A bound counts what mapped blocks may take, and says what it is of.
#[test]
fn bounds_count_mapped_blocks() {
    let place = Place::new();
    let bound = |heap: &str, largest: &str| {
        let options = ["bounds", "--heap", heap, "--live", "10MiB", "--max-block"];
        place.json(&[&options[..], &[largest]].concat())
    };
    let bytes = |document: &serde_json::Value| document["heap_bytes"].as_u64().expect("a bound");
    let (_, plain) = bound("tlsf", "1MiB");
    let (code, with) = bound("tlsf:mapped=128KiB", "1MiB");
    assert_eq!(code, 0);
    assert!(plain["mapped"].is_null());
    assert_eq!(with["mapped"]["pools_bytes"], plain["heap_bytes"]);
    assert_eq!(with["mapped"]["from"], 128 << 10);
    // Pools and 10 MiB; 320 blocks with a page less a byte each, 1024 entries; 1/32 more.
    let needed = bytes(&plain) + (10 << 20) + 320 * 4095 + 1024 * 32;
    assert_eq!(bytes(&with), needed + needed / 32);
    // No request reaches the threshold.
    let (_, small) = bound("tlsf:mapped=128KiB", "64KiB");
    assert_eq!(bytes(&small), bytes(&bound("tlsf", "64KiB").1));
    let text = place.metes(&[
        "bounds",
        "--heap",
        "tlsf:mapped=128KiB",
        "--live",
        "10MiB",
        "--max-block",
        "1MiB",
    ]);
    assert!(
        stdout(&text).contains("blocks of 128 KiB and more"),
        "{}",
        stdout(&text)
    );
}

/// What `pages` says is in the heap that `tune` writes, and `run` follows it: decisions, and so the
/// footprint, are those of the heap without. What waits is told apart.
#[test]
fn pages_of_freed_blocks_go_back_as_the_heap_says() {
    let place = Place::new();
    let source = include_str!("../../../../examples/programs/grow.c");
    place.compile("grow", source, &["-O1"]);
    let words = ["./grow", "steps", "8000000", "4096", "4080"];
    let tuned = [
        &[
            "tune",
            "--budget",
            "1",
            "--pages",
            "graveyard",
            "-o",
            "out",
            "--",
        ],
        &words[..],
    ]
    .concat();
    let (code, document) = place.json(&tuned);
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["pages"], "graveyard");
    assert_eq!(document["predicted"], document["measured"], "{document}");
    assert!(
        place
            .read("out/heap.toml")
            .contains("pages = \"graveyard\"")
    );
    let (code, replayed) = place.json(&[
        "replay",
        "out/program.trace.parquet",
        "--heap",
        "out/heap.toml",
    ]);
    assert_eq!(code, 0, "{replayed}");
    let run = |heap: &str| {
        let (code, document) = place.json(&[&["run", "--heap", heap, "--"], &words[..]].concat());
        assert_eq!(code, 0, "{document}");
        document["processes"][0].clone()
    };
    let measured = run("out/heap.toml");
    assert_eq!(measured["footprint"], replayed["footprint"], "{measured}");
    assert_eq!(measured["pages"]["policy"], "graveyard", "{measured}");
    assert_eq!(measured["pages"]["at_once"], 0, "{measured}");
    let plain = run("tlsf");
    assert!(plain["pages"].is_null());
    for pages in ["retain", "bounded(10)", "graveyard", "immediate"] {
        let managed = run(&format!("tlsf:pages={pages}"));
        for figure in FIGURES {
            assert_eq!(managed[figure], plain[figure], "{figure} with {pages}");
        }
    }
    for (options, words) in [
        (
            ["--mapped", "no", "--pages", "retain"],
            "none is mapped: leave out one of them",
        ),
        (
            ["--mapped", "1MiB", "--pages", "never"],
            "it can be retain, bounded, graveyard, immediate",
        ),
    ] {
        let all = [&["tune", "-o", "other"], &options[..], &["--", "./grow"]].concat();
        crate::support::refused(&place.metes(&all), &[words]);
    }
}
