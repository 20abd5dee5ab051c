//! Calls of single functions on the simulator, counted.

use metes_leon3::{Bus, Configuration, Core, Image, Machine, Model, Observer, Stop};

use crate::words::BASE;

/// Where calls return to: no code lies there.
const BACK: u32 = BASE + 0x00f0_0000;

/// Instructions and cycles of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) instructions: u64,
    pub(crate) cycles: u64,
}

impl Count {
    /// Each count by itself.
    pub(crate) fn max(self, other: Count) -> Count {
        Count {
            instructions: self.instructions.max(other.instructions),
            cycles: self.cycles.max(other.cycles),
        }
    }
}

/// Waits for one of two addresses, at which a call is over.
struct Until(u32);

impl Observer for Until {
    fn before(&mut self, core: &Core, _bus: &Bus) -> bool {
        core.pc == self.0 || core.pc == self.0 + 4
    }
}

/// A machine with `image`, whose windows do not trap.
pub(crate) fn machine(image: &Image, model: Model) -> Machine {
    let configuration = Configuration {
        model,
        memory: 16 << 20,
        ..Configuration::default()
    };
    let mut machine = Machine::with_image(&configuration, image).expect("a machine");
    let core = machine.core_mut(0);
    for window in (0..8).rev() {
        core.registers.enter(window);
        core.registers
            .set(14, BASE + 0x00e0_0000 + 4096 * window as u32);
    }
    machine
}

/// A machine that has started `image` up to its `main`.
pub(crate) fn started(image: &Image, model: Model) -> Machine {
    let mut machine = machine(image, model);
    let main = image.symbol("main").expect("main").address;
    let stop = machine.run(1_000_000, &mut Until(main));
    assert_eq!(stop, Stop::Observer { core: 0 });
    machine
}

/// Sets the registers for a call of `function`.
pub(crate) fn enter(machine: &mut Machine, function: u32, arguments: &[u32]) {
    let core = machine.core_mut(0);
    core.pc = function;
    core.npc = function + 4;
    core.registers.set(15, BACK - 8);
    for (register, argument) in (8..14).zip(arguments) {
        core.registers.set(register, *argument);
    }
}

/// Makes exactly `free` further windows usable, the older ones in use.
pub(crate) fn leave_free(machine: &mut Machine, free: usize) {
    let core = machine.core_mut(0);
    let current = core.registers.current();
    for window in (0..8).rev() {
        core.registers.enter(window);
        core.registers
            .set(14, BASE + 0x00e0_0000 + 4096 * window as u32);
    }
    core.registers.enter(current);
    core.wim = 1 << ((current + 16 - 1 - free) % 8);
}

/// Runs until the call is over.
pub(crate) fn finish(machine: &mut Machine) -> Count {
    let begin = (machine.cores()[0].instructions, machine.cores()[0].cycles);
    let stop = machine.run(10_000_000, &mut Until(BACK));
    let core = &machine.cores()[0];
    let at = core.pc;
    assert_eq!(stop, Stop::Observer { core: 0 }, "at {at:#x}");
    Count {
        instructions: core.instructions - begin.0,
        cycles: core.cycles - begin.1,
    }
}

/// A call, and what it returned.
pub(crate) fn call(machine: &mut Machine, function: u32, arguments: &[u32]) -> (Count, u32) {
    enter(machine, function, arguments);
    let count = finish(machine);
    (count, machine.cores()[0].registers.get(8))
}
