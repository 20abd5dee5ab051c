//! Tools that look on while a machine runs, each an [`Observer`](crate::Observer), and what they tell.
//!
//! | module | what it tells |
//! | --- | --- |
//! | [`trace`] | every instruction, a line each |
//! | [`profile`] | cycles by function and stack |
//! | [`coverage`], [`lines`] | what was executed, by line of source code |
//! | [`watch`] | accesses to memory and changes of registers |
//! | [`depth`] | how far stacks are used |
//! | [`disassemble()`] | words as text |
//!
//! Invariant: none changes what the machine does; what one says depends on the run alone, not on how it was portioned.

mod calls;
pub mod coverage;
pub mod depth;
mod disassemble;
pub mod lines;
mod names;
pub mod profile;
pub mod trace;
pub mod watch;

pub use coverage::Coverage;
pub use depth::Depth;
pub use disassemble::disassemble;
pub use lines::{Lines, NoLines};
pub use profile::{Profile, Weight};
pub use trace::Trace;
pub use watch::{Point, Watch};

use crate::core::Core;

/// Which instruction of a core was seen last, so that one shown again after a pause counts once.
#[derive(Clone, Copy, Debug)]
struct Seen {
    instructions: u64,
    pc: u32,
}

/// The last instruction of each core.
#[derive(Clone, Debug, Default)]
struct Once {
    cores: Vec<Seen>,
}

impl Once {
    /// Whether the instruction that `core` is about to execute is shown for the first time.
    #[inline(always)]
    fn first(&mut self, core: &Core) -> bool {
        let now = Seen {
            instructions: core.instructions,
            pc: core.pc,
        };
        match self.cores.get_mut(core.number) {
            Some(last) if last.instructions == now.instructions && last.pc == now.pc => false,
            Some(last) => {
                *last = now;
                true
            }
            None => self.meet(core.number, now),
        }
    }

    #[cold]
    fn meet(&mut self, number: usize, now: Seen) -> bool {
        let nothing = Seen {
            instructions: u64::MAX,
            pc: 0,
        };
        self.cores.resize(number + 1, nothing);
        self.cores[number] = now;
        true
    }
}
