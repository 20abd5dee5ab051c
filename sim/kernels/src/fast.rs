//! FAST-9: corners by nine pixels in a row of a circle of sixteen (Rosten and Drummond, ECCV 2006).
//!
//! A pixel is a corner if nine neighbours on the circle, one after the other, are all brighter than it by more than the
//! threshold, or all darker. A slave gives its corners back as a list, a block each; the master frees them all.
//!
//! *Invariant:* corners come tile by tile, row by row within one; pixels nearer than three to the picture's edge are none.

use crate::picture::Picture;
use crate::tiles::{COPY_INSTRUCTIONS, DESCRIPTOR_INSTRUCTIONS, Input, NotTiled, TILE, Tiles};
use crate::workshop::{Buffer, Kernel, Workshop};

/// The threshold of the field's examples.
pub const THRESHOLD: u8 = 20;
/// The circle's radius.
const RADIUS: usize = 3;
/// Pixels of the circle, and how many of them make a corner.
const CIRCLE: usize = 16;
const ARC: usize = 9;
/// The circle, clockwise from above.
const AROUND: [(isize, isize); CIRCLE] = [
    (0, -3),
    (1, -3),
    (2, -2),
    (3, -1),
    (3, 0),
    (3, 1),
    (2, 2),
    (1, 3),
    (0, 3),
    (-1, 3),
    (-2, 2),
    (-3, 1),
    (-3, 0),
    (-3, -1),
    (-2, -2),
    (-1, -3),
];
/// Instructions on a SPARC V8, counted by hand: an assumption. A pixel: five loads, two bounds, eight comparisons with
/// their branches at most, three of the loop.
const PIXEL_INSTRUCTIONS: u64 = 26;
/// A pixel that passes: sixteen loads, two comparisons and a bit each; then eight steps of shift and mask, twice.
const CIRCLE_INSTRUCTIONS: u64 = 16 * 7 + 2 * 8 * 3;
/// A corner's score: the least of nine for each of sixteen arcs, twice.
const SCORE_INSTRUCTIONS: u64 = 2 * 16 * 9 * 3;
/// Words of a list's node: place, score, next.
const NODE_WORDS: usize = 3;
/// To write a node, or to walk over one.
const NODE_INSTRUCTIONS: u64 = 8;

/// A corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Corner {
    /// Its row.
    pub y: usize,
    /// Its column.
    pub x: usize,
    /// The greatest threshold at which it is one.
    pub score: u8,
}

/// FAST-9 over a picture.
pub struct Fast<'a> {
    tiles: Tiles<'a>,
    threshold: u8,
    corners: Vec<Corner>,
}

impl<'a> Fast<'a> {
    /// Corners of `picture`.
    ///
    /// # Errors
    /// [`NotTiled`]
    pub fn new(picture: &'a Picture, threshold: u8) -> Result<Self, NotTiled> {
        Ok(Fast {
            tiles: Tiles::of(picture)?,
            threshold,
            corners: Vec::new(),
        })
    }

    /// Whether a pixel has all of its circle within the picture.
    fn inside(&self, x: usize, y: usize) -> bool {
        let within = |at: usize, size: usize| at >= RADIUS && at + RADIUS < size;
        within(x, self.tiles.picture.width()) && within(y, self.tiles.picture.height())
    }
}

