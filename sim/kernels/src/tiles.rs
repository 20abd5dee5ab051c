//! Pictures as tiles.
//!
//! *Invariant:* tiles cover a picture, none lies upon another.

use crate::picture::Picture;
use crate::workshop::{Buffer, Workshop};

/// Pixels of a tile's side.
pub const TILE: usize = 16;
/// Bytes of what tells a slave its task: places and sizes of input and result, eight words.
pub(crate) const DESCRIPTOR_WORDS: usize = 8;
/// Instructions to write it, and to read it: a store or load a word, and the call.
pub(crate) const DESCRIPTOR_INSTRUCTIONS: u64 = 2 * DESCRIPTOR_WORDS as u64;
/// Instructions to copy an item: load, store, next, compare, branch.
pub(crate) const COPY_INSTRUCTIONS: u64 = 5;

/// A picture that is no whole number of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{width} x {height} is no whole number of tiles of {TILE} x {TILE}: cut out a part whose sides are multiples of {TILE}"
)]
pub struct NotTiled {
    /// Its columns.
    pub width: usize,
    /// Its rows.
    pub height: usize,
}

/// How many tiles `width` x `height` pixels have, in a row and in all.
pub(crate) fn tiles(width: usize, height: usize) -> Result<(usize, usize), NotTiled> {
    let whole = |size: usize| size > 0 && size.is_multiple_of(TILE);
    if whole(width) && whole(height) {
        let columns = width / TILE;
        Ok((columns, columns * (height / TILE)))
    } else {
        Err(NotTiled { width, height })
    }
}

/// The tiles of a picture.
pub(crate) struct Tiles<'a> {
    pub(crate) picture: &'a Picture,
    columns: usize,
    pub(crate) count: usize,
}

impl<'a> Tiles<'a> {
    pub(crate) fn of(picture: &'a Picture) -> Result<Self, NotTiled> {
        let (columns, count) = tiles(picture.width(), picture.height())?;
        Ok(Tiles {
            picture,
            columns,
            count,
        })
    }

    /// Where tile `number` begins.
    pub(crate) fn origin(&self, number: usize) -> (usize, usize) {
        (number % self.columns * TILE, number / self.columns * TILE)
    }

    /// The master's part before a slave works: a descriptor, and the tile with `margin` pixels around it.
    pub(crate) fn prepare(&self, number: usize, margin: usize, master: &mut Workshop) -> Input {
        let descriptor = descriptor(number, master);
        let side = TILE + 2 * margin;
        let mut pixels = master.allocate::<u8>(side * side);
        let (x, y) = self.origin(number);
        for (at, pixel) in pixels.iter_mut().enumerate() {
            let column = (x + at % side) as isize - margin as isize;
            let row = (y + at / side) as isize - margin as isize;
            *pixel = self.picture.nearest(column, row);
        }
        master.compute(COPY_INSTRUCTIONS * (side * side) as u64);
        Input { descriptor, pixels }
    }

    /// Puts a tile of items where it belongs in all of them, which a master does.
    pub(crate) fn put<T: Copy>(
        &self,
        number: usize,
        tile: &[T],
        all: &mut [T],
        master: &mut Workshop,
    ) {
        let (x, y) = self.origin(number);
        let width = self.picture.width();
        for (row, items) in tile.chunks_exact(TILE).enumerate() {
            all[(y + row) * width + x..][..TILE].copy_from_slice(items);
        }
        master.compute(COPY_INSTRUCTIONS * tile.len() as u64);
    }
}

/// What a master gives to a slave.
pub struct Input {
    pub(crate) descriptor: Buffer<u32>,
    pub(crate) pixels: Buffer<u8>,
}

impl Input {
    pub(crate) fn free(self, master: &mut Workshop) {
        master.free(self.pixels);
        master.free(self.descriptor);
    }
}

/// Allocates and writes the descriptor of task `number`.
pub(crate) fn descriptor(number: usize, master: &mut Workshop) -> Buffer<u32> {
    let mut descriptor = master.allocate::<u32>(DESCRIPTOR_WORDS);
    descriptor[0] = number as u32;
    master.compute(DESCRIPTOR_INSTRUCTIONS);
    descriptor
}
