//! How deep stacks get: the lowest stack pointer of each core.
//!
//! Looked at are instructions with traps on: a trap's handler begins in a window whose stack pointer nobody has set.
//! A stack pointer that is further than 1 MiB from the last one belongs to another stack.
//!
//! Invariant: each mark lies in RAM, and the top of a stack is the highest pointer seen of it.

use super::Once;
use crate::bus::Bus;
use crate::core::Core;
use crate::observer::Observer;

/// Bytes from one pointer of a stack to the next, at most.
const FAR: u32 = 1 << 20;

/// A stack, as far as it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The core.
    pub core: usize,
    /// The highest stack pointer.
    pub top: u32,
    /// The lowest one.
    pub lowest: u32,
    /// The instruction before which it was that low.
    pub at: u32,
}

impl Stack {
    /// Bytes between both.
    pub fn bytes(&self) -> u32 {
        self.top - self.lowest
    }
}

/// The stacks of all cores.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    stacks: Vec<Stack>,
    /// The stack that each core was on last.
    current: Vec<usize>,
    once: Once,
}

impl Stacks {
    /// The stacks met, in the order in which they were.
    pub fn stacks(&self) -> &[Stack] {
        &self.stacks
    }

    fn mark(&mut self, core: &Core, pointer: u32) {
        self.current
            .resize(self.current.len().max(core.number + 1), usize::MAX);
        let near = |stack: &Stack| {
            stack.core == core.number
                && pointer < stack.top.saturating_add(FAR)
                && pointer > stack.lowest.saturating_sub(FAR)
        };
        let last = self.current[core.number];
        let index = match self.stacks.get(last) {
            Some(stack) if near(stack) => last,
            _ => self
                .stacks
                .iter()
                .position(near)
                .unwrap_or(self.stacks.len()),
        };
        if index == self.stacks.len() {
            self.stacks.push(Stack {
                core: core.number,
                top: pointer,
                lowest: pointer,
                at: core.pc,
            });
        }
        self.current[core.number] = index;
        let stack = &mut self.stacks[index];
        stack.top = stack.top.max(pointer);
        if pointer < stack.lowest {
            stack.lowest = pointer;
            stack.at = core.pc;
        }
    }
}

impl Observer for Stacks {
    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        let pointer = core.registers.get(14);
        let there = (pointer.wrapping_sub(bus.base()) as usize) <= bus.ram().len();
        if core.traps && pointer & 7 == 0 && there && self.once.first(core) {
            self.mark(core, pointer);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use crate::machine::{Configuration, Machine};

    #[test]
    fn the_lowest_pointer_is_kept() {
        // wr traps on; sethi 0x40001000, %sp; sub 96; add 64; ta 0 needs traps off: runs to the limit instead.
        let words = [
            0x8190_20e0,
            0x0100_0000,
            0x1d10_0004,
            0x9c23_a060,
            0x9c03_a040,
            0x10bf_fffe,
            0x9c03_bfc0,
        ];
        let image = Image::of_words(0x4000_0000, &words);
        let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
        let mut stacks = Stacks::default();
        machine.run(30, &mut stacks);
        let [loader, stack] = stacks.stacks() else {
            panic!("{:?}", stacks.stacks());
        };
        assert_eq!(loader.bytes(), 0, "the loader's pointer is another stack");
        assert_eq!((stack.top, stack.bytes()), (0x4000_1000, 96));
    }
}
