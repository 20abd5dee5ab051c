//! `tune` on real programs: output unchanged, predicted = measured.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{Place, STEADY, has_keys, parsed, status, stderr, stdout};

/// Seconds of exploration; enough for the named heaps.
const BUDGET: &str = "2";

/// Tunes a command with some variables; the document.
#[track_caller]
fn tune(place: &Place, variables: &[(&str, &str)], command: &[&str]) -> Value {
    let mut arguments = vec!["--json", "tune", "--budget", BUDGET, "-o", "out", "--"];
    arguments.extend(command);
    let mut metes = place.command(&arguments);
    metes.envs(variables.iter().copied());
    let output = metes.output().expect("metes runs");
    let (code, document) = parsed(&output);
    has_keys(
        &document,
        &[
            "heap",
            "predicted",
            "measured",
            "equal",
            "pareto",
            "report",
            "emitted",
        ],
    );
    for side in ["predicted", "measured"] {
        has_keys(&document[side], &["peak_live", "footprint"]);
    }
    assert_eq!(
        document["output_unchanged"],
        true,
        "{document}\n{}",
        stderr(&output)
    );
    for file in document["emitted"].as_array().expect("a list") {
        assert!(
            place.path(file.as_str().expect("a path")).exists(),
            "{file}"
        );
    }
    assert!(
        place
            .path(document["report"].as_str().expect("a path"))
            .exists()
    );
    // Whatever is said to be equal is equal.
    let same = document["predicted"] == document["measured"];
    assert!(document["equal"] == false || same, "{document}");
    let held = same || document["deterministic"] == false;
    assert_eq!(code == 0, held, "{document}");
    document
}

#[test]
fn a_c_program_is_predicted_block_by_block() {
    let place = Place::new();
    place.compile("steady", STEADY, &[]);
    let document = tune(&place, &[], &["./steady"]);
    assert_eq!(document["equal"], true, "{document}");
    assert_eq!(document["deterministic"], true, "{document}");
    assert_eq!(document["process"], "steady");
}

#[test]
fn the_summary_says_what_was_found() {
    let place = Place::new();
    place.compile("steady", STEADY, &[]);
    let output = place.metes(&["tune", "--budget", "1", "-o", "out", "--", "./steady"]);
    let text = stdout(&output);
    assert_eq!(status(&output), 0, "{text}{}", stderr(&output));
    assert!(
        text.starts_with("sum "),
        "the program's own output comes first: {text}"
    );
    for fragment in [
        "predicted = measured",
        "output unchanged",
        "out/report.html",
        "tlsf",
    ] {
        assert!(text.contains(fragment), "{fragment}: {text}");
    }
    let report = place.read("out/report.json");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    // What is proven of the chosen heap is said as it is, and of how many others it is.
    let heaps = report["heaps"].as_array().expect("a list");
    let chosen = heaps.iter().find(|heap| heap["chosen"] == true);
    let space = &chosen.expect("one is chosen")["bounds"]["heap_bytes"];
    let said = match space.is_null() {
        true => "no finite bound is known",
        false => "suffice for every program",
    };
    assert!(text.contains(said), "{said}: {text}");
    let configurations = &report["configurations"];
    let unbeaten = configurations["pareto"].as_array().expect("a list").len();
    let bounded = format!(
        "({} of {unbeaten} unbeaten heaps",
        configurations["bounded"]
    );
    assert!(text.contains(&bounded), "{bounded}: {text}");
    // Copying stands apart from the heap's own work.
    assert!(text.contains("copying"), "{text}");
    for heap in heaps {
        let cycles = |key: &str| heap[key].as_u64().expect("a number");
        let (own, copy) = (cycles("own_cycles_max"), cycles("copy_cycles_max"));
        let all = cycles("cycles_max");
        assert!(own.max(copy) <= all && all <= own + copy, "{heap}");
    }
    assert_eq!(report["chosen"]["equal"], true);
    assert_eq!(report["chosen"]["placements"]["equal"], true);
}

#[test]
fn python_running_a_script() {
    let place = Place::new();
    place.write(
        "script.py",
        "import json\nd = {str(i): [i] * (i % 7) for i in range(3000)}\n\
         t = json.dumps(d)\nprint(len(t), len(json.loads(t)))\n",
    );
    let document = tune(
        &place,
        &[("PYTHONHASHSEED", "0")],
        &["python3", "script.py"],
    );
    assert_eq!(document["equal"], true, "{document}");
    // Without the seed: equal or honestly not.
    tune(&place, &[], &["python3", "script.py"]);
}

