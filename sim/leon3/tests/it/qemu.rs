//! QEMU as an oracle: what it says of each instruction of an image, as a stream.
//!
//! QEMU logs the state of a processor before each block of code; with one instruction a block that is
//! the state before each instruction. The log is read as bytes, by lines, without a `String`.
//!
//! Invariant: what comes is what was executed, once and in order. A block that an interrupt stopped before
//! it began is logged and stands not among the states; `ta 0` with traps off, which QEMU repeats until its end
//! comes, stands among them once.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A processor before an instruction. The log has no TBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Which processor.
    pub(crate) cpu: u8,
    pub(crate) pc: u32,
    pub(crate) npc: u32,
    pub(crate) psr: u32,
    pub(crate) wim: u32,
    pub(crate) y: u32,
    pub(crate) fsr: u32,
    /// Those of the current window: globals, outs, locals, ins.
    pub(crate) registers: [u32; 32],
    /// Zeros unless [`Detail::Floats`] was asked for.
    pub(crate) floats: [u32; 32],
}

impl State {
    pub(crate) const ZERO: State = State {
        cpu: 0,
        pc: 0,
        npc: 0,
        psr: 0,
        wim: 0,
        y: 0,
        fsr: 0,
        registers: [0; 32],
        floats: [0; 32],
    };
}

/// What QEMU tells of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// `cpu`, `pc` and `npc` alone; all else is 0. Four times as fast.
    Places,
    /// All but the floating-point registers.
    Integers,
    /// All.
    Floats,
}

/// The machine that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) detail: Detail,
    /// More than one needs QEMU 9 or newer; up to four.
    pub(crate) cpus: u32,
    /// An instruction takes 2^shift nanoseconds, and timers and interrupts are the same in each run. Without
    /// it, time is the host's.
    pub(crate) shift: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            detail: Detail::Integers,
            cpus: 1,
            shift: Some(5),
        }
    }
}

/// The program, and whether it is version 10 or newer: that which `scripts/setup` lays beside the build is.
///
/// # Errors
/// When there is none.
pub(crate) fn program() -> Result<(PathBuf, bool), String> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut around = test.ancestors().skip(1).take(4);
    let newer = around.find_map(|folder| {
        let program = folder.join("qemu-sparc/qemu-system-sparc");
        program.is_file().then_some(program)
    });
    if let Some(newer) = newer {
        return Ok((newer, true));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let older = std::env::split_paths(&path).map(|folder| folder.join("qemu-system-sparc"));
    let older = { older }.find(|program| program.is_file());
    let older = older.ok_or("qemu-system-sparc is missing; run scripts/setup")?;
    let newer = major(&older).is_some_and(|major| major >= 10);
    Ok((older, newer))
}

/// The first number of a QEMU's version.
fn major(program: &Path) -> Option<u32> {
    let said = Command::new(program).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let number = said.split("version ").nth(1)?.split('.').next()?;
    number.parse().ok()
}

/// A run of QEMU; its states, one by one.
pub(crate) struct Qemu {
    child: Child,
    log: Lines<ChildStdout>,
    reader: Reader,
    /// What the UART printed, in a file: QEMU's own output is the log.
    uart: PathBuf,
}

