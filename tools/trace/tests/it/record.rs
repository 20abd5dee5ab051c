//! Records real programs and checks what comes out, event by event where it is
//! known. Needs a C compiler (`cc`, with the static C library), sqlite3, perl.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::Scratch;
use metes_trace::record::{Choice, Ending, Obstacle};
use metes_trace::{Op, RecordError, RecordOptions, Recording, Trace, profile, record};

/// Whether SIGINT was ignored before any recording began, as it is for the
/// background jobs of a script; programs inherit that.
static INTERRUPT_IGNORED: OnceLock<bool> = OnceLock::new();

/// The recording library, built at the first call.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        INTERRUPT_IGNORED.get_or_init(|| {
            // SAFETY: asks only; all-zero bytes are a valid place.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(libc::SIGINT, std::ptr::null(), &raw mut action);
                action.sa_sigaction == libc::SIG_IGN
            }
        });
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let status = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "metes-record",
                "--target-dir",
            ])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo can be run");
        assert!(status.success(), "the recording library cannot be built");
        target.join("debug/libmetes_record.so")
    })
}

/// Compiles `tests/programs/<name>.c`.
fn compile(scratch: &Scratch, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    let program = scratch.file(name);
    let status = Command::new("cc")
        .args(["-O1", "-fno-builtin", "-pthread", "-o"])
        .arg(&program)
        .arg(source.with_extension("c"))
        .args(flags)
        .status()
        .expect("the C compiler `cc` is needed: apt-get install gcc libc6-dev");
    assert!(status.success(), "{name}.c does not compile");
    program
}

fn run(words: &[&str]) -> Recording {
    let command: Vec<_> = words.iter().map(OsString::from).collect();
    let mut options = RecordOptions::new(library());
    options.environment = vec![("PERL_HASH_SEED".into(), "0".into())];
    let recording = record(&command, &options).unwrap_or_else(|error| panic!("{error}"));
    for process in recording.processes() {
        let loaded = process.load().unwrap();
        // Where room runs out, the last record may be cut.
        let cut = u64::from(process.lost > 0);
        let unfinished = loaded.unfinished;
        assert!(
            unfinished <= cut,
            "{}: {unfinished} torn or inverted",
            process.name()
        );
        if !process.forked {
            assert_eq!(
                loaded.unknown_frees,
                0,
                "{} lost an allocation",
                process.name()
            );
            assert_eq!(loaded.unknown_resizes, 0);
        }
    }
    recording
}

fn run_path(program: &Path, words: &[&str]) -> Recording {
    let mut command = vec![program.to_str().unwrap()];
    command.extend(words);
    run(&command)
}

/// What does not differ between runs of the same requests.
fn requests(trace: &Trace) -> Vec<(Op, u64, u64, u32, u32)> {
    trace
        .iter()
        .map(|e| (e.op, e.block, e.size, e.align, e.thread))
        .collect()
}

#[test]
fn every_function_of_the_family_is_one_event() {
    let scratch = Scratch::new();
    let recording = run_path(&compile(&scratch, "exact", &[]), &[]);
    assert_eq!(recording.ending, Ending::Exit(0));
    assert!(recording.children.is_empty());
    let page = 4096;
    let all = requests(&recording.main);
    // The C library may ask for memory of its own before main.
    let first = all
        .iter()
        .position(|event| event.2 == 1001)
        .expect("the first request");
    let base = all[first].1;
    let events: Vec<_> = all[first..]
        .iter()
        .map(|e| (e.0, e.1 - base, e.2, e.3))
        .collect();
    let expected = [
        (Op::Alloc, 0, 1001, 16),
        (Op::Alloc, 1, 201, 16),
        (Op::Alloc, 2, 50, 16),
        (Op::Resize, 0, 100_000, 16),
        (Op::Free, 2, 0, 0),
        (Op::Alloc, 3, 0, 16),
        (Op::Alloc, 4, 128, 64),
        (Op::Alloc, 5, 10, page),
        (Op::Alloc, 6, 1, 256),
        (Op::Alloc, 7, 3, page),
        (Op::Alloc, 8, u64::from(page), page),
        (Op::Resize, 1, 100, 16),
        (Op::Free, 1, 0, 0),
        (Op::Free, 3, 0, 0),
        (Op::Free, 5, 0, 0),
        (Op::Free, 7, 0, 0),
        (Op::Free, 8, 0, 0),
        (Op::Free, 6, 0, 0),
        (Op::Free, 4, 0, 0),
        (Op::Alloc, 9, 77, 16),
        (Op::Free, 9, 0, 0),
    ];
    assert_eq!(events, expected);
    assert!(recording.main.times().iter().is_sorted());
    assert!(recording.main.times().last().unwrap() > 0);
    let provenance = &recording.main.provenance;
    assert_eq!(provenance.threads, 1);
    assert!(provenance.command[0].ends_with("exact"));
}

