//! WASI preview 1, as far as a program without files needs it, and the import by which requests are told.
//!
//! Not the host's (`metes-edge`): here a run is a function of its input, output is as long as it gets, and memory
//! may grow.
//!
//! Invariant: whatever the module passes, the answer is a number of WASI or a trap, never a panic.

use wasmtime::{Caller, Error, Extern, Linker, Module};

use crate::report::REPORT;
use crate::run::{RunError, State, refused};

/// The module that all imports of WASI name.
const WASI: &str = "wasi_snapshot_preview1";
const SUCCESS: i32 = 0;
const BADF: i32 = 8;
const FAULT: i32 = 21;
const SPIPE: i32 = 70;

/// Passed through a trap by `proc_exit`.
#[derive(Debug)]
pub(crate) struct Exit;

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the program has ended itself")
    }
}

impl std::error::Error for Exit {}

/// Whatever else of WASI a module imports it is told not to have.
pub(crate) fn deny(linker: &mut Linker<State>, module: &Module) -> Result<(), RunError> {
    /// `ENOTCAPABLE` of WASI.
    const NOT_CAPABLE: i32 = 76;
    let offered = [
        "fd_write",
        "fd_read",
        "fd_close",
        "fd_seek",
        "fd_prestat_get",
        "fd_fdstat_get",
        "environ_sizes_get",
        "environ_get",
        "args_sizes_get",
        "args_get",
        "clock_time_get",
        "random_get",
        "sched_yield",
        "proc_exit",
    ];
    for import in module.imports() {
        let (from, name) = (import.module(), import.name());
        if (from, name) == REPORT || (from == WASI && offered.contains(&name)) {
            continue;
        }
        let function = import.ty().func().cloned();
        let function = function.filter(|ty| from == WASI && ty.results().all(|ty| ty.is_i32()));
        let Some(ty) = function else {
            return Err(refused(format!(
                "it imports `{name}` of `{from}`, which is not of WASI preview 1"
            )));
        };
        linker
            .func_new(WASI, name, ty, |_, _, results| {
                results.fill(wasmtime::Val::I32(NOT_CAPABLE));
                Ok(())
            })
            .map_err(refused)?;
    }
    Ok(())
}

/// The memory of the module that calls, and the state.
fn parts<'c>(caller: &'c mut Caller<'_, State>) -> Option<(&'c mut [u8], &'c mut State)> {
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        return None;
    };
    Some(memory.data_and_store_mut(caller))
}

fn part(memory: &mut [u8], at: u32, length: u32) -> Option<&mut [u8]> {
    let at = at as usize;
    memory.get_mut(at..at.checked_add(length as usize)?)
}

fn word(memory: &mut [u8], at: u32) -> Option<u32> {
    Some(u32::from_le_bytes(part(memory, at, 4)?.try_into().ok()?))
}

fn set(memory: &mut [u8], at: u32, bytes: &[u8]) -> Option<()> {
    part(memory, at, bytes.len() as u32)?.copy_from_slice(bytes);
    Some(())
}

/// Runs `body` on memory and state; what lies outside the memory is a fault.
fn answer(
    mut caller: Caller<'_, State>,
    body: impl FnOnce(&mut [u8], &mut State) -> Option<i32>,
) -> i32 {
    match parts(&mut caller) {
        Some((memory, state)) => body(memory, state).unwrap_or(FAULT),
        None => FAULT,
    }
}

