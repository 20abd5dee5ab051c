//! Which node an address is at: stripes of things that each node has as many bytes of.
//!
//! Six registers, two for each of three stripes: the address of node 0's part, and the bytes of each node's. The program
//! tells them before it starts the other nodes, as it would fill the table of a controller that translates addresses.
//!
//! *Invariant:* every address has one home; what lies in no stripe is at node 0.

use serde::{Deserialize, Serialize};

/// Things of a kind, those of each node behind those of the node before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stripe {
    /// The address of node 0's.
    pub begin: u32,
    /// Bytes of each node; 0 is no stripe.
    pub each: u32,
}

/// How many stripes there may be.
pub const STRIPES: usize = 3;

/// The map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Homes {
    stripes: [Stripe; STRIPES],
}

impl Homes {
    /// The node that `address` is at, of `nodes`. O(1).
    #[must_use]
    pub fn home(&self, address: u32, nodes: usize) -> usize {
        let in_stripe = |stripe: &Stripe| {
            let within = address.checked_sub(stripe.begin)?;
            let node = within.checked_div(stripe.each)? as usize;
            (node < nodes).then_some(node)
        };
        // Where stripes overlap, the later one: heaps lie as far apart as their map says, and something may lie between.
        self.stripes.iter().rev().find_map(in_stripe).unwrap_or(0)
    }

    /// The stripes.
    #[must_use]
    pub fn stripes(&self) -> &[Stripe; STRIPES] {
        &self.stripes
    }

    /// Reads register `number`; what is none is 0.
    #[must_use]
    pub fn register(&self, number: usize) -> u32 {
        let stripe = self.stripes.get(number / 2).copied().unwrap_or_default();
        [stripe.begin, stripe.each][number % 2]
    }

    /// Writes register `number`; what is none stays.
    pub fn set_register(&mut self, number: usize, word: u32) {
        if let Some(stripe) = self.stripes.get_mut(number / 2) {
            if number.is_multiple_of(2) {
                stripe.begin = word;
            } else {
                stripe.each = word;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_at_the_node_whose_part_it_lies_in() {
        let mut homes = Homes::default();
        assert_eq!(homes.home(0x6000_1234, 4), 0);
        for (number, word) in [0x6000_0000, 0x1000, 0x6000_4000, 0x100]
            .into_iter()
            .enumerate()
        {
            homes.set_register(number, word);
            assert_eq!(homes.register(number), word);
        }
        for node in 0..4 {
            let part = 0x6000_0000 + 0x1000 * node;
            for address in [part, part + 0xfff] {
                assert_eq!(homes.home(address, 4), node as usize);
            }
            let part = 0x6000_4000 + 0x100 * node;
            assert_eq!(homes.home(part + 0xff, 4), node as usize);
        }
        // Before all stripes, and behind: node 0.
        assert_eq!(homes.home(0x5fff_ffff, 4), 0);
        assert_eq!(homes.home(0x6000_4400, 4), 0);
        homes.set_register(17, 1);
        assert_eq!(homes.register(17), 0);
    }
}