impl Qemu {
    /// Starts QEMU 10 on an image.
    ///
    /// # Panics
    /// When there is none, or it does not start; what to do is said.
    pub(crate) fn ten(image: &Path, options: &Options) -> Qemu {
        let started = program().and_then(|(_, newer)| {
            if newer {
                Qemu::start(image, options)
            } else {
                Err("QEMU 10 for SPARC is missing; run scripts/setup".to_owned())
            }
        });
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts QEMU on an image.
    ///
    /// # Errors
    /// When there is no QEMU, or it does not start.
    pub(crate) fn start(image: &Path, options: &Options) -> Result<Qemu, String> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let (program, newer) = program()?;
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let uart = format!("leon3-uart-{}-{run}", std::process::id());
        let uart = std::env::temp_dir().join(uart);
        let mut qemu = Command::new(&program);
        qemu.args([
            "-M",
            "leon3_generic",
            "-display",
            "none",
            "-monitor",
            "none",
        ]);
        qemu.arg("-no-reboot").arg("-kernel").arg(image);
        qemu.arg("-serial").arg(format!("file:{}", uart.display()));
        qemu.args(["-smp", &options.cpus.to_string()]);
        if newer {
            qemu.args(["-accel", "tcg,one-insn-per-tb=on"]);
        } else {
            qemu.arg("-singlestep");
        }
        if let Some(shift) = options.shift {
            qemu.args(["-icount", &format!("shift={shift},sleep=off")]);
        }
        let what = match options.detail {
            Detail::Places => "exec,nochain",
            Detail::Integers => "exec,cpu,nochain",
            Detail::Floats => "exec,cpu,fpu,nochain",
        };
        qemu.args(["-d", what, "-D", "/dev/stdout"]);
        // The system's modules are of the system's QEMU, and none is needed.
        qemu.env("QEMU_MODULE_DIR", "/nonexistent");
        qemu.stdin(Stdio::null()).stdout(Stdio::piped());
        qemu.stderr(Stdio::null());
        let mut child = qemu
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let log = child.stdout.take().expect("it is piped");
        Ok(Qemu {
            child,
            log: Lines::new(log),
            reader: Reader::new(options.detail),
            uart,
        })
    }

    /// What the UART has printed; all of it when the states have come to their end.
    pub(crate) fn printed(&self) -> Vec<u8> {
        std::fs::read(&self.uart).unwrap_or_default()
    }
}

impl Iterator for Qemu {
    type Item = State;

    fn next(&mut self) -> Option<State> {
        self.reader.next(&mut self.log)
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // It may have ended; what fails here has nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.uart);
    }
}

/// The lines of what is read, each with its end, in one buffer.
struct Lines<R> {
    from: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
}

impl<R: Read> Lines<R> {
    fn new(from: R) -> Self {
        let buffer = vec![0; 1 << 18];
        Lines {
            from,
            buffer,
            at: 0,
            end: 0,
        }
    }

    /// Bytes that lie in the buffer from here on, at least `least` unless the end is nearer.
    fn have(&mut self, least: usize) -> io::Result<&[u8]> {
        while self.end - self.at < least {
            if self.buffer.len() - self.at < least {
                self.buffer.copy_within(self.at..self.end, 0);
                self.end -= self.at;
                self.at = 0;
            }
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.at..self.end])
    }

    /// The next line, shorter than [`LONGEST`]; none at the end.
    fn line(&mut self) -> io::Result<Option<&[u8]>> {
        if !self.buffer[self.at..self.end].contains(&b'\n') {
            self.have(LONGEST)?;
        }
        let there = &self.buffer[self.at..self.end];
        let Some(length) = there.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let line = self.at..self.at + length;
        self.at += length + 1;
        Ok(Some(&self.buffer[line]))
    }
}

/// What no line of the log reaches, nor the state of a processor.
const LONGEST: usize = 2048;

/// Makes states of lines.
struct Reader {
    detail: Detail,
    /// States that are whole, the last of which a line behind it may call off.
    whole: VecDeque<State>,
    /// How often the last of them came again.
    again: u64,
}

/// The states of a log. A log that ends within a state ends before it.
impl Reader {
    fn new(detail: Detail) -> Self {
        Reader {
            detail,
            whole: VecDeque::new(),
            again: 0,
        }
    }

