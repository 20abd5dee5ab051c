//! WASI preview 1 for a function: the request is stdin, the answer stdout, what it complains of stderr.
//!
//! Offered is what needs no system: arguments, environment, clocks (which the kernel maps into the
//! process), numbers from a seeded generator, and the three streams. Files, sockets and waiting are not
//! there; an import of them is refused at deployment, or answers that it may not (`Absent`).
//!
//! *Invariant:* no function here makes a call of the system or allocates, except for `proc_exit`'s error
//! on the heap; whatever the guest passes, the answer is a number of WASI, never a panic.

mod offered;

use wasmtime::{Caller, Engine, Error, FuncType, Linker, Result, Val};

use crate::clock;
use crate::guest::Guest;

use offered::KNOWN;
pub(crate) use offered::check;

/// The module that all imports name.
const MODULE: &str = "wasi_snapshot_preview1";

/// Numbers of WASI's errors.
mod errno {
    pub(super) const SUCCESS: i32 = 0;
    pub(super) const BADF: i32 = 8;
    pub(super) const FAULT: i32 = 21;
    pub(super) const INVAL: i32 = 28;
    pub(super) const NOSPC: i32 = 51;
    pub(super) const SPIPE: i32 = 70;
    pub(super) const NOTCAPABLE: i32 = 76;
}

/// Passed through a trap by `proc_exit`.
#[derive(Debug)]
pub(crate) struct Exit;

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the function has ended itself")
    }
}

impl std::error::Error for Exit {}

/// All that is offered, and denials of `denied`.
pub(crate) fn linker(engine: &Engine, module: &wasmtime::Module) -> Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    streams(&mut linker)?;
    world(&mut linker)?;
    for import in module.imports() {
        if let (true, Some(ty)) = (KNOWN.contains(&import.name()), import.ty().func()) {
            deny(&mut linker, import.name(), ty.clone())?;
        }
    }
    Ok(linker)
}

fn deny(linker: &mut Linker<Guest>, name: &str, ty: FuncType) -> Result<()> {
    linker.func_new(MODULE, name, ty, |mut caller, _, results| {
        caller.data_mut().calls += 1;
        if let Some(result) = results.first_mut() {
            *result = Val::I32(errno::NOTCAPABLE);
        }
        Ok(())
    })?;
    Ok(())
}

/// The guest, and a note of the call.
fn guest<'a>(caller: &'a mut Caller<'_, Guest>) -> &'a mut Guest {
    let guest = caller.data_mut();
    guest.calls = guest.calls.saturating_add(1);
    guest
}

/// An error of the guest's pointers, or whatever `done` says.
fn answer(done: Option<i32>) -> i32 {
    done.unwrap_or(errno::FAULT)
}

