//! `metes record --target leon3`, from outside. Needs the compiler for the images (scripts/setup).

use std::process::Command;

use metes_leon3::image::elf;

use crate::support::{Place, refused, status, stderr, stdout};

/// A call of malloc, at word 4, with 24 bytes; then the word behind.
fn program(end: u32) -> Vec<u8> {
    // mov 24, %o0; call; nop; end; retl; sethi %hi(0x40001000), %o0
    let words = [
        0x9010_2018,
        0x4000_0003,
        0x0100_0000,
        end,
        0x81c3_e008,
        0x1110_0004,
    ];
    elf(0x4000_0000, &words)
}

#[test]
fn firmware_is_recorded_and_its_heap_found() {
    let place = Place::new();
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/leon3/images/build");
    let built = Command::new(build).arg(place.path("")).arg("heap").status();
    assert!(built.expect("a shell").success(), "scripts/setup");
    let words = ["record", "--target", "leon3", "-o", "t.parquet"];
    let output = place.metes(&[&words[..], &["--", "heap.elf"]].concat());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).starts_with("made "), "what it prints");
    let words = ["record", "--target", "leon3", "-o", "again.parquet"];
    let (ended, document) = place.json(&[&words[..], &["--", "heap.elf"]].concat());
    assert_eq!((ended, &document["calls"]), (0, &20_000.into()));
    let bytes = |name: &str| std::fs::read(place.path(name)).unwrap();
    assert_eq!(bytes("t.parquet"), bytes("again.parquet"));
    let words = [
        "explore",
        "t.parquet",
        "--configurations",
        "20",
        "-o",
        "out",
    ];
    let (ended, document) = place.json(&words);
    assert_eq!(ended, 0);
    assert!(!document["pareto"].as_array().unwrap().is_empty());
}

#[test]
fn firmware_that_fails_is_told_and_its_trace_kept() {
    let place = Place::new();
    // ta 0: the end; ta 1 with traps off: error mode; an endless loop.
    for (name, end) in [
        ("ends", 0x91d0_2000),
        ("fails", 0x91d0_2001),
        ("loops", 0x10bf_fffd),
    ] {
        std::fs::write(place.path(name), program(end)).unwrap();
    }
    let record = |name: &str, more: &[&str]| {
        let words = ["record", "--target", "leon3", "-o", "t.parquet"];
        place.metes(&[&words[..], more, &["--", name]].concat())
    };
    let malloc = ["--malloc", "0x40000010"];
    assert_eq!(status(&record("ends", &malloc)), 0);
    let kept = |output, wanted: &[&str]| {
        refused(&output, wanted);
        assert_eq!(status(&place.metes(&["profile", "t.parquet"])), 0);
        std::fs::remove_file(place.path("t.parquet")).unwrap();
    };
    kept(record("fails", &malloc), &["error mode", "t.parquet"]);
    let limited = [&malloc[..], &["--max-instructions", "1000"]].concat();
    kept(
        record("loops", &limited),
        &["1 000 instructions", "--max-instructions"],
    );
    // Nothing is asked of what is no heap, and nothing is written.
    let wrong = ["--malloc", "0x40000020"];
    refused(&record("ends", &wrong), &["no block", "--malloc NAME"]);
    refused(&record("ends", &[]), &["posix_memalign", "no symbols"]);
    assert!(!place.path("t.parquet").exists());
}

#[test]
fn firmware_is_tuned_and_its_blocks_lie_where_they_were_predicted() {
    let place = Place::new();
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/leon3/images/build");
    let built = Command::new(build).arg(place.path("")).arg("heap").status();
    assert!(built.expect("a shell").success(), "scripts/setup");
    let command = format!("{build} heap");
    let mut words = vec!["tune", "--target", "leon3", "--budget", "0.4", "-o", "out"];
    words.extend(["--build", &command, "--", "heap.elf"]);
    let (code, document) = place.json(&words);
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["predicted"], document["measured"], "{document}");
    for what in ["equal", "requests_equal", "placements_equal"] {
        assert_eq!(document[what], true, "{document}");
    }
    let calls = |when: &str, what: &str| document["instructions"][when][what]["calls"].as_u64();
    for what in ["allocate", "free", "resize"] {
        assert!(calls("before", what) > Some(100), "{document}");
        assert_eq!(calls("before", what), calls("after", what));
    }
    let plain = place.metes(&["leon3", "run", "out/tuned.elf"]);
    assert!(
        stdout(&plain).starts_with("made 11125 refused 0 wrong 0 "),
        "{}",
        stdout(&plain)
    );
    // What it printed until then is on stdout.
    let told = |words: &[&str], wanted: &str| {
        let output = place.metes(words);
        assert_eq!(status(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
    };
    // An image that the command takes as it is.
    words[8] = "cp heap.elf \"$METES_IMAGE\"";
    told(&words, "not on the emitted heap");
    // One of unknown functions; one that takes longer than it may.
    std::fs::write(place.path("nameless"), program(0x91d0_2000)).unwrap();
    let last = words.len() - 1;
    words[last] = "nameless";
    told(&words, "has no heap function");
    words[last] = "heap.elf";
    words.splice(last - 1..last - 1, ["--run-seconds", "0.0001"]);
    told(&words, "has not ended within 0.0001 s");
}
