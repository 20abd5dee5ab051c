//! What a kernel's module may ask of its system: eight functions of WASI preview 1, for every engine alike.
//!
//! *Invariant:* nothing of the host is reached but its monotonic clock: output is kept here, and there is no file.

use std::time::Instant;

/// `EBADF` of WASI.
const BAD_FILE: u32 = 8;
/// `EFAULT` of WASI.
const BAD_ADDRESS: u32 = 21;
/// `ENOSYS` of WASI.
const NOT_OFFERED: u32 = 52;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// With an error number; 0 is none.
    Number(u32),
    /// The program is over, with this status.
    Exit(i32),
}

/// The system as one instance sees it.
#[derive(Debug)]
pub(crate) struct System {
    arguments: Vec<String>,
    begin: Instant,
    /// What was written to standard output.
    pub(crate) output: Vec<u8>,
    /// What was written to standard error.
    pub(crate) complaints: Vec<u8>,
}

impl System {
    pub(crate) fn new(arguments: &[String]) -> System {
        let name = std::iter::once("kernel".to_owned());
        System {
            arguments: name.chain(arguments.iter().cloned()).collect(),
            begin: Instant::now(),
            output: Vec::new(),
            complaints: Vec::new(),
        }
    }

    /// The function `name` of the system, called with these parameters.
    pub(crate) fn call(&mut self, name: &str, parameters: &[u64], memory: &mut [u8]) -> Answer {
        let at = |index: usize| {
            parameters
                .get(index)
                .map_or(0, |value| *value as u32 as usize)
        };
        let done = match name {
            "args_sizes_get" => self.argument_sizes(memory, at(0), at(1)),
            "args_get" => self.arguments(memory, at(0), at(1)),
            "environ_sizes_get" => put(memory, at(0), 0u32.to_le_bytes())
                .and_then(|()| put(memory, at(1), 0u32.to_le_bytes())),
            "environ_get" => Some(()),
            "clock_time_get" => {
                let now = self.begin.elapsed().as_nanos() as u64;
                put(memory, at(2), now.to_le_bytes())
            }
            "fd_write" => match at(0) {
                1 => gather(memory, at(1), at(2), at(3), &mut self.output),
                2 => gather(memory, at(1), at(2), at(3), &mut self.complaints),
                _ => return Answer::Number(BAD_FILE),
            },
            // A character device: what C's library asks before it chooses how to buffer.
            "fd_fdstat_get" if at(0) <= 2 => {
                let mut status = [0; 24];
                status[0] = 2;
                put(memory, at(1), status)
            }
            "fd_close" if at(0) <= 2 => Some(()),
            "fd_close" | "fd_fdstat_get" | "fd_seek" | "fd_prestat_get" => {
                return Answer::Number(BAD_FILE);
            }
            "proc_exit" => return Answer::Exit(at(0) as i32),
            _ => return Answer::Number(NOT_OFFERED),
        };
        Answer::Number(done.map_or(BAD_ADDRESS, |()| 0))
    }

    fn argument_sizes(&self, memory: &mut [u8], count: usize, bytes: usize) -> Option<()> {
        let all: usize = self
            .arguments
            .iter()
            .map(|argument| argument.len() + 1)
            .sum();
        put(memory, count, (self.arguments.len() as u32).to_le_bytes())?;
        put(memory, bytes, (all as u32).to_le_bytes())
    }

    fn arguments(&self, memory: &mut [u8], mut pointers: usize, mut text: usize) -> Option<()> {
        for argument in &self.arguments {
            put(memory, pointers, (text as u32).to_le_bytes())?;
            memory
                .get_mut(text..)?
                .get_mut(..argument.len())?
                .copy_from_slice(argument.as_bytes());
            put(memory, text + argument.len(), [0])?;
            pointers += 4;
            text += argument.len() + 1;
        }
        Some(())
    }
}

fn put<const N: usize>(memory: &mut [u8], at: usize, bytes: [u8; N]) -> Option<()> {
    memory.get_mut(at..)?.get_mut(..N)?.copy_from_slice(&bytes);
    Some(())
}

fn word(memory: &[u8], at: usize) -> Option<usize> {
    let bytes = memory.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes) as usize)
}

/// Appends `count` pieces that a table at `pieces` names to `to`.
fn gather(
    memory: &mut [u8],
    pieces: usize,
    count: usize,
    written: usize,
    to: &mut Vec<u8>,
) -> Option<()> {
    let before = to.len();
    for piece in 0..count {
        let entry = pieces.checked_add(piece.checked_mul(8)?)?;
        let (start, length) = (word(memory, entry)?, word(memory, entry + 4)?);
        to.extend_from_slice(memory.get(start..)?.get(..length)?);
    }
    put(memory, written, ((to.len() - before) as u32).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> System {
        System::new(&["gemm".to_owned(), "é".to_owned()])
    }

    #[test]
    fn arguments_lie_where_the_program_wants_them() {
        let (mut system, mut memory) = (system(), vec![0xff; 64]);
        assert_eq!(
            system.call("args_sizes_get", &[0, 4], &mut memory),
            Answer::Number(0)
        );
        assert_eq!(memory[..8], [3, 0, 0, 0, 15, 0, 0, 0]);
        assert_eq!(
            system.call("args_get", &[0, 16], &mut memory),
            Answer::Number(0)
        );
        assert_eq!(&memory[16..31], "kernel\0gemm\0é\0".as_bytes());
        assert_eq!(memory[..12], [16, 0, 0, 0, 23, 0, 0, 0, 28, 0, 0, 0]);
    }

    #[test]
    fn what_is_written_is_kept_apart_and_counted() {
        let (mut system, mut memory) = (system(), b"abcdefgh".to_vec());
        memory.extend([0, 0, 0, 0, 3, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0, 9, 9, 9, 9]);
        assert_eq!(
            system.call("fd_write", &[1, 8, 2, 24], &mut memory),
            Answer::Number(0)
        );
        assert_eq!(system.output, b"abcgh");
        assert_eq!(memory[24..], [5, 0, 0, 0]);
        assert_eq!(
            system.call("fd_write", &[2, 8, 1, 24], &mut memory),
            Answer::Number(0)
        );
        assert_eq!(system.complaints, b"abc");
        assert_eq!(
            system.call("fd_write", &[3, 8, 1, 24], &mut memory),
            Answer::Number(BAD_FILE)
        );
    }

    #[test]
    fn addresses_beyond_the_memory_are_errors() {
        let (mut system, mut memory) = (system(), vec![0xff; 16]);
        let end = u64::from(u32::MAX);
        for (name, parameters) in [
            ("args_get", [0, end, 0, 0]),
            ("args_get", [end, 0, 0, 0]),
            ("args_sizes_get", [14, 0, 0, 0]),
            ("clock_time_get", [1, 0, 12, 0]),
            ("fd_write", [1, 0, 1, 0]),
            ("fd_write", [1, 8, end, 0]),
        ] {
            assert_eq!(
                system.call(name, &parameters, &mut memory),
                Answer::Number(BAD_ADDRESS),
                "{name}"
            );
        }
        assert_eq!(
            system.call("path_open", &[], &mut memory),
            Answer::Number(NOT_OFFERED)
        );
        assert_eq!(system.call("proc_exit", &[7], &mut memory), Answer::Exit(7));
    }
}
