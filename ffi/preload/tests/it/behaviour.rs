//! What programs may rely on, and what users see.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{
    PER_THREAD, compile, directory, heaps, is_slow, library, predicted, preload, run, succeed,
};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a shell line with the library preloaded into what follows `exec`.
fn shell(line: &str, heap: &str) -> Output {
    run(Command::new("sh")
        .args(["-c", line])
        .env("LIBRARY", library())
        .env("HEAP", heap))
}

#[test]
fn callers_see_glibc() {
    let program = compile("oddities.c", &[]);
    assert_eq!(
        text(&succeed(&mut Command::new(&program)).stdout),
        "as glibc\n"
    );
    for heap in heaps() {
        let done = run(preload(&mut Command::new(&program), heap));
        assert_eq!(text(&done.stderr), "", "on {heap}");
        assert_eq!(text(&done.stdout), "as glibc\n", "on {heap}");
    }
}

#[test]
fn threads_and_forks_leave_the_heap_sound() {
    let program = compile("stress.c", &[]);
    for heap in heaps() {
        let rounds = if is_slow(heap) { "10000" } else { "60000" };
        for arguments in [["4", rounds, "15"], ["8", rounds, "0"], ["1", rounds, "10"]] {
            let done = run(preload(Command::new(&program).args(arguments), heap));
            assert_eq!(text(&done.stderr), "", "{arguments:?} on {heap}");
            assert_eq!(
                text(&done.stdout),
                "sound\n",
                "{arguments:?} on {heap}: {}",
                done.status
            );
        }
    }
}

#[test]
fn signal_handlers_may_fork_and_leave() {
    let program = compile("interrupted.c", &[]);
    let report = directory("interrupted").join("report-%p.json");
    for heap in ["tlsf", "best-fit"] {
        let mut command = Command::new("timeout");
        command.arg("60").arg(&program).env("METES_REPORT", "");
        let done = run(preload(&mut command, heap));
        assert_eq!(
            done.status.code(),
            Some(6),
            "on {heap}: {}",
            text(&done.stderr)
        );
        let done = run(preload(&mut command, heap).env("METES_REPORT", &report));
        assert_eq!(
            done.status.code(),
            Some(6),
            "on {heap}: {}",
            text(&done.stderr)
        );
    }
}

/// What a handler may not do is told as what it is, not as something else.
#[test]
fn a_handler_inside_the_heap_is_named() {
    let program = compile("handler.c", &[]);
    for heap in ["tlsf", "tlsf:store=hardened"] {
        let done = run(preload(&mut Command::new(&program), heap));
        let said = text(&done.stderr);
        assert_eq!(done.status.signal(), Some(libc::SIGABRT), "{heap}: {said}");
        assert!(
            said.starts_with("metes: a handler of a signal"),
            "{heap}: {said}"
        );
    }
}

#[test]
fn cplusplus_is_served() {
    let binary = directory("objects").join("objects");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/objects.cc");
    let flags = ["-std=c++17", "-O1", "-pthread", source, "-o"];
    succeed(Command::new("g++").args(flags).arg(&binary));
    let plain = text(&succeed(&mut Command::new(&binary)).stdout);
    for heap in heaps() {
        let done = run(preload(&mut Command::new(&binary), heap));
        assert_eq!(text(&done.stdout), plain, "on {heap}: {}", done.status);
    }
}

#[test]
fn other_libraries_may_come_first() {
    let library_of_others = directory("early").join("early.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../base/programs/early.c");
    let flags = [
        "-O1",
        "-fno-builtin",
        "-fPIC",
        "-shared",
        "-pthread",
        source,
        "-o",
    ];
    succeed(Command::new("gcc").args(flags).arg(&library_of_others));
    let [own, other] =
        [library(), library_of_others.as_path()].map(|path| path.display().to_string());
    for heap in heaps() {
        for order in [format!("{own} {other}"), format!("{other} {own}")] {
            let mut command = Command::new("perl");
            command.args(["-e", "print join ',', map { 'x' x $_ } 1 .. 5"]);
            let done = run(preload(&mut command, heap).env("LD_PRELOAD", &order));
            assert_eq!(
                text(&done.stdout),
                "x,xx,xxx,xxxx,xxxxx",
                "{order} on {heap}: {}",
                done.status
            );
        }
    }
}