/// A program that is linked with an allocator of its own, which exports the family under
/// more names: none of its own blocks is handed to it, and all are recorded.
#[test]
fn a_program_with_its_own_allocator_is_recorded() {
    let scratch = Scratch::new();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ffi/base/programs");
    let built = |name: &str, source: &str, flags: &[&OsStr]| {
        let output = scratch.file(name);
        let status = Command::new("cc")
            .args(["-O1", "-fno-builtin", "-Wno-use-after-free", "-o"])
            .arg(&output)
            .arg(programs.join(source))
            .args(flags)
            .status()
            .expect("the C compiler `cc` is needed: apt-get install gcc libc6-dev");
        assert!(status.success(), "{source} does not compile");
        output
    };
    let shared = ["-shared".as_ref(), "-fPIC".as_ref()];
    let other = built("libother.so", "other.c", &shared);
    let recording = run_path(&built("names", "names.c", &[other.as_os_str()]), &[]);
    assert_eq!(recording.ending, Ending::Exit(0));
    let all = requests(&recording.main);
    let taken = all
        .iter()
        .filter(|event| event.0 == Op::Alloc && event.2 == 100);
    assert!(
        taken.count() >= 16 * 19,
        "a block by each name, for each that takes it back"
    );
}

#[test]
fn threads_that_free_each_others_blocks_give_one_order() {
    let scratch = Scratch::new();
    // `run` asserts that no record was out of order.
    let recording = run_path(&compile(&scratch, "threads", &[]), &[]);
    let trace = &recording.main;
    let small = |e: &metes_trace::Event| e.op == Op::Alloc && (20..24).contains(&e.size);
    assert_eq!(trace.iter().filter(small).count(), 80_000);
    let large = |e: &metes_trace::Event| e.op == Op::Resize && (200..1200).contains(&e.size);
    assert_eq!(
        trace.iter().filter(large).count(),
        4 * 20_000_usize.div_ceil(3)
    );
    let profile = profile(trace);
    assert_eq!(profile.threads, 5);
    let frees = trace.iter().filter(|e| e.op == Op::Free).count();
    assert!(frees >= 80_000, "every exchanged block is freed: {frees}");
}

#[test]
fn more_threads_than_a_head_can_name() {
    let scratch = Scratch::new();
    let recording = run_path(&compile(&scratch, "many_threads", &[]), &[]);
    let mut threads = std::collections::BTreeSet::new();
    for n in 0..200u64 {
        let found: Vec<_> = recording
            .main
            .iter()
            .filter(|e| e.op == Op::Alloc && e.size == 5000 + n)
            .collect();
        assert_eq!(found.len(), 1, "thread {n}");
        threads.insert(found[0].thread);
        let block = found[0].block;
        let free = recording
            .main
            .iter()
            .find(|e| e.op == Op::Free && e.block == block);
        assert_eq!(free.map(|e| e.thread), Some(found[0].thread));
    }
    assert_eq!(threads.len(), 200);
}

