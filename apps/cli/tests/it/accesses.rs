//! `metes record --accesses`, from outside. Needs Debian's qemu-user.

use crate::support::{Place, STEADY, has_keys, refused, status, stderr, stdout};

#[test]
fn counts_are_recorded_profiled_and_exchanged() {
    let place = Place::new();
    place.compile("steady", STEADY, &["-O1"]);
    let recorded = place.json(&[
        "record",
        "--accesses",
        "--word",
        "8",
        "--every-access",
        "every.parquet",
        "-o",
        "t.trace.parquet",
        "--",
        "./steady",
    ]);
    let (ended, document) = recorded;
    assert_eq!(ended, 0);
    let keys = [
        "trace",
        "events",
        "word",
        "reads",
        "writes",
        "read_bytes",
        "write_bytes",
        "most_accessed",
        "instructions",
        "allocator_instructions",
        "slowdown",
        "equal",
        "agreement",
        "forks",
    ];
    has_keys(&document, &keys);
    // The program asks for the same in each run.
    assert_eq!(document["equal"], true, "{document}");
    assert_eq!(document["word"], 8);
    assert!(document["slowdown"].as_f64().expect("a ratio") > 1.0);
    assert!(
        document["every_access"]["accesses"]
            .as_u64()
            .expect("a number")
            > 1000
    );

    let (_, profile) = place.json(&["profile", "t.trace.parquet"]);
    for key in ["reads", "writes", "read_bytes", "write_bytes"] {
        assert_eq!(profile[key], document[key], "{key}");
    }
    assert_eq!(profile["access_word"], 8);
    let shown = stdout(&place.metes(&["profile", "t.trace.parquet"]));
    for words in ["most accessed", "words accessed", "outside malloc"] {
        assert!(shown.contains(words), "{words:?} is missing in: {shown}");
    }

    // As text and back, the counts are the same.
    let exported = place.metes(&["trace", "export", "t.trace.parquet", "-o", "t.csv"]);
    assert_eq!(status(&exported), 0, "{}", stderr(&exported));
    assert!(
        place
            .read("t.csv")
            .starts_with("op,block,size,align,thread,reads8,writes8,read_bytes,write_bytes\n")
    );
    let imported = place.metes(&["trace", "import", "t.csv", "-o", "back.trace.parquet"]);
    assert_eq!(status(&imported), 0, "{}", stderr(&imported));
    let (_, back) = place.json(&["profile", "back.trace.parquet"]);
    assert_eq!(back["sizes"][0]["reads"], profile["sizes"][0]["reads"]);
    assert_eq!(back["most_accessed"], profile["most_accessed"]);
}

#[test]
fn touches_are_recorded_and_read_back() {
    let place = Place::new();
    let source = "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(20123); \
                  p[5000] = 1; p[4096] = 2; p[20122] = p[0]; p = realloc((char *)p, 123); \
                  p[1] = 3; free((char *)p); return 0; }";
    place.compile("touches", source, &["-O0"]);
    let record = |more: &[&str]| {
        let mut words = vec!["record", "--accesses", "--once", "--touches", "t.touches"];
        words.extend(more);
        words.extend(["-o", "t.trace.parquet", "--", "./touches"]);
        place.json(&words)
    };
    let (ended, document) = record(&[]);
    assert_eq!(ended, 0);
    has_keys(&document["touches"], &["file", "slice", "profile"]);
    let text = place.read("t.touches");
    let expected = "a,0,20123\nw,0,5000\nr,0,0\nw,0,20122\na,1,123\nw,1,0\nf,0\nf,1\n";
    assert!(text.starts_with("# ") && text.ends_with(expected), "{text}");
    let (ended, read) = place.json(&["trace", "touches", "t.touches"]);
    assert_eq!(ended, 0);
    assert_eq!(read["profile"], document["touches"]["profile"]);
    assert_eq!(read["profile"]["peak_touched_slices"], 4);
    let said = stdout(&place.metes(&["trace", "touches", "t.touches"]));
    assert!(said.contains("8 operations, 2 blocks"), "{said}");
    // The same again is the same file; in finer slices there is more of it.
    record(&[]);
    assert_eq!(place.read("t.touches"), text);
    let (_, finer) = record(&["--slice", "16"]);
    assert_eq!(finer["touches"]["slice"], 16);
    assert!(place.read("t.touches").contains("w,0,5000\nw,0,4096\n"));
}

#[test]
fn actions_are_generated() {
    let place = Place::new();
    let generate = |more: &[&str]| {
        let mut words = vec!["trace", "generate", "touches", "-o", "s.touches"];
        words.extend(more);
        place.json(&words)
    };
    let (ended, document) = generate(&["--actions", "10000", "--largest", "64KiB"]);
    assert_eq!(
        (ended, &document["profile"]["operations"]),
        (0, &10_000.into())
    );
    let text = place.read("s.touches");
    let (_, read) = place.json(&["trace", "touches", "s.touches"]);
    assert_eq!(read["profile"], document["profile"]);
    generate(&["--actions", "10000", "--largest", "64KiB", "--seed", "2"]);
    assert_ne!(place.read("s.touches"), text);
    refused(
        &place.metes(&["trace", "generate", "packets", "-o", "p", "--actions", "9"]),
        &["--actions", "touches"],
    );
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let place = Place::new();
    place.compile("static", "int main(void) { return 0; }", &["-static"]);
    let record = |more: &[&str]| {
        let mut words = vec!["record", "-o", "t.trace.parquet"];
        words.extend(more);
        place.metes(&words)
    };
    let wanted = ["announced no block", "announce.c"];
    refused(&record(&["--accesses", "--", "./static"]), &wanted);
    let wanted = ["qemu-none", "package qemu-user"];
    let missing = ["--accesses", "--qemu", "qemu-none", "--", "ls"];
    refused(&record(&missing), &wanted);
    refused(
        &record(&["--accesses", "--word", "3", "--", "ls"]),
        &["--word", "4, 8"],
    );
    refused(&record(&["--once", "--", "ls"]), &["--accesses"]);
    let same = [
        "--accesses",
        "--every-access",
        "t.trace.parquet",
        "--",
        "ls",
    ];
    refused(&record(&same), &["same file"]);
    let away = ["--accesses", "--", "sh", "-c", "exec true"];
    refused(&record(&away), &["replaced itself"]);
    assert!(!place.path("t.trace.parquet").exists());
}

#[test]
fn a_program_that_dies_leaves_its_counts() {
    let place = Place::new();
    let source = "#include <stdlib.h>\nint main(void) { volatile int *p = malloc(70); p[1] = 2; \
                  abort(); }";
    place.compile("dies", source, &["-O0"]);
    let died = place.metes(&[
        "record",
        "--accesses",
        "-o",
        "t.trace.parquet",
        "--",
        "./dies",
    ]);
    refused(&died, &["./dies", "SIGABRT (6)", "t.trace.parquet"]);
    let (_, profile) = place.json(&["profile", "t.trace.parquet"]);
    assert_eq!(profile["write_bytes"], 4);
}
