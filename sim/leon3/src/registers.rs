//! Integer registers of a core: globals and windows (SPARC V8 manual, section 4.1).
//!
//! The 32 registers of the current window lie side by side, so that an instruction finds them by their number alone;
//! a change of window copies what it leaves into the file and what it enters out of it.
//!
//! Invariant: register 0 is zero; what the file holds of the current window is out of date; while no core runs, the
//! sink is zero, too.

use serde::{Deserialize, Serialize};

use crate::decode::SINK;

/// Most windows that the architecture knows.
pub const MOST_WINDOWS: usize = 32;

/// Registers of a core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers {
    /// Globals, outs, locals and ins of the current window; then the sink, and nothing up to a power of two.
    #[serde(with = "crate::snapshot::words")]
    view: [u32; 64],
    /// Outs and locals of each window; its ins are the outs of the next one.
    file: [[u32; 16]; MOST_WINDOWS],
    /// The current window (CWP).
    current: usize,
    windows: usize,
}

impl Registers {
    /// Where the registers of the current window lie, in order.
    #[cfg(feature = "translate")]
    pub(crate) const VIEW: usize = std::mem::offset_of!(Registers, view);

    /// Zeroed registers in `windows` windows (2 to 32), of which 0 is current.
    pub fn new(windows: usize) -> Registers {
        assert!((2..=MOST_WINDOWS).contains(&windows), "{windows} windows");
        Registers {
            view: [0; 64],
            file: [[0; 16]; MOST_WINDOWS],
            current: 0,
            windows,
        }
    }

    /// How many windows there are.
    pub fn windows(&self) -> usize {
        self.windows
    }

    /// The current window.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Register `number` of the current window: globals, outs, locals, ins.
    #[inline(always)]
    pub fn get(&self, number: u8) -> u32 {
        self.view[usize::from(number & 63)]
    }

    /// Sets register `number`, which is no `%g0`: decoding has made that the sink.
    #[inline(always)]
    pub fn set(&mut self, number: u8, value: u32) {
        debug_assert!(number != 0 && number <= SINK, "register {number}");
        self.view[usize::from(number & 63)] = value;
    }

    /// Sets register `number` of an instruction that names pairs, where `%g0` was not replaced.
    #[inline(always)]
    pub fn set_named(&mut self, number: u8, value: u32) {
        if number != 0 {
            self.set(number, value);
        }
    }

    /// Forgets what went to `%g0`.
    pub(crate) fn empty_sink(&mut self) {
        self.view[usize::from(SINK)] = 0;
    }

    /// The window that SAVE and a trap enter.
    #[inline(always)]
    pub fn below(&self) -> usize {
        if self.current == 0 {
            self.windows - 1
        } else {
            self.current - 1
        }
    }

    /// The window that RESTORE and RETT enter.
    #[inline(always)]
    pub fn above(&self) -> usize {
        self.after(self.current)
    }

    #[inline(always)]
    fn after(&self, window: usize) -> usize {
        if window + 1 == self.windows {
            0
        } else {
            window + 1
        }
    }

    /// Makes `window` the current one.
    #[inline]
    pub fn enter(&mut self, window: usize) {
        let above = self.above();
        self.file[self.current % MOST_WINDOWS].copy_from_slice(&self.view[8..24]);
        self.file[above % MOST_WINDOWS][..8].copy_from_slice(&self.view[24..32]);
        self.current = window;
        let above = self.above();
        self.view[8..24].copy_from_slice(&self.file[window % MOST_WINDOWS]);
        self.view[24..32].copy_from_slice(&self.file[above % MOST_WINDOWS][..8]);
    }

    /// The outs of `window`, which are the ins of the one below it.
    pub fn outs(&self, window: usize) -> [u32; 8] {
        let outs = if window == self.current {
            &self.view[8..16]
        } else if window == self.above() {
            &self.view[24..32]
        } else {
            &self.file[window % MOST_WINDOWS][..8]
        };
        outs.try_into().expect("8 of them")
    }

    /// The 32 registers of the current window.
    pub fn all(&self) -> [u32; 32] {
        self.view[..32].try_into().expect("32 of 64")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Beside a plain file of 16 registers a window, in which a name is an address.
        #[test]
        fn windows_overlap(windows in 2usize..=32, steps in proptest::collection::vec((any::<bool>(), 1u8..32, any::<u32>()), 1..200)) {
            let mut registers = Registers::new(windows);
            let mut globals = [0; 8];
            let mut plain = vec![0; 16 * windows];
            let mut current = 0;
            for (save, number, value) in steps {
                let place = |current: usize, number: u8| (current * 16 + usize::from(number) - 8) % (16 * windows);
                registers.set(number, value);
                if number < 8 { globals[usize::from(number)] = value } else { plain[place(current, number)] = value }
                current = if save { (current + windows - 1) % windows } else { (current + 1) % windows };
                registers.enter(if save { registers.below() } else { registers.above() });
                prop_assert_eq!(registers.current(), current);
                for number in 0..32u8 {
                    let expected = if number < 8 { globals[usize::from(number)] } else { plain[place(current, number)] };
                    prop_assert_eq!(registers.get(number), expected);
                }
                for window in 0..windows {
                    prop_assert_eq!(&registers.outs(window)[..], &plain[window * 16..][..8]);
                }
            }
        }
    }
}
