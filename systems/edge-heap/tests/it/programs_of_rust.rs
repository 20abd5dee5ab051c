//! Programs of Rust as modules, by the compilers of the machine.

use std::path::Path;

use crate::support::{cargo, crate_directory};

/// A program of Rust on the emitted crate of a heap, which lies in a directory.
pub(crate) fn rust_on_crate(source: &str, emitted: &Path) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let text = crate_directory().join("tests/rust").join(source);
    let text = std::fs::read_to_string(text).expect("a program");
    // Made as its README says.
    let readme = std::fs::read_to_string(emitted.join("../README.md")).expect("a README");
    let made = ["global", "Global::new"]
        .into_iter()
        .find(|made| readme.contains(&format!("tuned_heap::{made}(unsafe {{ Single::new() }})")));
    let made = made.expect("how the heap is made");
    let text = text
        + &format!(
            "
#[global_allocator]
static HEAP: tuned_heap::Global<tuned_heap::metes_heap::lock::Single, {{ 1 << 20 }}> =
    // SAFETY: the module has one thread.
    tuned_heap::{made}(unsafe {{ tuned_heap::metes_heap::lock::Single::new() }});
"
        );
    let manifest = format!(
        "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\ntuned-heap = {{ path = \"{}\" }}\n",
        emitted.display()
    );
    std::fs::create_dir(directory.path().join("src")).expect("a directory");
    std::fs::write(directory.path().join("src/main.rs"), text).expect("a file");
    std::fs::write(directory.path().join("Cargo.toml"), manifest).expect("a file");
    let target = directory.path().join("target");
    cargo(directory.path(), &target, &[]);
    std::fs::read(
        directory
            .path()
            .join("target/wasm32-wasip1/release/program.wasm"),
    )
    .expect("a module")
}
