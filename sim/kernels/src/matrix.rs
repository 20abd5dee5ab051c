//! Multiplication of two square matrices by blocks: a task multiplies one block of each, the master adds the products up.
//!
//! *Invariant:* numbers are of 32 bits and wrap.

use crate::picture::Picture;
use crate::tiles::{COPY_INSTRUCTIONS, DESCRIPTOR_INSTRUCTIONS, NotTiled, TILE, descriptor, tiles};
use crate::workshop::{Buffer, Kernel, Workshop};

/// Instructions of a product that is added on a SPARC V8, counted by hand: an assumption. Two loads, a product, a sum,
/// two places, three of the loop.
const TERM_INSTRUCTIONS: u64 = 9;
/// Of a sum that is stored.
const STORE_INSTRUCTIONS: u64 = 4;
/// Of one that the master adds: two loads, a sum, a store, three of the loop.
const ADD_INSTRUCTIONS: u64 = 7;

/// A product of two square matrices.
pub struct Matrix {
    side: usize,
    left: Vec<i32>,
    right: Vec<i32>,
    product: Vec<i32>,
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// Columns, and rows.
    pub side: usize,
    /// Its numbers, row by row.
    pub numbers: Vec<i32>,
}

impl Matrix {
    /// The product of two matrices of `side` x `side`, row by row.
    ///
    /// # Errors
    /// [`NotTiled`]: they are no whole number of blocks, or there are not as many numbers.
    pub fn new(side: usize, left: Vec<i32>, right: Vec<i32>) -> Result<Self, NotTiled> {
        tiles(side, side)?;
        for matrix in [&left, &right] {
            let squared = side.checked_mul(side) == Some(matrix.len());
            if !squared {
                let height = matrix.len() / side;
                return Err(NotTiled {
                    width: side,
                    height,
                });
            }
        }
        Ok(Matrix {
            side,
            product: vec![0; left.len()],
            left,
            right,
        })
    }

    /// The product of a picture's pixels and the same ones with rows and columns exchanged, as for correlations: of its
    /// largest square from (0, 0) on.
    ///
    /// # Errors
    /// [`NotTiled`]
    pub fn of_picture(picture: &Picture) -> Result<Self, NotTiled> {
        let side = picture.width().min(picture.height());
        tiles(picture.width(), picture.height())?;
        let pixel = |x: usize, y: usize| i32::from(picture.pixels()[y * picture.width() + x]);
        let places = || (0..side * side).map(|at| (at % side, at / side));
        Matrix::new(
            side,
            places().map(|(x, y)| pixel(x, y)).collect(),
            places().map(|(x, y)| pixel(y, x)).collect(),
        )
    }

    /// Row, column and term of the blocks of task `number`.
    fn blocks(&self, number: usize) -> (usize, usize, usize) {
        let blocks = self.side / TILE;
        (
            number / blocks / blocks,
            number / blocks % blocks,
            number % blocks,
        )
    }

    /// A copy of the block at `row`, `column` of blocks.
    fn copied(
        &self,
        from: &[i32],
        row: usize,
        column: usize,
        master: &mut Workshop,
    ) -> Buffer<i32> {
        let mut block = master.allocate::<i32>(TILE * TILE);
        for (at, numbers) in block.chunks_exact_mut(TILE).enumerate() {
            let begin = (row * TILE + at) * self.side + column * TILE;
            numbers.copy_from_slice(&from[begin..begin + TILE]);
        }
        master.compute(COPY_INSTRUCTIONS * block.len() as u64);
        block
    }
}

impl Kernel for Matrix {
    type Input = (Buffer<u32>, Buffer<i32>, Buffer<i32>);
    type Output = Buffer<i32>;
    type Whole = Product;
    const NAME: &'static str = "matrix";

    fn tasks(&self) -> usize {
        (self.side / TILE).pow(3)
    }

    fn prepare(&self, number: usize, master: &mut Workshop) -> Self::Input {
        let (row, column, term) = self.blocks(number);
        (
            descriptor(number, master),
            self.copied(&self.left, row, term, master),
            self.copied(&self.right, term, column, master),
        )
    }

    fn work(&self, (_, left, right): &Self::Input, slave: &mut Workshop) -> Buffer<i32> {
        slave.compute(DESCRIPTOR_INSTRUCTIONS);
        let mut product = slave.allocate::<i32>(TILE * TILE);
        for (at, number) in product.iter_mut().enumerate() {
            let (row, column) = (at / TILE * TILE, at % TILE);
            let terms = (0..TILE).map(|k| left[row + k].wrapping_mul(right[k * TILE + column]));
            *number = terms.fold(0, i32::wrapping_add);
        }
        let terms = (TILE * TILE * TILE) as u64;
        slave.compute(TERM_INSTRUCTIONS * terms + STORE_INSTRUCTIONS * product.len() as u64);
        product
    }

    fn collect(
        &mut self,
        number: usize,
        (descriptor, left, right): Self::Input,
        block: Buffer<i32>,
        master: &mut Workshop,
    ) {
        let (row, column, _) = self.blocks(number);
        for (at, added) in block.iter().enumerate() {
            let place = (row * TILE + at / TILE) * self.side + column * TILE + at % TILE;
            self.product[place] = self.product[place].wrapping_add(*added);
        }
        master.compute(ADD_INSTRUCTIONS * block.len() as u64);
        master.free(block);
        master.free(right);
        master.free(left);
        master.free(descriptor);
    }

    fn whole(&mut self) -> Product {
        Product {
            side: self.side,
            numbers: std::mem::take(&mut self.product),
        }
    }
}
