//! Nodes that take and free blocks at random, pass some on to others, and are hungry to different degrees.
//!
//! What the program knows of its blocks (who has which) stands in one table of all nodes: it is the program's, and takes no
//! time. When a node dies, whoever inherits its blocks frees what the dead had, and nothing of what others have.
//!
//! *Invariant:* a block in the table is in use; each is freed once, but for those that went with a dead node's heap.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use metes_random::Random;

use crate::program::{Action, Outcome, Program};

/// What kind of storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storm {
    /// Requests and frees of each node, before it frees all.
    pub operations: u64,
    /// Instructions between two.
    pub gap: u64,
    /// Bytes of a block, least and most.
    pub sizes: (u64, u64),
    /// Of 100 nodes, how many are hungry.
    pub hungry: u64,
    /// Bytes that a hungry node wants to have.
    pub much: u64,
    /// Bytes that any other wants to have.
    pub little: u64,
    /// Of 100 frees, how many are left to another node.
    pub passed_on: u64,
    /// What it is drawn from.
    pub seed: u64,
}

/// Who has which block.
#[derive(Default)]
struct Table {
    /// By address: its bytes and who has it.
    held: BTreeMap<u64, (u64, usize)>,
    /// What lies for each node to be freed.
    passed: Vec<Vec<u64>>,
    ended: Vec<bool>,
    /// What is being freed.
    freeing: BTreeSet<u64>,
}

struct Blown {
    storm: Storm,
    node: usize,
    random: Random,
    table: Rc<RefCell<Table>>,
    mine: Vec<u64>,
    live: u64,
    left: u64,
    asked: Option<u64>,
    freeing: Option<u64>,
    has_computed: bool,
}

/// Programs of so many nodes in a storm. Which nodes are hungry is spread evenly.
#[must_use]
pub fn storms(storm: Storm, nodes: usize) -> Vec<Box<dyn Program>> {
    let table = Rc::new(RefCell::new(Table {
        passed: vec![Vec::new(); nodes],
        ended: vec![false; nodes],
        ..Table::default()
    }));
    let program = |node: usize| -> Box<dyn Program> {
        Box::new(Blown {
            storm,
            node,
            random: Random::new(
                storm
                    .seed
                    .wrapping_add(node as u64)
                    .wrapping_mul(0x9e37_79b9),
            ),
            table: Rc::clone(&table),
            mine: Vec::new(),
            live: 0,
            left: storm.operations,
            asked: None,
            freeing: None,
            has_computed: false,
        })
    };
    (0..nodes).map(program).collect()
}

impl Blown {
    /// Bytes that this node wants to have.
    fn appetite(&self) -> u64 {
        let before = self.node as u64 * self.storm.hungry / 100;
        let after = (self.node as u64 + 1) * self.storm.hungry / 100;
        if after > before {
            self.storm.much
        } else {
            self.storm.little
        }
    }

    /// The block at a place of the own ones goes to another node, or is freed.
    fn give_away(&mut self, at: usize) -> Option<Action> {
        let address = self.mine.swap_remove(at);
        let mut table = self.table.borrow_mut();
        let size = table.held.get(&address)?.0;
        self.live = self.live.saturating_sub(size);
        let nodes = table.passed.len() as u64;
        if nodes > 1 && self.random.below(100) < self.storm.passed_on {
            let to = (self.node as u64 + self.random.between(1, nodes - 1)) % nodes;
            let to = to as usize;
            if !table.ended[to] {
                table.held.insert(address, (size, to));
                table.passed[to].push(address);
                return None;
            }
        }
        drop(table);
        self.free(address)
    }

    fn free_what_lies_here(&mut self) -> Option<Action> {
        loop {
            let address = self.table.borrow_mut().passed[self.node].pop()?;
            if let Some(action) = self.free(address) {
                return Some(action);
            }
        }
    }

    /// Frees a block, which nobody has from now on; nothing if nobody had it.
    fn free(&mut self, address: u64) -> Option<Action> {
        let mut table = self.table.borrow_mut();
        let (size, _) = table.held.remove(&address)?;
        table.freeing.insert(address);
        self.freeing = Some(address);
        Some(Action::Free { address, size })
    }

    fn operate(&mut self) -> Option<Action> {
        if let Some(action) = self.free_what_lies_here() {
            return Some(action);
        }
        let (least, most) = self.storm.sizes;
        let wants = self.live < self.appetite();
        let takes = self.mine.is_empty() || self.random.below(100) < if wants { 80 } else { 30 };
        if takes {
            let size = self.random.between(least, most);
            self.asked = Some(size);
            return Some(Action::Allocate { size });
        }
        let at = self.random.below(self.mine.len() as u64) as usize;
        self.give_away(at)
    }
}

impl Program for Blown {
    fn next(&mut self, outcome: Outcome, _cycle: u64) -> Action {
        if let Some(freed) = self.freeing.take() {
            self.table.borrow_mut().freeing.remove(&freed);
        }
        if let (Some(size), Outcome::Block(address)) = (self.asked.take(), outcome) {
            self.live += size;
            self.mine.push(address);
            let mut table = self.table.borrow_mut();
            let before = table.held.insert(address, (size, self.node));
            assert_eq!(
                before, None,
                "a block that somebody has was given out again"
            );
        }
        while self.left > 0 {
            if !std::mem::replace(&mut self.has_computed, true) && self.storm.gap > 0 {
                return Action::Compute(self.storm.gap);
            }
            self.has_computed = false;
            self.left -= 1;
            if let Some(action) = self.operate() {
                return action;
            }
        }
        // Nobody passes anything on to who has ended.
        self.table.borrow_mut().ended[self.node] = true;
        if let Some(action) = self.free_what_lies_here() {
            return action;
        }
        while let Some(address) = self.mine.pop() {
            if let Some(action) = self.free(address) {
                return action;
            }
        }
        Action::End
    }

    fn inherit(&mut self, dead: usize, addresses: &[u64]) {
        let mut table = self.table.borrow_mut();
        table.ended[dead] = true;
        table.passed[dead].clear();
        let node = self.node;
        let mut inherited = Vec::new();
        for (address, (_, holder)) in &mut table.held {
            if *holder == dead {
                *holder = node;
                inherited.push(*address);
            }
        }
        // What it was given in its last step, and never knew of.
        for address in addresses {
            if !table.held.contains_key(address) && !table.freeing.contains(address) {
                table.held.insert(*address, (0, node));
                inherited.push(*address);
            }
        }
        table.passed[node].extend(inherited);
    }
}
