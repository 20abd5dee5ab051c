//! Regions: blocks of instructions that are translated together, and what is known of them beforehand.
//!
//! A block is straight instructions and, behind them, at most one jump with the instruction in its delay slot. A
//! region is a hot block and those hot blocks that it reaches by branches, so that a loop is within one region.
//!
//! Invariant: every instruction of a region lies in RAM and is decoded; each block's first instruction is a
//! multiple of 4; block 0 is where the region begins; no delay slot holds a jump.

use crate::core::Common;
use crate::decode::{Kind, Operation, SINK};

/// Most blocks of a region, and most instructions of it.
const MOST_BLOCKS: usize = 6;
const MOST_INSTRUCTIONS: usize = 160;

/// Sets of registers: 1 to 31 by number, and what else an instruction may change.
pub(super) type Set = u64;
pub(super) const Y: u8 = 33;
pub(super) const CODES: u8 = 34;
/// The registers that belong to a window.
pub(super) const WINDOW: Set = 0xffff_ff00;

/// How condition codes are held where a block begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codes {
    /// As the number that the processor state register holds.
    Packed,
    /// As the operands of a sum.
    Sum,
    /// As the operands of a difference.
    Difference,
    /// As a result; no overflow, no carry.
    Result,
}

/// How a block ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// With the instruction before this address.
    At(u32),
    /// A branch.
    Branch {
        operation: Operation,
        slot: Operation,
    },
    /// A call.
    Call {
        operation: Operation,
        slot: Operation,
    },
    /// A jump to an address in registers.
    Jump {
        operation: Operation,
        slot: Operation,
    },
}

/// Instructions one behind the other.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) begin: u32,
    pub(super) body: Vec<Operation>,
    pub(super) ending: Ending,
    /// The most cycles that it takes.
    pub(super) cycles: u64,
    /// Condition codes where it begins.
    pub(super) codes: Codes,
    /// What has changed since the region was entered, and is not stored, where it begins.
    pub(super) changed: Set,
}

impl Block {
    /// The address behind the body: that of the jump, if there is one.
    pub(super) fn end(&self) -> u32 {
        self.begin.wrapping_add(4 * self.body.len() as u32)
    }

