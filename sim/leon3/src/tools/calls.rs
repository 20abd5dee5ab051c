//! Who has called whom: the stack of functions of each core, followed by what its instructions do.
//!
//! A `call`, or a `jmpl` into `%o7`, that reaches another function or the beginning of its own enters that one; a `jmpl`
//! to `%i7` or `%o7` leaves the function whose return address it goes to. A trap is a frame of its own, which ends with
//! `rett`. Whatever else leads from function to function is a jump: back to a function that is still under way with
//! this stack pointer or a higher one (`longjmp`), or else on to another in place of the current one (a tail call, a
//! label). A call finds frames below its own stack pointer abandoned, and drops them. A switch to another task's stack
//! is not followed: the stack is cut, and grows anew.
//!
//! Invariant: every cycle from the first instruction of a core to the last look at it is counted once, for the stack at
//! that time; frames are at most [`MOST_FRAMES`], and the current one is always there.

use std::collections::HashMap;

use super::{Once, names};
use crate::bus::Bus;
use crate::core::Core;
use crate::image::Image;
use crate::trap::Trap;

/// Deeper calls count for the deepest frame.
pub(super) const MOST_FRAMES: usize = 8192;

/// What has no symbol.
const UNKNOWN: u32 = 0;

/// Functions, by address.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    /// Begin, end and name, in order, without overlap.
    ranges: Vec<(u32, u32, u32)>,
    names: Vec<String>,
    traps: HashMap<u8, u32>,
}

impl Functions {
    pub(crate) fn new(image: &Image) -> Functions {
        let mut names = vec!["[unknown]".to_owned()];
        let mut ranges: Vec<(u32, u32, u32)> = Vec::new();
        let code = image.segments().iter().filter(|segment| segment.code);
        let code: Vec<_> = code
            .map(|segment| {
                (
                    segment.address,
                    segment.address.wrapping_add(segment.bytes.len() as u32),
                )
            })
            .collect();
        for symbol in image.symbols() {
            let in_code = code
                .iter()
                .any(|&(begin, end)| (begin..end).contains(&symbol.address));
            if !in_code || symbol.size == 0 {
                continue;
            }
            let end = symbol.address.saturating_add(symbol.size);
            let name = names.len() as u32;
            match ranges.last_mut() {
                // Of several names for an address the last is the best.
                Some(last) if last.0 == symbol.address => *last = (symbol.address, end, name),
                Some(last) => {
                    last.1 = last.1.min(symbol.address);
                    ranges.push((symbol.address, end, name));
                }
                None => ranges.push((symbol.address, end, name)),
            }
            names.push(symbol.name.replace([';', '\n'], ":"));
        }
        Functions {
            ranges,
            names,
            traps: HashMap::new(),
        }
    }

    /// Begin, end and number of the function at `address`; of what has no symbol, the address alone.
    fn at(&self, address: u32) -> (u32, u32, u32) {
        let behind = self.ranges.partition_point(|range| range.0 <= address);
        match behind.checked_sub(1).map(|index| self.ranges[index]) {
            Some(range) if address < range.1 => range,
            _ => {
                let last = behind
                    .checked_sub(1)
                    .map_or(0, |index| self.ranges[index].1);
                let next = self.ranges.get(behind).map_or(u32::MAX, |range| range.0);
                (last, next, UNKNOWN)
            }
        }
    }

    fn of_trap(&mut self, trap: Trap) -> u32 {
        let names = &mut self.names;
        *self.traps.entry(trap.0).or_insert_with(|| {
            names.push(format!("[trap {}]", names::trap(trap)));
            names.len() as u32 - 1
        })
    }

    pub(crate) fn name(&self, function: u32) -> &str {
        &self.names[function as usize]
    }

    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }
}

/// A function as it is called by one chain of callers.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) parent: Option<u32>,
    pub(crate) function: u32,
    pub(crate) cycles: u64,
    pub(crate) instructions: u64,
    pub(crate) calls: u64,
}

