//! The emitted Rust crate: builds without warnings, documents itself by an
//! example that runs, and decides what `metes_heap` decides.

use std::path::Path;
use std::process::Command;

use crate::support::{ARENA, drive, emitted, succeed};
use crate::{reference, sample};

/// Cargo on the emitted crate, with the versions that this workspace uses.
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

#[test]
fn the_emitted_crate_decides_alike() {
    // One target directory, so that `metes-heap` is built once.
    let target = tempfile::tempdir().unwrap();
    let driver = include_str!("tuned.rs").replace("DRIVER_ARENA", &ARENA.to_string());
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
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
        let rust = directory.path().join("rust");
        std::fs::create_dir(rust.join("examples")).unwrap();
        std::fs::write(rust.join("examples/driver.rs"), &driver).unwrap();
        std::fs::copy(&lock, rust.join("Cargo.lock")).unwrap();
        succeed(
            Command::new("rustfmt")
                .args(["--check", "--edition", "2024"])
                .arg(rust.join("src/lib.rs")),
        );
        cargo(directory.path(), target.path(), &["build", "--examples"]);
        if ["tlsf", "everything"].contains(&name) {
            cargo(directory.path(), target.path(), &["test", "--doc"]);
        }
        let operations = sample::operations(11, 2_000);
        let driven = drive(&target.path().join("debug/examples/driver"), &operations);
        let tagged = reference::tagged(&description, &operations);
        assert_eq!(driven, tagged.lines(), "{name}");
    }
}
