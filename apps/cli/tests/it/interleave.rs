//! `metes interleave`: threads in other orders.

use serde_json::Value;

use crate::support::{Place, has_keys, refused, status, stderr, stdout};

/// Two threads, each with a large block for a moment, one after the other; the first frees what the main one allocated.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static void *work(void *block) {
    free(block);
    for (int i = 0; i < 300; i++) free(malloc(100 + i));
    free(malloc(60000));
    return 0;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, work, malloc(5000));
    pthread_join(one, 0);
    pthread_create(&two, 0, work, malloc(7000));
    pthread_join(two, 0);
    return 0;
}
"#;

fn recorded() -> Place {
    let place = Place::new();
    place.compile("two", PROGRAM, &["-pthread"]);
    let output = place.metes(&["record", "-o", "two.trace.parquet", "--", "./two"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    place
}

#[test]
fn what_was_never_at_once_is_in_another_order() {
    let place = recorded();
    let arguments = [
        "interleave",
        "two.trace.parquet",
        "--heap",
        "tlsf",
        "--heap",
        "best-fit",
        "--shuffles",
        "40",
    ];
    let (code, found) = place.json(&arguments);
    assert_eq!(code, 0, "{found}");
    has_keys(
        &found,
        &[
            "version",
            "kind",
            "title",
            "trace",
            "threads",
            "events",
            "live",
            "heaps",
            "sharing",
            "per_thread",
        ],
    );
    let number = |value: &Value| value.as_u64().expect("a number");
    let live = &found["live"];
    // Both large blocks at once.
    assert!(
        number(&live["bound"]) >= number(&live["recorded"]) + 50_000,
        "{live}"
    );
    assert_eq!(live["exact"], true, "{live}");
    assert_eq!(live["reached"], live["bound"]);
    assert!(
        number(&live["drawn"]["most"]) <= number(&live["bound"]),
        "{live}"
    );
    assert_eq!(found["shuffles"], 40);
    assert_eq!(found["heaps"].as_array().map(Vec::len), Some(2));
    for heap in found["heaps"].as_array().expect("a list") {
        let drawn = &heap["drawn"];
        assert!(number(&drawn["least"]) <= number(&drawn["most"]), "{heap}");
    }
    assert_eq!(found["sharing"]["freed_elsewhere"], 2, "{found}");
    // A seed gives its order again.
    let seed = live["drawn"]["most_seed"].to_string();
    let again = [
        "interleave",
        "two.trace.parquet",
        "--shuffles",
        "1",
        "--seed",
        &seed,
    ];
    let (_, again) = place.json(&again);
    assert_eq!(again["live"]["drawn"]["most"], live["drawn"]["most"]);
}

#[test]
fn a_recorded_order_is_the_only_one_within_nothing() {
    let place = recorded();
    let (_, found) = place.json(&[
        "interleave",
        "two.trace.parquet",
        "--within",
        "0",
        "--shuffles",
        "3",
    ]);
    assert_eq!(found["within"], 0);
    let live = &found["live"];
    assert_eq!(live["drawn"]["least"], live["recorded"]);
    assert_eq!(live["drawn"]["most"], live["recorded"]);
}

#[test]
fn the_terminal_and_the_page_say_the_same() {
    let place = recorded();
    let output = place.metes(&[
        "interleave",
        "two.trace.parquet",
        "--shuffles",
        "20",
        "-o",
        "two.html",
    ]);
    let text = stdout(&output);
    assert_eq!(status(&output), 0, "{text}{}", stderr(&output));
    for fragment in [
        "no order has more than",
        "some order has as much",
        "suffice in any order",
        "lock",
        "freed by another thread",
    ] {
        assert!(text.contains(fragment), "{fragment}: {text}");
    }
    assert!(place.read("two.html").contains("\"kind\":\"interleaved\""));
}

#[test]
fn one_thread_has_one_order() {
    let place = crate::support::recorded();
    let output = place.metes(&["interleave", "t.trace.parquet"]);
    refused(&output, &["one thread made all requests", "metes replay"]);
}

/// Where threads run one after the other, what a heap for each takes is foretold, to the byte.
#[test]
fn a_heap_for_each_thread_takes_what_its_code_takes_when_driven() {
    let place = Place::new();
    place.compile("two", PROGRAM, &["-pthread"]);
    let (_, tuned) = place.json(&[
        "tune", "--budget", "0.5", "--beside", "no", "-o", "out", "--", "./two",
    ]);
    let heaps = tuned["interleaved"]["heaps"].as_array().expect("a list");
    let driven = heaps
        .iter()
        .find(|heap| heap["heap"] == "per-thread")
        .expect("it is one");
    assert_eq!(
        driven["recorded"], tuned["per_thread"]["measured"]["footprint"],
        "{tuned}"
    );
}

/// A tuned program of several threads has rows for other orders.
#[test]
fn tune_says_what_other_orders_come_to() {
    let place = Place::new();
    place.compile("two", PROGRAM, &["-pthread"]);
    let arguments = [
        "tune", "--budget", "0.5", "--beside", "no", "-o", "out", "--", "./two",
    ];
    let output = place.metes(&arguments);
    let text = stdout(&output);
    assert!(
        text.contains("in any order at most"),
        "{text}{}",
        stderr(&output)
    );
    let report: Value = serde_json::from_str(&place.read("out/report.json")).expect("JSON");
    assert_eq!(report["interleaved"]["live"]["exact"], true, "{report}");
    assert_eq!(
        report["interleaved"]["heaps"][0]["heap"],
        report["chosen"]["spec"]
    );
}
