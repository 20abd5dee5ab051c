//! `metes record`.

mod accesses;
pub(crate) mod emulated;
mod firmware;

pub(crate) use accesses::touched;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use metes_trace::record::{Ending, ProcessTrace};
use metes_trace::{Board, RecordOptions, Recording, Trace, record, write_parquet};
use serde_json::{Value, json};

use crate::arguments::{Record, RecordTarget};
use crate::error::{Failure, signal_name};
use crate::own::Form;
use crate::quantity::{bytes, grouped};
use crate::{interrupt, libraries, output};

/// What has Python tell of its functions, from 3.12 on.
const PYTHON_TELLS: &str = "PYTHONPERFSUPPORT";
/// Fewer children than this get a file each; of more the largest do.
const MOST_FILES: usize = 64;

pub(crate) fn run(arguments: &Record, json: bool) -> Result<u8, Failure> {
    // Before the program runs, not after.
    output::writable(&arguments.output, Form::Trace)?;
    if arguments.sites && arguments.target != RecordTarget::Host {
        return Err(Failure::input(
            "call stacks are recorded of programs of the host: leave --sites out, or --target",
        ));
    }
    if arguments.seconds.is_some() && arguments.target != RecordTarget::Host {
        return Err(Failure::input(
            "--seconds is of programs of the host: leave it out, or --target; of a LEON3 there is --max-instructions",
        ));
    }
    match arguments.target {
        RecordTarget::Leon3 => return firmware::run(arguments, json),
        RecordTarget::CortexM3 => return emulated::run(arguments, Board::CortexM3, json),
        RecordTarget::Host => {}
    }
    if arguments.firmware.is_given() {
        return Err(Failure::input(
            "heap functions, --max-instructions and --cores are of firmware: add --target leon3, \
             or leave them out",
        ));
    }
    if arguments.accesses {
        return accesses::run(arguments, json);
    }
    // What was recorded is written whatever signal ends the program.
    interrupt::flag()?;
    if let Some(seconds) = arguments.seconds {
        interrupt::end_after(Duration::from_secs_f64(seconds))?;
    }
    let mut options = RecordOptions::new(libraries::recorder()?);
    options.sites = arguments.sites;
    // Whoever has said something of it keeps what was said.
    let asks_python = arguments.sites && std::env::var_os(PYTHON_TELLS).is_none();
    if asks_python {
        options.environment.push((PYTHON_TELLS.into(), "1".into()));
    }
    let aside = if json {
        Some(metes_tune::stdout_to_stderr()?)
    } else {
        None
    };
    let recording = record(&arguments.command, &options);
    drop(aside);
    let mut recording = recording?;
    let files = write(&mut recording, &arguments.output);
    if asks_python {
        recording
            .processes()
            .for_each(|process| metes_sites::remove_python(process.pid));
    }
    let files = files?;
    if let Ending::Signal(signal) = recording.ending
        && !interrupt::was_met(signal)
    {
        return Err(died(&arguments.command, signal, &arguments.output));
    }
    if json {
        output::json(&json!({
            "trace": output::name(&arguments.output),
            "events": recording.main.len(),
            "processes": files,
            "status": recording.ending.shell_status(),
            "seconds": recording.wall_seconds,
            "cpu_seconds": recording.cpu_seconds,
        }))?;
    } else {
        // The program's own output is on stdout; this is about it.
        for file in &files {
            let text = |key: &str| file[key].as_str().unwrap_or_default().to_owned();
            output::note(&format!(
                "{}: {} events, peak live {}, of {}",
                text("file"),
                grouped(file["events"].as_u64().unwrap_or(0)),
                bytes(file["peak_live"].as_u64().unwrap_or(0)),
                text("command"),
            ));
            if let Some(remark) = file["sites"]["remark"].as_str() {
                output::note(remark);
            }
            let lost = file["lost_events"].as_u64().unwrap_or(0);
            if lost > 0 {
                output::note(&format!(
                    "{} events could not be written and are missing: free some disk space, or keep \
                     the program from giving up its rights to the temporary directory",
                    grouped(lost)
                ));
            }
        }
        if recording.without_room > 0 {
            output::note(&format!(
                "{} processes found no room for their requests and are missing: free some disk \
                 space, or set TMPDIR",
                grouped(recording.without_room)
            ));
        }
        ended(recording.ending);
    }
    Ok(0)
}

