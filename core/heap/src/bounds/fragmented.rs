//! Heaps of objects in equal blocks: memory for the blocks of the live bytes, and no more.
//!
//! Proof: `docs/guarantees.md#fragmented`. A request is served exactly when its blocks are
//! free, so the most blocks that M live bytes can take suffice; they are at most M times the
//! most blocks that an object takes a byte.

use super::demand::{Load, product};
use super::{Bound, BoundError, Candidate, Demand, Geometry, Standing, Text, necessary};
use crate::fragmented::options::MOST_BLOCKS;
use crate::fragmented::{Options, Shape};

/// Sizes after which the blocks a byte are estimated from above.
const EXACT_SIZES: u32 = 1 << 12;

/// Blocks and bytes of an object: the most blocks a byte.
#[derive(Clone, Copy)]
struct Density {
    blocks: u128,
    bytes: u128,
}

impl Density {
    /// The greater quotient; every factor is below 2^64.
    fn or_greater(self, other: Density) -> Density {
        match other.blocks * self.bytes > self.blocks * other.bytes {
            true => other,
            false => self,
        }
    }
}

/// The guarantee of a [`Fragmented`](crate::fragmented::Fragmented) heap for a demand. A
/// resize needs no second block meanwhile, and no alignment costs anything: objects are
/// not contiguous.
///
/// # Errors
/// As [`bound`](super::bound), and where the block is no power of two within the limits.
pub fn fragmented(options: &Options, demand: &Demand) -> Result<Bound, BoundError> {
    if options.validate().is_err() {
        return Err(BoundError::Parameter {
            name: "block",
            value: options.block as u64,
            allowed: "a power of two from 16 to 65536",
        });
    }
    let unaligned = Demand {
        alignment: 1,
        ..*demand
    };
    let load = Load::new(&Geometry::UNIT, &unaligned)?;
    let most = density(options, &unaligned);
    let blocks = product(load.live, most.blocks)? / most.bytes;
    let mut bound = Bound {
        time: options.shape.declares().times,
        heap_bytes: None,
        outside_bytes: 0,
        used: None,
        others: Default::default(),
        necessary_bytes: necessary(&Geometry::UNIT, &unaligned)?,
        note: Some(
            "objects are not contiguous, so it may do with less than is necessary for others",
        ),
    };
    if blocks > MOST_BLOCKS as u128 || demand.largest > u32::MAX.into() {
        bound.note = Some(
            "a fragmented heap has at most 16 777 215 blocks, and objects of 4 GiB: take larger \
             blocks",
        );
        return Ok(bound);
    }
    let rule = match options.shape {
        Shape::Chain => "ceil((r+4)/(b-4))",
        Shape::Tree => "1 for r <= b-4, else ceil(r/b) leaves under blocks of b/4 links",
    };
    let candidate = Candidate {
        method: "equal blocks",
        bytes: product(blocks, options.bytes(1).into())?,
        standing: Standing::Proved,
        formula: Text::format(format_args!(
            "(b+4) floor(M c/r), b = {}, M = {}; of l <= r <= n an object of r = {} takes the \
             most blocks a byte, c = {}: {rule}",
            options.block, load.live, most.bytes, most.blocks,
        )),
        citation: "Siebert, CASES 2000: no external fragmentation; Metes, blocks a byte",
        proof: "docs/guarantees.md#fragmented",
    };
    bound.offer(&load, candidate);
    Ok(bound)
}

/// The most blocks a byte of an object of l to n bytes: reached by one of the smallest sizes
/// of each number of blocks.
fn density(options: &Options, demand: &Demand) -> Density {
    let at = |size: u64| Density {
        blocks: options.blocks(size).into(),
        bytes: size.into(),
    };
    let mut greatest = at(demand.smallest);
    let mut size = demand.smallest;
    for _ in 0..EXACT_SIZES {
        size = options.next(size);
        if size > demand.largest {
            return greatest;
        }
        greatest = greatest.or_greater(at(size));
    }
    greatest.or_greater(estimate(options, size, demand.largest))
}