/// What plain boundary tags cannot see.
#[test]
fn a_hardened_heap_finds_what_overwrites_its_records() {
    let program = compile("misuse.c", &[]);
    for (kind, what) in [
        ("overflow", "beyond its end"),
        ("underflow", "in front of it"),
        ("after-free", "freed memory"),
    ] {
        for heap in [
            "tlsf:store=hardened",
            "best-fit:links=single,store=hardened",
        ] {
            let done = run(preload(Command::new(&program).arg(kind), heap));
            let said = text(&done.stderr);
            assert_eq!(done.status.signal(), Some(libc::SIGABRT), "{kind}: {said}");
            assert!(said.starts_with("metes: ") && said.contains(what), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}

#[test]
fn bad_frees_are_ignored_if_that_is_wished() {
    let program = compile("misuse.c", &[]);
    for kind in ["twice", "stack", "inside", "overflow"] {
        let mut command = Command::new(&program);
        command.arg(kind).env("METES_BAD_FREE", "ignore");
        let done = run(preload(&mut command, "tlsf:store=hardened"));
        assert!(done.status.success(), "{kind}: {}", done.status);
        assert!(text(&done.stderr).starts_with("metes: free(0x"));
        assert_eq!(text(&done.stdout).trim(), "not noticed");
    }
    let mut command = Command::new(&program);
    command.arg("twice").env("METES_BAD_FREE", "perhaps");
    let done = run(preload(&mut command, "tlsf"));
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("it can be `abort` or `ignore`"));
}

/// Who goes on could try every check; who is only wrong goes on as long as it likes.
#[test]
fn going_on_ends_where_checks_could_be_guessed() {
    let program = compile("misuse.c", &[]);
    let mut command = Command::new(&program);
    command.arg("guess").env("METES_BAD_FREE", "ignore");
    let done = run(preload(&mut command, "tlsf:store=hardened"));
    let said = text(&done.stderr);
    assert_eq!(done.status.signal(), Some(libc::SIGABRT), "{}", done.status);
    assert_eq!(said.lines().count(), 1024 + 1);
    assert!(
        said.ends_with("a hardened heap does not go on, as its checks could be guessed\n"),
        "{said}"
    );
    let mut command = Command::new(&program);
    command.arg("often").env("METES_BAD_FREE", "ignore");
    let done = run(preload(&mut command, "tlsf:store=hardened"));
    assert!(done.status.success(), "{}", done.status);
    assert_eq!(text(&done.stderr).lines().count(), 3000);
}

#[test]
fn a_report_is_not_written_through_a_link_to_a_file() {
    let directory = directory("linked");
    let (victim, link) = (directory.join("victim"), directory.join("report"));
    std::fs::write(&victim, "mine\n").unwrap();
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    let mut command = Command::new("true");
    let done = run(preload(&mut command, "tlsf").env("METES_REPORT", &link));
    assert!(done.status.success(), "{}", done.status);
    assert_eq!(
        text(&done.stderr),
        "metes: METES_REPORT: cannot write: it is a link, which is not followed\n"
    );
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine\n");
    // A link of the system to what the process has open is meant.
    let done = run(preload(&mut command, "tlsf").env("METES_REPORT", "/dev/stderr"));
    assert!(
        text(&done.stderr).starts_with("{\"pid\":"),
        "{}",
        text(&done.stderr)
    );
}

#[test]
fn what_must_not_be_freed_ends_the_program() {
    let program = compile("misuse.c", &[]);
    for (kind, what) in [
        ("twice", "free"),
        ("small-twice", "free"),
        ("global", "free"),
        ("stack", "free"),
        ("inside", "free"),
        ("misaligned", "free"),
        ("realloc", "realloc"),
    ] {
        for heap in ["tlsf", "best-fit", "tlsf:store=hardened", PER_THREAD] {
            let done = run(preload(Command::new(&program).arg(kind), heap));
            assert_eq!(
                done.status.signal(),
                Some(libc::SIGABRT),
                "{kind}: {}",
                done.status
            );
            let said = text(&done.stderr);
            assert!(
                said.starts_with(&format!("metes: {what}(0x")),
                "{kind}: {said}"
            );
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
    // In an object pool a second free is seen whatever happened in between.
    let composite = heaps().last().expect("the composite");
    let done = run(preload(
        Command::new(&program).arg("small-twice"),
        composite,
    ));
    assert!(
        text(&done.stderr).contains("not in use"),
        "{}",
        text(&done.stderr)
    );
}

#[test]
fn memory_ends_at_the_reserve() {
    let program = compile("exhaust.c", &[]);
    let directory = directory("reserve");
    for (name, pool) in [
        ("tlsf", ""),
        ("kingsley", ""),
        ("buddy", ""),
        ("first-fit", ""),
    ] {
        let path = directory.join(format!("{name}.toml"));
        let toml = format!("[heap]\nname = \"{name}\"\n{pool}[arena]\nreserve = \"3 MiB\"\n");
        std::fs::write(&path, toml).unwrap();
        for size in [100, 5000, 400_000] {
            let mut command = Command::new(&program);
            command.arg(size.to_string());
            let done = succeed(preload(&mut command, path.to_str().unwrap()));
            let got: usize = text(&done.stdout).trim().parse().unwrap();
            assert!(got < 3 << 20, "{name} gave {got} bytes");
            // Powers of two may waste half, and a block at the end.
            assert!(got > 1 << 20, "{name} gave {got} bytes in blocks of {size}");
        }
    }
}

#[test]
fn the_limit_of_address_space_is_kept() {
    let program = compile("exhaust.c", &[]);
    let line = format!(
        "ulimit -v 400000; LD_PRELOAD=$LIBRARY METES_HEAP=$HEAP exec {} 100000",
        program.display()
    );
    for heap in ["tlsf", PER_THREAD, heaps().last().expect("the composite")] {
        let done = shell(&line, heap);
        assert_eq!(
            done.status.code(),
            Some(0),
            "{heap}: {}",
            text(&done.stderr)
        );
        let got: usize = text(&done.stdout).trim().parse().unwrap();
        assert!(
            (20 << 20..400 << 20).contains(&got),
            "{heap} gave {got} bytes"
        );
    }
    let done = shell(
        "ulimit -v 400000; LD_PRELOAD=$LIBRARY exec perl -e 'print \"x\" x 3'",
        "",
    );
    assert_eq!(text(&done.stdout), "xxx");
    // The limit of data is met by an allocation that fails, not by a crash.
    let line = format!(
        "ulimit -d 100000; LD_PRELOAD=$LIBRARY METES_HEAP=$HEAP exec {} 100000",
        program.display()
    );
    let done = shell(&line, "tlsf");
    let got: usize = text(&done.stdout).trim().parse().unwrap();
    assert!(
        (10 << 20..110 << 20).contains(&got),
        "{got} bytes: {}",
        text(&done.stderr)
    );
}

#[test]
fn a_bad_heap_is_refused_before_main() {
    let directory = directory("bad");
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let typo = file("typo.toml", "[heap]\nname = \"tlsf\"\nsecond_levl = 8\n");
    let not_text = directory.join("bytes.toml");
    std::fs::write(&not_text, b"\xff\xfe").unwrap();
    let cases = [
        (
            "tslf".to_owned(),
            "there is no heap named `tslf` (did you mean `tlsf`?)".to_owned(),
        ),
        ("".to_owned(), "there is no heap named ``".to_owned()),
        (
            "fragmented".to_owned(),
            "a program needs pointers".to_owned(),
        ),
        (
            "tlsf:second_level=3".to_owned(),
            "heap:1:19: `second_level` must be a power of two".to_owned(),
        ),
        (
            "tlsf:store=ledger".to_owned(),
            "leave out the `store`".to_owned(),
        ),
        (
            "/no/such/heap.toml".to_owned(),
            "cannot read /no/such/heap.toml: no such file".to_owned(),
        ),
        (
            directory.display().to_string(),
            "it is a directory".to_owned(),
        ),
        (
            not_text.display().to_string(),
            "is not UTF-8 text".to_owned(),
        ),
        (
            typo.clone(),
            format!("{typo}:3:1: `tlsf` has no key `second_levl` (did you mean `second_level`?)"),
        ),
    ];
    for (heap, expected) in cases {
        let done = run(preload(Command::new("echo").arg("ran"), &heap));
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{heap}: {said}");
        assert_eq!(text(&done.stdout), "", "{heap}: main ran");
        assert!(
            said.starts_with("metes: METES_HEAP") && said.contains(&expected),
            "{heap}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn closed_streams_are_no_matter() {
    for heap in heaps() {
        let line = "LD_PRELOAD=$LIBRARY METES_HEAP=$HEAP exec perl -e '
            my %h; $h{$_} = \"x\" x $_ for 1 .. 500; exit(keys(%h) == 500 ? 7 : 1)' <&- >&- 2>&-";
        assert_eq!(shell(line, heap).status.code(), Some(7), "on {heap}");
    }
    let done = shell(
        "LD_PRELOAD=$LIBRARY METES_HEAP=no-such exec true <&- >&- 2>&-",
        "",
    );
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn children_have_heaps_of_their_own() {
    let directory = directory("children");
    let report = directory.join("report-%p.json");
    let line = "perl -e 'my @a = map { \"x\" x $_ } 1 .. 100; system(\"true\"); exit 0' && sh -c 'exec true'; true";
    succeed(
        preload(Command::new("sh").args(["-c", line]), "kingsley").env("METES_REPORT", &report),
    );
    let reports: Vec<_> = std::fs::read_dir(&directory).unwrap().flatten().collect();
    // The shell, perl, and the two programs that do nothing.
    assert!(reports.len() >= 4, "{} reports", reports.len());
    for entry in reports {
        let line = std::fs::read_to_string(entry.path()).unwrap();
        let pid = number(&line, "pid");
        assert!(
            entry
                .file_name()
                .to_string_lossy()
                .contains(&pid.to_string())
        );
        assert!(number(&line, "peak_live") >= number(&line, "live"));
        assert!(number(&line, "footprint") > number(&line, "live"));
    }
}

/// The number or the hash behind a key of a report.
fn field<'r>(report: &'r str, key: &str) -> &'r str {
    let start = report
        .find(&format!("\"{key}\":"))
        .expect("the key is there")
        + key.len()
        + 3;
    let end = report[start..].find([',', '}']).expect("a value ends") + start;
    report[start..end].trim_matches('"')
}

fn number(report: &str, key: &str) -> u64 {
    field(report, key).parse().expect("a number")
}

fn report_of(program: &Path, arguments: &[&str], heap: &str) -> String {
    let path = directory("report").join("report.json");
    succeed(preload(Command::new(program).args(arguments), heap).env("METES_REPORT", &path));
    let report = std::fs::read_to_string(&path).expect("a report was left");
    assert_eq!(report.lines().count(), 1);
    report
}

#[test]
fn runs_repeat_themselves_to_the_byte() {
    let program = compile("stress.c", &[]);
    let arguments = ["1", "20000", "0"];
    let mut requests = Vec::new();
    let mut placements = Vec::new();
    for heap in predicted() {
        let first = report_of(&program, &arguments, heap);
        let second = report_of(&program, &arguments, heap);
        for key in [
            "placements",
            "requests",
            "events",
            "peak_live",
            "live",
            "footprint",
        ] {
            assert_eq!(field(&first, key), field(&second, key), "{key} on {heap}");
        }
        assert_eq!(number(&first, "failures"), 0);
        let events =
            number(&first, "allocations") + number(&first, "frees") + number(&first, "resizes");
        assert_eq!(number(&first, "events"), events);
        requests.push(field(&first, "requests").to_owned());
        placements.push(field(&first, "placements").to_owned());
    }
    // The program asks the same of every heap, and each answers in its own way.
    requests.dedup();
    assert_eq!(requests.len(), 1);
    placements.sort();
    placements.dedup();
    assert!(
        placements.len() >= predicted().count() - 1,
        "{placements:?}"
    );
}

#[test]
fn named_heaps_are_the_general_ones_compiled() {
    let program = compile("stress.c", &[]);
    let arguments = ["1", "30000", "0"];
    for name in ["tlsf", "half-fit", "segregated-fit"] {
        let compiled = report_of(&program, &arguments, name);
        // A limit below the smallest block changes nothing, but is not the default; a hardened heap places
        // its blocks as a plain one, and beside TLSF those are of the general kind.
        for general in [
            format!("{name}:split_down_to=16"),
            format!("{name}:store=hardened"),
            format!("{name}:store=hardened,split_down_to=16"),
        ] {
            let other = report_of(&program, &arguments, &general);
            for key in ["placements", "events", "footprint", "peak_live"] {
                assert_eq!(
                    field(&compiled, key),
                    field(&other, key),
                    "{general}: {key}"
                );
            }
        }
    }
}

#[test]
fn the_report_is_what_the_program_did() {
    let directory = directory("counted");
    let source = directory.join("counted.c");
    // Without stdio, so that nothing but this allocates.
    let program = "#include <stdlib.h>\nint main(void) {\n\
        void *volatile a = malloc(1000); void *volatile b = malloc(0);\n\
        a = realloc(a, 3000); free(b); b = calloc(10, 10); free(a);\n\
        a = realloc(0, 50); a = realloc(a, 0); malloc(-1ul);\n\
        return b == 0; }\n";
    std::fs::write(&source, program).unwrap();
    let binary = directory.join("counted");
    succeed(
        Command::new("gcc")
            .arg("-w")
            .arg("-fno-builtin")
            .arg(&source)
            .arg("-o")
            .arg(&binary),
    );
    let report = report_of(&binary, &[], "tlsf");
    assert_eq!(number(&report, "allocations"), 4, "{report}");
    assert_eq!(number(&report, "frees"), 3);
    assert_eq!(number(&report, "resizes"), 1);
    assert_eq!(number(&report, "failures"), 1);
    assert_eq!(number(&report, "live"), 100);
    assert_eq!(number(&report, "peak_live"), 3100);
    // The hash as it is defined, over the events above.
    let events = [
        (1, 1000),
        (1, 1),
        (3, 3000),
        (2, 0),
        (1, 100),
        (2, 0),
        (1, 50),
        (2, 0),
    ];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in events.into_iter().flat_map(|(event, size)| [event, size]) {
        hash = (hash ^ word).wrapping_mul(0x100_0000_01b3);
        hash ^= hash >> 29;
    }
    assert_eq!(field(&report, "requests"), format!("{hash:016x}"));
}

/// A scratchpad for three sizes and small requests, main memory behind it.
const HIERARCHY: &str = r#"
[arena]
increment = 64
[[level]]
name = "scratchpad"
size = "24 KiB"
[[level]]
name = "main"
[[pool]]
kind = "dedicated"
size = 56
level = "scratchpad"
[[pool]]
kind = "general"
index = "best-fit"
up_to = 512
level = "scratchpad"
[[pool]]
kind = "general"
index = "tlsf"
level = "main"
"#;

#[test]
fn memory_levels_keep_to_their_sizes() {
    let directory = directory("levels");
    let heap = directory.join("heap.toml");
    let report = directory.join("report.json");
    std::fs::write(&heap, HIERARCHY).unwrap();
    let heap = heap.display().to_string();
    let script = "my %of; $of{$_} = 'x' x ($_ % 700) for 1 .. 3000; \
                  delete @of{grep { $_ % 3 } keys %of}; print scalar keys %of";
    let mut command = Command::new("perl");
    command.args(["-e", script]);
    let done = run(preload(&mut command, &heap).env("METES_REPORT", &report));
    assert_eq!(text(&done.stderr), "", "{}", done.status);
    assert_eq!(text(&done.stdout), "1000");
    let line = std::fs::read_to_string(&report).unwrap();
    let (_, levels) = line.split_once("\"levels\":[").expect("a part a level");
    let footprints: Vec<u64> = levels
        .split_inclusive('}')
        .filter(|level| level.contains("footprint"))
        .map(|level| number(level, "footprint"))
        .collect();
    assert_eq!(footprints.len(), 2, "{line}");
    assert!(footprints[0] <= 24 << 10, "{line}");
    assert!(footprints[0] > 23 << 10, "it is used up: {line}");
    assert!(footprints[1] > 100 << 10, "the rest spilled: {line}");
    assert_eq!(
        footprints.iter().sum::<u64>(),
        number(&line, "footprint"),
        "{line}"
    );
}

/// A tree is laid out for what a program was seen to need; another run of it may need more.
#[test]
fn what_a_tree_is_not_laid_out_for_is_mapped() {
    let program = compile("overflow.c", &[]);
    let directory = directory("overflow");
    for store in ["tagged", "hardened"] {
        let [with, without] = ["with", "without"].map(|name| {
            let mapped = if name == "with" { "128 KiB" } else { "no" };
            let path = directory.join(format!("{store}-{name}.toml"));
            let toml = format!(
                "[heap]\nname = \"first-fit\"\nsearch = \"tree\"\nspan = \"128 KiB\"\n\
                 store = \"{store}\"\n[arena]\nmapped = \"{mapped}\"\n"
            );
            std::fs::write(&path, toml).unwrap();
            path.display().to_string()
        });
        let report = directory.join("report.json");
        let mut command = Command::new(&program);
        let done = run(preload(&mut command, &with).env("METES_REPORT", &report));
        assert_eq!(text(&done.stderr), "", "{store}: {}", done.status);
        assert_eq!(text(&done.stdout), "served\n", "{store}: {}", done.status);
        // More than a million bytes in blocks of hundreds.
        let line = std::fs::read_to_string(&report).unwrap();
        assert!(number(&line, "peak_live") > 1 << 20, "{line}");
        assert_eq!(number(&line, "failures"), 0, "{line}");
        assert!(number(&line, "footprint") > number(&line, "peak_live"));
        let done = run(preload(&mut Command::new(&program), &without));
        assert_eq!(done.status.code(), Some(1), "the tree alone refuses");
    }
}

#[test]
fn large_blocks_are_guarded_by_their_table() {
    let program = compile("large.c", &[]);
    let hardened = "tlsf:store=hardened";
    for heap in ["tlsf", hardened] {
        let done = run(preload(&mut Command::new(&program), heap));
        assert_eq!(text(&done.stdout), "sound\n", "{}", text(&done.stderr));
        for (wrong, words) in [
            ("inside", "invalid pointer"),
            ("twice", "not in use"),
            ("resized", "not in use"),
        ] {
            let done = run(preload(Command::new(&program).arg(wrong), heap));
            assert_eq!(done.status.signal(), Some(libc::SIGABRT), "{wrong}");
            assert!(text(&done.stderr).contains(words), "{}", text(&done.stderr));
        }
    }
    let done = run(preload(Command::new(&program).arg("beyond"), hardened));
    assert!(text(&done.stderr).contains("a write beyond its end"));
}

/// What becomes of the pages of a large block that was freed.
#[test]
fn freed_pages_go_back_as_the_heap_says() {
    let program = compile("pages.c", &[]);
    let of = |heap: &str, word: &str| {
        let done = run(preload(Command::new(&program).arg(word), heap));
        assert!(done.status.success(), "{heap} {word}");
        text(&done.stdout).trim().to_owned()
    };
    for (pages, stale, kept) in [
        ("retain", "unnoticed", "kept"),
        ("bounded", "unnoticed", "kept"),
        // The next request pays all of it.
        ("bounded(10240)", "unnoticed", "returned"),
        ("graveyard", "trapped", ""),
        ("immediate", "trapped", "returned"),
    ] {
        for store in ["tagged", "hardened"] {
            let heap = format!("tlsf:store={store},pages={pages}");
            let done = run(preload(&mut Command::new(&program), &heap));
            assert_eq!(
                text(&done.stdout),
                "sound\n",
                "{heap}: {}",
                text(&done.stderr)
            );
            assert_eq!(of(&heap, "stale"), stale, "{heap}");
            // A reaper may not be done yet.
            if !kept.is_empty() {
                assert_eq!(of(&heap, "kept"), kept, "{heap}");
                assert_eq!(of(&heap, "trimmed"), "returned", "{heap}");
            }
        }
    }
    assert_eq!(of("tlsf:pages=bounded", "paid"), "returned");
    assert_eq!(of("tlsf:pages=retain", "paid"), "kept");
    assert_eq!(of("tlsf:pages=graveyard", "waited"), "returned");
    // What a program does wrong is found as without.
    let program = compile("large.c", &[]);
    for (wrong, words) in [("inside", "invalid pointer"), ("twice", "not in use")] {
        let done = run(preload(
            Command::new(&program).arg(wrong),
            "tlsf:pages=graveyard",
        ));
        assert_eq!(done.status.signal(), Some(libc::SIGABRT), "{wrong}");
        assert!(text(&done.stderr).contains(words), "{}", text(&done.stderr));
    }
    let done = run(preload(&mut Command::new(&program), "tlsf:pages=retain"));
    assert_eq!(text(&done.stdout), "sound\n", "{}", text(&done.stderr));
}

/// Where the addresses of a process are limited, the heap serves all the same.
#[test]
fn few_addresses_leave_large_blocks_to_the_pools() {
    let program = compile("large.c", &[]);
    let script = format!("ulimit -v 300000; exec {}", program.display());
    let done = run(preload(
        Command::new("sh").args(["-c", &script, "sh", "none"]),
        "tlsf:pages=graveyard",
    ));
    assert!(done.status.success(), "{}", text(&done.stderr));
}