#[test]
fn a_forked_child_has_a_trace_of_its_own() {
    let scratch = Scratch::new();
    let recording = run_path(&compile(&scratch, "forks", &[]), &[]);
    assert_eq!(recording.ending, Ending::Exit(7));
    let sizes: Vec<_> = recording.main.iter().map(|e| e.size).collect();
    assert!(sizes.contains(&1111) && sizes.contains(&3333) && !sizes.contains(&2222));
    let [child] = &recording.children[..] else {
        panic!("one child")
    };
    assert!(child.forked);
    assert_eq!(child.parent, recording.main_process.as_ref().unwrap().pid);
    let loaded = child.load().unwrap();
    assert_eq!(loaded.unknown_frees, 1);
    assert_eq!(
        loaded.trace.iter().map(|e| e.size).collect::<Vec<_>>(),
        [2222]
    );
}

#[test]
fn nothing_is_lost_whatever_ends_the_program() {
    let scratch = Scratch::new();
    let program = compile(&scratch, "dies", &[]);
    for signal in [
        libc::SIGKILL,
        libc::SIGABRT,
        libc::SIGSEGV,
        libc::SIGINT,
        libc::SIGTERM,
    ] {
        let recording = run_path(&program, &[&signal.to_string()]);
        let survives = signal == libc::SIGINT && INTERRUPT_IGNORED.get() == Some(&true);
        let ending = if survives {
            Ending::Exit(0)
        } else {
            Ending::Signal(signal)
        };
        assert_eq!(recording.ending, ending);
        let sizes: Vec<_> = recording
            .main
            .iter()
            .map(|e| e.size)
            .filter(|size| *size >= 4000)
            .collect();
        assert_eq!(sizes, (4000..5000).collect::<Vec<_>>(), "signal {signal}");
    }
}

#[test]
fn programs_that_close_or_limit_files() {
    let scratch = Scratch::new();
    let program = compile(&scratch, "grows", &[]);
    let blocks = |trace: &Trace| {
        trace
            .iter()
            .filter(|e| e.op == Op::Alloc && e.size == 48)
            .count()
    };
    let closes = run_path(&program, &["c"]);
    assert_eq!(
        closes.ending,
        Ending::Exit(0),
        "the program's descriptors are its own"
    );
    assert_eq!(blocks(&closes.main), 300_000);
    assert_eq!(closes.main.provenance.lost_events, 0);
    let limits = run_path(&program, &["l"]);
    assert_eq!(limits.ending, Ending::Exit(0), "no SIGXFSZ");
    let kept = blocks(&limits.main);
    assert!(kept > 10_000 && kept < 300_000, "{kept}");
    assert!(
        limits.main.provenance.lost_events > 0,
        "what is lost is told"
    );
}

#[test]
fn the_last_program_of_the_process_is_the_main_one() {
    let scratch = Scratch::new();
    let program = compile(&scratch, "forks", &[]);
    let recording = run(&["env", "A=1", program.to_str().unwrap()]);
    assert_eq!(recording.main_process.as_ref().unwrap().name(), "forks");
    assert!(recording.main.iter().any(|e| e.size == 1111));
    let shell = program.to_str().unwrap().to_owned() + "; true";
    let recording = run(&["sh", "-c", &shell]);
    let chosen = recording
        .choose(&Choice::Program("forks".to_owned()))
        .unwrap();
    assert!(chosen.iter().any(|e| e.size == 1111));
    let error = recording
        .choose(&Choice::Program("nothing".to_owned()))
        .unwrap_err();
    assert!(error.to_string().contains("forks"), "{error}");
    assert!(!recording.choose(&Choice::Largest).unwrap().is_empty());
}

#[test]
fn real_programs_make_the_same_requests_each_time() {
    let sql = "create table t(a, b); insert into t values (1, 'x'), (2, 'y'); \
               create index i on t(b); select b, count(*) from t group by b;";
    let perl = "my %h; $h{$_} = [1 .. $_ % 9] for 1 .. 500; print scalar(keys %h), qq(\\n);";
    let commands: [&[&str]; 3] = [
        &["sqlite3", ":memory:", sql],
        &["perl", "-e", perl],
        &["ls", "-l", env!("CARGO_MANIFEST_DIR")],
    ];
    for command in commands {
        let (first, second) = (run(command), run(command));
        assert_eq!(first.ending, Ending::Exit(0));
        assert!(
            first.main.len() > 100,
            "{}: {}",
            command[0],
            first.main.len()
        );
        assert!(
            requests(&first.main) == requests(&second.main),
            "{} differs",
            command[0]
        );
    }
}

