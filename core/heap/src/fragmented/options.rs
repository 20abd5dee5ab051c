//! How objects are cut into blocks, and how many they take.
//!
//! Invariant: [`Options::blocks`] never falls as the size grows, and is what the heap takes.

use core::fmt;

/// Bytes of a link to a block.
pub(super) const LINK: usize = 4;
/// Bytes of an object's size, in its first block.
pub(super) const SIZE: usize = 4;
/// Bytes of record a block, outside it.
pub const TAG: usize = 4;
/// Smallest block in bytes.
pub const SMALLEST_BLOCK: usize = 16;
/// Largest block in bytes.
pub const LARGEST_BLOCK: usize = 1 << 16;
/// Most blocks of a heap.
pub const MOST_BLOCKS: usize = crate::compact::MOST_HANDLES as usize;

/// How the blocks of an object hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Each block leads to the next: a link a block; a byte is found in O(n).
    Chain,
    /// Blocks of links lead to blocks of bytes; a byte is found in O(log n).
    Tree,
}

/// Everything that decides what a fragmented heap does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Bytes of a block: a power of two.
    pub block: usize,
    /// How the blocks of an object hang together.
    pub shape: Shape,
}

/// Why a fragmented heap cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The block is no power of two within the limits.
    Block(usize),
    /// The memory holds no block.
    TooSmall,
    /// The program has made as many heaps as can be told apart.
    Identities,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Unfit::Block(block) => write!(
                f,
                "a block of {block} bytes: it must be a power of two from {SMALLEST_BLOCK} to {LARGEST_BLOCK}"
            ),
            Unfit::TooSmall => f.write_str("the memory is too small for one block"),
            Unfit::Identities => {
                f.write_str("the program has made 65 535 heaps of handles: reuse them")
            }
        }
    }
}

impl core::error::Error for Unfit {}

impl Options {
    /// Blocks of 32 bytes in trees, as the heap of the Jamaica virtual machine.
    pub const DEFAULT: Options = Options {
        block: 32,
        shape: Shape::Tree,
    };

    /// Checks the options.
    ///
    /// # Errors
    /// [`Unfit::Block`].
    pub const fn validate(&self) -> Result<(), Unfit> {
        match self.block {
            SMALLEST_BLOCK..=LARGEST_BLOCK if self.block.is_power_of_two() => Ok(()),
            block => Err(Unfit::Block(block)),
        }
    }

    /// Blocks of an object of `size` bytes. O(1) in a chain, O(log n) in a tree.
    pub const fn blocks(&self, size: u64) -> u64 {
        match self.shape {
            Shape::Chain => {
                let carried = (self.block - LINK) as u64;
                size.saturating_add(SIZE as u64).div_ceil(carried)
            }
            Shape::Tree if size <= (self.block - SIZE) as u64 => 1,
            Shape::Tree => self.tree_blocks(size.div_ceil(self.block as u64)),
        }
    }

    /// Blocks of a tree of as many leaves.
    const fn tree_blocks(&self, leaves: u64) -> u64 {
        let (mut blocks, mut level) = (1 + leaves, leaves);
        while level > self.fan_out() - 1 {
            level = level.div_ceil(self.fan_out());
            blocks += level;
        }
        blocks
    }

    /// Links of a block of links. The first block has one less.
    pub const fn fan_out(&self) -> u64 {
        (self.block / LINK) as u64
    }

    /// Levels of blocks of links between the first block and the leaves.
    pub const fn depth(&self, leaves: u64) -> u32 {
        let (mut depth, mut level) = (0, leaves);
        while level > self.fan_out() - 1 {
            level = level.div_ceil(self.fan_out());
            depth += 1;
        }
        depth
    }

    /// The smallest object beyond `size` bytes that takes more blocks. O(1).
    pub const fn next(&self, size: u64) -> u64 {
        let block = self.block as u64;
        match self.shape {
            Shape::Chain => self.blocks(size) * (block - LINK as u64) - SIZE as u64 + 1,
            Shape::Tree if size <= block - SIZE as u64 => block - SIZE as u64 + 1,
            Shape::Tree => size.div_ceil(block) * block + 1,
        }
    }

    /// The largest object of at most as many blocks; `None` for no blocks. O(log² n).
    pub fn most(&self, blocks: u64) -> Option<u64> {
        if blocks == 0 {
            return None;
        }
        let (mut fits, mut over) = (0, blocks.saturating_mul(self.block as u64) + 1);
        while over - fits > 1 {
            let size = fits + (over - fits) / 2;
            match self.blocks(size) <= blocks {
                true => fits = size,
                false => over = size,
            }
        }
        Some(fits)
    }

    /// Bytes of memory for as many blocks, records included.
    pub const fn bytes(&self, blocks: u64) -> u64 {
        blocks.saturating_mul((self.block + TAG) as u64)
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::DEFAULT
    }
}
