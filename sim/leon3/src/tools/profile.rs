//! The profile: cycles and instructions by function and by stack of callers.
//!
//! Functions are the image's symbols in code, functions or labels; how they are followed is told in the module `calls`.
//! A core that sleeps spends its cycles in the function that put it to sleep.
//!
//! Invariant: the weights of a core's stacks add up to what it has done since it was first looked at.

use std::fmt::Write as _;

use super::calls::{Calls, Tree};
use crate::bus::Bus;
use crate::core::Core;
use crate::image::Image;
use crate::observer::Observer;
use crate::trap::Trap;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Cycles.
    Cycles,
    /// Instructions.
    Instructions,
}

/// A function of the flat profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name; `[trap NAME]` is all that a trap's handler does, `[unknown]` what has no symbol.
    pub function: String,
    /// Times it was entered, tail calls included.
    pub calls: u64,
    /// Cycles in it alone.
    pub own_cycles: u64,
    /// Cycles in it and in what it called; a recursive call counts once.
    pub all_cycles: u64,
    /// Instructions in it alone.
    pub own_instructions: u64,
    /// Instructions in it and in what it called.
    pub all_instructions: u64,
    /// Cycles of its longest call, with everything that happened before that returned.
    pub longest: u64,
    /// The same without interrupts.
    pub longest_uninterrupted: u64,
}

/// Counts by function and stack.
#[derive(Clone, Debug)]
pub struct Profile {
    calls: Calls,
}

impl Profile {
    /// A profile by the symbols of `image`.
    pub fn new(image: &Image) -> Profile {
        Profile {
            calls: Calls::new(image),
        }
    }

    /// Counts what `cores` have done up to now, and calls that have not returned: to be called before anything is told.
    pub fn settle(&mut self, cores: &[Core]) {
        self.calls.settle(cores);
    }

    /// Cores that have been looked at: tables are there for each number below.
    pub fn cores(&self) -> usize {
        self.calls.trees.len()
    }

    /// The stacks of `core`, in the format of flame graphs: `main;foo;bar 1234`, a line each, sorted.
    pub fn folded(&self, core: usize, weight: Weight) -> String {
        let Some(tree) = self.calls.trees.get(core) else {
            return String::new();
        };
        let mut lines = Vec::new();
        for (index, node) in tree.nodes.iter().enumerate() {
            let weight = match weight {
                Weight::Cycles => node.cycles,
                Weight::Instructions => node.instructions,
            };
            if weight != 0 {
                lines.push(format!("{} {weight}\n", self.chain(tree, index as u32)));
            }
        }
        lines.sort_unstable();
        lines.concat()
    }

    fn chain(&self, tree: &Tree, node: u32) -> String {
        let names = tree
            .chain(node)
            .into_iter()
            .map(|function| self.calls.functions.name(function));
        names.collect::<Vec<_>>().join(";")
    }

    /// The functions of `core`, by their own cycles, the most first.
    pub fn flat(&self, core: usize) -> Vec<Row> {
        let Some(tree) = self.calls.trees.get(core) else {
            return Vec::new();
        };
        let mut rows = self.rows(tree);
        for (below, top) in totals(tree) {
            let row = &mut rows[top as usize];
            row.all_cycles += below.0;
            row.all_instructions += below.1;
        }
        rows.retain(|row| row.calls > 0 || row.own_cycles > 0);
        rows.sort_by(|a, b| (b.own_cycles, &a.function).cmp(&(a.own_cycles, &b.function)));
        rows
    }

    /// A row for each function, in the order of their numbers, without what they called.
    fn rows(&self, tree: &Tree) -> Vec<Row> {
        let functions = &self.calls.functions;
        let row = |function: u32| Row {
            function: functions.name(function).to_owned(),
            calls: 0,
            own_cycles: 0,
            all_cycles: 0,
            own_instructions: 0,
            all_instructions: 0,
            longest: tree.longest(function).whole,
            longest_uninterrupted: tree.longest(function).alone,
        };
        let mut rows: Vec<Row> = (0..functions.count() as u32).map(row).collect();
        for node in &tree.nodes {
            let row = &mut rows[node.function as usize];
            row.calls += node.calls;
            row.own_cycles += node.cycles;
            row.own_instructions += node.instructions;
        }
        rows
    }

    /// The flat profile of `core` as a table.
    pub fn table(&self, core: usize) -> String {
        let mut text = String::from(
            "  own cycles   all cycles own instructions       calls      longest uninterrupted  function\n",
        );
        for row in self.flat(core) {
            let _ = writeln!(
                text,
                "{:12} {:12} {:16} {:11} {:12} {:13}  {}",
                row.own_cycles,
                row.all_cycles,
                row.own_instructions,
                row.calls,
                row.longest,
                row.longest_uninterrupted,
                row.function
            );
        }
        text
    }
}

impl Observer for Profile {
    #[inline(always)]
    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        self.calls.before(core, bus);
        false
    }

    fn trapped(&mut self, core: &Core, trap: Trap) {
        self.calls.trapped(core, trap);
    }
}

/// What each outermost call of a function took with all below it: a node that has no caller of its own function.
fn totals(tree: &Tree) -> Vec<((u64, u64), u32)> {
    let mut below: Vec<(u64, u64)> = tree
        .nodes
        .iter()
        .map(|node| (node.cycles, node.instructions))
        .collect();
    // A node stands behind its parent.
    for index in (0..tree.nodes.len()).rev() {
        if let Some(parent) = tree.nodes[index].parent {
            let own = below[index];
            let parent = &mut below[parent as usize];
            *parent = (parent.0 + own.0, parent.1 + own.1);
        }
    }
    outermost(tree)
        .into_iter()
        .map(|node| (below[node], tree.nodes[node].function))
        .collect()
}

/// Nodes none of whose callers is of the same function, found on one walk over the tree.
fn outermost(tree: &Tree) -> Vec<usize> {
    let mut children = vec![Vec::new(); tree.nodes.len()];
    let mut to_do = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        match node.parent {
            Some(parent) => children[parent as usize].push(index),
            None => to_do.push((index, false)),
        }
    }
    let mut found = Vec::new();
    let mut above = std::collections::HashMap::<u32, u32>::new();
    while let Some((index, left)) = to_do.pop() {
        let count = above.entry(tree.nodes[index].function).or_default();
        if left {
            *count -= 1;
            continue;
        }
        if *count == 0 {
            found.push(index);
        }
        *count += 1;
        to_do.push((index, true));
        to_do.extend(children[index].iter().map(|&child| (child, false)));
    }
    found
}