#[test]
fn sqlite_filling_and_querying() {
    let place = Place::new();
    let sql = "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from \
               c where x < 3000) insert into t select x, hex(x * 7919) from c; create index i on \
               t(b); select count(*), min(b), max(b) from t where b like '3%';";
    let document = tune(&place, &[], &["sqlite3", ":memory:", sql]);
    assert_eq!(document["equal"], true, "{document}");
}

#[test]
fn gcc_compiling_a_file() {
    let place = Place::new();
    place.write("file.c", STEADY);
    let document = tune(&place, &[], &["gcc", "-O1", "-c", "file.c", "-o", "file.o"]);
    assert_eq!(document["process"], "cc1", "{document}");
    // cc1 sorts and hashes by address, so not every run can be predicted; what
    // is said of it must be true (see `tune`), and its code the same.
    assert!(place.path("file.o").exists());
}

#[test]
fn perl_with_a_fixed_hash_seed_and_without() {
    let place = Place::new();
    let script = "my %h; $h{$_} = $_ x 3 for 1 .. 2000; print join(',', sort keys %h), \"\\n\"";
    let seed = [("PERL_HASH_SEED", "0")];
    let document = tune(&place, &seed, &["perl", "-e", script]);
    assert_eq!(document["equal"], true, "{document}");
    tune(&place, &[], &["perl", "-e", script]);
}

#[test]
fn a_program_that_differs_from_run_to_run_is_not_called_equal() {
    let place = Place::new();
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        #include <time.h>
        int main(void) {
            struct timespec now;
            clock_gettime(CLOCK_MONOTONIC, &now);
            volatile char *block = malloc(100 + (size_t)(now.tv_nsec / 8 % 100000));
            block[0] = 1;
            puts("done");
            return 0;
        }
    "#;
    place.compile("random", source, &["-O0"]);
    let document = tune(&place, &[], &["./random"]);
    assert_eq!(
        (&document["equal"], &document["deterministic"]),
        (&false.into(), &false.into())
    );
    has_keys(
        &document["difference"],
        &["event", "recorded", "again", "events"],
    );
    let output = place.metes(&["tune", "--budget", "0.5", "-o", "out", "--", "./random"]);
    assert!(
        stdout(&output).contains("asks for other things in each run"),
        "{}",
        stdout(&output)
    );
    assert!(!stdout(&output).contains("predicted = measured"));
}

#[test]
fn input_through_a_pipe_is_given_to_every_run() {
    let place = Place::new();
    let mut command = place.command(&["--json", "tune", "--budget", "0.5", "--", "sort"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("metes runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, b"pear\napple\nfig\n").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let (_, document) = parsed(&output);
    assert_eq!(document["output_unchanged"], true, "{document}");
    assert!(
        stderr(&output).contains("apple\nfig\npear\n"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_limit_below_every_heap_is_said() {
    let place = Place::new();
    place.compile("steady", STEADY, &[]);
    let output = place.metes(&[
        "tune",
        "--budget",
        "0.5",
        "--heap-limit",
        "1k",
        "--",
        "./steady",
    ]);
    assert_eq!(status(&output), 1);
    assert!(
        stderr(&output).contains("no heap stays within 1 024 bytes"),
        "{}",
        stderr(&output)
    );
    assert!(place.path("metes-out/report.html").exists());
}

#[test]
fn exit_status_of_the_program_is_compared() {
    let place = Place::new();
    let document = tune(&place, &[], &["ls", "/no-such-directory"]);
    assert_eq!(document["status"], 2, "{document}");
    assert!(
        document["per_thread"].is_null(),
        "it has one thread: {document}"
    );
}

/// Threads are named as the cause where the prediction fails by them.
#[test]
fn threads_are_named_on_the_terminal() {
    let place = Place::new();
    let source = "#include <pthread.h>\n#include <stdlib.h>\n\
        static void *work(void *seed) {\n\
          for (size_t i = 0; i < 2000; ++i) free(malloc(1 + i * (size_t)seed % 900));\n\
          return 0; }\n\
        int main(void) { pthread_t t[4];\n\
          for (size_t i = 0; i < 4; ++i) pthread_create(&t[i], 0, work, (void *)(i + 1));\n\
          for (int i = 0; i < 4; ++i) pthread_join(t[i], 0);\n\
          return 0; }\n";
    place.compile("race", source, &["-pthread"]);
    let output = place.metes(&["tune", "--budget", "0.3", "-o", "out", "--", "./race"]);
    let text = stdout(&output);
    assert!(
        text.contains("made requests: their order differs"),
        "{text}"
    );
    assert!(text.contains("a heap for each: footprint"), "{text}");
    let cause = text.contains("threads race for the order of their requests");
    assert_eq!(cause, !text.contains("predicted = measured"), "{text}");
}
