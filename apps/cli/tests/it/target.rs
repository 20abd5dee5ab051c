//! The recorder for firmware, from its files to a trace: an image on newlib and on picolibc, under QEMU. Needs Arm's compiler
//! and both libraries (scripts/setup).

use std::process::Command;

use crate::support::{Place, refused, status, stderr, stdout};

/// The example, built on a library with the recorder of this build; further compiler arguments.
fn image(place: &Place, library: &str, further: &[&str]) {
    let emitted = place.metes(&["emit", "--recorder", "-o", "recorder"]);
    assert_eq!(status(&emitted), 0, "{}", stderr(&emitted));
    let make = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/firmware/make");
    let built = Command::new(make)
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
    let make = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/firmware/make");
    let built = Command::new(make)
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
