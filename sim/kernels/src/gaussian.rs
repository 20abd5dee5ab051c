//! Gaussian blur of 5 x 5 by two passes of [1 4 6 4 1] / 16, columns within a row first.
//!
//! *Invariant:* nothing is rounded before the end: a pixel is the sum over its 25 neighbours, divided by 256, to the nearest.

use crate::picture::Picture;
use crate::tiles::{DESCRIPTOR_INSTRUCTIONS, Input, NotTiled, TILE, Tiles};
use crate::workshop::{Buffer, Kernel, Workshop};

/// Pixels to each side.
const RADIUS: usize = 2;
const WEIGHTS: [u32; 5] = [1, 4, 6, 4, 1];
/// Instructions of a sum on a SPARC V8, counted by hand: an assumption. Five loads, four sums, four shifts (the weights
/// are 1, 4 and 4 + 2), a store, three of the loop.
const SUM_INSTRUCTIONS: u64 = 17;
/// And of one that is rounded: half added, shifted.
const ROUNDED_INSTRUCTIONS: u64 = SUM_INSTRUCTIONS + 2;

/// A blur of a picture.
pub struct Gaussian<'a> {
    tiles: Tiles<'a>,
    blurred: Picture,
}

impl<'a> Gaussian<'a> {
    /// A blur of `picture`; outside of it, its nearest pixel counts.
    ///
    /// # Errors
    /// [`NotTiled`]
    pub fn new(picture: &'a Picture) -> Result<Self, NotTiled> {
        Ok(Gaussian {
            tiles: Tiles::of(picture)?,
            blurred: picture.clone(),
        })
    }
}

impl Kernel for Gaussian<'_> {
    type Input = Input;
    type Output = Buffer<u8>;
    type Whole = Picture;
    const NAME: &'static str = "gaussian";

    fn tasks(&self) -> usize {
        self.tiles.count
    }

    fn prepare(&self, number: usize, master: &mut Workshop) -> Input {
        self.tiles.prepare(number, RADIUS, master)
    }

    fn work(&self, input: &Input, slave: &mut Workshop) -> Buffer<u8> {
        slave.compute(DESCRIPTOR_INSTRUCTIONS);
        let side = TILE + 2 * RADIUS;
        let mut between = slave.allocate::<u16>(side * TILE);
        for (at, sum) in between.iter_mut().enumerate() {
            let begin = at / TILE * side + at % TILE;
            *sum = weighted(|tap| u32::from(input.pixels[begin + tap])) as u16;
        }
        slave.compute(SUM_INSTRUCTIONS * between.len() as u64);
        let mut blurred = slave.allocate::<u8>(TILE * TILE);
        for (at, pixel) in blurred.iter_mut().enumerate() {
            let sum = weighted(|tap| u32::from(between[at + tap * TILE]));
            *pixel = ((sum + 128) >> 8) as u8;
        }
        slave.compute(ROUNDED_INSTRUCTIONS * blurred.len() as u64);
        slave.free(between);
        blurred
    }

    fn collect(&mut self, number: usize, input: Input, tile: Buffer<u8>, master: &mut Workshop) {
        self.tiles
            .put(number, &tile, self.blurred.pixels_mut(), master);
        master.free(tile);
        input.free(master);
    }

    fn whole(&mut self) -> Picture {
        self.blurred.clone()
    }
}

fn weighted(tap: impl Fn(usize) -> u32) -> u32 {
    let taps = WEIGHTS.iter().enumerate();
    taps.map(|(number, weight)| weight * tap(number)).sum()
}
