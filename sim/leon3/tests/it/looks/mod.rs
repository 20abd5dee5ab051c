//! Tools that look on, beside something that knows nothing of them: each other, binutils, plain recounts.
//!
//! Images are found in the folder `METES_LEON3_IMAGES`, or built from `images/`.

mod disassemble;
mod snapshot;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use metes_leon3::Image;

/// The file of image `name`.
fn image_path(name: &str) -> Option<PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(folder).as_ref()?;
    let path = folder.join(format!("{name}.elf"));
    path.exists().then_some(path)
}

fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("METES_LEON3_IMAGES") {
        return Some(folder.into());
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("images");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("leon3-images");
    let built = Command::new(sources.join("build")).arg(&folder).status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "the images are not built; run scripts/setup"
    );
    Some(folder)
}

/// Image `name`, or a word on why there is none.
fn image(name: &str) -> Option<Image> {
    let Some(path) = image_path(name) else {
        eprintln!("not tried: there is no image {name}, and nothing to build it with");
        return None;
    };
    Some(Image::read(&std::fs::read(path).unwrap()).unwrap())
}
