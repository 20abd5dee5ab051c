//! The emitted Rust crate: builds without warnings, documents itself by an
//! example that runs, and decides what `metes_heap` decides.

use std::path::{Path, PathBuf};
use std::process::Command;

use metes_emit::{self as emit, Options};
use metes_heap::description::{Description, General, List};
use metes_heap::{Composite, Hardened, IndexKind};
use tempfile::TempDir;

use crate::sample::Operation;
use crate::support::{ARENA, drive, drive_lines, emitted, emitted_hardened, line, succeed};
use crate::{guarded, reference, sample};

/// Cargo on the emitted crate, which needs no network.
fn cargo(directory: &Path, target: &Path, arguments: &[&str]) {
    succeed(
        Command::new(env!("CARGO"))
            .current_dir(directory.join("rust"))
            .env("CARGO_TARGET_DIR", target)
            .env("RUSTFLAGS", "-Dwarnings")
            .env("RUSTDOCFLAGS", "-Dwarnings")
            .args(arguments)
            .arg("--offline"),
    );
}

/// Lays an emitted crate where the one before lay. `metes-heap`, if it is alike to the byte, stays as
/// it is there, so that cargo builds it once.
fn settled(directory: &TempDir, target: &Path) -> PathBuf {
    const HEAP: &str = "metes-heap";
    let place = target.join("emitted");
    let (from, to) = (directory.path().join("rust"), place.join("rust"));
    std::fs::create_dir_all(&to).unwrap();
    let mut diff = Command::new("diff");
    diff.arg("-rq").arg(from.join(HEAP)).arg(to.join(HEAP));
    let alike = diff.output().unwrap().status.success();
    for old in std::fs::read_dir(&to).unwrap() {
        let old = old.unwrap();
        if old.file_name() != HEAP || !alike {
            match old.file_type().unwrap().is_dir() {
                true => std::fs::remove_dir_all(old.path()).unwrap(),
                false => std::fs::remove_file(old.path()).unwrap(),
            }
        }
    }
    for new in std::fs::read_dir(&from).unwrap() {
        let new = new.unwrap();
        if new.file_name() != HEAP || !alike {
            std::fs::rename(new.path(), to.join(new.file_name())).unwrap();
        }
    }
    place
}

/// Gives an emitted crate a program, and builds it without warnings. Returns where it lies.
fn build(directory: &TempDir, target: &Path, program: &str) -> PathBuf {
    let place = settled(directory, target);
    let rust = place.join("rust");
    std::fs::create_dir(rust.join("examples")).unwrap();
    std::fs::write(rust.join("examples/driver.rs"), program).unwrap();
    succeed(
        Command::new("rustfmt")
            .args(["--check", "--edition", "2024"])
            .arg(rust.join("src/lib.rs")),
    );
    cargo(&place, target, &["build", "--examples"]);
    place
}

#[test]
fn the_emitted_crate_decides_alike() {
    // One target directory, so that `metes-heap` is built once.
    let target = tempfile::tempdir().unwrap();
    let driver = include_str!("tuned.rs").replace("DRIVER_ARENA", &ARENA.to_string());
    for (name, description) in sample::some(&[
        "tlsf",
        "buddy",
        "ose",
        "lea",
        "single-links",
        "dedicated",
        "small-pages",
        "everything",
    ]) {
        let directory = emitted(&description);
        let place = build(&directory, target.path(), &driver);
        if ["tlsf", "everything"].contains(&name) {
            cargo(&place, target.path(), &["test", "--doc"]);
        }
        let operations = sample::operations(11, 2_000);
        let driven = drive(&target.path().join("debug/examples/driver"), &operations);
        let tagged = reference::tagged(&description, &operations);
        assert_eq!(driven, tagged.lines(), "{name}");
    }
}

/// Sound operations with bad ones among them: frees of what is free, of addresses inside
/// blocks, and bytes overwritten behind and in front of blocks.
fn with_bad_ones(operations: &[Operation]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut sizes = std::collections::HashMap::new();
    for (number, operation) in operations.iter().enumerate() {
        match *operation {
            Operation::Allocate { id, size, .. } | Operation::Resize { id, size, .. } => {
                sizes.insert(id, size);
            }
            Operation::Free { .. } => {}
        }
        lines.push(line(operation));
        let id = match *operation {
            Operation::Allocate { id, .. }
            | Operation::Resize { id, .. }
            | Operation::Free { id } => id,
        };
        // What grows past the arena is not there, or smaller than it asked to be.
        let size = sizes.get(&id).copied().filter(|&size| size < 1 << 18);
        match (number % 97, size) {
            (13, _) => lines.push(format!("f {id}")),
            (31, _) => lines.push(format!("m {id} 16")),
            (47, _) => lines.push(format!("m {id} 1")),
            (53, Some(size)) if number > 400 => {
                lines.push(format!("w {id} {size} 1"));
                lines.push(format!("f {id}"));
            }
            (71, Some(_)) if number > 1200 => {
                lines.push(format!("w {id} -8 8"));
                lines.push(format!("f {id}"));
            }
            _ => {}
        }
    }
    lines
}

