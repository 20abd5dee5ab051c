//! Stack depth: how far below its top each stack has been used, and by which chain of calls.
//!
//! Looked at is what sets `%sp`. `save`, and `add` and `sub` on `%sp` or `%fp`, move it within its stack; whatever else
//! sets it goes to the smallest known stack that holds the address, or begins another, whose top that is. A register
//! window's stale `%sp` in a trap handler is so never taken for one.
//!
//! Invariant: a stack's lowest address is the lowest that `%sp` has had on it; a frame's 64 bytes to which a window may be
//! saved lie above `%sp`, and are in.

use super::calls::Calls;
use crate::bus::Bus;
use crate::core::Core;
use crate::image::Image;
use crate::observer::Observer;
use crate::trap::Trap;

/// A stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The core that was first on it.
    pub core: usize,
    /// Its first `%sp`.
    pub top: u32,
    /// Its lowest.
    pub low: u32,
    /// Functions from the outermost to the one that went there.
    pub chain: Vec<String>,
}

impl Stack {
    /// Bytes used.
    pub fn used(&self) -> u32 {
        self.top - self.low
    }
}

/// The deepest that a function has been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The function.
    pub function: String,
    /// Bytes below its stack's top.
    pub used: u32,
}

#[derive(Clone, Debug)]
struct Known {
    core: usize,
    top: u32,
    low: u32,
    node: u32,
}

/// What an instruction does to `%sp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Not,
    /// The upper half of an address, or all of one whose lower half is zero.
    Half,
    Moves,
    Elsewhere,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    set: Set,
    stack: Option<usize>,
}

/// Watches stack pointers.
#[derive(Clone, Debug)]
pub struct Depth {
    calls: Calls,
    stacks: Vec<Known>,
    cores: Vec<Current>,
    /// By number of function.
    reached: Vec<u32>,
}

impl Depth {
    /// Tells chains by the symbols of `image`.
    pub fn new(image: &Image) -> Depth {
        Depth {
            calls: Calls::new(image),
            stacks: Vec::new(),
            cores: Vec::new(),
            reached: Vec::new(),
        }
    }

    /// All stacks, in the order in which they were met.
    pub fn stacks(&self) -> Vec<Stack> {
        let names = |known: &Known| {
            let chain = self.calls.trees[known.core].chain(known.node);
            let names = chain
                .into_iter()
                .map(|function| self.calls.functions.name(function).to_owned());
            names.collect()
        };
        let stack = |known: &Known| Stack {
            core: known.core,
            top: known.top,
            low: known.low,
            chain: names(known),
        };
        self.stacks.iter().map(stack).collect()
    }

    /// How deep each function has been, the deepest first.
    pub fn functions(&self) -> Vec<Reach> {
        let reached = self
            .reached
            .iter()
            .enumerate()
            .filter(|(_, used)| **used > 0);
        let mut functions: Vec<Reach> = reached
            .map(|(function, &used)| Reach {
                function: self.calls.functions.name(function as u32).to_owned(),
                used,
            })
            .collect();
        functions.sort_by(|a, b| (b.used, &a.function).cmp(&(a.used, &b.function)));
        functions
    }

    fn look(&mut self, core: &Core, set: Set) {
        let pointer = core.registers.get(14);
        // What is set before there is a stack, or cleared, is none.
        let Some((node, function)) = self.calls.current(core.number).filter(|_| pointer != 0)
        else {
            return;
        };
        let on = match (set, self.cores[core.number].stack) {
            (Set::Moves, Some(stack)) => stack,
            _ => self.stack_of(core.number, pointer, node),
        };
        self.cores[core.number].stack = Some(on);
        let stack = &mut self.stacks[on];
        if pointer < stack.low {
            stack.low = pointer;
            stack.node = node;
            stack.core = core.number;
        }
        let used = stack.top.saturating_sub(pointer);
        let index = function as usize;
        if self.reached.len() <= index {
            self.reached.resize(index + 1, 0);
        }
        self.reached[index] = self.reached[index].max(used);
    }

    fn stack_of(&mut self, core: usize, pointer: u32, node: u32) -> usize {
        let holds = |(_, known): &(usize, &Known)| (known.low..=known.top).contains(&pointer);
        let known = self.stacks.iter().enumerate().filter(holds);
        if let Some((index, _)) = known.min_by_key(|(_, known)| known.top - known.low) {
            return index;
        }
        self.stacks.push(Known {
            core,
            top: pointer,
            low: pointer,
            node,
        });
        self.stacks.len() - 1
    }
}

impl Observer for Depth {
    #[inline(always)]
    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        if !self.calls.before(core, bus) {
            return false;
        }
        let number = core.number;
        if number >= self.cores.len() {
            // What the loader has set is the first.
            let first = Current {
                set: Set::Elsewhere,
                stack: None,
            };
            self.cores.resize(number + 1, first);
        }
        let word = bus.load::<4>(core.pc).map_or(0, u32::from_be_bytes);
        match self.cores[number].set {
            Set::Not => {}
            Set::Half if completes(word) => {}
            set => self.look(core, set),
        }
        self.cores[number].set = sets(word);
        false
    }

    fn trapped(&mut self, core: &Core, trap: Trap) {
        if let Some(current) = self.cores.get_mut(core.number) {
            // What traps sets nothing; before an interrupt the last instruction has.
            if current.set != Set::Not && trap.0 >> 4 == 1 {
                let set = std::mem::replace(&mut current.set, Set::Not);
                self.look(core, set);
            } else {
                current.set = Set::Not;
            }
        }
        self.calls.trapped(core, trap);
    }
}

/// What `word` does to `%sp`.
#[inline(always)]
fn sets(word: u32) -> Set {
    if word >> 25 & 31 != 14 {
        return Set::Not;
    }
    let (op3, rs1) = (word >> 19 & 63, word >> 14 & 31);
    let own = rs1 == 14 || rs1 == 30;
    match (word >> 30, op3) {
        (0, _) if word >> 22 & 7 == 4 => Set::Half,
        (2, 0x3c | 0x00 | 0x04) if own => Set::Moves,
        (2, 0x00..=0x27 | 0x28..=0x2b | 0x3c) => Set::Elsewhere,
        // `restore` with a result for the caller's %sp.
        (2, _) => Set::Not,
        (3, 0x00 | 0x03 | 0x10 | 0x13) => Set::Elsewhere,
        _ => Set::Not,
    }
}

/// Whether `word` puts a lower half into `%sp`: `or` or `add` of `%sp` and a constant that is not negative.
fn completes(word: u32) -> bool {
    matches!(word & 0xffff_f000, 0x9c13_a000 | 0x9c03_a000)
}
