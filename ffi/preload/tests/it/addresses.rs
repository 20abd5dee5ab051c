//! Where the heap lies, and how many addresses it takes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::common::{
    compile, directory, heaps, is_slow, library, predicted, preload, run, succeed,
};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where a small block and a large one lie, and how much is mapped.
fn places(wrapper: &[&str], heap: &str, wish: Option<&str>) -> String {
    let program = compile("places.c", &[]);
    let mut words = wrapper
        .iter()
        .copied()
        .chain([program.to_str().expect("text")]);
    let mut command = Command::new(words.next().expect("a program"));
    command
        .args(words)
        .envs(wish.map(|wish| ("METES_HEAP_ADDRESS", wish)));
    text(&succeed(preload(&mut command, heap)).stdout)
}

#[test]
fn each_process_has_its_own_place() {
    for heap in [
        "tlsf",
        "tlsf:store=hardened",
        heaps().last().expect("a composite"),
    ] {
        let random: BTreeSet<_> = (0..5).map(|_| places(&[], heap, None)).collect();
        assert!(random.len() >= 4, "{heap}: {random:?}");
        let fixed = places(&[], heap, Some("fixed"));
        assert_eq!(fixed, places(&[], heap, Some("fixed")), "{heap}");
        // A fixed layout of the process is one of the heap, unless it is to be random.
        let layout = ["setarch", "-R"];
        if run(Command::new("setarch").args(["-R", "true"]))
            .status
            .success()
        {
            assert_eq!(fixed, places(&layout, heap, None), "{heap}");
            assert_ne!(fixed, places(&layout, heap, Some("random")), "{heap}");
        }
    }
}

#[test]
fn a_heap_decides_the_same_whether_it_is_looked_at_or_not() {
    let program = compile("decisions.c", &[]);
    let report = directory("decisions").join("report");
    for heap in predicted().filter(|heap| !is_slow(heap)) {
        let parted = if heap.contains('=') { ',' } else { ':' };
        for heap in [heap.clone(), format!("{heap}{parted}store=hardened")] {
            if heap.contains(".toml:") {
                continue;
            }
            let sum = |report: Option<&Path>| {
                let mut command = Command::new(&program);
                command
                    .env("METES_HEAP_ADDRESS", "fixed")
                    .envs(report.map(|report| ("METES_REPORT", report)));
                text(&succeed(preload(&mut command, &heap)).stdout)
            };
            assert_eq!(sum(None), sum(Some(&report)), "{heap}");
        }
    }
}

#[test]
fn an_unknown_wish_is_refused() {
    let mut command = Command::new("true");
    let done = run(preload(&mut command, "tlsf").env("METES_HEAP_ADDRESS", "here"));
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(
        said.contains("`here`: it can be `random` or `fixed`"),
        "{said}"
    );
}

/// As much as without the library, but for what it takes itself.
#[test]
fn a_limit_of_addresses_leaves_most_to_the_heap() {
    let program = compile("exhaust.c", &[]);
    for (limit, least) in [(400_000, 350 << 20), (100_000, 80 << 20)] {
        let line = format!(
            "ulimit -v {limit}; LD_PRELOAD=$LIBRARY exec {} 100000",
            program.display()
        );
        let done = succeed(
            Command::new("sh")
                .args(["-c", &line])
                .env("LIBRARY", library()),
        );
        let got: usize = text(&done.stdout).trim().parse().expect("a number");
        assert!(got >= least, "{got} bytes of {limit} KiB");
    }
}

/// A limit that comes later, and memory that must not be swapped out, are met by what is
/// used, not by what might be.
#[test]
fn limits_set_later_count_what_is_used() {
    let program = compile("limits.c", &[]);
    let done = succeed(preload(&mut Command::new(&program), "tlsf"));
    assert_eq!(text(&done.stdout), "within limits\n");
}

/// A program that is linked with another allocator, which exports the family under more
/// names, gets all of them from the heap.
#[test]
fn every_name_is_served() {
    let directory = crate::common::directory("names");
    let programs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../base/programs");
    let flags = ["-O1", "-fno-builtin", "-Wno-use-after-free", "-o"];
    let other = directory.join("libother.so");
    let mut shared = Command::new("gcc");
    succeed(
        shared
            .args(["-shared", "-fPIC"])
            .args(flags)
            .arg(&other)
            .arg(programs.join("other.c")),
    );
    let program = directory.join("names");
    let mut linked = Command::new("gcc");
    succeed(
        linked
            .args(flags)
            .arg(&program)
            .arg(programs.join("names.c"))
            .arg(&other),
    );
    for heap in heaps() {
        let done = run(preload(&mut Command::new(&program), heap));
        assert_eq!(text(&done.stderr), "", "{heap}");
        assert_eq!(
            text(&done.stdout),
            "every name\n",
            "{heap}: {}",
            done.status
        );
    }
}

/// A thread waits for a stream with the list of streams locked, another has that stream and
/// asks for memory, a third forks.
#[test]
fn forks_do_not_wait_for_streams_with_the_heap_locked() {
    let program = compile("streams.c", &[]);
    for heap in ["tlsf", "tlsf:store=hardened"] {
        let done = run(preload(&mut Command::new(&program), heap));
        assert_eq!(
            text(&done.stdout),
            "all forked\n",
            "{heap}: {}",
            done.status
        );
    }
}
