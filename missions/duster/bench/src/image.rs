//! The flight software's image: of a file, or built from this repository.
//!
//! *Invariant:* what is built is what the sources are; an error says in one line what is missing and how it is got.

use std::path::{Path, PathBuf};
use std::process::Command;

use metes_leon3::Image;

/// The script that builds the image.
const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../build");

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum NoImage {
    /// A file cannot be read.
    #[error("cannot read the image {path}: {error}; give --image the path of an ELF file")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is none.
    #[error("{path} is no image: {error}")]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Why.
        error: metes_leon3::NoImage,
    },
    /// It cannot be built.
    #[error("the flight software cannot be built: {0}; give --image FILE to run one that is there")]
    Unbuilt(String),
}

/// The image in `path`, or the flight software of this repository, built if it is not up to date; and where it is.
///
/// # Errors
/// It cannot be read or built.
pub fn image(path: Option<&Path>) -> Result<(Image, PathBuf), NoImage> {
    let path = path.map_or_else(build, |path| Ok(path.to_owned()))?;
    let bytes = std::fs::read(&path).map_err(|error| NoImage::Unreadable {
        path: path.clone(),
        error,
    })?;
    match Image::read(&bytes) {
        Ok(image) => Ok((image, path)),
        Err(error) => Err(NoImage::Foreign { path, error }),
    }
}

fn build() -> Result<PathBuf, NoImage> {
    let output = Command::new(BUILD)
        .output()
        .map_err(|error| NoImage::Unbuilt(format!("{BUILD}: {error}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        let printed = text(&output.stdout);
        return Ok(PathBuf::from(printed.lines().last().unwrap_or_default()));
    }
    let said = text(&output.stderr);
    let error = said.lines().find(|line| line.starts_with("error"));
    let line = error.or(said.lines().last()).unwrap_or("it says nothing");
    Err(NoImage::Unbuilt(line.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image_is_told_in_a_line() {
        let said = |path: &str| image(Some(Path::new(path))).unwrap_err().to_string();
        let missing = said("/nowhere/duster-dpu");
        assert!(
            missing.contains("cannot read the image /nowhere/duster-dpu"),
            "{missing}"
        );
        let foreign = said(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        assert!(foreign.contains("no ELF file"), "{foreign}");
        assert!(!(missing + &foreign).contains('\n'));
    }
}
