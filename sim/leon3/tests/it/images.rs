//! The images of `sim/leon3/images`, built for the tests.
//!
//! Invariant: an image that was asked for exists; whoever lacks the compiler is told how to get it.

use std::path::{Path, PathBuf};
use std::process::Command;

use metes_leon3::Image;

/// The file of image `name`.
pub(crate) fn image(name: &str) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("leon3-images");
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/build");
    let done = Command::new(build).arg(&out).arg(name).output();
    let done = done.expect("images/build starts");
    assert!(
        done.status.success(),
        "image {name} cannot be built: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    out.join(format!("{name}.elf"))
}

/// The bytes of image `name`, with the words that `sizes` names by their symbols set.
pub(crate) fn sized(name: &str, sizes: &[(&str, u32)]) -> Vec<u8> {
    let mut bytes = std::fs::read(image(name)).expect("the image was built");
    let read = Image::read(&bytes).expect("an image");
    for &(symbol, value) in sizes {
        let symbol = read.symbol(symbol).expect("a word of the image");
        let at = offset(&bytes, symbol.address).expect("the word lies in the file");
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    bytes
}

/// Where in an ELF file the byte for `address` lies, by the description of its segments.
fn offset(file: &[u8], address: u32) -> Option<usize> {
    let word = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().expect("4 bytes"));
    let half = |at: usize| u16::from_be_bytes(file[at..at + 2].try_into().expect("2 bytes"));
    let (first, count) = (word(28) as usize, usize::from(half(44)));
    (0..count).find_map(|number| {
        let at = first + 32 * number;
        let [in_file, _, physical, size] = [4, 8, 12, 16].map(|field| word(at + field));
        let within = address.checked_sub(physical)?;
        (within < size).then_some((in_file + within) as usize)
    })
}
