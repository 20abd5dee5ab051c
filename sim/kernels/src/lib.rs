//! Four kernels over tiles, computed by a master and its slaves, and recorded with what they allocate and free.
//!
//! A master cuts an image into tiles. For each it allocates a descriptor and the input; a slave allocates what it needs
//! beside that and the result; the master takes the result over and frees all three, so the slave's result is freed by
//! another node than the one that asked for it. Kernels compute what they say: each is compared with its definition.
//!
//! | kernel | a tile's input | beside it, and freed by the slave | result |
//! | --- | --- | --- | --- |
//! | [`Fast`] | 22 x 22 bytes | | a list of corners, 12 bytes each |
//! | [`Gaussian`] | 20 x 20 bytes | 20 x 16 halves | 16 x 16 bytes |
//! | [`Integral`] | 16 x 16 bytes | | 16 x 16 words |
//! | [`Matrix`] | two blocks of 16 x 16 words | | a block of 16 x 16 words |
//!
//! ```
//! use metes_kernels::{Figures, Gaussian, Picture, record};
//! let picture = Picture::generated(64, 64, 1);
//! let (blurred, workload) = record(&mut Gaussian::new(&picture)?);
//! assert_eq!(blurred.width(), 64);
//! assert_eq!(workload.tasks.len(), 16);
//! // A descriptor and an input by the master, an intermediate and a result by the slave.
//! let figures = Figures::of(&workload);
//! assert_eq!(figures.master_allocations, 32);
//! assert_eq!(figures.allocations, 64);
//! # Ok::<(), metes_kernels::NotTiled>(())
//! ```
//!
//! *Invariant:* the same image gives the same workload, and one that passes [`Workload::check`].
#![forbid(unsafe_code)]

mod fast;
mod figures;
mod gaussian;
mod integral;
mod matrix;
mod operations;
mod picture;
mod tiles;
mod workshop;

pub use fast::{Corner, Fast, THRESHOLD};
pub use figures::{Figures, master_peak};
pub use gaussian::Gaussian;
pub use integral::{Integral, Sums};
pub use matrix::{Matrix, Product};
pub use operations::operations;
pub use picture::{NoPicture, Picture};
pub use tiles::{NotTiled, TILE};
pub use workshop::{Buffer, Kernel, Workshop, record};

use metes_platform::Workload;

/// The names of the kernels, in the order of the paper's tables.
pub const NAMES: [&str; 4] = ["fast", "gaussian", "integral", "matrix"];

/// Records the kernel of that name on a picture; none if there is no such kernel.
///
/// # Errors
/// [`NotTiled`]: the picture is no whole number of tiles.
pub fn record_named(name: &str, picture: &Picture) -> Result<Option<Workload>, NotTiled> {
    Ok(Some(match name {
        "fast" => record(&mut Fast::new(picture, THRESHOLD)?).1,
        "gaussian" => record(&mut Gaussian::new(picture)?).1,
        "integral" => record(&mut Integral::new(picture)?).1,
        "matrix" => record(&mut Matrix::of_picture(picture)?).1,
        _ => return Ok(None),
    }))
}
