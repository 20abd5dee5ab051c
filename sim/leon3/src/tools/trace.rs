//! The execution trace: a line for each instruction.
//!
//! A line is the core in hexadecimal, the address and the instruction word, 8 digits each: `0 40001000 81c04000`. An
//! instruction that cannot be fetched has `--------` for its word. A trap, where they are asked for, is a line
//! `# 0 40001000 05 register window overflow` with the address of the instruction that traps or before which the core is
//! interrupted, and follows the line of the one that traps.
//!
//! Invariant: lines are in the order of execution, one for each instruction that the cores count, however the run is
//! portioned; after an error of the writer nothing more is written, and the machine pauses.

use std::io::{self, Write};

use super::Once;
use crate::bus::Bus;
use crate::core::Core;
use crate::observer::Observer;
use crate::trap::Trap;

/// Bytes that are gathered before they are written.
const GATHERED: usize = 1 << 16;
/// Most bytes of an instruction's line: core, two words, spaces and the end.
const LONGEST: usize = 21;

/// Writes what is executed.
#[derive(Debug)]
pub struct Trace<W> {
    out: W,
    gathered: Vec<u8>,
    traps: bool,
    error: Option<io::Error>,
    once: Once,
}

impl<W: Write> Trace<W> {
    /// A trace to `out`, which needs no buffer of its own; with lines for traps if `traps`.
    pub fn new(out: W, traps: bool) -> Trace<W> {
        Trace {
            out,
            gathered: Vec::with_capacity(GATHERED),
            traps,
            error: None,
            once: Once::default(),
        }
    }

    /// What the writer has refused, for which the machine was paused.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Writes what is gathered and gives the writer back. A trace that is dropped instead lacks its last lines.
    ///
    /// # Errors
    /// The writer's first one.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_out();
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    #[cold]
    fn write_out(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(&self.gathered).err();
        }
        self.gathered.clear();
    }

    #[inline(always)]
    fn line(&mut self, number: usize, pc: u32, word: [u8; 8]) {
        if self.gathered.len() + LONGEST > GATHERED {
            self.write_out();
        }
        // One copy of a fixed size: the core's number is one or two digits, and the first byte is left away if one.
        let mut line = [b' '; LONGEST];
        line[0] = DIGITS[number >> 4 & 15];
        line[1] = DIGITS[number & 15];
        line[3..11].copy_from_slice(&hex(pc));
        line[12..20].copy_from_slice(&word);
        line[20] = b'\n';
        if number < 16 {
            self.gathered.extend_from_slice(&line[1..]);
        } else {
            self.gathered.extend_from_slice(&line);
        }
    }
}

impl<W: Write> Observer for Trace<W> {
    #[inline(always)]
    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        if self.error.is_some() {
            return true;
        }
        if self.once.first(core) {
            let word = match bus.load::<4>(core.pc) {
                Some(bytes) => hex(u32::from_be_bytes(bytes)),
                None => bus.word(core.pc).map_or([b'-'; 8], hex),
            };
            self.line(core.number, core.pc, word);
        }
        false
    }

    fn trapped(&mut self, core: &Core, trap: Trap) {
        if self.traps && self.error.is_none() {
            if self.gathered.len() + 2 * LONGEST > GATHERED {
                self.write_out();
            }
            let (number, pc, reason) = (core.number, core.pc, trap.reason());
            let line = format!("# {number:x} {pc:08x} {:02x} {reason}\n", trap.0);
            self.gathered.extend_from_slice(line.as_bytes());
        }
    }
}

const DIGITS: [u8; 16] = *b"0123456789abcdef";

/// The digits of `value`, all eight at once: nibbles are spread into the bytes of a word, those above 9 get what lies
/// between `9` and `a`.
#[inline(always)]
fn hex(value: u32) -> [u8; 8] {
    let pairs = u64::from(value);
    let halves = (pairs | pairs << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let above = (nibbles + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (nibbles + 0x3030_3030_3030_3030 + above * 0x27).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Configuration, End, Image, Machine, Stop};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_are_those_of_the_standard_library(value: u32) {
            prop_assert_eq!(hex(value).to_vec(), format!("{value:08x}").into_bytes());
        }
    }

    /// or %g0, 3, %o0; subcc %o0, 1, %o0; bne -1; nop; ta 0.
    const LOOP: [u32; 5] = [
        0x9010_2003,
        0x92a2_2001,
        0x12bf_ffff,
        0x9010_0009,
        0x91d0_2000,
    ];

    fn machine() -> Machine {
        let image = Image::of_words(0x4000_0000, &LOOP);
        Machine::with_image(&Configuration::default(), &image).unwrap()
    }

    /// Pauses before each instruction, once.
    struct Halting(bool);

    impl Observer for Halting {
        fn before(&mut self, _core: &Core, _bus: &Bus) -> bool {
            self.0 = !self.0;
            self.0
        }
    }

    #[test]
    fn each_instruction_is_a_line_however_often_it_is_shown() {
        let mut machine = machine();
        let mut both = (Trace::new(Vec::new(), true), Halting(false));
        while machine.run(1000, &mut both) == (Stop::Observer { core: 0 }) {}
        let text = String::from_utf8(both.0.finish().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len() as u64, machine.instructions() + 1);
        assert_eq!(
            lines[..4],
            [
                "0 40000000 90102003",
                "0 40000004 92a22001",
                "0 40000008 12bfffff",
                "0 4000000c 90100009"
            ]
        );
        assert_eq!(
            lines[lines.len() - 2..],
            ["0 40000010 91d02000", "# 0 40000010 80 software trap 0"]
        );
    }

    /// Takes some bytes, then is closed.
    struct Pipe(usize);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_pauses_the_machine_and_is_told() {
        // ba 0; nop
        let image = Image::of_words(0x4000_0000, &[0x1080_0000, 0x0100_0000]);
        let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
        let mut trace = Trace::new(Pipe(GATHERED / 2), false);
        assert_eq!(machine.run(1 << 30, &mut trace), Stop::Observer { core: 0 });
        assert!(machine.instructions() < 4000, "{}", machine.instructions());
        assert_eq!(trace.error().unwrap().kind(), io::ErrorKind::BrokenPipe);
        assert!(trace.finish().is_err());
    }

    #[test]
    fn what_cannot_be_fetched_has_no_word() {
        let image = Image::of_words(0x4000_0000, &[0x81c0_2000, 0x0100_0000]); // jmp 0; nop
        let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
        let mut trace = Trace::new(Vec::new(), false);
        let stop = machine.run(10, &mut trace);
        assert!(matches!(stop, Stop::End(End::Error { .. })), "{stop:?}");
        let text = trace.finish().unwrap();
        assert!(text.ends_with(b"0 00000000 --------\n"));
    }
}