#[test]
fn the_largest_process_of_a_compiler_driver_is_the_compiler() {
    let scratch = Scratch::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/exact.c");
    let object = scratch.file("exact.o");
    let words = [
        "gcc",
        "-O1",
        "-c",
        source.to_str().unwrap(),
        "-o",
        object.to_str().unwrap(),
    ];
    let recording = run(&words);
    assert_eq!(recording.ending, Ending::Exit(0));
    assert!(object.exists(), "the output is that of a plain run");
    let trace = recording.choose(&Choice::Largest).unwrap();
    assert!(
        trace.provenance.command[0].ends_with("cc1"),
        "{:?}",
        trace.provenance
    );
    assert!(trace.len() > recording.main.len());
}

#[test]
fn a_script_is_recorded_as_its_interpreter() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let script = scratch.file("script");
    std::fs::write(&script, "#!/usr/bin/env perl\nmy @a = (1 .. 100);\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let recording = run_path(&script, &[]);
    assert_eq!(recording.main_process.as_ref().unwrap().name(), "perl");
}

fn refusal(program: &Path) -> RecordError {
    record(&[program.into()], &RecordOptions::new(library())).unwrap_err()
}

fn obstacle(program: &Path) -> Obstacle {
    match refusal(program) {
        RecordError::CannotPreload { obstacle, .. } => obstacle,
        other => panic!("{other}"),
    }
}

#[test]
fn programs_that_cannot_be_recorded_are_refused_with_the_reason() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let statically = compile(&scratch, "dies", &["-static"]);
    assert_eq!(obstacle(&statically), Obstacle::Static);

    let text = scratch.file("text");
    std::fs::write(&text, "hello").unwrap();
    assert!(
        refusal(&text).to_string().contains("chmod +x"),
        "{}",
        refusal(&text)
    );
    std::fs::set_permissions(&text, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(obstacle(&text), Obstacle::Format);

    let missing = refusal(Path::new("no-such-program"));
    assert_eq!(
        missing.to_string(),
        "program no-such-program is not found in PATH; check its name"
    );
    assert!(
        refusal(scratch.path())
            .to_string()
            .contains("it is no file")
    );
    assert!(matches!(
        record(&[], &RecordOptions::new(library())),
        Err(RecordError::NoCommand)
    ));
    let error = record(&["ls".into()], &RecordOptions::new("/nowhere.so")).unwrap_err();
    assert!(error.to_string().contains("cargo build"), "{error}");

    // A directory that LD_PRELOAD cannot name.
    let spaced = scratch.file("a b");
    std::fs::create_dir(&spaced).unwrap();
    let mut options = RecordOptions::new(library());
    options.directory = Some(spaced);
    let error = record(&["ls".into()], &options).unwrap_err();
    assert!(matches!(error, RecordError::Directory { .. }), "{error}");

    // A script whose interpreter cannot be recorded.
    std::fs::write(&text, format!("#!{}\n", statically.display())).unwrap();
    assert_eq!(obstacle(&text), Obstacle::Static);

    // Of another user: made so if we may, else one that every system has.
    let privileged = compile(&scratch, "exact", &[]);
    if std::os::unix::fs::chown(&privileged, Some(12_345), None).is_ok() {
        std::fs::set_permissions(&privileged, std::fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(obstacle(&privileged), Obstacle::Privileged("setuid"));
    } else {
        assert_eq!(
            obstacle(Path::new("/usr/bin/passwd")),
            Obstacle::Privileged("setuid")
        );
    }
}

#[test]
fn the_directory_is_gone_afterwards() {
    let scratch = Scratch::new();
    let mut options = RecordOptions::new(library());
    options.directory = Some(scratch.path().to_owned());
    let count = || std::fs::read_dir(scratch.path()).unwrap().count();
    let recording = record(&["ls".into()], &options).unwrap();
    assert_eq!(count(), 1);
    drop(recording);
    assert_eq!(count(), 0);
}
