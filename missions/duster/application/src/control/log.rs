//! The log: short lines for whoever sits at the unit, on a line of their own.
//!
//! *Invariant:* a line that does not fit whole is not written; nothing waits for the log.

use super::Control;
use crate::declared::TASK_LOG;
use crate::hardware::Hardware;

/// Bytes that wait at most.
const WAITING: usize = 512;
/// Bytes sent in one activation.
const BYTES: usize = 256;

/// Lines on their way.
pub(super) struct Log {
    bytes: [u8; WAITING],
    length: usize,
}

impl Log {
    pub(super) const fn new() -> Self {
        Log {
            bytes: [0; WAITING],
            length: 0,
        }
    }

    /// A line: a letter, and numbers in hexadecimal.
    pub(super) fn line(&mut self, letter: u8, numbers: &[u32]) {
        let room = WAITING - self.length;
        if room < 2 + 9 * numbers.len() {
            return;
        }
        self.byte(letter);
        for number in numbers {
            self.byte(b' ');
            for digit in (0..8).rev() {
                let digit = (number >> (4 * digit) & 15) as u8;
                self.byte(if digit < 10 {
                    b'0' + digit
                } else {
                    b'a' + digit - 10
                });
            }
        }
        self.byte(b'\n');
    }

    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

impl Control {
    /// The task `log`, each 50 milliseconds: sends what waits. Time: `BYTES` bytes.
    pub fn log(&mut self, hardware: &mut impl Hardware) {
        self.ran_task(TASK_LOG);
        let count = self.log.length.min(BYTES);
        if let Some(bytes) = self.log.bytes.get(..count) {
            hardware.log(bytes);
        }
        self.log.bytes.copy_within(count..self.log.length, 0);
        self.log.length -= count;
    }
}