#[test]
fn the_emitted_hardened_crate_decides_and_reports_alike() {
    const SECRET: u64 = 0x5eed;
    let target = tempfile::tempdir().unwrap();
    let driver = format!(
        "{}\nfn main() {{\n    \
         let capacity = {ARENA}_usize.checked_div(tuned_heap::SLAB).unwrap_or(0);\n    \
         let mut memory = vec![0; tuned_heap::SLABS.memory_words(capacity)];\n    \
         let mut slack = vec![0; capacity * tuned_heap::SLABS.slots()];\n    \
         let objects = tuned_heap::objects(&mut memory, &mut slack);\n    \
         let mut heap = tuned_heap::heap(objects, {SECRET});\n    \
         let lines = std::io::stdin().lines().map(|line| line.unwrap());\n    \
         let told = play(&mut heap, tuned_heap::POOLS, {ARENA}, lines);\n    \
         told.iter().for_each(|line| println!(\"{{line}}\"));\n}}\n",
        include_str!("guarded.rs")
    );
    for (name, description) in sample::some(&[
        "tlsf",
        "buddy",
        "ose",
        "lea",
        "single-links",
        "dedicated",
        "small-pages",
        "everything",
    ]) {
        let directory = emitted_hardened(&description);
        assert!(
            !directory.path().join("c").exists(),
            "C has no verification"
        );
        let place = build(&directory, target.path(), &driver);
        if ["tlsf", "everything"].contains(&name) {
            cargo(&place, target.path(), &["test", "--doc"]);
        }
        let operations = with_bad_ones(&sample::operations(12, 2_000));
        let driven = drive_lines(&target.path().join("debug/examples/driver"), &operations);
        let expected = reference::with_objects(&description, |objects| {
            let store = |pool| Hardened::new(SECRET.wrapping_add(pool as u64));
            let mut heap = Composite::describe(&description, store, objects);
            let pools = description.general.len();
            guarded::play(&mut heap, pools, ARENA, operations.iter().cloned())
        });
        for (number, line) in expected.iter().enumerate() {
            assert_eq!(
                driven.get(number),
                Some(line),
                "{name}, {number}: {:?}",
                operations.get(number)
            );
        }
        let reports = |what: &str| expected.iter().filter(|line| line.contains(what)).count();
        for what in ["NotInUse", "Foreign", "Overwritten"] {
            assert!(reports(what) > 0, "{name} has to report {what}");
        }
    }
}

/// What a pool keeps aside it gives up when nothing else serves, also behind the enum of several
/// pools and without sources: called directly, as `Composite` would ask more of them.
#[test]
fn pools_of_the_emitted_crate_give_up_what_they_keep() {
    let target = tempfile::tempdir().unwrap();
    let mut description = Description::of(IndexKind::Buddy { lowest: false });
    description.general = List::from_slice(&[
        General {
            up_to: 8,
            ..General::of(IndexKind::Buddy { lowest: false })
        },
        General::of(IndexKind::Lea { keep_up_to: 128 }),
    ]);
    let directory = emitted(&description);
    build(
        &directory,
        target.path(),
        "fn main() {
    let [_, Some(mut heap)] = tuned_heap::general() else {
        panic!(\"two pools\")
    };
    let memory = Box::leak(Box::new_uninit_slice(1 << 15));
    heap.add_region(metes_heap::Memory::from_static(memory)).unwrap();
    let blocks: Vec<_> = std::iter::from_fn(|| heap.allocate(24, 16)).collect();
    for &block in &blocks {
        // SAFETY: in use until now.
        unsafe { heap.free(block) }.unwrap();
    }
    print!(\"{} {}\", blocks.len(), heap.allocate(100, 16).is_some());
}
",
    );
    let driven = succeed(&mut Command::new(
        target.path().join("debug/examples/driver"),
    ));
    assert_eq!(driven.stdout, b"976 true");
}

/// The Rust program of the emitted README: what is indented, from its first `use` on.
fn program_of(readme: &str) -> String {
    let program = (readme.lines())
        .skip_while(|line| !line.starts_with("    use "))
        .take_while(|line| line.is_empty() || line.starts_with("    "));
    let lines = program.map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The README's program, from a copy of the folder and without a network, beside another copy
/// of `metes-heap`.
#[test]
fn what_is_emitted_travels() {
    let target = tempfile::tempdir().unwrap();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/heap");
    for (name, description) in sample::some(&["tlsf", "everything"]) {
        for directory in [emitted(&description), emitted_hardened(&description)] {
            let copy = tempfile::tempdir().unwrap();
            std::fs::rename(directory.path(), copy.path().join("heap")).unwrap();
            let own = copy.path().join("program");
            std::fs::create_dir_all(own.join("src")).unwrap();
            let readme = std::fs::read_to_string(copy.path().join("heap/README.md")).unwrap();
            let program = program_of(&readme);
            assert!(program.ends_with("}\n"), "{name}: {program}");
            std::fs::write(own.join("src/main.rs"), program).unwrap();
            let manifest = format!(
                "[package]\nname = \"program\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
                 tuned-heap = {{ path = \"../heap/rust\" }}\n\
                 checkout = {{ package = \"metes-heap\", path = {checkout:?} }}\n"
            );
            std::fs::write(own.join("Cargo.toml"), manifest).unwrap();
            let output = succeed(
                Command::new(env!("CARGO"))
                    .args(["run", "-q", "--offline"])
                    .current_dir(&own)
                    .env("CARGO_TARGET_DIR", target.path())
                    .env("RUSTFLAGS", "-Dwarnings"),
            );
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(
                said.starts_with("[\"measured\", \"limits\"], "),
                "{name}: {said}"
            );
        }
    }
}

#[test]
fn no_path_of_this_machine_is_emitted() {
    let here = env!("CARGO_MANIFEST_DIR");
    let place = Path::new(here)
        .ancestors()
        .nth(2)
        .unwrap()
        .to_str()
        .unwrap();
    let (_, description) = sample::some(&["tlsf"]).into_iter().next().unwrap();
    for file in emit::emit(&description, &Options::default()).unwrap() {
        assert!(!file.contents.contains(place), "{:?}", file.path);
    }
}
