//! Unmodified programs under an emitted heap.

use std::path::{Path, PathBuf};
use std::process::Command;

use metes_emit::{BuildError, build_preload, build_preload_with};
use serde_json::Value;

use crate::sample;
use crate::support::{emitted, succeed};

/// Runs a command with and without the library: the output must be the same.
/// Returns the reports of all its processes.
fn run_under(library: &Path, directory: &Path, command: &[&str]) -> Vec<Value> {
    let reports = directory.join("reports");
    let _ = std::fs::remove_dir_all(&reports);
    std::fs::create_dir(&reports).unwrap();
    let start = || {
        let mut start = Command::new(command[0]);
        start
            .args(&command[1..])
            .env("PYTHONHASHSEED", "0")
            .env("PERL_HASH_SEED", "0");
        start
    };
    let alone = succeed(&mut start());
    let under = succeed(
        start()
            .env("LD_PRELOAD", library)
            .env("METES_REPORT", reports.join("%p.json")),
    );
    assert_eq!(
        String::from_utf8_lossy(&alone.stdout),
        String::from_utf8_lossy(&under.stdout),
        "{command:?}"
    );
    assert_eq!(
        String::from_utf8_lossy(&alone.stderr),
        String::from_utf8_lossy(&under.stderr),
        "{command:?}"
    );
    let mut read = Vec::new();
    for entry in std::fs::read_dir(&reports).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert_eq!(text.lines().count(), 1, "one line a process: {text}");
        read.push(serde_json::from_str(&text).unwrap());
    }
    read
}

fn number(report: &Value, key: &str) -> u64 {
    report[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {report}"))
}

fn plausible(report: &Value) {
    assert!(number(report, "events") > 0, "{report}");
    assert!(number(report, "allocations") >= number(report, "frees"));
    assert!(number(report, "peak_live") >= number(report, "live"));
    assert!(number(report, "footprint") >= number(report, "peak_live"));
    assert_eq!(number(report, "failures"), 0, "{report}");
    for hash in ["placements", "requests"] {
        assert_eq!(report[hash].as_str().unwrap().len(), 16, "{report}");
    }
}

fn libraries() -> Vec<(tempfile::TempDir, PathBuf)> {
    sample::some(&["tlsf", "next-fit", "everything"])
        .into_iter()
        .map(|(_, description)| {
            let directory = emitted(&description);
            let library = build_preload(directory.path()).unwrap();
            (directory, library)
        })
        .collect()
}

#[test]
fn real_programs_run_unchanged() {
    let sql = "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 \
               from n where i < 2000) insert into t select i, hex(i * 7919) from n; \
               create index s on t(b); select count(*), sum(a), min(b), max(b) from t;";
    let perl = "my %h; $h{$_ % 977} .= $_ x 3 for 1..20000; \
                print join(',', map { length $h{$_} } sort { $a <=> $b } keys %h), \"\\n\"";
    let python = "import json, threading\n\
                  out = [None] * 4\n\
                  def work(k):\n    out[k] = len(json.dumps([{str(i): [i] * (i % 7)} for i in range(3000)]))\n\
                  ts = [threading.Thread(target=work, args=(k,)) for k in range(4)]\n\
                  [t.start() for t in ts]; [t.join() for t in ts]\n\
                  print(out)";
    for (directory, library) in libraries() {
        let source = directory.path().join("c/heap.c");
        let source = source.to_str().unwrap();
        for command in [
            &["sqlite3", ":memory:", sql][..],
            &["perl", "-e", perl],
            &["python3", "-c", python],
            &["gcc", "-O1", "-S", "-o", "-", source],
        ] {
            let reports = run_under(&library, directory.path(), command);
            assert!(!reports.is_empty(), "{command:?} reports");
            reports.iter().for_each(plausible);
        }
    }
}

#[test]
fn the_same_run_has_the_same_hashes() {
    let (directory, library) = libraries().remove(2);
    let command = [
        "perl",
        "-e",
        "my @a = map { 'x' x $_ } 1..500; print scalar @a",
    ];
    let first = run_under(&library, directory.path(), &command);
    let second = run_under(&library, directory.path(), &command);
    let other = run_under(&library, directory.path(), &["perl", "-e", "print 500"]);
    assert_eq!(first.len(), 1);
    assert_eq!(first[0]["requests"], second[0]["requests"]);
    assert_eq!(first[0]["placements"], second[0]["placements"]);
    assert_ne!(first[0]["requests"], other[0]["requests"]);
}

#[test]
fn limits_on_the_address_space_are_respected() {
    let (directory, library) = libraries().remove(2);
    // Less than one range of the heap: it must do with less, and leave some.
    let script = "ulimit -v 4000000; exec perl -e 'print length(\"x\" x 50_000_000)'";
    let reports = run_under(&library, directory.path(), &["sh", "-c", script]);
    let perl = reports
        .iter()
        .max_by_key(|report| number(report, "peak_live"));
    assert!(number(perl.unwrap(), "peak_live") >= 50_000_000);
}

#[test]
fn forks_threads_and_quick_exits_report() {
    let (directory, library) = libraries().remove(2);
    let source = directory.path().join("family.c");
    std::fs::write(&source, include_str!("family.c")).unwrap();
    let program = directory.path().join("family");
    succeed(
        Command::new("cc")
            .args([
                "-std=c99",
                "-O1",
                "-fno-builtin",
                "-pthread",
                "-Wall",
                "-Werror",
                "-o",
            ])
            .arg(&program)
            .arg(&source),
    );
    let command = [program.to_str().unwrap()];
    let reports = run_under(&library, directory.path(), &command);
    // The parent, and the child that leaves by `_exit`; the one that leaves by
    // `_exit` after `vfork` shares its parent's memory and has no report.
    assert_eq!(reports.len(), 2, "{reports:?}");
    for report in &reports {
        assert!(number(report, "events") > 10_000, "{report}");
    }
}

/// A program that is linked with another allocator, which exports the family under more
/// names, gets all of them from the heap.
#[test]
fn every_name_is_served() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ffi/base/programs");
    let (directory, library) = libraries().remove(0);
    let flags = ["-O1", "-fno-builtin", "-Wno-use-after-free", "-o"];
    let other = directory.path().join("libother.so");
    let mut shared = Command::new("cc");
    succeed(
        shared
            .args(["-shared", "-fPIC"])
            .args(flags)
            .arg(&other)
            .arg(programs.join("other.c")),
    );
    let program = directory.path().join("names");
    let mut linked = Command::new("cc");
    succeed(
        linked
            .args(flags)
            .arg(&program)
            .arg(programs.join("names.c"))
            .arg(&other),
    );
    let reports = run_under(&library, directory.path(), &[program.to_str().unwrap()]);
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(
        number(&reports[0], "allocations") >= 18 * 19,
        "{}",
        reports[0]
    );
}