/// No object of `size` to `largest` bytes takes more blocks a byte. `size` begins a number
/// of blocks.
fn estimate(options: &Options, size: u64, largest: u64) -> Density {
    let block = options.block as u128;
    match options.shape {
        // ceil((r + 4) / p) <= (r + p + 3) / p, which falls against r.
        Shape::Chain => {
            let carried = block - 4;
            Density {
                blocks: u128::from(size) + carried + 3,
                bytes: carried * u128::from(size),
            }
        }
        // 1 + L + sum of (L / f^i + 1) over d levels <= 1 + d + L f / (f - 1), which falls
        // against the least size of L leaves, (L - 1) b + 1.
        Shape::Tree => {
            let (leaves, fan_out) = (size.div_ceil(options.block as u64), options.fan_out());
            let depth = options.depth(largest.div_ceil(options.block as u64));
            let (leaves, links) = (u128::from(leaves), u128::from(fan_out));
            Density {
                blocks: (1 + u128::from(depth)) * (links - 1) + leaves * links,
                bytes: (links - 1) * ((leaves - 1) * block + 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use proptest::prelude::*;

    use super::*;

    fn bytes(block: usize, shape: Shape, demand: Demand) -> u128 {
        let options = Options { block, shape };
        fragmented(&options, &demand).unwrap().heap_bytes.unwrap()
    }

    #[test]
    fn figures_by_hand() {
        // Objects of 24 bytes fill a chain's block of 32: ten of them.
        assert_eq!(bytes(32, Shape::Chain, Demand::new(240, 24, 24)), 360);
        // One byte more, two blocks: floor(250 * 2 / 25) = 20.
        assert_eq!(bytes(32, Shape::Chain, Demand::new(250, 25, 24)), 720);
        // Single bytes are the worst: a block each.
        assert_eq!(bytes(64, Shape::Tree, Demand::new(10, 10, 1)), 680);
        // From 110 bytes on, in blocks of 32: of 129 bytes, 5 leaves and the first block.
        let demand = Demand::new(12_900, 200, 110);
        assert_eq!(bytes(32, Shape::Tree, demand), 600 * 36);
        // 129 bytes: 3 leaves and the first block. Robson's bound is 3.5 M for these.
        let demand = Demand::new(1 << 20, 4096, 128);
        let found = bytes(64, Shape::Tree, demand);
        assert_eq!(found, (4 << 20) / 129 * 68);
        assert!(necessary(&Geometry::UNIT, &demand).unwrap() > found * 3 / 2);
    }

    #[test]
    fn too_many_blocks_are_no_bound() {
        let options = Options::DEFAULT;
        let huge = fragmented(&options, &Demand::new(1 << 40, 100, 1)).unwrap();
        assert_eq!(huge.heap_bytes, None);
        assert!(huge.formula().as_str().contains("larger blocks"));
        let odd = Options {
            block: 24,
            ..options
        };
        assert!(fragmented(&odd, &Demand::new(9, 9, 9)).is_err());
        assert!(fragmented(&options, &Demand::new(u64::MAX, 1 << 59, 1)).is_ok());
    }

    proptest! {
        /// Against the most blocks that any objects of l to n bytes with M bytes in all take.
        #[test]
        fn no_objects_take_more(
            block in 4u32..8,
            tree in any::<bool>(),
            smallest in 1u64..80,
            more in 0u64..600,
            beyond in 0u64..1500,
        ) {
            let shape = if tree { Shape::Tree } else { Shape::Chain };
            let options = Options { block: 1 << block, shape };
            let (largest, live) = (smallest + more, smallest + more + beyond);
            let mut most = vec![0u64; live as usize + 1];
            for bytes in smallest..=live {
                most[bytes as usize] = (smallest..=largest.min(bytes))
                    .map(|size| options.blocks(size) + most[(bytes - size) as usize])
                    .max()
                    .unwrap_or(0)
                    .max(most[bytes as usize - 1]);
            }
            let found = u128::from(options.bytes(most[live as usize]));
            let demand = Demand::new(live, largest, smallest);
            let bound = bytes(options.block, shape, demand);
            prop_assert!(found <= bound, "{found} of {bound}");
            // Tight where the worst size divides M.
            let worst = density(&options, &demand);
            if u128::from(live) % worst.bytes == 0 {
                prop_assert_eq!(found, bound);
            }
        }

        /// The estimate holds where exact figures are known, too.
        #[test]
        fn the_estimate_is_one(block in 4u32..10, tree in any::<bool>(), from in 1u64..5000) {
            let shape = if tree { Shape::Tree } else { Shape::Chain };
            let options = Options { block: 1 << block, shape };
            let first = options.next(from + (1 << block));
            let estimate = estimate(&options, first, 1 << 30);
            let mut size = first;
            for _ in 0..2000 {
                let exact = Density { blocks: options.blocks(size).into(), bytes: size.into() };
                prop_assert_eq!(estimate.or_greater(exact).bytes, estimate.bytes);
                size = options.next(size);
            }
        }
    }
}
