//! The recorder for firmware, from its files to a trace: an image on newlib and on picolibc, under QEMU. Needs Arm's compiler
//! and both libraries (scripts/setup).

use std::process::Command;

use serde_json::Value;

use crate::support::{Place, has_keys, refused, status, stderr, stdout};

/// The build of the example, as a command.
const MAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/firmware/make");

/// The example, built on a library with the recorder of this build; further compiler arguments.
fn image(place: &Place, library: &str, further: &[&str]) {
    let emitted = place.metes(&["emit", "--recorder", "-o", "recorder"]);
    assert_eq!(status(&emitted), 0, "{}", stderr(&emitted));
    let built = Command::new(MAKE)
        .args([library, "recorder", "."])
        .args(further)
        .current_dir(place.path(""))
        .output()
        .expect("a shell");
    assert!(built.status.success(), "{}", stderr(&built));
}

/// Words that record the image.
fn recording(trace: &str) -> [&str; 7] {
    [
        "record",
        "--target",
        "cortex-m3",
        "-o",
        trace,
        "--",
        "words.elf",
    ]
}

/// A number that the image printed.
fn said(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.unwrap_or_else(|| panic!("{name}: {text}"));
    number.trim().parse().expect("a number")
}

#[test]
fn every_call_of_an_image_is_in_its_trace() {
    for library in ["newlib", "picolibc"] {
        let place = Place::new();
        image(&place, library, &[]);
        let words = recording("t.parquet");
        let output = place.metes(&words);
        assert_eq!(status(&output), 0, "{library}: {}", stderr(&output));
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        let (calls, bytes) = (said(&printed, "calls "), said(&printed, "bytes "));
        assert!(!stderr(&output).contains("no room"), "{}", stderr(&output));

        let exported = place.metes(&["trace", "export", "t.parquet"]);
        let text = stdout(&exported);
        let events: Vec<Vec<&str>> = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').collect())
            .collect();
        // What the library asks for itself at its start and end is none of the program's calls: nothing here.
        assert_eq!(events.len() as u64, calls, "{library}");
        let sizes = events.iter().filter(|event| event[0] != "f");
        let sum: u64 = sizes.map(|event| event[2].parse::<u64>().unwrap()).sum();
        assert_eq!(sum, bytes, "{library}");

        // The same image does the same, but for times.
        let again = recording("again.parquet");
        let (ended, document) = place.json(&again);
        assert_eq!(ended, 0, "{document}");
        assert_eq!(document["events"], calls);
        assert_eq!(document["lost"], 0);
        let exported = place.metes(&["trace", "export", "again.parquet"]);
        assert_eq!(stdout(&exported), text);
    }
}

#[test]
fn what_found_no_room_is_told() {
    let place = Place::new();
    // Nothing is sent before the end.
    let further = ["-DMETES_RECORD_EVENTS=256", "-DMETES_RECORD_SEND_AT=100000"];
    image(&place, "picolibc", &further);
    let words = recording("t.parquet");
    let output = place.metes(&words);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("events found no room in the ring, from 0.0"),
        "{}",
        stderr(&output)
    );
    let (ended, document) = place.json(&words);
    assert_eq!(
        (ended, &document["recorded"]),
        (0, &256.into()),
        "{document}"
    );
    assert!(document["lost"].as_u64().unwrap() > 1000, "{document}");
}

#[test]
fn an_image_without_the_recorder_is_told_what_lacks() {
    let place = Place::new();
    let built = Command::new(MAKE)
        .args(["newlib", "-", "."])
        .current_dir(place.path(""))
        .output();
    assert!(built.expect("a shell").status.success());
    let words = recording("t.parquet");
    let output = place.metes(&words);
    assert_eq!(status(&output), 2);
    assert!(
        stderr(&output).contains("metes emit --recorder"),
        "{}",
        stderr(&output)
    );
    // One for another machine.
    let image = metes_leon3::image::elf(0x4000_0000, &[0x0100_0000]);
    std::fs::write(place.path("leon3.elf"), image).unwrap();
    let output = place.metes(&["record", "--target", "cortex-m3", "--", "leon3.elf"]);
    refused(&output, &["is no image for Cortex-M3"]);
}