impl Kernel for Fast<'_> {
    type Input = Input;
    type Output = Vec<Buffer<u32>>;
    type Whole = Vec<Corner>;
    const NAME: &'static str = "fast";

    fn tasks(&self) -> usize {
        self.tiles.count
    }

    fn prepare(&self, number: usize, master: &mut Workshop) -> Input {
        self.tiles.prepare(number, RADIUS, master)
    }

    fn work(&self, input: &Input, slave: &mut Workshop) -> Vec<Buffer<u32>> {
        slave.compute(DESCRIPTOR_INSTRUCTIONS);
        let (left, top) = self.tiles.origin(input.descriptor[0] as usize);
        let mut list: Vec<Buffer<u32>> = Vec::new();
        for at in 0..TILE * TILE {
            let (x, y) = (at % TILE, at / TILE);
            slave.compute(PIXEL_INSTRUCTIONS);
            if !self.inside(left + x, top + y) {
                continue;
            }
            let circle = Circle::around(&input.pixels, x, y);
            if !circle.may_be_corner(self.threshold) {
                continue;
            }
            slave.compute(CIRCLE_INSTRUCTIONS);
            if !circle.is_corner(self.threshold) {
                continue;
            }
            slave.compute(SCORE_INSTRUCTIONS + NODE_INSTRUCTIONS);
            let mut node = slave.allocate::<u32>(NODE_WORDS);
            node[0] = (x << 16 | y) as u32;
            node[1] = u32::from(circle.score());
            // The place in the list of the one before, counted from 1.
            node[2] = list.len() as u32;
            list.push(node);
        }
        list
    }

    fn collect(
        &mut self,
        number: usize,
        input: Input,
        list: Vec<Buffer<u32>>,
        master: &mut Workshop,
    ) {
        let (left, top) = self.tiles.origin(number);
        for node in list {
            self.corners.push(Corner {
                x: left + (node[0] >> 16) as usize,
                y: top + (node[0] & 0xffff) as usize,
                score: node[1] as u8,
            });
            master.compute(NODE_INSTRUCTIONS + COPY_INSTRUCTIONS);
            master.free(node);
        }
        input.free(master);
    }

    fn whole(&mut self) -> Vec<Corner> {
        std::mem::take(&mut self.corners)
    }
}

/// How much brighter each pixel of a circle is than its centre.
struct Circle([i16; CIRCLE]);

impl Circle {
    /// The circle around pixel (`x`, `y`) of a tile with a margin.
    fn around(pixels: &[u8], x: usize, y: usize) -> Circle {
        let side = TILE + 2 * RADIUS;
        let at = |dx: isize, dy: isize| {
            let x = (x + RADIUS).wrapping_add_signed(dx);
            let y = (y + RADIUS).wrapping_add_signed(dy);
            i16::from(pixels[y * side + x])
        };
        Circle(AROUND.map(|(dx, dy)| at(dx, dy) - at(0, 0)))
    }

    /// Of nine in a row, one of two opposite pixels is always one: what fails by two such pairs is no corner.
    fn may_be_corner(&self, threshold: u8) -> bool {
        let threshold = i16::from(threshold);
        let pair = |first: usize, good: fn(i16, i16) -> bool| {
            good(self.0[first], threshold) || good(self.0[first + 8], threshold)
        };
        let both = |good| pair(0, good) && pair(4, good);
        both(|difference, threshold| difference > threshold)
            || both(|difference, threshold| difference < -threshold)
    }

    fn is_corner(&self, threshold: u8) -> bool {
        let threshold = i16::from(threshold);
        let bits = |good: &dyn Fn(i16) -> bool| {
            let bits = self.0.iter().enumerate();
            bits.fold(0_u16, |bits, (at, difference)| {
                bits | u16::from(good(*difference)) << at
            })
        };
        has_arc(bits(&|difference| difference > threshold))
            || has_arc(bits(&|difference| difference < -threshold))
    }

    /// The greatest threshold at which it is a corner, of one that is at some threshold.
    fn score(&self) -> u8 {
        let least_of_arc = |begin: usize, sign: i16| {
            let arc = (begin..begin + ARC).map(|at| sign * self.0[at % CIRCLE]);
            arc.min().unwrap_or(0)
        };
        let arcs = (0..CIRCLE).flat_map(|begin| [least_of_arc(begin, 1), least_of_arc(begin, -1)]);
        // "More than the threshold": one less than the least difference.
        (arcs.max().unwrap_or(0) - 1) as u8
    }
}

/// Whether nine bits in a row are set, around the end, too: each step asks for one more.
fn has_arc(bits: u16) -> bool {
    let run = (1..ARC as u32).fold(bits, |run, by| run & bits.rotate_right(by));
    run != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arc_is_nine_bits_in_a_row() {
        for bits in 0..=u16::MAX {
            let naive =
                (0..16).any(|begin| (begin..begin + 9).all(|at| bits >> (at % 16) & 1 == 1));
            assert_eq!(has_arc(bits), naive, "{bits:#018b}");
        }
    }

    #[test]
    fn what_is_a_corner_may_be_one() {
        for bits in (0..=u16::MAX).filter(|bits| has_arc(*bits)) {
            for sign in [1, -1] {
                let circle = Circle(std::array::from_fn(|at| {
                    sign * 30 * (bits >> at & 1) as i16
                }));
                assert!(circle.may_be_corner(THRESHOLD) && circle.is_corner(THRESHOLD));
                assert_eq!(circle.score(), 29);
            }
        }
    }
}
