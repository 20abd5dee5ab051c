//! Each verb on input that is as it should be.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Place, has_keys, parsed, recorded, refused, status, stderr, stdout};

#[test]
fn every_verb_has_help_with_an_example() {
    let place = Place::new();
    let verbs = [
        "tune",
        "record",
        "profile",
        "replay",
        "explore",
        "compare",
        "interleave",
        "evaluate",
        "bounds",
        "emit",
        "run",
        "report",
        "trace",
        "device",
        "curve",
        "reproduce",
        "completions",
        "man",
    ];
    for verb in verbs {
        let output = place.metes(&[verb, "--help"]);
        assert_eq!(status(&output), 0, "{verb}");
        let text = stdout(&output);
        assert!(text.contains(&format!("metes {verb}")), "{text}");
        assert!(text.contains("Example"), "{verb}: {text}");
        assert!(text.contains("--json"), "{verb}: {text}");
    }
}

#[test]
fn record_passes_the_output_on_and_says_what_it_recorded() {
    let place = Place::new();
    place.compile("steady", crate::support::STEADY, &[]);
    let output = place.metes(&["record", "-o", "t.trace.parquet", "--", "./steady"]);
    assert_eq!(status(&output), 0);
    assert!(stdout(&output).starts_with("sum "), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("t.trace.parquet"),
        "{}",
        stderr(&output)
    );
    let (code, document) = place.json(&["record", "-o", "u.trace.parquet", "--", "./steady"]);
    assert_eq!(code, 0);
    has_keys(
        &document,
        &[
            "trace",
            "events",
            "processes",
            "status",
            "seconds",
            "cpu_seconds",
        ],
    );
    assert!(
        document["events"].as_u64() > Some(64 * 50 * 2),
        "{document}"
    );
}

