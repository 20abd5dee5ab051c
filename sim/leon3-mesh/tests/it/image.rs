//! The image of `boards/leon3` whose cores are nodes, built for the tests, and runs of it.
//!
//! *Invariant:* an image that was asked for exists; whoever lacks the compiler is told how to get it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use metes_leon3::{Configuration, Image, Machine, Model, Stop};
use metes_leon3_mesh::{Settings, attach, memory};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const TARGET: &str = "sparc-unknown-none-elf";

/// The file.
pub(crate) fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(build)
}

fn build() -> PathBuf {
    let nightly = std::fs::read_to_string(Path::new(ROOT).join("scripts/nightly"));
    let nightly = nightly.expect("scripts/nightly names a toolchain");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("leon3-mesh-image");
    let mut cargo = Command::new("rustup");
    cargo.args([
        "run",
        nightly.trim(),
        "cargo",
        "build",
        "-q",
        "--release",
        "--locked",
    ]);
    cargo.args([
        "-Zbuild-std=core",
        "-p",
        "metes-leon3",
        "--bin",
        "metes-leon3-mesh",
    ]);
    cargo.args(["--target", TARGET, "--target-dir"]).arg(&out);
    cargo.current_dir(Path::new(ROOT).join("boards"));
    // The image's own settings, not those of the tests.
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTDOCFLAGS",
        "CARGO_BUILD_TARGET",
        "RUSTUP_TOOLCHAIN",
    ] {
        cargo.env_remove(name);
    }
    let done = cargo
        .output()
        .expect("rustup is missing: see https://rustup.rs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "the image cannot be built; run scripts/setup: {said}"
    );
    out.join(TARGET).join("release/metes-leon3-mesh")
}

/// A machine and where its nodes' memory is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) cores: usize,
    /// In the memory of a mesh, or in RAM.
    pub(crate) mesh: bool,
    pub(crate) model: Model,
    pub(crate) quantum: u64,
    pub(crate) rounds: u32,
}

/// A machine with the image.
pub(crate) fn machine(setting: Setting) -> Machine {
    let image = Image::read(&std::fs::read(path()).expect("it was built")).expect("an image");
    let configuration = Configuration {
        cores: setting.cores,
        model: setting.model,
        quantum: setting.quantum,
        memory: 16 << 20,
        ..Configuration::default()
    };
    let mut machine = Machine::with_image(&configuration, &image).expect("a machine");
    let mut set = |name: &str, word: u32| {
        let place = image.symbol(name).expect("a word of the image").address;
        let written = machine.bus.write_image(place, &word.to_be_bytes());
        written.expect("it lies in RAM");
    };
    set("NODES", setting.cores as u32);
    set("ROUNDS", setting.rounds);
    if setting.mesh {
        set("SHARED", memory::BASE);
        set("HOMES", memory::REGISTERS);
        attach(&mut machine, &settings(setting.cores)).expect("it fits");
    }
    machine
}

/// The mesh for so many cores.
pub(crate) fn settings(cores: usize) -> Settings {
    let side = (1..).find(|side| side * side >= cores);
    let side = side.expect("there is no end");
    Settings::new(side, side, 2 << 20)
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Lines of what is left in the end.
    pub(crate) state: Vec<String>,
    /// The line of the way there.
    pub(crate) way: String,
    pub(crate) stop: Stop,
    pub(crate) cycles: u64,
    pub(crate) instructions: u64,
}

/// Runs a machine to its end.
pub(crate) fn run(mut machine: Machine) -> Ran {
    let stop = machine.run(2_000_000_000, &mut ());
    let printed = String::from_utf8(machine.printed(0)).expect("text");
    let (state, way) = apart(&printed);
    Ran {
        state,
        way,
        stop,
        cycles: machine.cycles(),
        instructions: machine.instructions(),
    }
}

/// What is left in the end, and the way there.
pub(crate) fn apart(printed: &str) -> (Vec<String>, String) {
    let lines = printed.lines().map(str::trim_end).map(str::to_owned);
    let (way, state): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with('#'));
    (state, way.concat())
}

/// An image of `sim/leon3/images`.
pub(crate) fn c_image(name: &str) -> Image {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("leon3-images");
    let build = Path::new(ROOT).join("sim/leon3/images/build");
    let done = Command::new(build).arg(&out).arg(name).output();
    let done = done.expect("images/build starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "the image cannot be built; run scripts/setup: {said}"
    );
    let file = std::fs::read(out.join(format!("{name}.elf"))).expect("it was built");
    Image::read(&file).expect("an image")
}
