//! Some hundred wrong invocations of every verb, a line each in `wrong.txt`: status 2, one clear message, no
//! panic, and every file as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Place, status, stderr};

/// Files of the user where results might go.
const MINE: [&str; 13] = [
    "mine",
    "minedir/heap.toml",
    "minedir/README.md",
    "minedir/report.html",
    "minedir/report.json",
    "minedir/trace.parquet",
    "minedir/results.parquet",
    "minedir/exploration.json",
    "minedir/c/heap.c",
    "minedir/rust/src/lib.rs",
    "minedir/Makefile",
    "minedir/worst.parquet",
    "minedir/units/manifest.json",
];
/// Files that are nearly right.
const OTHERS: [(&str, &str); 22] = [
    ("t.csv", "a,1,64\na,2,128\nf,1\na,3,256\nf,2\nf,3\n"),
    ("empty", ""),
    ("empty.toml", ""),
    ("garbage.parquet", "PAR1 what is this? PAR1"),
    ("bad.toml", "[heap\nname = 3\n"),
    ("bad.json", "{\"a\": [1,}"),
    ("bad.csv", "a,1,x\n"),
    ("bad.mppg", "f := := 3\n"),
    ("mine.py", "print(1)\n"),
    (
        "levels.toml",
        "[run]\nclock_mhz = 100\n[[level]]\nname = \"near\"\nsize = \"64KiB\"\n",
    ),
    (
        "set.toml",
        "[host]\ncores = 1\nmemory = 9\n[[function]]\nname = \"a\"\nperiod = 9\ndeadline = 9\nbudget = 1\nmemory = 1\n",
    ),
    ("twice.toml", "[host]\ncores = 1\ncores = 1\nmemory = 9\n"),
    ("negative.toml", "[host]\ncores = 1\nmemory = -9\n"),
    (
        "power.toml",
        "scheduler = \"edf\"\n[[job]]\nname = \"a\"\nrelease = 0\ndeadline = 2\nwork = 1\n",
    ),
    (
        "power_late.toml",
        "scheduler = \"edf\"\n[[job]]\nname = \"a\"\nrelease = 2\ndeadline = 1\nwork = 1\n",
    ),
    (
        "power_unsorted.toml",
        "scheduler = \"edf\"\n[processor]\ncpu = [2, 1]\n[[task]]\nname = \"a\"\nperiod = 2\ncpu = 1\n",
    ),
    (
        "sampled.toml",
        "name = \"traps\"\nmodule = \"traps.wasm\"\nperiod = \"10 ms\"\nbudget = \"1 ms\"\nsamples = [\"none.bin\"]\n",
    ),
    (
        "units.toml",
        "scheduler = \"edf\"\nunits = { time = \"us\", frequency = \"MHz\", power = \"mW\" }\n[processor]\ncpu = [1, 2]\n\
         [[task]]\nname = \"a\"\nperiod = 2\ncpu = 1\n",
    ),
    (
        "two.csv",
        "cpu_mhz,memory_mhz,time_ms,power_w\n600,200,3,2\n700,200,2.9,2.1\n",
    ),
    ("units.csv", "cpu_kg,memory_mhz,time_ms\n600,200,3\n"),
    ("below.csv", "cpu_mhz,memory_mhz,time_ms\n600,200,-3\n"),
    (
        "space.toml",
        "[general]\ncount = [1]\n[list]\nfit = [\"first\", \"best\"]\norder = [\"fifo\"]\n",
    ),
];

/// WebAssembly that is no module, has nothing, has no allocator, or traps.
const MODULES: [(&str, &[u8]); 4] = [
    ("cut.wasm", b"\0asm\x01\0\0\0\x01\x7f"),
    ("nothing.wasm", b"\0asm\x01\0\0\0"),
    ("memory.wasm", b"\0asm\x01\0\0\0\x05\x03\x01\0\x01"),
    // malloc(i32) -> i32, free(i32) and _start: each is `unreachable`.
    (
        "traps.wasm",
        b"\0asm\x01\0\0\0\x01\x0d\x03\x60\x01\x7f\x01\x7f\x60\x01\x7f\0\x60\0\0\x03\x04\x03\0\x01\x02\
          \x05\x03\x01\0\x01\x07\x23\x04\x06malloc\0\0\x04free\0\x01\x06_start\0\x02\x06memory\x02\0\
          \x0a\x0d\x03\x03\0\0\x0b\x03\0\0\x0b\x03\0\0\x0b",
    ),
];

fn prepared() -> Place {
    let place = Place::new();
    for directory in [
        "dir",
        "dir.wasm",
        "minedir/c",
        "minedir/rust/src",
        "minedir/units",
    ] {
        fs::create_dir_all(place.path(directory)).expect("a directory of the test");
    }
    for name in MINE {
        place.write(name, "my own words\n");
    }
    for (name, text) in OTHERS {
        place.write(name, text);
    }
    for (name, bytes) in MODULES {
        fs::write(place.path(name), bytes).expect("a file of the test");
    }
    std::os::unix::fs::symlink("loop", place.path("loop")).expect("a link of the test");
    let imported = place.metes(&["trace", "import", "t.csv", "-o", "t.parquet"]);
    assert_eq!(status(&imported), 0, "{}", stderr(&imported));
    let trace = fs::read(place.path("t.parquet")).expect("just written");
    fs::write(place.path("cut.parquet"), &trace[..trace.len() / 2]).expect("a file of the test");
    place
}

/// All that is below a directory.
fn there(directory: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).expect("a directory of the test") {
        let path = entry.expect("an entry").path();
        let link = fs::read_link(&path).map(|to| to.display().to_string().into_bytes());
        let content = link.or_else(|_| fs::read(&path)).unwrap_or_default();
        found.insert(path.display().to_string(), content);
        if path.is_dir() {
            there(&path, found);
        }
    }
}

fn words(line: &str) -> Vec<String> {
    let word = |word: &str| word.replace("\\e", "").replace("\\x1b", "\x1b");
    line.split(' ').map(word).collect()
}

/// What is wrong about how an invocation ended.
fn wrong(place: &Place, line: &str) -> Option<String> {
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = place.metes(&words);
    let said = stderr(&output);
    let clear = match said.lines().next() {
        // A usage error, and what is said to a verb that lacks a part.
        Some(first) if first.starts_with("error: ") => said.lines().count() <= 12,
        _ if said.contains("\nUsage: ") => true,
        Some(first) if first.starts_with("metes") && first.contains(": ") => {
            // The place in a text may be shown below.
            said.lines()
                .skip(1)
                .all(|line| line.trim_start().starts_with(['|', '1', '2']))
        }
        _ => false,
    };
    let fine = output.status.code() == Some(2) && clear && !said.contains("panicked");
    (!fine || said.contains('\x1b')).then(|| format!("{line}: {}: {said}", output.status))
}

#[test]
fn wrong_invocations_are_told_and_change_nothing() {
    let lines = include_str!("wrong.txt").lines();
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    assert!(lines.len() > 300);
    let place = prepared();
    let mut before = BTreeMap::new();
    there(&place.path("."), &mut before);
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || lines.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(take)
            .filter_map(|line| wrong(&place, line))
            .collect::<Vec<_>>()
    };
    let found: Vec<String> = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("it does not panic"))
            .collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
    let mut after = BTreeMap::new();
    there(&place.path("."), &mut after);
    let changed = |name: &&String| before.get(*name) != after.get(*name);
    let names = before.keys().chain(after.keys());
    assert_eq!(
        names.filter(changed).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}