fn streams(linker: &mut Linker<Guest>) -> Result<()> {
    linker.func_wrap(
        MODULE,
        "fd_write",
        |mut caller: Caller<'_, Guest>, fd: i32, parts: i32, count: i32, done: i32| {
            answer(write(
                guest(&mut caller),
                fd,
                parts.cast_unsigned(),
                count.cast_unsigned(),
                done.cast_unsigned(),
            ))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_read",
        |mut caller: Caller<'_, Guest>, fd: i32, parts: i32, count: i32, done: i32| {
            answer(read(
                guest(&mut caller),
                fd,
                parts.cast_unsigned(),
                count.cast_unsigned(),
                done.cast_unsigned(),
            ))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_close",
        |mut caller: Caller<'_, Guest>, fd: i32| {
            guest(&mut caller);
            if (0..3).contains(&fd) {
                errno::SUCCESS
            } else {
                errno::BADF
            }
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_fdstat_get",
        |mut caller: Caller<'_, Guest>, fd: i32, at: i32| {
            let guest = guest(&mut caller);
            if !(0..3).contains(&fd) {
                return errno::BADF;
            }
            // Of an unknown kind, so that no library takes it for a terminal; rights to read or to write.
            let rights: u64 = if fd == 0 { 1 << 1 } else { 1 << 6 };
            let mut status = [0u8; 24];
            status[8..16].copy_from_slice(&rights.to_le_bytes());
            answer(guest.memory.part(at.cast_unsigned(), 24).map(|part| {
                part.copy_from_slice(&status);
                errno::SUCCESS
            }))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_fdstat_set_flags",
        |mut caller: Caller<'_, Guest>, fd: i32, _: i32| {
            guest(&mut caller);
            if (0..3).contains(&fd) {
                errno::SUCCESS
            } else {
                errno::BADF
            }
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_filestat_get",
        |mut caller: Caller<'_, Guest>, fd: i32, at: i32| {
            let guest = guest(&mut caller);
            if !(0..3).contains(&fd) {
                return errno::BADF;
            }
            answer(guest.memory.part(at.cast_unsigned(), 64).map(|part| {
                part.fill(0);
                errno::SUCCESS
            }))
        },
    )?;
    for name in ["fd_prestat_get", "fd_tell"] {
        let error = if name == "fd_tell" {
            errno::SPIPE
        } else {
            errno::BADF
        };
        linker.func_wrap(
            MODULE,
            name,
            move |mut caller: Caller<'_, Guest>, _: i32, _: i32| {
                guest(&mut caller);
                error
            },
        )?;
    }
    linker.func_wrap(
        MODULE,
        "fd_prestat_dir_name",
        |mut caller: Caller<'_, Guest>, _: i32, _: i32, _: i32| {
            guest(&mut caller);
            errno::BADF
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_seek",
        |mut caller: Caller<'_, Guest>, fd: i32, _: i64, _: i32, _: i32| {
            guest(&mut caller);
            if (0..3).contains(&fd) {
                errno::SPIPE
            } else {
                errno::BADF
            }
        },
    )?;
    Ok(())
}

/// Gathers the guest's parts into the answer or what is kept of stderr; what does not fit is refused.
fn write(guest: &mut Guest, fd: i32, parts: u32, count: u32, done: u32) -> Option<i32> {
    let mut written = 0u32;
    for part in 0..count {
        let at = parts.checked_add(part.checked_mul(8)?)?;
        let start = guest.memory.word(at)?;
        let length = guest.memory.word(at.checked_add(4)?)?;
        let bytes = guest.memory.part(start, length)?;
        let (sink, limit) = match fd {
            1 => (&mut guest.output, guest.output_limit),
            2 => (&mut guest.errors, guest.errors_limit),
            _ => return Some(errno::BADF),
        };
        let room = limit.saturating_sub(sink.len()).min(bytes.len());
        sink.extend_from_slice(&bytes[..room]);
        written += room as u32;
        if room < bytes.len() {
            guest.refused = true;
            if fd == 2 {
                // Complaints are cut off in silence: a function must not fail for them.
                written += bytes.len() as u32 - room as u32;
                continue;
            }
            if written == 0 {
                return Some(errno::NOSPC);
            }
            break;
        }
    }
    guest.memory.set_word(done, written)?;
    Some(errno::SUCCESS)
}

/// Scatters the rest of the request over the guest's parts.
fn read(guest: &mut Guest, fd: i32, parts: u32, count: u32, done: u32) -> Option<i32> {
    if fd != 0 {
        return Some(errno::BADF);
    }
    let mut got = 0u32;
    for part in 0..count {
        let at = parts.checked_add(part.checked_mul(8)?)?;
        let start = guest.memory.word(at)?;
        let length = guest.memory.word(at.checked_add(4)?)?;
        let mut memory = guest.memory;
        let bytes = memory.part(start, length)?;
        let rest = guest.rest();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        guest.read += count;
        got += count as u32;
        if count < bytes.len() {
            break;
        }
    }
    guest.memory.set_word(done, got)?;
    Some(errno::SUCCESS)
}