/// The longest calls of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Longest {
    /// With everything that happened before it returned.
    pub(crate) whole: u64,
    /// Without interrupts.
    pub(crate) alone: u64,
}

/// Where control goes after the delay slot.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    kind: Way,
    /// Address of the delay slot.
    slot: u32,
    /// Where it goes, known in the slot.
    target: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Call { back: u32 },
    Return,
    FromTrap,
}

#[derive(Clone, Debug)]
struct Frame {
    node: u32,
    function: u32,
    begin: u32,
    end: u32,
    /// Return address.
    back: u32,
    /// The caller's stack pointer.
    pointer: u32,
    since: u64,
    /// Cycles since then that interrupts took.
    interrupted: u64,
    /// Of a trap: what was under way, and whether it was an interrupt.
    trap: Option<(Option<Transfer>, bool)>,
}

#[derive(Clone, Debug, Default)]
struct Walk {
    frames: Vec<Frame>,
    transfer: Option<Transfer>,
    counted: u64,
    instructions: u64,
}

/// The stacks of all cores, and a tree of all stacks that have been.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) functions: Functions,
    pub(crate) trees: Vec<Tree>,
    walks: Vec<Walk>,
    once: Once,
}

/// The stacks of a core.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    children: HashMap<(Option<u32>, u32), u32>,
    longest: Vec<Longest>,
}

impl Tree {
    fn child(&mut self, parent: Option<u32>, function: u32) -> u32 {
        let nodes = &mut self.nodes;
        *self.children.entry((parent, function)).or_insert_with(|| {
            nodes.push(Node {
                parent,
                function,
                cycles: 0,
                instructions: 0,
                calls: 0,
            });
            nodes.len() as u32 - 1
        })
    }

    pub(crate) fn longest(&self, function: u32) -> Longest {
        self.longest
            .get(function as usize)
            .copied()
            .unwrap_or_default()
    }

    fn ended(&mut self, frame: &Frame, now: u64) {
        let index = frame.function as usize;
        if self.longest.len() <= index {
            self.longest.resize(index + 1, Longest::default());
        }
        let whole = now.saturating_sub(frame.since);
        let longest = &mut self.longest[index];
        longest.whole = longest.whole.max(whole);
        longest.alone = longest.alone.max(whole.saturating_sub(frame.interrupted));
    }

    /// Functions from the outermost to that of `node`.
    pub(crate) fn chain(&self, node: u32) -> Vec<u32> {
        let mut next = Some(node);
        let mut chain = Vec::new();
        while let Some(node) = next {
            let node = &self.nodes[node as usize];
            chain.push(node.function);
            next = node.parent;
        }
        chain.reverse();
        chain
    }
}

impl Calls {
    pub(crate) fn new(image: &Image) -> Calls {
        Calls {
            functions: Functions::new(image),
            trees: Vec::new(),
            walks: Vec::new(),
            once: Once::default(),
        }
    }

    /// The current node of `core`, which has executed something, and its function.
    pub(crate) fn current(&self, core: usize) -> Option<(u32, u32)> {
        let frame = self.walks.get(core)?.frames.last()?;
        Some((frame.node, frame.function))
    }

    /// `core` is about to execute the instruction at its `pc`; false if it was shown before.
    #[inline(always)]
    pub(crate) fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        if !self.once.first(core) {
            return false;
        }
        if core.number >= self.walks.len() {
            self.meet(core.number);
        }
        let tree = &mut self.trees[core.number];
        let mut step = Step {
            functions: &mut self.functions,
            tree,
            walk: &mut self.walks[core.number],
        };
        step.before(core, bus);
        true
    }

    pub(crate) fn trapped(&mut self, core: &Core, trap: Trap) {
        if core.number >= self.walks.len() {
            self.meet(core.number);
        }
        let tree = &mut self.trees[core.number];
        let mut step = Step {
            functions: &mut self.functions,
            tree,
            walk: &mut self.walks[core.number],
        };
        step.trapped(core, trap);
    }

    /// Counts what `cores` have done since the last look, and the calls that are under way as far as they are.
    pub(crate) fn settle(&mut self, cores: &[Core]) {
        for core in cores.iter().take(self.walks.len()) {
            let tree = &mut self.trees[core.number];
            let walk = &mut self.walks[core.number];
            Step {
                functions: &mut self.functions,
                tree,
                walk,
            }
            .count(core);
            for frame in &walk.frames {
                tree.ended(frame, core.cycles);
            }
        }
    }

    #[cold]
    fn meet(&mut self, number: usize) {
        self.walks.resize_with(number + 1, Walk::default);
        self.trees.resize_with(number + 1, Tree::default);
    }
}

