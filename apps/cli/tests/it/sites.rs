//! `metes record --sites` and `metes sites`: what they print, write, and say of what is missing.

use crate::support::{Place, has_keys, status, stderr, stdout};

const PROGRAM: &str = r#"
#include <stdlib.h>
void *kept[8];
__attribute__((noinline)) void *ask(size_t size) {
    void *block = malloc(size);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}
__attribute__((noinline)) void leaks(void) {
    for (int i = 0; i < 5; i++) kept[i] = ask(2000);
    __asm__ volatile("" : : : "memory");
}
int main(void) {
    leaks();
    for (int i = 0; i < 9; i++) free(ask(30000));
    return 0;
}
"#;

fn recorded() -> Place {
    let place = Place::new();
    place.compile(
        "program",
        PROGRAM,
        &["-g", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls"],
    );
    let output = place.metes(&[
        "record",
        "--sites",
        "-o",
        "a.trace.parquet",
        "--",
        "./program",
    ]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    place
}

#[test]
fn who_allocates_is_told() {
    let place = recorded();
    let (code, found) = place.json(&["sites", "a.trace.parquet", "--by", "leaked", "--top", "1"]);
    assert_eq!(code, 0);
    has_keys(
        &found,
        &[
            "trace",
            "events",
            "by",
            "stacks",
            "allocations",
            "bytes",
            "peak_live",
            "leaked_bytes",
            "sites",
            "functions",
        ],
    );
    let site = &found["sites"][0];
    assert_eq!(site["figures"]["allocations"], 5);
    assert_eq!(site["figures"]["leaked_bytes"], 10_000);
    assert_eq!(site["calls"][0]["function"], "ask");
    assert_eq!(site["calls"][1]["function"], "leaks");
    assert_eq!(site["cut"], false);
    assert_eq!(found["sites"].as_array().map(Vec::len), Some(1));

    let output = place.metes(&["sites", "a.trace.parquet", "--by", "bytes"]);
    let text = stdout(&output);
    for part in [
        "live at the peak",
        "ask (program.c:",
        "9 allocations of 264 KiB",
        "Functions, most bytes",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // A program in C has no interpreter: its stacks stay as they are.
    let words = ["sites", "a.trace.parquet", "--by", "bytes", "--interpreted"];
    assert_eq!(stdout(&place.metes(&words)), text);
    // A profile of the same trace goes on as ever.
    assert_eq!(status(&place.metes(&["profile", "a.trace.parquet"])), 0);
}

#[test]
fn page_folded_stacks_and_profile_are_written() {
    let place = recorded();
    let words = [
        "sites",
        "a.trace.parquet",
        "-o",
        "a.html",
        "--folded",
        "a.folded",
        "--pprof",
        "a.pb.gz",
    ];
    let output = place.metes(&words);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(place.read("a.html").contains("\"leaks\""));
    let folded = place.read("a.folded");
    assert!(folded.contains(";main;leaks;ask 10000\n"), "{folded}");
    let profile = std::fs::read(place.path("a.pb.gz")).expect("a profile");
    assert!(profile.starts_with(&[0x1f, 0x8b]));
    // The same again is written again.
    assert_eq!(status(&place.metes(&words)), 0);
}

#[test]
fn a_trace_without_stacks_says_how_to_get_some() {
    let place = recorded();
    let output = place.metes(&["record", "-o", "b.trace.parquet", "--", "./program"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let output = place.metes(&["sites", "b.trace.parquet"]);
    assert_eq!(status(&output), 2);
    let said = stderr(&output);
    assert!(
        said.contains("metes record --sites -o b.trace.parquet"),
        "{said}"
    );
}
