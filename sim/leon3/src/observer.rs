//! What looks on while a machine runs: traces, profiles, coverage, watchpoints, debuggers.
//!
//! Invariant: an observer changes nothing; `()` looks at nothing and costs nothing.

use crate::bus::Bus;
use crate::core::Core;
use crate::trap::Trap;

/// An access to memory or a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The instruction.
    pub pc: u32,
    /// Where.
    pub address: u32,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u32,
    /// What was read or written.
    pub value: u64,
    /// Whether it was written.
    pub write: bool,
}

/// One who looks on.
pub trait Observer {
    /// Whether it looks at all.
    const LOOKS: bool = true;

    /// `core` is about to execute the instruction at its `pc`; true pauses the machine before that.
    fn before(&mut self, core: &Core, bus: &Bus) -> bool;

    /// An instruction of `core` has accessed memory.
    fn touched(&mut self, _core: &Core, _touch: Touch) {}

    /// `core`, still at the instruction that traps or before which it is interrupted, takes a trap.
    fn trapped(&mut self, _core: &Core, _trap: Trap) {}
}

impl Observer for () {
    const LOOKS: bool = false;

    fn before(&mut self, _core: &Core, _bus: &Bus) -> bool {
        false
    }
}

/// Both look on; the first that wants a pause has it.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const LOOKS: bool = A::LOOKS || B::LOOKS;

    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        self.0.before(core, bus) || self.1.before(core, bus)
    }

    fn touched(&mut self, core: &Core, touch: Touch) {
        self.0.touched(core, touch);
        self.1.touched(core, touch);
    }

    fn trapped(&mut self, core: &Core, trap: Trap) {
        self.0.trapped(core, trap);
        self.1.trapped(core, trap);
    }
}

impl<O: Observer> Observer for &mut O {
    const LOOKS: bool = O::LOOKS;

    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        (**self).before(core, bus)
    }

    fn touched(&mut self, core: &Core, touch: Touch) {
        (**self).touched(core, touch);
    }

    fn trapped(&mut self, core: &Core, trap: Trap) {
        (**self).trapped(core, trap);
    }
}