/// Heaps lie elsewhere in each process, unless they are to lie where they always do; and
/// they take no more addresses than memory.
#[test]
fn addresses_are_random_unless_fixed_and_few() {
    let (directory, library) = libraries().remove(0);
    let place = |wish: Option<&str>, line: &str| {
        let script = format!("{line} exec python3 -c 'print(id(object()) >> 21)'");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .env("LIBRARY", &library)
            .env("PYTHONMALLOC", "malloc");
        command.envs(wish.map(|wish| ("METES_HEAP_ADDRESS", wish)));
        String::from_utf8(succeed(&mut command).stdout).unwrap()
    };
    let load = "export LD_PRELOAD=$LIBRARY;";
    let random: std::collections::BTreeSet<_> = (0..4).map(|_| place(None, load)).collect();
    assert!(random.len() > 1, "{random:?}");
    let fixed = place(Some("fixed"), load);
    assert_eq!(fixed, place(Some("fixed"), load));
    // 150 MB in the heap, where 300 MB of addresses are to be had.
    let script = "ulimit -v 300000; export LD_PRELOAD=$LIBRARY; \
                  exec perl -e 'print length(\"x\" x 150_000_000)'";
    let mut command = Command::new("sh");
    let done = succeed(command.args(["-c", script]).env("LIBRARY", &library));
    assert_eq!(done.stdout, b"150000000");
    drop(directory);
}

/// A library whose constructor comes before ours, starts a thread and forks.
#[test]
fn other_libraries_may_come_first() {
    let (directory, library) = libraries().remove(0);
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../ffi/base/programs/early.c"
    );
    let early = directory.path().join("early.so");
    let flags = [
        "-std=gnu11",
        "-O1",
        "-fno-builtin",
        "-pthread",
        "-shared",
        "-fPIC",
        "-o",
    ];
    succeed(Command::new("cc").args(flags).arg(&early).arg(source));
    for order in [[&library, &early], [&early, &library]] {
        let order = order.map(|path| path.to_str().unwrap()).join(" ");
        let script = "exec timeout -k 9 300 perl -e 'print 1'";
        let done = succeed(
            Command::new("sh").args(["-c", &format!("export LD_PRELOAD='{order}'; {script}")]),
        );
        assert_eq!(done.stdout, b"1", "{order}");
    }
}

/// What other libraries free at the very end is part of the report.
#[test]
fn the_report_is_kept_up_to_date() {
    let (directory, library) = libraries().remove(0);
    let late = directory.path().join("liblate.so");
    let program = directory.path().join("late");
    let build = |output: &Path, flags: &[&str], code: &str| {
        let source = output.with_extension("c");
        std::fs::write(&source, code).unwrap();
        succeed(
            Command::new("cc")
                .args(["-std=c99", "-O1", "-fno-builtin", "-o"])
                .args([output, &source])
                .args(flags),
        );
    };
    build(
        &late,
        &["-shared", "-fPIC"],
        "#include <stdlib.h>\nvoid *late[500];\nvoid take(void)\n{\n    for (int at = 0; at < 500; \
         at += 1) late[at] = malloc(1000);\n}\n__attribute__((destructor)) static void \
         leave(void)\n{\n    for (int at = 0; at < 500; at += 1) free(late[at]);\n}\n",
    );
    build(
        &program,
        &[late.to_str().unwrap()],
        "void take(void);\nint main(void)\n{\n    take();\n    return 0;\n}\n",
    );
    let reports = run_under(&library, directory.path(), &[program.to_str().unwrap()]);
    assert_eq!(reports.len(), 1);
    assert!(number(&reports[0], "peak_live") >= 500_000);
    assert!(number(&reports[0], "live") < 500_000, "{}", reports[0]);
    assert_eq!(number(&reports[0], "frees"), 500, "{}", reports[0]);
}

#[test]
fn a_missing_compiler_is_named() {
    let (_, description) = sample::named().remove(0);
    let directory = emitted(&description);
    let error = build_preload_with(directory.path(), "no-such-compiler -m64").unwrap_err();
    assert!(matches!(error, BuildError::NoCompiler(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("`no-such-compiler` was not found"), "{text}");
    assert!(text.contains("apt install gcc"), "{text}");
}

#[test]
fn a_refusing_compiler_is_quoted() {
    let (_, description) = sample::named().remove(0);
    let directory = emitted(&description);
    std::fs::write(directory.path().join("c/heap.c"), "#error out of order\n").unwrap();
    let error = build_preload(directory.path()).unwrap_err();
    assert!(error.to_string().contains("out of order"), "{error}");
}
