//! What a debugger wants to be told of: breakpoints, watchpoints, the end of a step.
//!
//! Invariant: what is run is what would be run without it; a breakpoint is a place where the machine pauses, and
//! memory holds no trace of it.

use std::collections::BTreeMap;

use gdbstub::target::ext::breakpoints::WatchKind;

use crate::bus::Bus;
use crate::core::Core;
use crate::observer::{Observer, Touch};
use crate::trap::Trap;

/// Most breakpoints, and most watchpoints: none that is meant well asks for more.
pub(super) const MOST: usize = 1024;

/// How a debugger asked for a breakpoint: it expects the same word when the breakpoint is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Soft,
    Hard,
}

/// Bytes whose accesses the machine pauses after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    pub(super) address: u32,
    pub(super) length: u32,
    pub(super) kind: WatchKind,
}

impl Watch {
    /// The first watched byte that `touch` is of.
    fn first(&self, touch: Touch) -> Option<u32> {
        let meant = match self.kind {
            WatchKind::Read => !touch.write,
            WatchKind::Write => touch.write,
            WatchKind::ReadWrite => true,
        };
        let end = |address: u32, length: u32| u64::from(address) + u64::from(length);
        let first = self.address.max(touch.address);
        let last = end(self.address, self.length).min(end(touch.address, touch.size));
        (meant && u64::from(first) < last).then_some(first)
    }
}

/// What was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    Break {
        core: usize,
        kind: Kind,
    },
    Watch {
        core: usize,
        kind: WatchKind,
        address: u32,
    },
}

/// What a core that steps is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// One instruction.
    One,
    /// Instructions while `pc` is in a range.
    Range(u32, u32),
}

/// A core that steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stepper {
    pub(super) core: usize,
    pub(super) step: Step,
    /// Whether the instruction is executed, or a trap taken in its place.
    done: bool,
    /// The window and the stack pointer to which the handler of a trap is to come back.
    away: Option<(usize, u32)>,
}

impl Stepper {
    pub(super) fn new(core: usize, step: Step) -> Stepper {
        Stepper {
            core,
            step,
            done: false,
            away: None,
        }
    }

    /// Whether the step is over, where `core` stands now; if not, it is to be gone on with.
    pub(super) fn ends(&mut self, core: &Core) -> bool {
        if !self.done || self.away.is_some() {
            return false;
        }
        let inside = match self.step {
            Step::One => false,
            Step::Range(start, end) => (start..end).contains(&core.pc),
        };
        self.done = !inside;
        self.done
    }

    /// The core is about to execute an instruction; whether it is to stop before.
    fn before(&mut self, core: &Core) -> bool {
        if self.away.is_some() && core.traps && self.away == Some(frame(core)) {
            self.away = None;
        }
        if self.away.is_some() {
            return false;
        }
        let stop = self.done;
        self.done = true;
        stop
    }

    /// The core takes `trap`. Those that the program does not know of are passed: the instruction is still to come.
    fn trapped(&mut self, core: &Core, trap: Trap) {
        let interrupt = (0x11..=0x1f).contains(&trap.0);
        let window = matches!(trap, Trap::WINDOW_OVERFLOW | Trap::WINDOW_UNDERFLOW);
        if self.away.is_some() {
        } else if !interrupt && !window {
            self.done = true;
        } else {
            self.away = Some(frame(core));
            // An interrupt comes between instructions.
            self.done &= interrupt;
        }
    }
}

/// What tells the frame of a function, and of each time that it is called.
fn frame(core: &Core) -> (usize, u32) {
    (core.registers.current(), core.registers.get(14))
}

/// Where a core stood when that was told: there it goes on without being told again.
pub(super) type Place = (usize, u64, u32);

/// Looks for what was asked for.
#[derive(Default)]
pub(super) struct Look {
    /// Whether there is one of each kind at an address.
    breaks: BTreeMap<u32, [bool; 2]>,
    watches: Vec<Watch>,
    pub(super) steppers: Vec<Stepper>,
    /// The cores that the debugger lets run, a bit each, where it does not mean all: only of them it wants to be told.
    pub(super) alone: Option<u64>,
    pub(super) told: Option<Place>,
    pub(super) hit: Option<Hit>,
}

impl Look {
    /// Whether there is nothing to look for.
    pub(super) fn is_idle(&self) -> bool {
        self.breaks.is_empty() && self.watches.is_empty() && !self.is_stepping()
    }

    /// Whether it is to be looked after each instruction.
    pub(super) fn is_stepping(&self) -> bool {
        !self.steppers.is_empty() || self.alone.is_some()
    }

    /// Whether the debugger wants to be told of `core`.
    fn is_meant(&self, core: usize) -> bool {
        self.alone.is_none_or(|alone| alone >> core & 1 == 1)
    }

