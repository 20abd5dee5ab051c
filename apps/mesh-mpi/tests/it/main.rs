//! Ranks under `mpirun`, on this machine: own heaps, heaps of others, blocks that one rank writes and another reads and frees,
//! ranks that are killed.
//!
//! Invariant: one `mpirun` at a time, as ranks that wait take turns on a processor.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use metes_heap::Tlsf;
use metes_mesh_replay::{FabricKind, Kill, Setting, Timed, Trace, replay, replay_with};
use metes_random::Random;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// So many ranks of a program.
fn mpirun(ranks: u32, more: &[&str], program: &Path, arguments: &[&str]) -> Output {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // Of its own, as two that start at a time would make the same directory, and one would fail.
    let scratch = tempfile::tempdir().expect("a directory for the test");
    // What hangs is ended, and so fails.
    Command::new("timeout")
        .args(["300", "mpirun", "--oversubscribe", "--mca", "osc", "sm"])
        .args(["--mca", "mpi_yield_when_idle", "1"])
        .args(["--mca", "orte_tmpdir_base"])
        .arg(scratch.path())
        .args(more)
        .args(["-n", &ranks.to_string()])
        .arg(program)
        .args(arguments)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output()
        .expect("mpirun is run: apt install openmpi-bin")
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_metes-mesh-mpi"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A trace in a file.
struct Written {
    text: String,
    file: tempfile::NamedTempFile,
}

impl Written {
    fn new(text: String) -> Written {
        let file = tempfile::NamedTempFile::new().expect("a file for the test");
        std::fs::write(file.path(), &text).expect("it is written");
        Written { text, file }
    }

    /// What ranks make of it.
    fn run(&self, ranks: u32, heap: u64, more: &[&str]) -> Timed {
        let (path, heap) = (self.file.path().display().to_string(), heap.to_string());
        let arguments = [&[&*path, "--heap", &*heap], more].concat();
        let output = mpirun(ranks, &["--enable-recovery"], &program(), &arguments);
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", said(&output)))
    }

    fn trace(&self, nodes: u32) -> Trace {
        Trace::read(self.text.as_bytes(), nodes).expect("a trace")
    }
}

/// Random operations, so many a node; the first asks for most, and whoever frees a block is drawn anew.
fn operations(seed: u64, nodes: u64, each: u64, uneven: bool) -> Written {
    let mut random = Random::new(seed);
    let (mut text, mut in_use, mut blocks) = (String::new(), Vec::new(), 0);
    for _ in 0..each * nodes {
        let full = in_use.len() as u64 > 40 * nodes;
        if in_use.is_empty() || !full && random.below(20) < 11 {
            let first = uneven && random.below(4) > 0;
            let node = if first { 0 } else { random.below(nodes) };
            let _ = writeln!(text, "a,{node},{blocks},{}", random.between(1, 400));
            in_use.push(blocks);
            blocks += 1;
        } else {
            let block = in_use.swap_remove(random.below(in_use.len() as u64) as usize);
            let _ = writeln!(text, "f,{},{block}", random.below(nodes));
        }
    }
    Written::new(text)
}

#[test]
fn a_window_is_reached_by_all() {
    let examples = program().parent().expect("a directory").join("examples");
    for ranks in [1, 2, 5] {
        let output = mpirun(ranks, &[], &examples.join("window"), &[]);
        assert!(output.status.success(), "{}", said(&output));
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(told.trim(), "the window does what it says");
    }
}

#[test]
fn ranks_agree_with_threads_where_there_is_room() {
    for ranks in [2u32, 4, 8] {
        let written = operations(u64::from(ranks), ranks.into(), 800, false);
        let index = |_| Tlsf::<8>::new();
        let threads = replay(
            &written.trace(ranks),
            ranks,
            1 << 17,
            FabricKind::Threads,
            index,
        );
        let threads = threads.expect("heaps fit");
        let timed = written.run(ranks, 1 << 17, &["--nodes", &ranks.to_string()]);
        let found = &timed.replayed;
        assert_eq!((found.failed, found.spurious, found.lost_blocks), (0, 0, 0));
        assert_eq!((found.live_bytes, found.undone), (threads.live_bytes, 0));
        // Each block is served by the own heap, and many are freed by another rank.
        assert_eq!((found.local, found.remote), (threads.local, 0));
        assert!(found.parked > 0, "{found:?}");
        let latency = timed.latency;
        assert_eq!(latency.local.calls, found.local);
        assert!(
            latency.free_remote.calls > 0 && latency.free.calls > 0,
            "{latency:?}"
        );
        assert!(timed.operations_per_second > 0.0 && latency.local.p50 <= latency.local.p99);
    }
}

#[test]
fn who_has_no_room_is_served_by_others() {
    for (ranks, heap) in [(2u32, 1 << 13), (4, 1 << 13), (8, 1 << 13)] {
        let written = operations(100 + u64::from(ranks), ranks.into(), 800, true);
        for kind in ["tlsf", "first-fit", "buddy"] {
            let timed = written.run(ranks, heap, &["--kind", kind]);
            let found = &timed.replayed;
            assert!(found.remote > 50, "{found:?}");
            assert!(found.parked > 50, "{found:?}");
            assert_eq!((found.lost_blocks, found.undone), (0, 0), "{found:?}");
            let whole = found.failed - found.spurious;
            assert!(whole > 0 || found.failed == 0, "{found:?}");
            assert_eq!(timed.latency.remote.calls, found.remote);
        }
    }
}

#[test]
fn a_rank_may_be_killed() {
    let written = operations(7, 4, 100, false);
    let trace = written.trace(4);
    for number in 0..12 {
        let kill = Kill {
            node: number % 4,
            operation: u64::from(number) * 7 % 60,
            step: u64::from(number / 2 * 9 % 31),
        };
        let place = format!("{}@{}.{}", kill.node, kill.operation, kill.step);
        let timed = written.run(4, 1 << 16, &["--kill", &place]);
        let found = &timed.replayed;
        assert_eq!(found.dead, [kill.node], "{kill:?} {found:?}");
        assert_eq!(
            (found.lost_blocks, found.failed),
            (0, 0),
            "{kill:?} {found:?}"
        );
        if kill.step == 0 {
            // Between two operations it has done the same as a thread that dies there.
            let setting = Setting {
                nodes: 4,
                heap: 1 << 16,
                fabric: FabricKind::Threads,
                kills: &[kill],
            };
            let index = |_| Tlsf::<8>::new();
            let threads = replay_with(&trace, setting, index, |_, _| {}).expect("heaps fit");
            assert_eq!(
                (found.live_bytes, found.undone),
                (threads.live_bytes, threads.undone),
                "{kill:?}"
            );
        }
    }
    // Two of them, where heaps are full.
    let uneven = operations(8, 4, 500, true);
    let timed = uneven.run(4, 1 << 13, &["--kill", "0@200.11", "--kill", "2@50.5"]);
    let found = &timed.replayed;
    assert_eq!(
        (&found.dead[..], found.lost_blocks),
        (&[0, 2][..], 0),
        "{found:?}"
    );
}

#[test]
fn what_cannot_be_is_told_once() {
    let written = operations(9, 3, 20, false);
    let path = written.file.path().display().to_string();
    for (ranks, arguments, says) in [
        (
            2,
            &[&*path, "--heap", "64KiB", "--nodes", "3"][..],
            "--nodes 3: mpirun has started 2 ranks: give mpirun -n 3",
        ),
        (
            2,
            &[&*path, "--heap", "64KiB"],
            "there is no node 2: nodes are 0 to 1",
        ),
        (
            3,
            &[&*path, "--heap", "64"],
            "--heap: a node's heap is too small",
        ),
        (3, &[&*path, "--heap", "9999TiB"], "give up to"),
        (
            3,
            &[&*path, "--heap", "64KiB", "--kill", "3@0"],
            "there is no node 3",
        ),
        (
            3,
            &[&*path, "--heap", "64KiB", "--kind", "compact-fit"],
            "--kind compact-fit",
        ),
        (3, &["none", "--heap", "64KiB"], "none: No such file"),
        (3, &[&*path], "arguments were not provided"),
    ] {
        let output = mpirun(ranks, &[], &program(), arguments);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {told}");
        assert_eq!(told.matches(says).count(), 1, "{arguments:?} {told}");
        assert!(output.stdout.is_empty());
    }
}
