//! One heap for many runs: commands and traces, good and bad.

use serde_json::Value;

use crate::support::{Place, STEADY, recorded, refused, status, stderr, stdout};

/// A program whose blocks are as many and as large as it is told.
const SCALED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    int blocks = count > 1 ? atoi(words[1]) : 10;
    size_t size = count > 2 ? (size_t)atoi(words[2]) : 100;
    char **all = malloc((size_t)blocks * sizeof *all);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < blocks; i++) {
            all[i] = malloc(size + (size_t)(i % 7) * 24);
            memset(all[i], i, size);
        }
        for (int i = 0; i < blocks; i++) free(all[i]);
    }
    free(all);
    int c, sum = 0;
    while ((c = getchar()) != EOF) sum += c;
    printf("%d %zu %d\n", blocks, size, sum);
    return 0;
}
"#;

fn suite() -> Place {
    let place = Place::new();
    place.compile("scaled", SCALED, &[]);
    place.compile("steady", STEADY, &[]);
    place.write("in.txt", "some input\n");
    place.write(
        "suite.txt",
        "# small, large, and the same again\n./scaled 20 40\n./scaled 3000 '600'\n\n./scaled 20 40\n\
         ./scaled 300 90 < in.txt\n./steady\n",
    );
    place
}

#[test]
fn a_suite_is_served_by_one_heap_that_each_run_is_predicted_on() {
    let place = suite();
    let (code, found) = place.json(&[
        "tune",
        "--budget",
        "3",
        "-o",
        "out",
        "--commands",
        "suite.txt",
    ]);
    assert_eq!(code, 0, "{found}");
    let runs = found["runs"].as_array().expect("a list");
    assert_eq!(runs.len(), 5, "{found}");
    assert_eq!(found["distinct_runs"], 4);
    assert_eq!(found["equal"], true, "{found}");
    for run in runs {
        assert_eq!(run["equal"], true, "{run}");
        assert_eq!(run["measured"]["footprint"], run["footprint"], "{run}");
        assert_eq!(run["output_unchanged"], true, "{run}");
        let (own, best) = (&run["footprint"], &run["best_alone"]["footprint"]);
        assert!(own.as_u64() >= best.as_u64(), "{run}");
        let trace = run["trace"].as_str().expect("a path");
        assert!(place.path(trace).is_file(), "{trace}");
    }
    assert_eq!(found["largest"]["run"], "./scaled 3000 '600'", "{found}");
    let footprints = runs.iter().map(|run| run["footprint"].as_u64().unwrap());
    assert_eq!(
        found["largest"]["footprint"].as_u64(),
        footprints.clone().max()
    );
    let mean = footprints.sum::<u64>() as f64 / 5.0;
    assert!((found["mean"]["footprint"].as_f64().unwrap() - mean).abs() < 1.0);
    assert!(place.path("out/c/libheap.so").is_file());
    // The page of the document, once more.
    let output = place.metes(&["report", "out"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(
        place
            .read("out/report.html")
            .contains("One heap for 5 runs")
    );
    // What was emitted serves each of them.
    let output = place.metes(&["run", "--heap", "out", "--", "./scaled", "50", "64"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
}

#[test]
fn the_terminal_names_the_run_that_decides() {
    let place = suite();
    let output = place.metes(&[
        "tune",
        "--budget",
        "1",
        "-o",
        "out",
        "--commands",
        "suite.txt",
    ]);
    let text = stdout(&output);
    assert_eq!(status(&output), 0, "{text}{}", stderr(&output));
    for part in [
        "decided by ./scaled 3000 '600'",
        "predicted = measured in each of 5 runs",
        "output unchanged",
        "pays most",
        "chosen",
        "tlsf",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// What is found, without what depends on the clock.
fn without_time(found: &Value) -> (Value, Value) {
    (found["heap"].clone(), found["pareto"].clone())
}

#[test]
fn traces_are_explored_together_in_any_order_and_any_number() {
    let place = suite();
    std::fs::create_dir(place.path("traces")).unwrap();
    for (name, blocks, size) in [("a", "40", "30"), ("b", "400", "700")] {
        let file = format!("traces/{name}.trace.parquet");
        let output = place.metes(&["record", "-o", &file, "--", "./scaled", blocks, size]);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
    }
    place.write("traces/notes.txt", "no trace\n");
    let explore = |traces: &[&str]| {
        let mut words = vec![
            "explore",
            "--configurations",
            "40",
            "--budget",
            "600",
            "--fresh",
            "-o",
            "out",
        ];
        words.extend(traces);
        let (code, found) = place.json(&words);
        assert_eq!(code, 0, "{found}");
        found
    };
    let (a, b) = ("traces/a.trace.parquet", "traces/b.trace.parquet");
    let one = explore(&["traces"]);
    assert_eq!(one["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(one["runs"][0]["name"], "a");
    assert_eq!(one["equal"], Value::Null, "nothing was measured");
    assert_eq!(without_time(&explore(&[b, a])), without_time(&one));
    assert_eq!(without_time(&explore(&[a, b, b, a])), without_time(&one));
    // One run given twice is explored as it is by itself.
    let (twice, once) = (explore(&[a, a]), explore(&[a]));
    assert_eq!(twice["heap"], once["heap"]);
    let heaps = |found: &Value| -> Vec<Value> {
        let front = found["pareto"].as_array().expect("a list");
        front.iter().map(|heap| heap["footprint"].clone()).collect()
    };
    assert_eq!(heaps(&twice), heaps(&once));
}

#[test]
fn one_bad_run_among_many_is_named() {
    let place = recorded();
    let t = "t.trace.parquet";
    place.write("bad.trace.parquet", "PAR1 what is this? PAR1");
    let output = place.metes(&["explore", t, t, "bad.trace.parquet", t, "-o", "out"]);
    refused(&output, &["bad.trace.parquet"]);
    assert!(!place.path("out").exists(), "nothing was begun");
    std::fs::create_dir(place.path("none")).unwrap();
    refused(
        &place.metes(&["explore", "none", "-o", "out"]),
        &["none", "no trace"],
    );
    let output = place.metes(&["explore", t, t, "--space", "paper", "-o", "out"]);
    refused(&output, &["--space paper", "one trace"]);
}

#[test]
fn a_command_that_cannot_be_recorded_is_left_out_and_one_that_cannot_be_run_refused() {
    let place = suite();
    place.compile(
        "dies",
        "#include <stdlib.h>\nint main(void) { free(malloc(9)); abort(); }",
        &[],
    );
    place.write("some.txt", "./scaled 20 40\n./dies\n./scaled 30 50\n");
    let (code, found) = place.json(&[
        "tune",
        "--budget",
        "1",
        "-o",
        "out",
        "--commands",
        "some.txt",
    ]);
    assert_eq!(code, 0, "{found}");
    assert_eq!(found["runs"].as_array().map(Vec::len), Some(2), "{found}");
    assert_eq!(found["left_out"][0]["name"], "./dies", "{found}");
    for (text, fragments) in [
        ("", ["suite2.txt", "no command"]),
        ("./scaled\n./none-such\n", ["line 2", "none-such"]),
        ("./scaled | sort\n", ["line 1", "shell"]),
        ("./scaled < none.txt\n", ["line 1", "none.txt"]),
        ("./dies\n", ["no command could be recorded", "./dies"]),
    ] {
        place.write("suite2.txt", text);
        let output = place.metes(&[
            "tune",
            "--budget",
            "1",
            "-o",
            "out2",
            "--commands",
            "suite2.txt",
        ]);
        refused(&output, &fragments);
    }
}
