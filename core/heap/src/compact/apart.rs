//! Compact-fit whose page-blocks are somewhere else than its tables: nowhere, for a replay.
//!
//! Invariant: pages and handles that the tables have no room for are never granted.

use super::automaton::Class;
use super::backing::{Backing, RECORD};
use super::handles::{ENTRY, Handles};
use super::heap::{CompactFit, Parts};
use super::layout::Tables;
use super::moving::unique_identities;
use super::options::{GRANULE, Options, Unfit};
use super::table::Table;
use crate::store::tagged::Memory;

/// Room for the tables of a heap of so many pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of memory for tables and handles.
    pub bytes: usize,
    /// Most bytes that handles take of them.
    pub handles: usize,
}

/// Most page-blocks of a page.
fn blocks(options: &Options) -> usize {
    let smallest = options.partition.classes(RECORD).next();
    smallest.map_or(1, |smallest| options.partition.page / smallest)
}

/// The room that tables for `pages` pages need, a handle for each page-block included.
///
/// # Errors
/// [`Unfit`] when options contradict each other.
pub fn room(options: &Options, pages: usize) -> Result<Room, Unfit> {
    options.validate(RECORD)?;
    let blocks = blocks(options);
    let handles = pages.saturating_mul(blocks * ENTRY);
    let classes = options.partition.classes(RECORD).count() * size_of::<Class>();
    let sizes = (options.partition.largest + RECORD).div_ceil(GRANULE) + 1;
    let records = pages.saturating_mul(Table::record_bytes(blocks));
    // What alignment of the parts costs is less than a largest page and its neighbours.
    let slack = 4 * 4096;
    Ok(Room {
        bytes: handles.saturating_add(classes + sizes + records + slack),
        handles,
    })
}

impl<B: Backing> CompactFit<B> {
    /// A heap over a backing, with its tables in `memory`, of the bytes that [`room`] said.
    ///
    /// # Errors
    /// [`Unfit`] when options contradict each other, or the memory is too small.
    ///
    /// # Safety
    /// [`Backing::pages_beside`] grants none beside more handles than [`Room::handles`].
    pub unsafe fn over(options: &Options, memory: Memory, backing: B) -> Result<Self, Unfit> {
        let identity = unique_identities(1).ok_or(Unfit::Identities)?;
        let tables = Tables::new(options, memory, RECORD, blocks(options) * ENTRY)?;
        // SAFETY: the end lies within the memory, and what is before it is granted as far as
        // the caller promised.
        let handles = unsafe { Handles::new(tables.base.add(tables.space), identity) };
        Ok(Self::from_parts(
            options,
            Parts {
                backing,
                table: tables.table,
                classes: tables.classes,
                by_size: tables.by_size,
                handles,
                align: tables.align,
            },
        ))
    }
}