/// A look at a core.
struct Step<'a> {
    functions: &'a mut Functions,
    tree: &'a mut Tree,
    walk: &'a mut Walk,
}

impl Step<'_> {
    #[inline(always)]
    fn before(&mut self, core: &Core, bus: &Bus) {
        self.count(core);
        let pc = core.pc;
        if let Some(transfer) = self.walk.transfer {
            self.follow(core, transfer);
        }
        match self.walk.frames.last() {
            Some(frame) if frame.begin <= pc && pc < frame.end => {}
            _ => self.jump(core),
        }
        let word = match bus.load::<4>(pc) {
            Some(bytes) => u32::from_be_bytes(bytes),
            None => return,
        };
        // call; jmpl and rett differ in one bit.
        if word >> 30 == 1 || word & 0xc1f0_0000 == 0x81c0_0000 {
            self.begin(core, word);
        }
    }

    /// Counts for the current node what `core` has done since the last look.
    #[inline(always)]
    fn count(&mut self, core: &Core) {
        if let Some(frame) = self.walk.frames.last() {
            let node = &mut self.tree.nodes[frame.node as usize];
            node.cycles += core.cycles.saturating_sub(self.walk.counted);
            node.instructions += core.instructions.saturating_sub(self.walk.instructions);
        }
        self.walk.counted = core.cycles;
        self.walk.instructions = core.instructions;
    }

    /// A call, a jump or a return from a trap is about to be executed.
    #[inline(never)]
    fn begin(&mut self, core: &Core, word: u32) {
        let (rd, rs1) = (word >> 25 & 31, word >> 14 & 31);
        let kind = if word >> 30 == 1 || word & 0x0008_0000 == 0 && rd == 15 {
            Way::Call {
                back: core.pc.wrapping_add(8),
            }
        } else if word & 0x0008_0000 != 0 {
            Way::FromTrap
        } else if rd == 0 && (rs1 == 15 || rs1 == 31) {
            Way::Return
        } else {
            return;
        };
        self.walk.transfer = Some(Transfer {
            kind,
            slot: core.npc,
            target: None,
        });
    }

    /// A transfer was begun: this is its slot, or what it leads to.
    fn follow(&mut self, core: &Core, transfer: Transfer) {
        if transfer.target.is_none() && core.pc == transfer.slot {
            if transfer.kind == Way::FromTrap {
                // The slot of `rett` is where the jump before it leads: the trap is over.
                self.walk.transfer = None;
                return self.end_trap(core);
            }
            self.walk.transfer = Some(Transfer {
                target: Some(core.npc),
                ..transfer
            });
            return;
        }
        self.walk.transfer = None;
        if transfer.target == Some(core.pc) {
            match transfer.kind {
                Way::Call { back } => self.call(core, back),
                Way::Return => self.back(core),
                Way::FromTrap => {}
            }
        }
    }

    fn call(&mut self, core: &Core, back: u32) {
        let function = self.functions.at(core.pc);
        let same = self
            .walk
            .frames
            .last()
            .is_some_and(|frame| frame.begin == function.0);
        // Code that asks where it is calls into its own midst.
        if same && core.pc != function.0 {
            return;
        }
        let pointer = core.registers.get(14);
        while self.walk.frames.len() > 1
            && self
                .walk
                .frames
                .last()
                .is_some_and(|frame| frame.trap.is_none() && frame.pointer < pointer)
        {
            self.pop(core.cycles);
        }
        self.push(core, function, back, pointer);
    }

    fn push(&mut self, core: &Core, function: (u32, u32, u32), back: u32, pointer: u32) {
        if self.walk.frames.len() >= MOST_FRAMES {
            return;
        }
        let (begin, end, function) = function;
        let parent = self.walk.frames.last().map(|frame| frame.node);
        let node = self.tree.child(parent, function);
        self.tree.nodes[node as usize].calls += 1;
        self.walk.frames.push(Frame {
            node,
            function,
            begin,
            end,
            back,
            pointer,
            since: core.cycles,
            interrupted: 0,
            trap: None,
        });
    }

    /// Ends the last frame.
    fn pop(&mut self, now: u64) {
        let Some(frame) = self.walk.frames.pop() else {
            return;
        };
        self.tree.ended(&frame, now);
        if let Some(below) = self.walk.frames.last_mut() {
            below.interrupted += match frame.trap {
                Some((_, true)) => now.saturating_sub(frame.since),
                _ => frame.interrupted,
            };
        }
    }

    /// A return: of the function that was called from there, which may not be the last.
    fn back(&mut self, core: &Core) {
        let to = core.pc;
        let above_trap = self
            .walk
            .frames
            .iter()
            .rev()
            .take_while(|frame| frame.trap.is_none());
        // Behind the call of a function that gives a structure stands a word that is skipped.
        let place = above_trap
            .map(|frame| frame.back)
            .position(|back| to == back || to == back.wrapping_add(4));
        for _ in 0..place.map_or(0, |place| place + 1) {
            self.pop(core.cycles);
        }
    }

    /// Control has left the last frame's function by no call.
    #[cold]
    fn jump(&mut self, core: &Core) {
        let function = self.functions.at(core.pc);
        let pointer = core.registers.get(14);
        let above_trap = self
            .walk
            .frames
            .iter()
            .rev()
            .take_while(|frame| frame.trap.is_none());
        let place = if core.pc == function.0 {
            None
        } else {
            above_trap
                .clone()
                .position(|frame| frame.begin == function.0 && frame.pointer >= pointer)
        };
        if let Some(place) = place {
            (0..place).for_each(|_| self.pop(core.cycles));
            return;
        }
        // In place of the last one: who called that is returned to.
        let (back, pointer) = match self.walk.frames.last() {
            Some(frame) if frame.trap.is_none() => {
                let kept = (frame.back, frame.pointer);
                self.pop(core.cycles);
                kept
            }
            _ => (0, u32::MAX),
        };
        self.push(core, function, back, pointer);
    }

    fn trapped(&mut self, core: &Core, trap: Trap) {
        self.count(core);
        if self.walk.frames.len() >= MOST_FRAMES {
            self.pop(core.cycles);
        }
        let function = self.functions.of_trap(trap);
        let interrupt = (0x11..=0x1f).contains(&trap.0);
        self.push(core, (0, 0, function), 0, 0);
        if let Some(frame) = self.walk.frames.last_mut() {
            frame.trap = Some((self.walk.transfer.take(), interrupt));
        }
    }

    /// The last trap is over; what was under way before it goes on.
    fn end_trap(&mut self, core: &Core) {
        let Some(place) = self
            .walk
            .frames
            .iter()
            .rposition(|frame| frame.trap.is_some())
        else {
            return;
        };
        while self.walk.frames.len() > place + 1 {
            self.pop(core.cycles);
        }
        let transfer = self.walk.frames[place]
            .trap
            .and_then(|(transfer, _)| transfer);
        self.pop(core.cycles);
        self.walk.transfer = transfer;
        if let Some(transfer) = transfer {
            let again = Transfer {
                target: transfer.target.filter(|_| core.pc != transfer.slot),
                ..transfer
            };
            self.follow(core, again);
        }
    }
}