    /// Adds a breakpoint; false if there are too many.
    pub(super) fn add_break(&mut self, address: u32, kind: Kind) -> bool {
        if self.breaks.len() >= MOST && !self.breaks.contains_key(&address) {
            return false;
        }
        self.breaks.entry(address).or_default()[kind as usize] = true;
        true
    }

    /// Removes a breakpoint; false if there is none.
    pub(super) fn remove_break(&mut self, address: u32, kind: Kind) -> bool {
        let Some(kinds) = self.breaks.get_mut(&address) else {
            return false;
        };
        let was = std::mem::take(&mut kinds[kind as usize]);
        if *kinds == [false; 2] {
            self.breaks.remove(&address);
        }
        was
    }

    /// Adds a watchpoint; false if it watches nothing, or there are too many.
    pub(super) fn add_watch(&mut self, watch: Watch) -> bool {
        if watch.length == 0 || self.watches.len() >= MOST {
            return false;
        }
        self.watches.push(watch);
        true
    }

    /// Removes a watchpoint; false if there is none.
    pub(super) fn remove_watch(&mut self, watch: Watch) -> bool {
        let at = self.watches.iter().position(|other| *other == watch);
        at.map(|at| self.watches.swap_remove(at)).is_some()
    }

    /// Where `core` stands.
    pub(super) fn place(core: &Core) -> Place {
        (core.number, core.instructions, core.pc)
    }

    /// The breakpoint before which `core` stands.
    pub(super) fn breaks_at(&self, core: &Core) -> Option<Hit> {
        let [soft, _] = self.breaks.get(&core.pc)?;
        let kind = if *soft { Kind::Soft } else { Kind::Hard };
        (self.is_meant(core.number) && self.told != Some(Look::place(core))).then_some(Hit::Break {
            core: core.number,
            kind,
        })
    }
}

impl Observer for Look {
    fn before(&mut self, core: &Core, _bus: &Bus) -> bool {
        if self.hit.is_none() {
            self.hit = self.breaks_at(core);
        }
        let number = core.number;
        let mut steppers = self
            .steppers
            .iter_mut()
            .filter(|stepper| stepper.core == number);
        self.hit.is_some() || steppers.any(|stepper| stepper.before(core))
    }

    fn touched(&mut self, core: &Core, touch: Touch) {
        if self.hit.is_some() || !self.is_meant(core.number) {
            return;
        }
        self.hit = self.watches.iter().find_map(|watch| {
            Some(Hit::Watch {
                core: core.number,
                kind: watch.kind,
                address: watch.first(touch)?,
            })
        });
    }

    fn trapped(&mut self, core: &Core, trap: Trap) {
        for stepper in self
            .steppers
            .iter_mut()
            .filter(|stepper| stepper.core == core.number)
        {
            stepper.trapped(core, trap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(address: u32, size: u32, write: bool) -> Touch {
        Touch {
            pc: 0,
            address,
            size,
            value: 0,
            write,
        }
    }

    #[test]
    fn a_watch_is_for_the_bytes_it_names() {
        let watch = Watch {
            address: 0x1002,
            length: 2,
            kind: WatchKind::Write,
        };
        assert_eq!(watch.first(touch(0x1000, 4, true)), Some(0x1002));
        assert_eq!(watch.first(touch(0x1003, 1, true)), Some(0x1003));
        assert_eq!(watch.first(touch(0x1000, 2, true)), None);
        assert_eq!(watch.first(touch(0x1004, 4, true)), None);
        assert_eq!(watch.first(touch(0x1002, 2, false)), None);
        let all = Watch {
            address: 0xffff_fff0,
            length: u32::MAX,
            kind: WatchKind::ReadWrite,
        };
        assert_eq!(all.first(touch(0xffff_fff8, 8, false)), Some(0xffff_fff8));
    }

    #[test]
    fn kinds_of_breakpoints_come_and_go_by_themselves() {
        let mut look = Look::default();
        assert!(look.is_idle());
        assert!(look.add_break(16, Kind::Soft) && look.add_break(16, Kind::Hard));
        assert!(look.remove_break(16, Kind::Soft) && !look.remove_break(16, Kind::Soft));
        assert!(!look.is_idle());
        assert!(look.remove_break(16, Kind::Hard) && look.is_idle());
    }

    #[test]
    fn there_is_an_end_to_what_can_be_asked_for() {
        let mut look = Look::default();
        let count = (0..10_000)
            .filter(|at| look.add_break(4 * at, Kind::Soft))
            .count();
        assert_eq!(count, MOST);
        assert!(look.add_break(0, Kind::Hard), "an address of those");
        let watch = Watch {
            address: 0,
            length: 4,
            kind: WatchKind::Read,
        };
        assert_eq!((0..10_000).filter(|_| look.add_watch(watch)).count(), MOST);
        assert!(!look.add_watch(Watch { length: 0, ..watch }));
    }
}
