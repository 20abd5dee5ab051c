//! What a node does: takes, fills, checks, passes on and frees blocks, as its number says.
//!
//! *Invariant:* a block in use holds what was filled in when it was taken; whoever frees it looks, so two nodes with the same
//! bytes are found.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use metes_mesh::{Mesh, Node, Options, Refusal};
use metes_selftest::random::Random;

use crate::Nodes;
use crate::machine::{MOST_NODES, nodes as all};

/// Blocks that a node has for itself at a time: one of four is hungry, and does not find room at home.
const SLOTS: usize = 64;
const FEW: usize = 12;
/// Words of a block, least and most; the first two say what the others are.
const LEAST: usize = 2;
const MOST: usize = 80;
/// Blocks that a node keeps.
const KEPT: usize = 8;
/// Blocks that lie for a node to be taken.
const BOXES: usize = 4;

/// A block by its address, 0 for none, that lies for each node.
static PASSED: [[AtomicU32; BOXES]; MOST_NODES] =
    [const { [const { AtomicU32::new(0) }; BOXES] }; MOST_NODES];
static KEEPERS: [[AtomicU32; KEPT]; MOST_NODES] =
    [const { [const { AtomicU32::new(0) }; KEPT] }; MOST_NODES];

/// A node at work.
pub(crate) struct Worker<'a> {
    nodes: &'a Nodes,
    me: Node,
    mesh: Mesh<'a, Nodes>,
    random: Random,
    wrong: u32,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(nodes: &'a Nodes, me: Node) -> Self {
        let options = Options {
            // Whoever has the lock leaves nothing, so that a drain is one.
            drained: u32::MAX,
            ..Options::default()
        };
        Worker {
            nodes,
            me,
            mesh: Mesh::with_options(nodes, me, options),
            random: Random::new(me.0 + 1),
            wrong: 0,
        }
    }

    /// Requests served by the own heap, by others, refused; blocks parked; what was wrong.
    pub(crate) fn counts(&self) -> [u32; 5] {
        let counts = self.mesh.counts();
        let refused = counts.full + counts.busy;
        let of_mesh =
            [counts.local, counts.remote, refused, counts.parked].map(|count| count as u32);
        let [local, remote, refused, parked] = of_mesh;
        [local, remote, refused, parked, self.wrong]
    }

    /// Counts what must not be.
    pub(crate) fn expect(&mut self, holds: bool) {
        self.wrong += u32::from(!holds);
    }

    /// Does so many rounds, and frees what it has taken for itself.
    pub(crate) fn rounds(&mut self, rounds: u32) {
        let mut slots = [0; SLOTS];
        let mine = if self.me.0.is_multiple_of(4) {
            SLOTS
        } else {
            FEW
        };
        for _ in 0..rounds {
            let slot = self.random.below(mine);
            if slots[slot] != 0 {
                self.free_or_pass_on(core::mem::take(&mut slots[slot]));
            } else {
                slots[slot] = self.take();
            }
            if self.random.below(8) == 0 {
                self.free_one_that_was_passed_on();
            }
        }
        for address in slots {
            self.free(address);
        }
    }

    /// A block that is filled in; 0 where there is no room.
    fn take(&mut self) -> u32 {
        let words = LEAST + self.random.below(MOST - LEAST);
        match self.mesh.allocate(4 * words as u64, 8) {
            Ok(address) => {
                let seed = self.random.next_u32();
                self.fill(address as u32, seed, words);
                address as u32
            }
            Err(refusal) => {
                self.expect(refusal != Refusal::Expelled);
                0
            }
        }
    }

    /// The block's word `number`.
    fn word(&self, address: u32, number: usize) -> NonNull<u32> {
        let place = self
            .nodes
            .memory(address.into())
            .expect("a block's address");
        // SAFETY: the block has the word.
        unsafe { place.cast().add(number) }
    }

    fn fill(&self, address: u32, seed: u32, words: usize) {
        let block = self.word(address, 0);
        for number in 0..words {
            let word = match number {
                0 => seed,
                1 => words as u32,
                _ => filled(seed, number),
            };
            // SAFETY: a word of the block, which this node has taken.
            unsafe { block.add(number).write(word) };
        }
    }

    /// A sum of what was filled into a block; whether it is still so.
    pub(crate) fn look(&self, address: u32) -> (u32, bool) {
        let block = self.word(address, 0);
        // SAFETY: the first two words of a block that this node has, and that was filled in.
        let (seed, words) = unsafe { (block.read(), block.add(1).read() as usize) };
        let possible = (LEAST..=MOST).contains(&words);
        let holds = possible
            && (LEAST..words).all(|number| {
                // SAFETY: a word of the block.
                unsafe { block.add(number).read() == filled(seed, number) }
            });
        (seed ^ words as u32, holds)
    }

    fn free(&mut self, address: u32) {
        if address != 0 {
            let (_, holds) = self.look(address);
            self.expect(holds);
            let freed = self.mesh.free(address.into());
            self.expect(freed.is_ok());
        }
    }

    /// Leaves a block to another node, or frees it where there is no room for it.
    fn free_or_pass_on(&mut self, address: u32) {
        let to = self.random.below(all() as usize);
        let place = &PASSED[to][self.random.below(BOXES)];
        let left = place.compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed);
        if left.is_err() {
            self.free(address);
        }
    }

    fn free_one_that_was_passed_on(&mut self) {
        let place = &PASSED[self.me.0 as usize][self.random.below(BOXES)];
        self.free(place.swap(0, Ordering::AcqRel));
    }

    /// Frees all that lies for this node.
    pub(crate) fn free_what_was_passed_on(&mut self) {
        for place in &PASSED[self.me.0 as usize] {
            self.free(place.swap(0, Ordering::AcqRel));
        }
    }

    /// Frees into the own heap what was parked.
    pub(crate) fn drain(&mut self) {
        match self.mesh.allocate(16, 8) {
            Ok(address) => {
                let freed = self.mesh.free(address);
                self.expect(freed.is_ok());
            }
            Err(_) => self.expect(false),
        }
    }

    /// Frees what another node has kept.
    pub(crate) fn free_keepers_of(&mut self, node: Node) {
        for place in &KEEPERS[node.0 as usize] {
            self.free(place.load(Ordering::Acquire));
        }
    }
}

/// Blocks that stay: taken by each node before all others, of its own heap, so their places follow from its number.
pub(crate) struct Keepers([u32; KEPT]);

impl Keepers {
    pub(crate) fn taken(worker: &mut Worker<'_>) -> Self {
        let keepers = [(); KEPT].map(|()| worker.take());
        let mine = |address: &u32| {
            let place = metes_mesh::Fabric::space(worker.nodes).place((*address).into());
            place.is_some_and(|place| place.node == worker.me)
        };
        let all_mine = keepers.iter().all(mine);
        worker.expect(all_mine);
        Keepers(keepers)
    }
}

/// Says which blocks node `me` keeps.
pub(crate) fn publish(me: Node, keepers: &Keepers) {
    for (place, address) in KEEPERS[me.0 as usize].iter().zip(keepers.0) {
        place.store(address, Ordering::Release);
    }
}

/// What a block of this seed holds in a word.
fn filled(seed: u32, number: usize) -> u32 {
    seed.rotate_left(number as u32 & 31) ^ number as u32
}
