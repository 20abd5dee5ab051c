//! Which imports a function may have, and what is said about others.
//!
//! *Invariant:* what is let through is defined by the linker with the same type.

use wasmparser::ValType;

use super::MODULE;
use crate::error::DeployError;
use crate::limits::Absent;
use crate::module::inspect::Import;

/// What is offered: name, and one letter a parameter (`i` for 32 bits, `l` for 64). All but the last give an error.
const OFFERED: [(&str, &str); 19] = [
    ("args_get", "ii"),
    ("args_sizes_get", "ii"),
    ("environ_get", "ii"),
    ("environ_sizes_get", "ii"),
    ("clock_res_get", "ii"),
    ("clock_time_get", "ili"),
    ("fd_close", "i"),
    ("fd_fdstat_get", "ii"),
    ("fd_fdstat_set_flags", "ii"),
    ("fd_filestat_get", "ii"),
    ("fd_prestat_dir_name", "iii"),
    ("fd_prestat_get", "ii"),
    ("fd_read", "iiii"),
    ("fd_seek", "ilii"),
    ("fd_tell", "ii"),
    ("fd_write", "iiii"),
    ("random_get", "ii"),
    ("sched_yield", ""),
    ("proc_exit", "i"),
];

/// What WASI has besides.
pub(super) const KNOWN: [&str; 27] = [
    "fd_advise",
    "fd_allocate",
    "fd_datasync",
    "fd_fdstat_set_rights",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pread",
    "fd_pwrite",
    "fd_readdir",
    "fd_renumber",
    "fd_sync",
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "poll_oneoff",
    "proc_raise",
    "sock_accept",
    "sock_recv",
    "sock_send",
    "sock_shutdown",
];

/// Checks that all imports are offered, with their types.
pub(crate) fn check(imports: &[Import], absent: Absent) -> Result<(), DeployError> {
    for import in imports {
        let refused = |remedy| DeployError::Import {
            module: import.module.clone(),
            name: import.name.clone(),
            remedy,
        };
        let mistyped = || DeployError::ImportType {
            module: import.module.clone(),
            name: import.name.clone(),
        };
        if import.module != MODULE {
            return Err(refused(
                "only WASI preview 1 is: build for wasm32-wasip1, and link what it needs into the module",
            ));
        }
        let Some((parameters, results)) = &import.function else {
            return Err(refused(
                "only functions are: let the module define its own memory, tables and globals",
            ));
        };
        if let Some((name, letters)) = OFFERED.iter().find(|(name, _)| *name == import.name) {
            let matches = letters.len() == parameters.len()
                && letters
                    .bytes()
                    .zip(parameters)
                    .all(|(letter, ty)| match letter {
                        b'l' => *ty == ValType::I64,
                        _ => *ty == ValType::I32,
                    });
            let gives: &[ValType] = if *name == "proc_exit" {
                &[]
            } else {
                &[ValType::I32]
            };
            if !matches || results.as_slice() != gives {
                return Err(mistyped());
            }
        } else if !KNOWN.contains(&import.name.as_str()) {
            return Err(refused("WASI preview 1 has no such function"));
        } else if absent == Absent::Refuse {
            return Err(refused(
                "functions have no files, sockets and timers; leave them out, or have such calls denied",
            ));
        } else if results.as_slice() != [ValType::I32] {
            return Err(mistyped());
        }
    }
    Ok(())
}
