//! The shared libraries of the workspace, for tests that load them: in one build, as each set of packages that
//! cargo is asked for has dependencies with features of its own.
//!
//! Invariant: what a test loads is of the sources that it was built from: cargo has said so in this process, or
//! `METES_BUILT` names the folder, which `scripts/test` sets behind a build of the whole workspace.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What programs load, and what C links.
const PACKAGES: [&str; 6] = [
    "metes-record",
    "metes-preload",
    "metes-access",
    "metes-dry-device",
    "metes-c",
    "metes-device-c",
];

/// The folder of the libraries as users get them, whatever the profile of the test.
///
/// # Panics
/// When cargo cannot build them.
pub fn released() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| built(&target().join("release")))
}

/// The folder of the libraries in the profile of the test, beside the programs of that profile.
///
/// # Panics
/// When cargo cannot build them.
pub fn beside() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| built(&profile()))
}

/// The folder of the test's profile: a test is TARGET/PROFILE/deps/NAME.
fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2);
    profile.expect("it lies in a target folder").to_owned()
}

fn target() -> PathBuf {
    let profile = profile();
    let target = profile.parent().expect("above the profile");
    target.to_owned()
}

fn built(folder: &Path) -> PathBuf {
    if std::env::var_os("METES_BUILT").is_some_and(|built| Path::new(&built) == folder) {
        return folder.to_owned();
    }
    let mut build = Command::new(std::env::var_os("CARGO").expect("cargo runs this test"));
    build.args(["build", "--quiet", "--target-dir"]);
    build.arg(target());
    build.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    if folder.ends_with("release") {
        build.arg("--release");
    }
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    let status = build.status().expect("cargo can be run");
    assert!(status.success(), "the libraries cannot be built");
    folder.to_owned()
}