pub(crate) fn offer(linker: &mut Linker<State>) -> Result<(), Error> {
    linker.func_wrap(
        REPORT.0,
        REPORT.1,
        |mut caller: Caller<'_, State>,
         number: u32,
         place: u32,
         size: u32,
         align: u32,
         result: u32| {
            let told = [number, place, size, align, result];
            caller.data_mut().ran.told.push(told);
        },
    )?;
    linker.func_wrap(
        WASI,
        "fd_write",
        |caller: Caller<'_, State>, fd: u32, parts: u32, count: u32, done: u32| {
            answer(caller, |memory, state| {
                write(memory, state, [fd, parts, count, done])
            })
        },
    )?;
    linker.func_wrap(
        WASI,
        "fd_read",
        |caller: Caller<'_, State>, fd: u32, parts: u32, count: u32, done: u32| {
            answer(caller, |memory, state| {
                read(memory, state, [fd, parts, count, done])
            })
        },
    )?;
    linker.func_wrap(
        WASI,
        "fd_close",
        |fd: u32| if fd < 3 { SUCCESS } else { BADF },
    )?;
    linker.func_wrap(
        WASI,
        "fd_seek",
        |fd: u32, _: i64, _: u32, _: u32| if fd < 3 { SPIPE } else { BADF },
    )?;
    linker.func_wrap(WASI, "fd_prestat_get", |_: u32, _: u32| BADF)?;
    linker.func_wrap(
        WASI,
        "fd_fdstat_get",
        |caller: Caller<'_, State>, fd: u32, at: u32| {
            answer(caller, |memory, _| {
                if fd > 2 {
                    return Some(BADF);
                }
                // Of an unknown kind, with the right to read or to write.
                let mut status = [0; 24];
                status[8] = if fd == 0 { 1 << 1 } else { 1 << 6 };
                set(memory, at, &status).map(|()| SUCCESS)
            })
        },
    )?;
    linker.func_wrap(
        WASI,
        "environ_sizes_get",
        |caller: Caller<'_, State>, count: u32, bytes: u32| {
            answer(caller, |memory, _| {
                set(memory, count, &[0; 4])?;
                set(memory, bytes, &[0; 4]).map(|()| SUCCESS)
            })
        },
    )?;
    linker.func_wrap(WASI, "environ_get", |_: u32, _: u32| SUCCESS)?;
    linker.func_wrap(
        WASI,
        "args_sizes_get",
        |caller: Caller<'_, State>, count: u32, bytes: u32| {
            answer(caller, |memory, state| {
                let arguments = &state.input.arguments;
                let all: usize = arguments.iter().map(|argument| argument.len() + 1).sum();
                set(memory, count, &(arguments.len() as u32).to_le_bytes())?;
                set(memory, bytes, &(all as u32).to_le_bytes()).map(|()| SUCCESS)
            })
        },
    )?;
    linker.func_wrap(
        WASI,
        "args_get",
        |caller: Caller<'_, State>, table: u32, bytes: u32| {
            answer(caller, |memory, state| {
                let mut at = bytes;
                for (number, argument) in state.input.arguments.iter().enumerate() {
                    set(
                        memory,
                        table.checked_add(number as u32 * 4)?,
                        &at.to_le_bytes(),
                    )?;
                    set(memory, at, argument.as_bytes())?;
                    at = at.checked_add(argument.len() as u32)?;
                    set(memory, at, &[0])?;
                    at = at.checked_add(1)?;
                }
                Some(SUCCESS)
            })
        },
    )?;
    linker.func_wrap(
        WASI,
        "clock_time_get",
        |caller: Caller<'_, State>, _: u32, _: u64, at: u32| {
            answer(caller, |memory, state| {
                state.clock += 1_000_000;
                set(memory, at, &state.clock.to_le_bytes()).map(|()| SUCCESS)
            })
        },
    )?;
    linker.func_wrap(
        WASI,
        "random_get",
        |caller: Caller<'_, State>, at: u32, length: u32| {
            answer(caller, |memory, state| {
                for byte in part(memory, at, length)? {
                    *byte = state.random.next() as u8;
                }
                Some(SUCCESS)
            })
        },
    )?;
    linker.func_wrap(WASI, "sched_yield", || SUCCESS)?;
    linker.func_wrap(
        WASI,
        "proc_exit",
        |mut caller: Caller<'_, State>, status: i32| -> Result<(), Error> {
            caller.data_mut().ran.status = status;
            Err(Error::from(Exit))
        },
    )?;
    Ok(())
}

fn write(memory: &mut [u8], state: &mut State, [fd, parts, count, done]: [u32; 4]) -> Option<i32> {
    let mut written = 0u32;
    for number in 0..count {
        let at = parts.checked_add(number.checked_mul(8)?)?;
        let (start, length) = (word(memory, at)?, word(memory, at.checked_add(4)?)?);
        let bytes = part(memory, start, length)?;
        match fd {
            1 => state.ran.stdout.extend_from_slice(bytes),
            2 => state.ran.stderr.extend_from_slice(bytes),
            _ => return Some(BADF),
        }
        written = written.checked_add(length)?;
    }
    set(memory, done, &written.to_le_bytes()).map(|()| SUCCESS)
}

fn read(memory: &mut [u8], state: &mut State, [fd, parts, count, done]: [u32; 4]) -> Option<i32> {
    if fd != 0 {
        return Some(BADF);
    }
    let mut got = 0u32;
    for number in 0..count {
        let at = parts.checked_add(number.checked_mul(8)?)?;
        let (start, length) = (word(memory, at)?, word(memory, at.checked_add(4)?)?);
        let bytes = part(memory, start, length)?;
        let rest = &state.input.stdin[state.read..];
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        state.read += count;
        got += count as u32;
    }
    set(memory, done, &got.to_le_bytes()).map(|()| SUCCESS)
}