#[test]
fn record_keeps_each_child_apart() {
    let place = Place::new();
    let command = [
        "record",
        "-o",
        "t.trace.parquet",
        "--",
        "sh",
        "-c",
        "ls / > /dev/null; true",
    ];
    let (_, document) = place.json(&command);
    let processes = document["processes"].as_array().expect("a list");
    assert_eq!(processes.len(), 2, "{document}");
    assert!(place.path("t.1.trace.parquet").exists());
    let output = place.metes(&["profile", "t.1.trace.parquet"]);
    assert!(
        stdout(&output).starts_with("command            ls /"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn profile_shows_the_sizes() {
    let place = recorded();
    let output = place.metes(&["profile", "t.trace.parquet"]);
    assert_eq!(status(&output), 0);
    assert!(stdout(&output).contains("peak live"), "{}", stdout(&output));
    let (_, document) = place.json(&["profile", "t.trace.parquet"]);
    has_keys(
        &document,
        &[
            "events",
            "peak_live",
            "sizes",
            "lifespan_events",
            "dominant",
        ],
    );
}

const REPLAY: [&str; 9] = [
    "heap",
    "events",
    "peak_live",
    "footprint",
    "smallest_arena",
    "failed",
    "record_reads",
    "record_writes",
    "events_per_second",
];

#[test]
fn replay_predicts_every_named_heap() {
    let place = recorded();
    for heap in [
        "first-fit",
        "best-fit",
        "tlsf:second_level=8",
        "half-fit",
        "buddy",
        "kingsley",
    ] {
        let (code, document) = place.json(&["replay", "t.trace.parquet", "--heap", heap]);
        assert_eq!(code, 0, "{document}");
        has_keys(&document, &REPLAY);
        assert_eq!(document["failed"], 0, "{document}");
        assert!(
            document["footprint"].as_u64() >= document["peak_live"].as_u64(),
            "{document}"
        );
    }
    let output = place.metes(&["replay", "t.trace.parquet", "--heap", "tlsf"]);
    assert!(
        stdout(&output).contains("smallest arena"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn heaps_of_handles_are_bounded_and_replayed_but_not_run() {
    let place = recorded();
    for spec in ["fragmented:block=64", "fragmented:shape=chain"] {
        let (code, bound) = place.json(&[
            "bounds",
            "--heap",
            spec,
            "--live",
            "1MiB",
            "--max-block",
            "4k",
            "--min-block",
            "32",
        ]);
        assert_eq!((code, bound["heap"].as_str()), (0, Some(spec)), "{bound}");
        assert!(bound["heap_bytes"].as_u64() > Some(1 << 20), "{bound}");
        assert!(
            bound["heap_bytes"].as_u64() < bound["necessary_bytes"].as_u64(),
            "{bound}"
        );
        let replay = ["replay", "t.trace.parquet", "--heap", spec];
        let (code, replay_grown) = place.json(&replay);
        assert_eq!(code, 0, "{replay_grown}");
        has_keys(&replay_grown, &REPLAY);
        let least = replay_grown["smallest_arena"]
            .as_u64()
            .expect("it is known");
        assert!(Some(least) > replay_grown["peak_live"].as_u64());
        for (arena, expected) in [(least, 0), (least - 1, 1)] {
            let arena = arena.to_string();
            let mut arguments = replay.to_vec();
            arguments.extend(["--arena", &arena]);
            let (code, fixed) = place.json(&arguments);
            assert_eq!(code, expected, "{fixed}");
            assert_eq!(fixed["failed"] == 0, expected == 0, "{fixed}");
        }
    }
    let needs_pointers = ["fragmented", "handles", "metes bounds"];
    for arguments in [
        &["emit", "--heap", "fragmented", "-o", "out"][..],
        &["run", "--heap", "fragmented", "--", "true"],
    ] {
        refused(&place.metes(arguments), &needs_pointers);
    }
    let arguments = [
        "bounds",
        "--heap",
        "fragmented:block=40",
        "--live",
        "9",
        "--max-block",
        "9",
    ];
    refused(&place.metes(&arguments), &["40", "power of two"]);
}

#[test]
fn replay_in_the_smallest_arena_succeeds_and_in_less_fails() {
    let place = recorded();
    let replay = |arena: &str| {
        place.json(&[
            "replay",
            "t.trace.parquet",
            "--heap",
            "best-fit",
            "--arena",
            arena,
        ])
    };
    let (_, growing) = place.json(&["replay", "t.trace.parquet", "--heap", "best-fit"]);
    let least = growing["smallest_arena"].as_u64().expect("a size");
    let (code, document) = replay(&least.to_string());
    assert_eq!(
        (code, &document["failed"]),
        (0, &Value::from(0)),
        "{document}"
    );
    let (code, document) = replay(&(least - 16).to_string());
    assert_eq!(
        (code, &document["lacking"]),
        (1, &Value::from(16)),
        "{document}"
    );
    let arguments = [
        "replay",
        "t.trace.parquet",
        "--heap",
        "best-fit",
        "--arena",
        "8k",
    ];
    let output = place.metes(&arguments);
    let lacking = format!("arena too small by {} bytes", spaced(least - 8192));
    assert!(
        stderr(&output).contains(&lacking),
        "{lacking}: {}",
        stderr(&output)
    );
}

fn spaced(number: u64) -> String {
    let digits = number.to_string();
    let first = (digits.len() - 1) % 3 + 1;
    let rest = digits.as_bytes()[first..].chunks(3);
    rest.fold(digits[..first].to_owned(), |text, group| {
        format!("{text} {}", String::from_utf8_lossy(group))
    })
}

#[test]
fn explore_leaves_a_report_and_heaps_to_replay() {
    let place = recorded();
    let arguments = [
        "explore",
        "t.trace.parquet",
        "--configurations",
        "64",
        "-o",
        "out",
    ];
    let (code, document) = place.json(&arguments);
    assert_eq!(code, 0);
    has_keys(
        &document,
        &["configurations", "distinct", "pareto", "seconds"],
    );
    let pareto = document["pareto"].as_array().expect("a list");
    let first = pareto.first().expect("some heap is unbeaten");
    let toml = first["toml"].as_str().expect("a path");
    let (_, replay) = place.json(&["replay", "t.trace.parquet", "--heap", toml]);
    assert_eq!(replay["footprint"], first["footprint"]);
    let page = place.read("out/report.html");
    assert!(!page.contains("/*METES_DATA*/null") && page.contains("\"version\":1"));
    // Rendered again, the page holds the same document.
    std::fs::remove_file(place.path("out/report.html")).expect("there was one");
    let (code, document) = place.json(&["report", "out"]);
    assert_eq!(
        (code, document["report"].as_str()),
        (0, Some("out/report.html"))
    );
    let again = place.read("out/report.html");
    assert_eq!(data(&again), data(&page));
}

/// The document in a page.
fn data(page: &str) -> Value {
    let start = page
        .find("{\"version\"")
        .or_else(|| page.find("{\n  \"version\""));
    let mut documents = serde_json::Deserializer::from_str(&page[start.expect("a document")..]);
    serde::Deserialize::deserialize(&mut documents).expect("JSON up to its end")
}

#[test]
fn explore_among_named_heaps_and_among_constant_time_heaps() {
    let place = recorded();
    let explore = |space: &str| {
        place.json(&[
            "explore",
            "t.trace.parquet",
            "--space",
            space,
            "--configurations",
            "32",
            "-o",
            space,
        ])
    };
    let (code, document) = explore("named");
    assert_eq!(
        (code, &document["configurations"]),
        (0, &Value::from(12)),
        "{document}"
    );
    let (code, document) = explore("constant-time");
    assert_eq!(code, 0);
    for heap in document["pareto"].as_array().expect("a list") {
        assert_eq!(heap["constant_time"], true, "{heap}");
    }
}

const SPACE: &str = "[general]
count = [1, 2]
split = [64]
[list]
fit = [\"first\", \"best\"]
order = [\"lifo\", \"fifo\", \"address\"]
max_fit = [\"any\", 120]
depth = { from = 20, to = 100, step = 20 }
[dedicated]
count = [0, 2]
[coalescing]
pools = [0, 2]
up_to = [512, \"any\"]
[splitting]
pools = [0, 2]
down_to = [32, 256]
";

#[test]
fn parts_of_a_described_space_merge_to_the_results_of_one_run() {
    let place = recorded();
    std::fs::write(place.path("s.toml"), SPACE).expect("a space");
    let explore = |more: &[&str]| {
        let mut arguments = vec!["explore", "t.trace.parquet", "--space", "s.toml"];
        arguments.extend(more);
        place.json(&arguments)
    };
    let (code, whole) = explore(&["-o", "whole"]);
    assert_eq!((code, &whole["interrupted"]), (0, &Value::from(false)));
    assert_eq!(whole["configurations"], whole["space"]);
    assert!(!whole["pareto"].as_array().expect("a list").is_empty());
    let (_, again) = explore(&["-o", "whole"]);
    assert_eq!(again["replayed"], 0, "{again}");
    for part in ["1/2", "2/2"] {
        let (code, _) = explore(&["--shard", part, "-o", &part[..1]]);
        assert_eq!(code, 0);
    }
    let (code, merged) = place.json(&["merge", "1", "2", "-o", "merged"]);
    assert_eq!(
        (code, &merged["pareto"][0]["number"]),
        (0, &whole["pareto"][0]["number"])
    );
    let bytes = |file: &str| std::fs::read(place.path(file)).expect("results");
    assert_eq!(
        bytes("merged/results.parquet"),
        bytes("whole/results.parquet")
    );
    assert_eq!(
        bytes("merged/exploration.json"),
        bytes("whole/exploration.json")
    );

    let refused = |arguments: &[&str], expected: &str| {
        let output = place.metes(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    };
    refused(&["merge", "1", "-o", "half"], "units are missing");
    refused(&["merge", "nowhere", "-o", "half"], "holds no units");
    let explore = ["explore", "t.trace.parquet", "--space"];
    let with = |more: &[&'static str]| [&explore[..], more].concat();
    refused(&with(&["paper", "-o", "whole"]), "(space differs)");
    refused(&with(&["papre"]), "did you mean `paper`");
    refused(&with(&["s.toml", "--objectives", "energy"]), "add --levels");
    refused(
        &with(&["all", "--shard", "1/2"]),
        "--shard is for described spaces",
    );
}

#[test]
fn configurations_are_evaluated_by_number_and_by_values() {
    let place = recorded();
    std::fs::write(place.path("s.toml"), SPACE).expect("a space");
    let evaluate = ["evaluate", "t.trace.parquet", "--space", "s.toml"];
    let with = |more: &[&'static str]| [&evaluate[..], more].concat();
    let (code, document) = place.json(&with(&["0", "20"]));
    assert_eq!(code, 0);
    has_keys(&document, &["space", "raw", "baselines", "axes", "rows"]);
    let row = &document["rows"][1];
    has_keys(
        row,
        &[
            "number",
            "status",
            "heap",
            "footprint",
            "accesses",
            "values",
            "toml",
        ],
    );
    assert_eq!(document["rows"][0]["values"], Value::Null);

    // The same by values, line by line; a question without an answer is told.
    let questions = format!("{{\"values\": {}}}\n\n20\n99999999\n20\n", row["values"]);
    let mut command = place.command(&with(&["--lines"]));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("metes runs");
    let mut stdin = child.stdin.take().expect("its stdin");
    std::io::Write::write_all(&mut stdin, questions.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let lines: Vec<Value> = (stdout(&output).lines())
        .map(|line| serde_json::from_str(line).expect("a document a line"))
        .collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!(lines[0]["space"], document["space"]);
    assert_eq!((&lines[1], &lines[2], &lines[4]), (row, row, row));
    let last = document["space"].as_u64().expect("a number") - 1;
    let said = lines[3]["error"].as_str().expect("a sentence");
    assert!(
        said.contains(&format!("numbers go from 0 to {last}")),
        "{said}"
    );
    assert_eq!(status(&output), 2);
    assert!(stderr(&output).contains("line 4: the space has no configuration"));

    for (arguments, expected) in [
        (
            vec!["evaluate", "t.trace.parquet", "--space", "all"],
            "give a described space",
        ),
        (with(&["99999999"]), "has no configuration 99999999"),
        (
            with(&["--levels", "main=4MiB", "20"]),
            "metes record --accesses",
        ),
    ] {
        let output = place.metes(&arguments);
        assert_eq!(status(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn an_interrupted_exploration_keeps_what_it_found() {
    let place = recorded();
    let mut command = place.command(&[
        "--json",
        "explore",
        "t.trace.parquet",
        "--budget",
        "600",
        "-o",
        "out",
    ]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("metes runs");
    // It has what it can go on from.
    let begun = || place.path("out/units/000000").exists();
    while !begun() {
        assert!(
            child.try_wait().expect("it can be asked").is_none(),
            "it ended by itself"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // SAFETY: a signal to a child that was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().expect("it ends");
    let (code, document) = parsed(&output);
    assert_eq!(
        (code, &document["interrupted"]),
        (0, &Value::from(true)),
        "{document}"
    );
    assert!(!document["pareto"].as_array().expect("a list").is_empty());
    assert!(place.path("out/report.html").exists());
    assert!(place.path("out/results.parquet").exists());
    // The same command goes on from there; `--fresh` takes nothing over.
    let found = |document: &Value| document["configurations"].as_u64().expect("a number");
    let many = |most: u64, more: &[&str]| {
        let most = most.to_string();
        let words = ["explore", "t.trace.parquet", "--configurations", &most];
        let (code, document) = place.json(&[&words[..], &["-o", "out"], more].concat());
        assert_eq!(code, 0, "{document}");
        found(&document)
    };
    let before = found(&document);
    let further = many(before + 400, &[]);
    assert!(further >= before, "{further} after {before}");
    let anew = many(before / 2, &["--fresh"]);
    assert!(anew < before, "{anew} after {before}");
    // Units of a described space are not thrown away.
    let paper = [
        "explore",
        "t.trace.parquet",
        "--space",
        "paper",
        "-o",
        "paper",
    ];
    let part = ["--shard", "1/200"];
    assert_eq!(place.json(&[&paper[..], &part].concat()).0, 0);
    let output = place.metes(&["explore", "t.trace.parquet", "-o", "paper"]);
    assert_eq!(status(&output), 2);
    assert!(
        stderr(&output).contains("another exploration"),
        "{}",
        stderr(&output)
    );
    // And a search by the clock has no parts.
    let output = place.metes(&["merge", "out", "-o", "joined"]);
    assert_eq!(status(&output), 2);
    assert!(stderr(&output).contains("no parts"), "{}", stderr(&output));
}

#[test]
fn an_interrupted_described_space_shows_what_there_is() {
    let place = recorded();
    let mut child = place
        .command(&[
            "explore",
            "t.trace.parquet",
            "--space",
            "paper",
            "-o",
            "out",
        ])
        .args(["--budget", "1000000", "--to-the-end"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("metes runs");
    let unit = place.path("out/units/000000");
    while !unit.exists() {
        let ended = child.try_wait().expect("it can be asked");
        assert!(ended.is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // SAFETY: a signal to a child that was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("interrupted: the same command goes on from here"));
    let (code, told) = place.json(&["report", "out", "--export", "csv"]);
    let shown = told["configurations"].as_u64();
    assert!(
        code == 0 && shown >= Some(1024) && shown < Some(33_708),
        "{told}"
    );
    let page = place.metes(&["report", "out", "--explorer"]);
    assert_eq!(status(&page), 0, "{}", stderr(&page));
    assert!(!place.read("out/pareto/001.toml").is_empty());
}

#[test]
fn bounds_say_formula_and_citation() {
    let place = Place::new();
    let (code, document) = place.json(&[
        "bounds",
        "--heap",
        "first-fit",
        "--live",
        "1MiB",
        "--max-block",
        "64KiB",
        "--min-block",
        "16",
    ]);
    assert_eq!(code, 0, "{document}");
    has_keys(
        &document,
        &["heap", "time", "heap_bytes", "formula", "citation"],
    );
    has_keys(&document["time"], &["allocate", "free", "resize", "access"]);
    assert!(
        document["heap_bytes"].as_u64() > Some(1 << 20),
        "{document}"
    );
    let output = place.metes(&[
        "bounds",
        "--heap",
        "tlsf",
        "--live",
        "1MiB",
        "--max-block",
        "4k",
    ]);
    assert!(stdout(&output).contains("O(1)"), "{}", stdout(&output));
    let arguments = [
        "bounds",
        "--heap",
        "exact-fit",
        "--live",
        "1MiB",
        "--max-block",
        "4k",
    ];
    let (code, document) = place.json(&arguments);
    assert_eq!(
        (code, &document["heap_bytes"]),
        (1, &Value::Null),
        "{document}"
    );
}

#[test]
fn bounds_of_compact_fit_are_in_the_terms_of_its_slides() {
    let place = Place::new();
    let bounds = |heap: &str| {
        let arguments = ["--live", "1MiB", "--max-block", "4096", "--min-block", "64"];
        let mut all = vec!["bounds", "--heap", heap];
        all.extend(arguments);
        place.json(&all)
    };
    let (code, document) = bounds("compact-fit:kappa=2,increment=256");
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["fragmentation"], "predictable");
    let compact = &document["compact_fit"];
    let [shared, own] = [0, 1].map(|index| &compact["configurations"][index]);
    assert_eq!(shared["configuration"], "1-CF(κ, ι)");
    assert_eq!(shared["free"], "O(n + β + ⌊β/ι⌋)");
    assert_eq!(own["configuration"], "n-CF(κ, ι)");
    assert_eq!(own["allocate"], "O(1)");
    assert_eq!(compact["latency_bytes"], 256);
    // Two pages of each class with one page-block used, which leaves less than a page free.
    let scattered = |document: &Value| {
        let bytes = &document["compact_fit"]["size_class_fragmentation_bytes"];
        bytes.as_u64().expect("a number")
    };
    let (_, once) = bounds("compact-fit:kappa=1");
    assert_eq!(scattered(&document), 2 * scattered(&once));
    assert!(once["compact_fit"]["latency_bytes"].as_u64() >= Some(4096 + 8));
    let (_, still) = bounds("compact-fit:kappa=inf");
    assert_eq!(still["fragmentation"], "unpredictable");
    assert_eq!(still["compact_fit"]["latency_bytes"], Value::Null);
    let (_, tlsf) = bounds("tlsf");
    assert_eq!(tlsf["fragmentation"], "unpredictable");
    assert_eq!(tlsf["compact_fit"], Value::Null);
}

#[test]
fn tables_stand_beside_those_of_the_slides() {
    let place = Place::new();
    let (code, document) = place.json(&["bounds", "--tables"]);
    assert_eq!(code, 0, "{document}");
    let overview = document["overview"].as_array().expect("a list");
    let entry = |heap: &str| {
        let mut all = overview.iter();
        all.find(|entry| entry["heap"] == heap).expect("the heap")
    };
    for entry in overview {
        has_keys(
            entry,
            &["heap", "time", "fragmentation", "slides", "differences"],
        );
    }
    assert_eq!(entry("tlsf")["time_in_block"]["allocate"], "O(1)");
    assert_eq!(entry("best-fit")["time_in_block"]["allocate"], Value::Null);
    assert_eq!(entry("fragmented")["time"]["access"], "O(log n)");
    let table = entry("compact-fit, block table");
    assert_eq!(table["time"]["allocate"], "O(n)");
    assert_eq!(table["slides"]["name"], "CFNM (non-moving)");
    assert_eq!(table["fragmentation"], "predictable");
    // What differs is said, with its reason; what does not is not.
    let differing = entry("first-fit")["differences"]
        .as_array()
        .expect("a list");
    assert_eq!(differing.len(), 1);
    assert_eq!(differing[0]["what"], "free");
    assert!(
        differing[0]["reason"]
            .as_str()
            .expect("text")
            .contains("order=lifo")
    );
    assert_eq!(
        entry("first-fit:order=lifo")["differences"],
        Value::Array(Vec::new())
    );
    let concurrent = document["concurrent"].as_array().expect("a list");
    assert_eq!(concurrent.len(), 6);
    for row in concurrent {
        has_keys(
            row,
            &["configuration", "allocate", "free", "latency", "memory"],
        );
        let known = row["configuration"] != "n-CF(κ, ι)";
        assert_eq!(!row["slides"].is_null(), known, "{row}");
        for key in ["allocate", "free", "latency", "memory", "fragmentation"] {
            assert!(!known || row["slides"][key] == row[key], "{row}");
        }
    }
    let output = place.metes(&["bounds", "--tables"]);
    let text = stdout(&output);
    for part in [
        "unbounded in n",
        "CFM (moving)",
        "1-CF(κ, ∞)",
        "O(n + β)",
        "sorted by size",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn emit_writes_code_that_compiles() {
    let place = Place::new();
    let (code, document) = place.json(&["emit", "--heap", "tlsf", "-o", "out", "--build"]);
    assert_eq!(code, 0);
    for file in document["emitted"].as_array().expect("a list") {
        assert!(
            place.path(file.as_str().expect("a path")).exists(),
            "{file}"
        );
    }
    // A directory with a heap.toml is a heap.
    let (code, again) = place.json(&["emit", "--heap", "out", "-o", "again"]);
    assert_eq!((code, &again["heap"]), (0, &Value::from("tlsf")));
    for file in ["heap.c", "heap_config.h"] {
        let read = |out: &str| place.read(&format!("{out}/c/{file}"));
        assert_eq!(read("out"), read("again"));
    }
}

#[test]
fn run_gives_each_thread_a_heap() {
    let place = Place::new();
    let arguments = [
        "run",
        "--json",
        "--heap",
        "per-thread:threads=2",
        "--",
        "ls",
        "/",
    ];
    let (code, document) = place.json(&arguments);
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["heap"], "per-thread:threads=2");
    let figure = |key: &str| document[key].as_u64().expect("a figure");
    assert!(figure("peak_live") > 0 && figure("footprint") > figure("peak_live"));
    assert_eq!(figure("failures"), 0);
    // What is freed is counted, too.
    place.compile("steady", crate::support::STEADY, &[]);
    let arguments = ["run", "--json", "--heap", "per-thread", "--", "./steady"];
    let report = &place.json(&arguments).1["processes"][0];
    let figure = |key: &str| report[key].as_u64().expect("a figure");
    assert!(figure("frees") > figure("allocations") / 2, "{report}");
    assert!(figure("live") < figure("peak_live"), "{report}");
}

#[test]
fn run_passes_output_and_status_through_and_agrees_with_replay() {
    let place = recorded();
    let output = place.metes(&["run", "--heap", "best-fit", "--", "./steady"]);
    assert_eq!(status(&output), 0);
    assert!(stdout(&output).starts_with("sum "), "{}", stdout(&output));
    assert!(stderr(&output).contains("peak live"), "{}", stderr(&output));
    let output = place.metes(&["run", "--heap", "best-fit", "--", "sh", "-c", "exit 7"]);
    assert_eq!(status(&output), 7);
    place.write("heap.toml", "[heap]\nname = \"half-fit\"\n");
    let (code, document) = place.json(&["run", "--heap", "heap.toml", "--", "./steady"]);
    assert_eq!(code, 0);
    has_keys(&document, &["heap", "peak_live", "footprint", "status"]);
    let (_, replay) = place.json(&["replay", "t.trace.parquet", "--heap", "half-fit"]);
    for key in ["peak_live", "footprint"] {
        assert_eq!(document[key], replay[key], "{document}");
    }
    assert_eq!(
        document["processes"][0]["placements"], replay["placements"],
        "{document}"
    );
}

#[test]
fn traces_go_out_and_come_in() {
    let place = recorded();
    let output = place.metes(&["trace", "export", "t.trace.parquet", "-o", "t.csv"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let (_, document) = place.json(&["trace", "export", "t.trace.parquet", "-o", "t.csv"]);
    has_keys(&document, &["file", "written", "skipped"]);
    assert_eq!(document["skipped"], 0);
    let output = place.metes(&["trace", "import", "t.csv", "-o", "u.trace.parquet"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let replay = |trace: &str| {
        let (_, mut document) = place.json(&["replay", trace, "--heap", "tlsf"]);
        document["events_per_second"] = Value::Null;
        document
    };
    assert_eq!(replay("t.trace.parquet"), replay("u.trace.parquet"));
    let output = place.metes(&["trace", "export", "t.trace.parquet"]);
    assert_eq!(stdout(&output), place.read("t.csv"));
}

#[test]
fn traces_of_device_allocators_come_in() {
    let place = Place::new();
    let snapshot = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/traces/snapshot.pickle"
    );
    let (code, document) = place.json(&["trace", "import", snapshot, "-o", "a.trace.parquet"]);
    assert_eq!(code, 0);
    assert_eq!(document["events"], 35);
    assert_eq!(document["threads"], 2);
    place.write(
        "log.csv",
        "Thread,Time,Action,Pointer,Size,Stream\n1,0.1,allocate,0x100,512,0\n1,0.2,free,0x100,512,0\n",
    );
    let (_, document) = place.json(&["trace", "import", "log.csv", "-o", "b.trace.parquet"]);
    assert_eq!(document["events"], 2);
    let (_, replay) = place.json(&["replay", "b.trace.parquet", "--heap", "tlsf"]);
    assert_eq!(replay["peak_live"], 512);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = recorded();
    let mut child = place
        .command(&["trace", "export", "t.trace.parquet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("metes runs");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("a line");
    assert!(line.starts_with("op,"), "{line}");
    drop(stdout);
    let mut said = String::new();
    let mut errors = child.stderr.take().expect("a pipe");
    errors.read_to_string(&mut said).expect("text");
    assert_eq!(said, "");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn reproduce_lists_and_runs_experiments() {
    let place = Place::new();
    let (code, document) = place.json(&["reproduce"]);
    assert_eq!(
        (code, document["experiments"][0]["name"].as_str()),
        (0, Some("small-heaps"))
    );
    let (code, document) = place.json(&["reproduce", "small-heaps"]);
    assert_eq!(code, 0, "{document}");
    has_keys(&document, &["experiment", "rows", "assumptions"]);
    let rows = document["rows"].as_array().expect("a list");
    assert!(rows.len() > 10);
    for row in rows {
        has_keys(row, &["what", "paper", "ours", "ratio", "note"]);
    }
    assert!(
        rows.iter().any(|row| row["ratio"] == 1.0),
        "some row has a paper's value"
    );
}

#[test]
fn compact_fit_replays_with_and_without_moves() {
    let place = recorded();
    let (code, still) = place.json(&[
        "replay",
        "t.trace.parquet",
        "--heap",
        "compact-fit:moving=no,page=4096,largest=512",
    ]);
    assert_eq!(code, 0);
    let spec = "compact-fit:moving=no,page=4KiB,largest=512";
    assert_eq!(still["heap"], spec);
    assert!(still["record_reads"].as_u64() > Some(0), "{still}");
    let heap = "compact-fit:kappa=1,page=65536,largest=65528";
    let (code, moving) = place.json(&["replay", "t.trace.parquet", "--heap", heap]);
    has_keys(
        &moving,
        &[
            "heap",
            "events",
            "peak_live",
            "footprint",
            "smallest_arena",
            "failed",
            "record_reads",
            "record_writes",
            "events_per_second",
            "fragmentation",
            "moves",
        ],
    );
    assert_eq!(code == 0, moving["failed"] == 0);
    if moving["failed"] == 0 {
        assert_eq!(moving["peak_live"], still["peak_live"]);
    }
    assert!(moving["record_reads"].is_null(), "not counted");
    let of = |key: &str| moving["fragmentation"][key].as_u64().expect("a figure");
    assert!(of("live") > 0 && of("handles") > 0 && of("page_block_internal") > 0);
    let heap = "compact-fit:kappa=1,page=4096,smallest=32,largest=64";
    let output = place.metes(&["replay", "t.trace.parquet", "--heap", heap]);
    assert_eq!(status(&output), 1, "{}", stderr(&output));
    let text = stderr(&output);
    assert!(
        text.contains("above the largest class of 64 bytes"),
        "{text}"
    );
    assert!(text.contains("raise"), "{text}");
}

#[test]
fn run_warns_of_a_heap_that_searches_unless_told_not_to() {
    let place = Place::new();
    let said = |options: &[&str]| {
        let arguments = [&["run"], options, &["--", "true"]].concat();
        let output = place.metes(&arguments);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        stderr(&output)
    };
    for heap in ["best-fit", "segregated-fit", "lea"] {
        let warning = said(&["--heap", heap]);
        let lines = warning
            .lines()
            .filter(|line| line.contains("constant time"));
        assert_eq!(lines.count(), 1, "{warning}");
        assert!(warning.contains("--any-time"), "{warning}");
        let silent = said(&["--heap", heap, "--any-time"]);
        assert!(!silent.contains("constant time"), "{silent}");
    }
    for heap in ["tlsf", "half-fit", "buddy"] {
        let silent = said(&["--heap", heap]);
        assert!(!silent.contains("constant time"), "{silent}");
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let place = Place::new();
    let (_, written) = place.json(&["man", "-o", "pages"]);
    let files = written["files"].as_array().unwrap();
    assert!(files.len() > 17, "{written}");
    let page = |name: &str| place.read(&format!("pages/{name}.1"));
    assert!(
        page("metes").contains("metes\\-tune(1)"),
        "{}",
        page("metes")
    );
    for name in ["metes-tune", "metes-device-fit", "metes-curve-eval"] {
        assert!(page(name).contains(".SH SYNOPSIS"), "{name}");
    }
    // Once more they are replaced; what somebody else wrote is not, and then nothing is.
    assert_eq!(status(&place.metes(&["man", "-o", "pages"])), 0);
    place.write("pages/metes-tune.1", "mine");
    std::fs::remove_file(place.path("pages/metes.1")).unwrap();
    refused(
        &place.metes(&["man", "-o", "pages"]),
        &["metes-tune.1", "--replace"],
    );
    assert_eq!(page("metes-tune"), "mine");
    assert!(!place.path("pages/metes.1").exists());
}

#[test]
fn shells_complete_verbs_and_options() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = place.metes(&["completions", shell]);
        assert_eq!(status(&output), 0, "{shell}");
        let script = stdout(&output);
        assert!(
            script.contains("tune") && script.contains("heap-limit"),
            "{shell}"
        );
    }
    refused(&place.metes(&["completions", "csh"]), &["csh", "bash"]);
}
