//! `metes compare` as a gate: planted regressions of real programs are found and named.

use crate::support::{Place, has_keys, recorded, refused, status, stderr, stdout};

/// A program with a fault for each macro.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#ifndef SIZE
#define SIZE 4096
#endif
#ifndef AT_ONCE
#define AT_ONCE 20
#endif
int main(void) {
    char *held[4096];
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            held[i] = malloc(200);
            memset(held[i], i, 200);
        }
        char *page = malloc(SIZE);
        memset(page, 1, SIZE);
        free(page);
        for (int i = 0; i < AT_ONCE; i++) {
#ifdef LEAK
            if (round % 10 == 0 && i == 3) continue;
#endif
            free(held[i]);
        }
    }
    return 0;
}
"#;

/// The program as it was, and with a fault, recorded.
fn planted(fault: &str) -> Place {
    let place = Place::new();
    for (name, flags) in [("before", &[][..]), ("after", &[fault][..])] {
        place.compile(name, PROGRAM, flags);
        let file = format!("{name}.trace.parquet");
        let output = place.metes(&["record", "-o", &file, "--", &format!("./{name}")]);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
    }
    place
}

const SIDES: [&str; 3] = ["compare", "before.trace.parquet", "after.trace.parquet"];

/// The sentences of what is worse, each with its threshold.
fn worse(place: &Place) -> Vec<(String, String)> {
    let (code, found) = place.json(&SIDES);
    has_keys(
        &found,
        &["before", "after", "worse", "findings", "thresholds"],
    );
    let findings = found["findings"].as_array().expect("a list");
    let worse = findings.iter().filter(|one| one["verdict"] == "worse");
    let text = |one: &serde_json::Value, key: &str| one[key].as_str().expect("text").to_owned();
    let worse: Vec<_> = worse
        .map(|one| (text(one, "threshold"), text(one, "sentence")))
        .collect();
    assert_eq!(code, i32::from(!worse.is_empty()), "{found}");
    assert_eq!(found["worse"], worse.len());
    worse
}

#[test]
fn a_leak_is_found_and_named() {
    let place = planted("-DLEAK");
    let found = worse(&place);
    let named = found
        .iter()
        .find(|(threshold, text)| threshold == "leaks" && text.contains("blocks of 200 bytes"));
    let (_, text) = named.unwrap_or_else(|| panic!("{found:?}"));
    assert!(text.contains("20 more, 4000 bytes"), "{text}");
    // Allowed, it is none.
    let mut words = SIDES.to_vec();
    words.extend(["--threshold", "100", "--threshold", "leaks=1000"]);
    let output = place.metes(&words);
    assert_eq!(status(&output), 0, "{}", stdout(&output));
}

#[test]
fn a_size_that_grew_over_the_boundary_of_a_class_is_found_and_named() {
    let place = planted("-DSIZE=4104");
    let found = worse(&place);
    // One block at once: what it costs is beside 4,000 bytes live not much, but no noise either.
    let named = found.iter().find(|(threshold, _)| threshold == "sizes");
    let (_, text) = named.unwrap_or_else(|| panic!("{found:?}"));
    assert!(
        text.contains("blocks of 4096 bytes became blocks of 4104"),
        "{text}"
    );
    // Within a class it is none.
    let place = planted("-DSIZE=4090");
    let found = worse(&place);
    assert!(
        found.iter().all(|(threshold, _)| threshold != "sizes"),
        "{found:?}"
    );
}

#[test]
fn a_burst_is_found_and_named() {
    let place = planted("-DAT_ONCE=400");
    let found = worse(&place);
    let named = found.iter().find(|(threshold, _)| threshold == "bursts");
    let (_, text) = named.unwrap_or_else(|| panic!("{found:?}"));
    assert!(
        text.contains("mostly of 200 bytes") && text.contains("401 after"),
        "{text}"
    );
    assert!(
        found.iter().any(|(threshold, _)| threshold == "peak-live"),
        "{found:?}"
    );
    assert!(
        found.iter().any(|(threshold, _)| threshold == "footprint"),
        "{found:?}"
    );
    let output = place.metes(&[SIDES[0], SIDES[1], SIDES[2], "-o", "c.html"]);
    assert_eq!(status(&output), 1);
    let text = stdout(&output);
    assert!(text.contains("worse") && text.contains("c.html"), "{text}");
    assert!(
        place
            .read("c.html")
            .contains("longest burst of allocations")
    );
    // What became less is better, and passes.
    let output = place.metes(&["compare", SIDES[2], SIDES[1]]);
    assert_eq!(status(&output), 0, "{}", stdout(&output));
    assert!(stdout(&output).contains("better"));
}

#[test]
fn a_side_beside_itself_is_silent() {
    let place = recorded();
    let t = "t.trace.parquet";
    let output = place.metes(&["compare", t, t, "--threshold", "0"]);
    assert_eq!(
        (status(&output), stdout(&output)),
        (0, String::new()),
        "{}",
        stderr(&output)
    );
    for (name, words) in [
        ("one", &["explore", t, "--budget", "1", "-o", "one"][..]),
        (
            "runs",
            &["explore", t, t, "--budget", "1", "-o", "runs"][..],
        ),
    ] {
        let (code, document) = place.json(words);
        assert_eq!(code, 0);
        let file = format!("{name}.json");
        place.write(&file, &document.to_string());
        for side in [name, file.as_str()] {
            let output = place.metes(&["compare", side, side]);
            assert_eq!(
                (status(&output), stdout(&output)),
                (0, String::new()),
                "{side}: {}",
                stderr(&output)
            );
        }
    }
    refused(&place.metes(&["compare", "one", "runs"]), &["many runs"]);
    refused(&place.metes(&["compare", t, "none"]), &["none"]);
}