/// Says how the program ended, if not as programs should.
fn ended(ending: Ending) {
    match ending {
        Ending::Exit(0) => {}
        Ending::Exit(status) => {
            output::note(&format!("the program ended with status {status}"));
        }
        Ending::Signal(signal) => output::note(&format!(
            "{} ended the program; what it did until then is recorded",
            signal_name(signal)
        )),
    }
}

/// The error for a program that a signal ended; its trace is kept.
pub(crate) fn died(command: &[OsString], signal: i32, trace: &Path) -> Failure {
    let program = command
        .first()
        .map(|word| word.to_string_lossy().into_owned());
    Failure::Died {
        program: program.unwrap_or_default(),
        signal: signal_name(signal),
        kept: format!(
            "what it did until then is in {}: look at it with `metes profile`{}",
            trace.display(),
            match signal {
                libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT | libc::SIGILL =>
                    ". If it ends well without `metes`, the recorder and it do not agree about \
                     memory: is it linked with an allocator that has functions of its own?",
                _ => "",
            }
        ),
    }
}

/// Writes the traces of all processes; a line of facts for each file.
fn write(recording: &mut Recording, path: &Path) -> Result<Vec<Value>, Failure> {
    let own = recording.main_process.as_ref().map(told_by);
    let mut files = vec![write_one(
        &mut recording.main,
        own.as_deref().unwrap_or(&[]),
        path,
    )?];
    let mut children: Vec<_> = recording.children.iter().collect();
    if children.len() > MOST_FILES {
        output::note(&format!(
            "{} processes were recorded; the {MOST_FILES} with the most requests are written",
            children.len()
        ));
        children.sort_by_key(|child| std::cmp::Reverse(child.raw_words));
        children.truncate(MOST_FILES);
    }
    for (index, child) in children.into_iter().enumerate() {
        let mut loaded = child.load()?;
        if loaded.trace.is_empty() {
            continue;
        }
        let path = numbered(path, index + 1);
        output::writable(&path, Form::Trace)?;
        files.push(write_one(&mut loaded.trace, &told_by(child), &path)?);
    }
    Ok(files)
}

/// The processes that may have told of code that a process has made at run time: a forked one has its parent's.
fn told_by(process: &ProcessTrace) -> Vec<u32> {
    match process.forked {
        true => vec![process.pid, process.parent],
        false => vec![process.pid],
    }
}

/// Writes one trace, its calls by names where there are some.
fn write_one(trace: &mut Trace, told_by: &[u32], path: &Path) -> Result<Value, Failure> {
    if trace.stacks.is_empty() {
        write_parquet(trace, path)?;
        return Ok(facts(trace, path));
    }
    let named = metes_sites::name(&mut trace.stacks, told_by);
    write_parquet(trace, path)?;
    let mut facts = facts(trace, path);
    facts["sites"] = json!({
        "stacks": trace.stacks.len(),
        "calls": named.places,
        "with_lines": named.with_lines,
        "unnamed": named.unnamed,
        "remark": named.remark(),
    });
    Ok(facts)
}

fn facts(trace: &Trace, path: &Path) -> Value {
    let profile = metes_trace::profile(trace);
    json!({
        "file": output::name(path),
        "command": trace.provenance.command.join(" "),
        "events": trace.len(),
        "peak_live": profile.peak_live,
        "threads": profile.threads,
        "lost_events": trace.provenance.lost_events,
    })
}

/// `a.trace.parquet` becomes `a.1.trace.parquet`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let name = path.file_name().unwrap_or(OsStr::new("trace")).as_bytes();
    // The first dot but for one at the beginning.
    let dot = name.iter().skip(1).position(|&byte| byte == b'.');
    let (stem, ending) = name.split_at(dot.map_or(name.len(), |dot| dot + 1));
    let name = [stem, format!(".{number}").as_bytes(), ending].concat();
    path.with_file_name(OsString::from_vec(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_get_numbers() {
        let cases = [
            ("a.trace.parquet", "a.3.trace.parquet"),
            ("dir.d/a", "dir.d/a.3"),
            (".hidden", ".hidden.3"),
        ];
        for (path, expected) in cases {
            assert_eq!(numbered(Path::new(path), 3), Path::new(expected));
        }
    }
}