/// Words that tune the image with a command; further options.
fn tuning<'w>(build: &'w str, further: &[&'w str]) -> Vec<&'w str> {
    let mut words = vec![
        "tune",
        "--target",
        "cortex-m3",
        "--budget",
        "0.4",
        "-o",
        "out",
    ];
    words.extend(["--build", build]);
    words.extend(further);
    words.extend(["--", "words.elf"]);
    words
}

/// That a block of an image lay nowhere else than was predicted, and that both figures are as they were.
fn is_predicted(document: &Value) {
    assert_eq!(document["predicted"], document["measured"]);
    assert_eq!(document["difference"], Value::Null);
    for what in ["equal", "requests_equal", "placements_equal"] {
        assert_eq!(document[what], true, "{what}");
    }
}

#[test]
fn an_image_is_tuned_and_its_blocks_lie_where_they_were_predicted() {
    for (library, further) in [
        ("newlib", &["--prefer", "speed"][..]),
        ("picolibc", &["--guarantee", "60x"]),
    ] {
        let place = Place::new();
        image(&place, library, &[]);
        let build = format!("{MAKE} {library}");
        let (code, document) = place.json(&tuning(&build, further));
        assert_eq!(code, 0, "{library}: {document}");
        is_predicted(&document);
        has_keys(
            &document,
            &["heap", "why", "events", "target", "memory", "instructions"],
        );
        let guaranteed = library == "picolibc";
        assert_eq!(document["memory"]["guaranteed"], guaranteed, "{document}");
        let memory = document["memory"]["bytes"].as_u64().unwrap();
        let tables = document["memory"]["tables"].as_u64().unwrap();
        let suffices = document["guarantee"]["bytes"].as_u64();
        let room = memory + tables;
        assert!(!guaranteed || Some(room) >= suffices, "{room} {suffices:?}");
        for when in ["before", "after"] {
            let counted = &document["instructions"][when];
            let sum: u64 = ["allocate", "free", "resize"]
                .iter()
                .map(|operation| counted[operation]["calls"].as_u64().unwrap())
                .sum();
            assert_eq!(Some(sum), document["events"].as_u64(), "{document}");
        }
        for file in ["report.html", "c/bare.c", "c/heap_ranges.h", "heap.toml"] {
            assert!(place.path("out").join(file).exists(), "{file}");
        }
        // What is handed back has no recorder, and the heap.
        let words = [
            "record",
            "--target",
            "cortex-m3",
            "-o",
            "t.parquet",
            "--",
            "out/tuned.elf",
        ];
        refused(&place.metes(&words), &["sent no recording"]);
    }
}

#[test]
fn an_image_that_asks_by_its_addresses_is_not_called_equal() {
    let place = Place::new();
    let source = "#include <stdint.h>\n#include <stdlib.h>\n\
        __attribute__((constructor)) static void ask(void)\n\
        { char *volatile block = malloc(20); block = malloc(1 + ((uintptr_t)block >> 3 & 1023)); free(block); }\n";
    place.write("ask.c", source);
    image(&place, "newlib", &["ask.c"]);
    let build = format!("{MAKE} newlib ask.c");
    let (code, document) = place.json(&tuning(&build, &[]));
    assert_eq!(code, 1, "{document}");
    assert_eq!(document["equal"], false);
    assert_eq!(document["requests_equal"], false);
    assert_eq!(document["difference"]["event"], 1, "{document}");
    let output = place.metes(&tuning(&build, &["--replace"]));
    let said = stdout(&output);
    assert!(
        said.contains("not comparable") && said.contains("request 2"),
        "{said}"
    );
    assert!(!said.contains("predicted = measured"), "{said}");
}

#[test]
fn what_stands_in_the_way_of_a_tuned_image_is_told() {
    let place = Place::new();
    image(&place, "picolibc", &[]);
    let stale = format!("{MAKE} picolibc \"-DHEAP_RANGES={{65536}}\" -DHEAP_RANGES_BYTES=65536");
    for (build, wanted) in [
        (
            "echo no compiler; exit 3",
            &["--build ended with status 3", "no compiler"][..],
        ),
        ("true", &["--build left no image", "METES_IMAGE"]),
        (
            "cp words.elf \"$METES_IMAGE\"",
            &["not on the emitted heap", "METES_HEAP_CODE"],
        ),
        (&stale, &["linked has a heap of ", "anew"]),
    ] {
        let output = place.metes(&tuning(build, &["--prefer", "worst"]));
        refused(&output, wanted);
        // What was recorded is kept.
        assert!(place.path("out/program.trace.parquet").exists(), "{build}");
        std::fs::remove_dir_all(place.path("out")).unwrap();
    }
    // Without a recorder; without an end.
    let build = format!("{MAKE} picolibc");
    let built = Command::new(MAKE)
        .args(["newlib", "-", "."])
        .current_dir(place.path(""))
        .output();
    assert!(built.expect("a shell").status.success());
    refused(
        &place.metes(&tuning(&build, &[])),
        &["sent no recording", "metes emit --recorder"],
    );
    let source = "__attribute__((constructor)) static void wait(void) { for (;;) { } }\n";
    place.write("wait.c", source);
    image(&place, "newlib", &["wait.c"]);
    let words = tuning(&build, &["--run-seconds", "0.3"]);
    refused(
        &place.metes(&words),
        &["has not ended within 0.3 s", "--run-seconds"],
    );
}