    /// Where it may go on, and whether the instruction in the delay slot is executed on the way there.
    pub(super) fn successors(&self) -> impl Iterator<Item = (u32, bool)> {
        let at = self.end();
        let behind = at.wrapping_add(8);
        let (first, second) = match self.ending {
            Ending::At(next) => (Some((next, true)), None),
            Ending::Branch { operation, .. } => {
                let target = at.wrapping_add(operation.immediate);
                let kept = operation.rs1 == 0;
                match operation.rd {
                    0 => (Some((behind, kept)), None),
                    8 => (Some((target, kept)), None),
                    _ => (Some((target, true)), Some((behind, kept))),
                }
            }
            Ending::Call { .. } | Ending::Jump { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// All instructions, that of the delay slot included.
    pub(super) fn operations(&self) -> impl Iterator<Item = Operation> {
        let (jump, slot) = match self.ending {
            Ending::At(_) => (None, None),
            Ending::Branch { operation, slot }
            | Ending::Call { operation, slot }
            | Ending::Jump { operation, slot } => (Some(operation), Some(slot)),
        };
        self.body.iter().copied().chain(jump).chain(slot)
    }

    /// Words from `begin` on that it is made of.
    pub(super) fn words(&self) -> u32 {
        let jump = match self.ending {
            Ending::At(_) => 0,
            _ => 2,
        };
        self.body.len() as u32 + jump
    }

    /// Instructions executed if that in the delay slot is, or is not.
    fn executed(&self, slot: bool) -> impl Iterator<Item = Operation> {
        let all = self.operations().count();
        self.operations().take(if slot { all } else { all - 1 })
    }

    fn codes_behind(&self, slot: bool) -> Codes {
        let operations = self.executed(slot);
        operations.fold(self.codes, |codes, operation| {
            sets_codes(operation).unwrap_or(codes)
        })
    }

    fn changed_behind(&self, slot: bool) -> Set {
        let operations = self.executed(slot);
        operations.fold(self.changed, |changed, operation| match operation.kind {
            // A change of window has everything of windows stored.
            Kind::Save | Kind::Restore => changed & !WINDOW | changes(operation),
            _ => changed | changes(operation),
        })
    }
}

/// A region.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) blocks: Vec<Block>,
    /// Registers that its instructions name.
    pub(super) named: Set,
}

impl Region {
    /// The region from `begin` on. `fetch` gives the instruction at an address of RAM, `hot` tells whether a block there
    /// was executed often enough to be worth it. None if nothing at `begin` can be translated.
    pub(super) fn find(
        begin: u32,
        common: &Common,
        mut fetch: impl FnMut(u32) -> Option<Operation>,
        hot: impl Fn(u32) -> bool,
    ) -> Option<Region> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut open = vec![begin];
        let mut next = 0;
        let mut instructions = 0;
        while next < open.len() && blocks.len() < MOST_BLOCKS && instructions < MOST_INSTRUCTIONS {
            let at = open[next];
            next += 1;
            let Some(block) = find_block(at, &open[..next], common, &mut fetch) else {
                continue;
            };
            instructions += block.operations().count();
            for (successor, _) in block.successors() {
                if !open.contains(&successor) && hot(successor) {
                    open.push(successor);
                }
            }
            blocks.push(block);
        }
        if blocks.first()?.begin != begin {
            return None;
        }
        let mut region = Region { blocks, named: 0 };
        region.look_ahead();
        Some(region)
    }

    /// The block that begins at `address`.
    pub(super) fn block_at(&self, address: u32) -> Option<usize> {
        self.blocks.iter().position(|block| block.begin == address)
    }

    /// Finds out what holds where each block begins, whatever way was taken there.
    fn look_ahead(&mut self) {
        let operations = self.blocks.iter().flat_map(Block::operations);
        self.named = operations.fold(0, |named, operation| named | names(operation));
        let mut known = vec![false; self.blocks.len()];
        known[0] = true;
        let mut again = true;
        while again {
            again = false;
            for from in 0..self.blocks.len() {
                if !known[from] {
                    continue;
                }
                let edges: Vec<(u32, bool)> = self.blocks[from].successors().collect();
                for (address, slot) in edges {
                    let Some(to) = self.block_at(address) else {
                        continue;
                    };
                    let block = &self.blocks[from];
                    let (codes, changed) = (block.codes_behind(slot), block.changed_behind(slot));
                    let block = &mut self.blocks[to];
                    let met = if !known[to] || block.codes == codes {
                        codes
                    } else {
                        Codes::Packed
                    };
                    again |= !known[to] || block.codes != met || changed & !block.changed != 0;
                    known[to] = true;
                    block.codes = met;
                    block.changed |= changed;
                }
            }
        }
    }
}

fn find_block(
    begin: u32,
    others: &[u32],
    common: &Common,
    fetch: &mut impl FnMut(u32) -> Option<Operation>,
) -> Option<Block> {
    let mut block = Block {
        begin,
        body: Vec::new(),
        ending: Ending::At(begin),
        cycles: 0,
        codes: Codes::Packed,
        changed: 0,
    };
    loop {
        let at = block.end();
        block.ending = Ending::At(at);
        if at != begin && others.contains(&at) || block.body.len() == 64 {
            break;
        }
        let Some(operation) = fetch(at) else { break };
        if translates(operation, common) {
            block.body.push(operation);
            continue;
        }
        if let Some(ending) = find_ending(at, operation, common, fetch) {
            block.ending = ending;
        }
        break;
    }
    if block.words() == 0 {
        return None;
    }
    let cycles = block
        .operations()
        .map(|operation| common.timing.of(operation.kind));
    // At most one slot is annulled, and one that is costs this instead of its own cycles.
    block.cycles = cycles.sum::<u64>() + u64::from(common.timing.annulled);
    Some(block)
}

fn find_ending(
    at: u32,
    operation: Operation,
    common: &Common,
    fetch: &mut impl FnMut(u32) -> Option<Operation>,
) -> Option<Ending> {
    if !matches!(operation.kind, Kind::Branch | Kind::Call | Kind::Jmpl) {
        return None;
    }
    let slot = fetch(at.wrapping_add(4))?;
    if !translates(slot, common) {
        return None;
    }
    Some(match operation.kind {
        Kind::Branch => Ending::Branch { operation, slot },
        Kind::Call => Ending::Call { operation, slot },
        _ => Ending::Jump { operation, slot },
    })
}

/// Whether a straight instruction has a translation.
fn translates(operation: Operation, common: &Common) -> bool {
    use Kind::*;
    match operation.kind {
        Sethi | Add | And | Or | Xor | Sub | Andn | Orn | Xnor | Addx | Subx | AddCc | AndCc
        | OrCc | XorCc | SubCc | AndnCc | OrnCc | XnorCc | AddxCc | SubxCc | MulsCc | Sll | Srl
        | Sra | Rdy | Wry | Save | Restore | Ld | Ldub | Lduh | Ldsb | Ldsh | St | Stb | Sth => {
            true
        }
        Umul | Smul | UmulCc | SmulCc | Udiv | Sdiv => common.multiplier,
        Ldd | Std => operation.rd & 1 == 0,
        _ => false,
    }
}

/// How an instruction leaves condition codes, if it sets them.
fn sets_codes(operation: Operation) -> Option<Codes> {
    use Kind::*;
    match operation.kind {
        AddCc | MulsCc => Some(Codes::Sum),
        SubCc => Some(Codes::Difference),
        AndCc | OrCc | XorCc | AndnCc | OrnCc | XnorCc | UmulCc | SmulCc => Some(Codes::Result),
        AddxCc | SubxCc => Some(Codes::Packed),
        _ => None,
    }
}

fn one(register: u8) -> Set {
    if register == 0 || register == SINK {
        0
    } else {
        1 << register
    }
}

/// What an instruction changes.
pub(super) fn changes(operation: Operation) -> Set {
    use Kind::*;
    let codes = if sets_codes(operation).is_some() {
        1 << CODES
    } else {
        0
    };
    match operation.kind {
        Branch | St | Stb | Sth | Std => 0,
        Ldd => one(operation.rd) | one(operation.rd + 1),
        Wry => 1 << Y,
        Umul | Smul | UmulCc | SmulCc | MulsCc => one(operation.rd) | 1 << Y | codes,
        _ => one(operation.rd) | codes,
    }
}

/// Registers that an instruction names.
fn names(operation: Operation) -> Set {
    let pair = match operation.kind {
        Kind::Ldd | Kind::Std => one(operation.rd + 1),
        _ => 0,
    };
    match operation.kind {
        Kind::Branch | Kind::Call | Kind::Sethi => changes(operation),
        Kind::Wry => one(operation.rs1) | one(operation.rs2),
        _ => one(operation.rd) | one(operation.rs1) | one(operation.rs2) | pair,
    }
}