    fn next<R: Read>(&mut self, log: &mut Lines<R>) -> Option<State> {
        loop {
            if self.whole.len() > 1 {
                if self.again > 0 {
                    self.again -= 1;
                    return self.whole.front().copied();
                }
                return self.whole.pop_front();
            }
            let Some(line) = log.line().ok().flatten() else {
                // Repetitions of the last are those of the end.
                self.again = 0;
                return self.whole.pop_front();
            };
            if line.starts_with(b"Trace ") {
                let named = named(line);
                let state = if self.detail == Detail::Places {
                    named
                } else {
                    named.and_then(|state| self.dumped(state, log))
                };
                if let Some(state) = state {
                    // Only a last state that is alone counts its repetitions.
                    if self.whole.back() == Some(&state) {
                        self.again += 1;
                    } else {
                        self.whole.push_back(state);
                    }
                }
            } else if line.starts_with(b"Stopped ") {
                if self.again > 0 {
                    self.again -= 1;
                } else {
                    self.whole.pop_back();
                }
            }
        }
    }

    /// The rest of a state, or none when the log ends within it.
    fn dumped<R: Read>(&self, mut state: State, log: &mut Lines<R>) -> Option<State> {
        let floats = self.detail == Detail::Floats;
        let length = HEAD + 4 * ROW - 1 + if floats { 4 * FLOATS } else { 0 } + TAIL;
        let text = log.have(length).ok()?.get(..length)?;
        state.pc = hex(&text[4..12]);
        state.npc = hex(&text[19..27]);
        for row in 0..4 {
            let row_at = HEAD + row * ROW - usize::from(row > 0);
            for column in 0..8 {
                let at = row_at + 7 + 9 * column;
                state.registers[8 * row + column] = hex(&text[at..at + 8]);
            }
        }
        let mut at = HEAD + 4 * ROW - 1;
        if floats {
            for row in 0..4 {
                for column in 0..4 {
                    let pair = at + 7 + 17 * column;
                    let number = 8 * row + 2 * column;
                    state.floats[number] = hex(&text[pair..pair + 8]);
                    state.floats[number + 1] = hex(&text[pair + 8..pair + 16]);
                }
                at += FLOATS;
            }
        }
        state.psr = hex(&text[at + 5..at + 13]);
        state.wim = hex(&text[at + 40..at + 48]);
        state.fsr = hex(&text[at + 54..at + 62]);
        state.y = hex(&text[at + 66..at + 74]);
        log.at += length;
        Some(state)
    }
}

/// What the first line of a state names: `Trace CPU: HOST [NPC/PC/FLAGS/CFLAGS] NAME`.
fn named(line: &[u8]) -> Option<State> {
    let mut state = State::ZERO;
    let digits = line[6..].iter().take_while(|byte| byte.is_ascii_digit());
    state.cpu = digits.fold(0, |number, digit| number * 10 + (digit - b'0'));
    let from = line.iter().position(|byte| *byte == b'[')? + 1;
    let mut fields = line[from..].split(|byte| *byte == b'/');
    state.npc = hex(fields.next()?);
    state.pc = hex(fields.next()?);
    Some(state)
}

/// `pc: 00000000  npc: 00000004\n`
const HEAD: usize = 28;
/// `%o0-7: 00000000 ... 00000000 \n`; that of the globals is shorter by the last space.
const ROW: usize = 80;
/// `%f00:  0000000000000000 0000000000000000 0000000000000000 0000000000000000\n`
const FLOATS: usize = 75;
/// `psr: f34000c0 (icc: -Z-- SPE: SP-) wim: 00000001\nfsr: 00080000 y: 00000000\n`
const TAIL: usize = 49 + 26;

/// A number of hexadecimal digits; what is none counts as 0.
fn hex(digits: &[u8]) -> u32 {
    const VALUES: [u8; 256] = {
        let mut values = [0; 256];
        let mut digit = 0;
        while digit < 10 {
            values[b'0' as usize + digit] = digit as u8;
            digit += 1;
        }
        let mut digit = 10;
        while digit < 16 {
            values[b'a' as usize + digit - 10] = digit as u8;
            digit += 1;
        }
        values
    };
    digits.iter().fold(0, |number, digit| {
        number << 4 | u32::from(VALUES[usize::from(*digit)])
    })
}
