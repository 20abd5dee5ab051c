//! Indexes over the starts of regions: which region does a page belong to?
//!
//! The pages of a space are divided into regions, and a region is known by its first page. An
//! index is the set of these first pages; [`Index::find`] is the *find* of the union-split-find
//! problem, inserting a start splits a region, removing one unites two (RTCSA 2014, II-C2).
//!
//! Invariant: page 0 is a start whether or not its bit is set, so that zero-filled memory is the
//! index of one region over everything.

mod bitmap;
mod layered;

pub use bitmap::{Bitmap32, Bitmap64};
pub use layered::Layered;

/// A set of first pages of regions. All operations take time that depends on the capacity alone.
pub trait Index {
    /// Pages that the index can tell apart.
    const PAGES: usize;

    /// Makes `page` a start. `page` is below [`Index::PAGES`], as everywhere here.
    fn insert(&mut self, page: u32);

    /// Makes `page` one of the pages of the region before it.
    fn remove(&mut self, page: u32);

    /// Whether a region begins at `page`.
    fn contains(&self, page: u32) -> bool;

    /// The start of the region that `page` belongs to: the greatest start that is at most `page`.
    fn find(&self, page: u32) -> u32;

    /// The least start above `page`, if there is one.
    fn next(&self, page: u32) -> Option<u32>;
}
