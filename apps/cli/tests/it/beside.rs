//! `tune --beside`: today's allocators beside the chosen heap.
//!
//! Needs the allocators that `scripts/setup` installs.

use serde_json::Value;

use crate::support::{Place, STEADY, status, stderr, stdout};

/// An allocator that leaves malloc to the C library, and does something when the program begins.
fn allocator(place: &Place, file: &str, does: &str) {
    let source = format!(
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         __attribute__((constructor)) static void begin(void) {{\n\
           if (strcmp(program_invocation_short_name, \"steady\") == 0) {{ {does} }} }}\n"
    );
    place.compile(file, &source, &["-shared", "-fPIC"]);
}

fn row<'d>(document: &'d Value, allocator: &str) -> &'d Value {
    let rows = document["beside"]["rows"].as_array().expect("rows");
    let mut rows = rows.iter();
    rows.find(|row| row["allocator"] == allocator)
        .unwrap_or_else(|| panic!("{allocator}: {document}"))
}

#[test]
fn what_is_installed_runs_beside_the_chosen_heap() {
    let place = Place::new();
    place.compile("steady", STEADY, &[]);
    let arguments = [
        "tune", "--budget", "0.5", "--beside", "3", "-o", "out", "--", "./steady",
    ];
    let (code, document) = place.json(&arguments);
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["beside"]["runs"], 3);
    for allocator in ["glibc", "chosen", "jemalloc", "mimalloc", "tcmalloc"] {
        let row = row(&document, allocator);
        assert!(row["failed"].is_null(), "{row}");
        let median = &row["median"];
        for figure in ["peak_resident", "minor_faults"] {
            assert!(median[figure].as_u64().expect("a figure") > 0, "{row}");
        }
        // It has 64 blocks of some hundred bytes: what runs it is not among its memory, libraries are.
        assert!(
            median["peak_resident"].as_u64().expect("bytes") < 64 << 20,
            "{row}"
        );
        let in_library = !["glibc", "chosen"].contains(&allocator);
        assert_eq!(row["library"].is_string(), in_library, "{row}");
        let counted = document["beside"]["instructions_counted"] == true;
        assert_eq!(median["instructions"].is_u64(), counted, "{row}");
    }
    assert_eq!(row(&document, "glibc")["to_glibc"]["peak_resident"], 1.0);
    let report: Value = serde_json::from_str(&place.read("out/report.json")).expect("JSON");
    assert_eq!(report["beside"], document["beside"]);
}

#[test]
fn an_allocator_that_fails_is_a_row_that_says_so() {
    let place = Place::new();
    place.compile("steady", STEADY, &[]);
    allocator(&place, "libjemalloc.so.99", "abort();");
    allocator(&place, "libmimalloc.so.99", "puts(\"other\");");
    place.write("libtcmalloc_minimal.so.99", "no library");
    let mut metes = place.command(&["tune", "--budget", "0.5", "--beside", "1", "--", "./steady"]);
    let output = metes
        .env("LD_LIBRARY_PATH", place.path("."))
        .output()
        .expect("metes runs");
    let text = stdout(&output);
    assert_eq!(status(&output), 0, "{text}{}", stderr(&output));
    for fragment in [
        "predicted = measured",
        "one run on each",
        "the program was ended by signal 6 in run 1",
        "the program wrote another output in run 1",
        "the loader does not take it",
        "snmalloc",
    ] {
        assert!(text.contains(fragment), "{fragment}: {text}");
    }
    let report: Value = serde_json::from_str(&place.read("metes-out/report.json")).expect("JSON");
    for failed in ["jemalloc", "mimalloc", "tcmalloc"] {
        assert!(row(&report, failed)["median"].is_null(), "{report}");
    }
    assert!(row(&report, "chosen")["median"].is_object(), "{report}");
    let page = place.read("metes-out/report.html");
    assert!(page.contains("was ended by signal 6 in run 1"));
}

#[test]
fn a_program_that_takes_long_is_not_run_again_and_again() {
    let place = Place::new();
    let (code, document) = place.json(&["tune", "--budget", "0.3", "--", "sleep", "0.4"]);
    assert_eq!(code, 0, "{document}");
    let beside = &document["beside"];
    assert_eq!(beside["runs"], 0, "{document}");
    let why = beside["not_run"].as_str().expect("a reason");
    assert!(why.contains("a third of the exploration"), "{why}");
    let output = place.metes(&["tune", "--budget", "0.3", "--", "sleep", "0.4"]);
    assert!(
        stdout(&output).contains("(--beside N)"),
        "{}",
        stdout(&output)
    );
    let asked = [
        "tune", "--budget", "0.3", "--beside", "no", "--", "sleep", "0",
    ];
    let (_, document) = place.json(&asked);
    assert!(document["beside"].is_null(), "{document}");
}

/// Threads have a row of their own, and a program whose output differs from run to run is compared by its ending.
#[test]
fn threads_and_changing_output_have_their_rows() {
    let place = Place::new();
    let source = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n\
        static void *work(void *seed) {\n\
          for (size_t i = 0; i < 500; ++i) free(malloc(1 + i * (size_t)seed % 900));\n\
          return 0; }\n\
        int main(void) { pthread_t t[2]; struct timespec now;\n\
          for (size_t i = 0; i < 2; ++i) pthread_create(&t[i], 0, work, (void *)(i + 1));\n\
          for (int i = 0; i < 2; ++i) pthread_join(t[i], 0);\n\
          clock_gettime(CLOCK_MONOTONIC, &now);\n\
          printf(\"%ld.%09ld\\n\", (long)now.tv_sec, (long)now.tv_nsec); return 0; }\n";
    place.compile("race", source, &["-pthread"]);
    let (_, document) = place.json(&["tune", "--budget", "0.5", "--beside", "1", "--", "./race"]);
    for allocator in ["glibc", "chosen", "per-thread"] {
        let row = row(&document, allocator);
        assert!(row["median"].is_object(), "{document}");
    }
}