fn world(linker: &mut Linker<Guest>) -> Result<()> {
    for (get, sizes, environment) in [
        ("args_get", "args_sizes_get", false),
        ("environ_get", "environ_sizes_get", true),
    ] {
        linker.func_wrap(
            MODULE,
            get,
            move |mut caller: Caller<'_, Guest>, table: i32, bytes: i32| {
                let guest = guest(&mut caller);
                let strings = if environment {
                    &guest.environment
                } else {
                    &guest.arguments
                };
                let mut memory = guest.memory;
                answer((|| {
                    for (number, start) in strings.starts.iter().enumerate() {
                        let at = table.cast_unsigned().checked_add(number as u32 * 4)?;
                        memory.set_word(at, bytes.cast_unsigned().checked_add(*start)?)?;
                    }
                    if !strings.bytes.is_empty() {
                        memory
                            .part(bytes.cast_unsigned(), strings.bytes.len() as u32)?
                            .copy_from_slice(&strings.bytes);
                    }
                    Some(errno::SUCCESS)
                })())
            },
        )?;
        linker.func_wrap(
            MODULE,
            sizes,
            move |mut caller: Caller<'_, Guest>, count: i32, bytes: i32| {
                let guest = guest(&mut caller);
                let strings = if environment {
                    &guest.environment
                } else {
                    &guest.arguments
                };
                let (starts, length) = (strings.starts.len() as u32, strings.bytes.len() as u32);
                answer(
                    guest
                        .memory
                        .set_word(count.cast_unsigned(), starts)
                        .and_then(|()| {
                            guest.memory.set_word(bytes.cast_unsigned(), length)?;
                            Some(errno::SUCCESS)
                        }),
                )
            },
        )?;
    }
    linker.func_wrap(
        MODULE,
        "clock_res_get",
        |mut caller: Caller<'_, Guest>, clock: i32, at: i32| {
            let guest = guest(&mut caller);
            if !(0..2).contains(&clock) {
                return errno::INVAL;
            }
            answer(
                guest
                    .memory
                    .set_long(at.cast_unsigned(), 1)
                    .map(|()| errno::SUCCESS),
            )
        },
    )?;
    linker.func_wrap(
        MODULE,
        "clock_time_get",
        |mut caller: Caller<'_, Guest>, clock: i32, _: i64, at: i32| {
            let guest = guest(&mut caller);
            let time = match clock {
                0 => clock::read(libc::CLOCK_REALTIME),
                1 => clock::now(),
                // The time that this invocation has taken, which is what a function can use it for.
                2 | 3 => clock::now().saturating_sub(guest.run.release),
                _ => return errno::INVAL,
            };
            answer(
                guest
                    .memory
                    .set_long(at.cast_unsigned(), time)
                    .map(|()| errno::SUCCESS),
            )
        },
    )?;
    linker.func_wrap(
        MODULE,
        "random_get",
        |mut caller: Caller<'_, Guest>, at: i32, length: i32| {
            let guest = guest(&mut caller);
            let mut memory = guest.memory;
            answer(
                memory
                    .part(at.cast_unsigned(), length.cast_unsigned())
                    .map(|part| {
                        for chunk in part.chunks_mut(8) {
                            let number = guest.random.next().to_le_bytes();
                            chunk.copy_from_slice(&number[..chunk.len()]);
                        }
                        errno::SUCCESS
                    }),
            )
        },
    )?;
    linker.func_wrap(MODULE, "sched_yield", |mut caller: Caller<'_, Guest>| {
        guest(&mut caller);
        errno::SUCCESS
    })?;
    linker.func_wrap(
        MODULE,
        "proc_exit",
        |mut caller: Caller<'_, Guest>, status: i32| -> Result<()> {
            guest(&mut caller).exit = Some(status);
            Err(Error::from(Exit))
        },
    )?;
    Ok(())
}
