//! Integral images (Crow 1984; Viola and Jones 2001): each tile's sums of all pixels above and to the left.
//!
//! Slaves sum within their tiles; the master carries over what lies left of and above each, so that the whole is the
//! integral image of the picture.
//!
//! *Invariant:* a sum counts its own pixel; tiles are collected in their order, so what is carried is known.

use crate::picture::Picture;
use crate::tiles::{DESCRIPTOR_INSTRUCTIONS, Input, NotTiled, TILE, Tiles};
use crate::workshop::{Buffer, Kernel, Workshop};

/// Instructions of a pixel on a SPARC V8, counted by hand: an assumption. Two loads, two sums, a store, three of the
/// loop.
const PIXEL_INSTRUCTIONS: u64 = 8;
/// And of a sum that the master takes over: three loads, three sums, a store, three of the loop.
const CARRY_INSTRUCTIONS: u64 = 10;

/// The integral image of a picture.
pub struct Integral<'a> {
    tiles: Tiles<'a>,
    sums: Vec<u32>,
}

/// Sums of a picture, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Columns.
    pub width: usize,
    /// Of all pixels above and to the left, modulo 2³².
    pub sums: Vec<u32>,
}

impl<'a> Integral<'a> {
    /// The integral image of `picture`.
    ///
    /// # Errors
    /// [`NotTiled`]
    pub fn new(picture: &'a Picture) -> Result<Self, NotTiled> {
        Ok(Integral {
            tiles: Tiles::of(picture)?,
            sums: vec![0; picture.pixels().len()],
        })
    }

    /// The sum at a place; before the first row or column it is 0.
    fn before(&self, x: usize, y: usize) -> u32 {
        match (x.checked_sub(1), y.checked_sub(1)) {
            (Some(x), Some(y)) => self.sums[y * self.tiles.picture.width() + x],
            _ => 0,
        }
    }
}

impl Kernel for Integral<'_> {
    type Input = Input;
    type Output = Buffer<u32>;
    type Whole = Sums;
    const NAME: &'static str = "integral";

    fn tasks(&self) -> usize {
        self.tiles.count
    }

    fn prepare(&self, number: usize, master: &mut Workshop) -> Input {
        self.tiles.prepare(number, 0, master)
    }

    fn work(&self, input: &Input, slave: &mut Workshop) -> Buffer<u32> {
        slave.compute(DESCRIPTOR_INSTRUCTIONS);
        let mut sums = slave.allocate::<u32>(TILE * TILE);
        for y in 0..TILE {
            let mut row = 0;
            for x in 0..TILE {
                row += u32::from(input.pixels[y * TILE + x]);
                let above = if y > 0 { sums[(y - 1) * TILE + x] } else { 0 };
                sums[y * TILE + x] = row + above;
            }
        }
        slave.compute(PIXEL_INSTRUCTIONS * sums.len() as u64);
        sums
    }

    fn collect(&mut self, number: usize, input: Input, tile: Buffer<u32>, master: &mut Workshop) {
        let (left, top) = self.tiles.origin(number);
        let width = self.tiles.picture.width();
        // Above a tile and left of it, the sums are whole: those tiles were collected before.
        let corner = self.before(left, top);
        for (at, sum) in tile.iter().enumerate() {
            let (x, y) = (left + at % TILE, top + at / TILE);
            let above = self.before(x + 1, top).wrapping_sub(corner);
            let beside = self.before(left, y + 1);
            self.sums[y * width + x] = sum.wrapping_add(above).wrapping_add(beside);
        }
        master.compute(CARRY_INSTRUCTIONS * tile.len() as u64);
        master.free(tile);
        input.free(master);
    }

    fn whole(&mut self) -> Sums {
        Sums {
            width: self.tiles.picture.width(),
            sums: std::mem::take(&mut self.sums),
        }
    }
}
