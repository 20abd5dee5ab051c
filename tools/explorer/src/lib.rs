//! The explorer of an exploration's results.
//!
//! A [`Folder`] is what an exploration left on disk, checked. [`page`] makes one
//! HTML file of it that needs no server and no network and stays fluid at 10⁵
//! configurations; [`serve`] offers the same page on this machine and emits
//! heaps on request; [`export`] writes the configurations for other tools.

mod advice;
mod columns;
mod error;
pub mod export;
mod folder;
mod pack;
pub mod page;
mod patient;
mod read;
pub mod serve;

pub use columns::{Column, Columns, Values};
pub use error::Error;
pub use folder::{Folder, SCHEMA_VERSION};
