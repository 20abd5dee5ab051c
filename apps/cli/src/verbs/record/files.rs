//! `metes record` of programs of the host: files that are written while the program runs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use metes_trace::record::{
    Control, Ending, FileOptions, Progress, RecordedFile, RecordedFiles, Rotation, attach_files,
    become_dormant, part_of,
};
use metes_trace::stacks::Stacks;
use metes_trace::{RecordError, RecordOptions, record_files};
use serde_json::{Value, json};

use super::{died, ended};
use crate::arguments::Record;
use crate::error::Failure;
use crate::own::Form;
use crate::quantity::{bytes, grouped};
use crate::{interrupt, libraries, output};

/// What has Python tell of its functions, from 3.12 on.
const PYTHON_TELLS: &str = "PYTHONPERFSUPPORT";
/// Fewer children than this get a file each; of more the largest do.
const MOST_FILES: usize = 64;

pub(super) fn run(arguments: &Record, json: bool) -> Result<u8, Failure> {
    let mut options = RecordOptions::new(libraries::recorder()?);
    options.sites = arguments.sites;
    // Whoever has said something of it keeps what was said.
    let asks_python =
        arguments.sites && arguments.attach.is_none() && std::env::var_os(PYTHON_TELLS).is_none();
    if asks_python {
        options.environment.push((PYTHON_TELLS.into(), "1".into()));
    }
    if arguments.dormant {
        return Err(become_dormant(&arguments.command, &options).into());
    }
    let rotation = arguments.rotate.map(|bytes| Rotation {
        bytes,
        keep: arguments.keep.map(|keep| keep as usize),
    });
    let control = arguments.on_signal.map(|_| Arc::new(Control::new(false)));
    if (rotation.is_some() || control.is_some()) && part_of(&arguments.output, 1).exists() {
        return Err(Failure::input(format!(
            "{} is there from another recording: move it and those after it away, or name another file with -o",
            part_of(&arguments.output, 1).display()
        )));
    }
    // What was recorded is written whatever signal ends the program.
    let stop = interrupt::flag()?;
    if let (Some(signal), Some(control)) = (arguments.on_signal, &control) {
        let control = Arc::clone(control);
        interrupt::on(signal.number(), move || control.toggle())?;
        output::note(&format!(
            "nothing is recorded until `kill -{} {}`, which also ends it again",
            signal.name(),
            std::process::id()
        ));
    }
    if let Some(seconds) = arguments.seconds
        && arguments.attach.is_none()
    {
        interrupt::end_after(Duration::from_secs_f64(seconds))?;
    }
    let aside = if json {
        Some(metes_tune::stdout_to_stderr()?)
    } else {
        None
    };
    let refused: Mutex<Option<Failure>> = Mutex::new(None);
    let named_processes: Mutex<BTreeSet<u32>> = Mutex::default();
    let may_write = |path: &Path| match output::writable(path, Form::Trace) {
        Ok(()) => true,
        Err(failure) => {
            *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            false
        }
    };
    let files = FileOptions {
        output: &arguments.output,
        most_files: MOST_FILES,
        rotation,
        control: control.as_deref(),
        may_write: &may_write,
        name: &|stacks, processes| {
            let mut known = named_processes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            known.extend(processes);
            name(stacks, processes)
        },
        told: &|progress| tell(progress, json),
    };
    let start = Instant::now();
    let recorded = match arguments.attach {
        None => record_files(&arguments.command, &options, &files),
        Some(pid) => attach_files(pid, &files, &|| {
            let over = |seconds| start.elapsed().as_secs_f64() >= seconds;
            stop.load(Ordering::Relaxed) || arguments.seconds.is_some_and(over)
        }),
    };
    drop(aside);
    if asks_python {
        let known = named_processes.into_inner();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        known.into_iter().for_each(metes_sites::remove_python);
    }
    let recorded = match recorded {
        Err(RecordError::Refused) => {
            let failure = refused.into_inner().unwrap_or_else(PoisonError::into_inner);
            return Err(failure.unwrap_or_else(|| Failure::from(RecordError::Refused)));
        }
        other => other?,
    };
    if let Ending::Signal(signal) = recorded.ending
        && !interrupt::was_met(signal)
    {
        let kept = first_path(&recorded, &arguments.output);
        return Err(died(&arguments.command, signal, kept));
    }
    if json {
        output::json(&document(&recorded, &arguments.output))?;
    } else {
        remarks(&recorded, arguments.attach.is_some());
    }
    Ok(0)
}

/// The file that is looked at first.
fn first_path<'a>(recorded: &'a RecordedFiles, otherwise: &'a Path) -> &'a Path {
    let first = recorded.files.first();
    first.map_or(otherwise, |file| &file.path)
}

/// Says what happens meanwhile.
fn tell(progress: &Progress<'_>, json: bool) {
    match progress {
        Progress::Begun => output::note("recording"),
        Progress::Stopped => output::note("no longer recording"),
        Progress::Written(_) if json => {}
        Progress::Written(file) => {
            output::note(&line(file));
            if let Some(remark) = file.named["remark"].as_str() {
                output::note(remark);
            }
        }
    }
}

/// A file in a line.
fn line(file: &RecordedFile) -> String {
    let since = match &file.facts.beginning {
        Some(beginning) if beginning.live_blocks > 0 => format!(
            " since event {}, when {} blocks were live, {}",
            grouped(beginning.events_before),
            grouped(beginning.live_blocks),
            bytes(beginning.live_bytes)
        ),
        _ => String::new(),
    };
    format!(
        "{}: {} events, peak live {}, of {}{since}",
        output::name(&file.path),
        grouped(file.facts.events),
        bytes(file.facts.peak_live),
        file.command.join(" "),
    )
}

/// What is to be said once it is over.
fn remarks(recorded: &RecordedFiles, attached: bool) {
    if recorded.left_out > 0 {
        output::note(&format!(
            "{} processes were recorded; the {MOST_FILES} with the most requests are written",
            recorded.left_out + MOST_FILES
        ));
    }
    let lost: u64 = recorded
        .files
        .iter()
        .map(|file| file.lost)
        .max()
        .unwrap_or(0);
    if lost > 0 {
        output::note(&format!(
            "{} events could not be written and are missing: free some disk space, or keep \
             the program from giving up its rights to the temporary directory",
            grouped(lost)
        ));
    }
    if recorded.removed > 0 {
        output::note(&format!(
            "{} older files were removed, as --keep asks for",
            grouped(recorded.removed)
        ));
    }
    if let Some(full) = &recorded.full {
        output::note(&format!(
            "there was no more room for {}: it ends before the program did; free some disk space, or rotate (--rotate, --keep)",
            output::name(full)
        ));
    }
    if recorded.without_room > 0 {
        output::note(&format!(
            "{} processes found no room for their requests and are missing: free some disk \
             space, or set TMPDIR",
            grouped(recorded.without_room)
        ));
    }
    if recorded.waited_seconds >= 0.05 {
        output::note(&format!(
            "the program asked faster than its requests could be written: its threads waited {:.1} s for that",
            recorded.waited_seconds
        ));
    }
    if attached {
        output::note(&format!(
            "processor time: {:.2} s of writing",
            own_seconds()
        ));
        return;
    }
    output::note(&format!(
        "processor time: {:.2} s of the program and its recorder, {:.2} s of writing",
        recorded.cpu_seconds,
        own_seconds()
    ));
    ended(recorded.ending);
}

/// Processor time of this process, seconds.
fn own_seconds() -> f64 {
    // SAFETY: all-zero bytes are a valid value of this plain structure, and it is a place for the answer.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn document(recorded: &RecordedFiles, output: &Path) -> Value {
    let files: Vec<Value> = recorded.files.iter().map(facts).collect();
    let first = recorded.files.first();
    json!({
        "trace": output::name(first_path(recorded, output)),
        "events": first.map_or(0, |file| file.facts.events),
        "processes": files,
        "status": recorded.ending.shell_status(),
        "seconds": recorded.wall_seconds,
        "cpu_seconds": recorded.cpu_seconds,
        "writing_cpu_seconds": own_seconds(),
        "waited_seconds": recorded.waited_seconds,
        "removed": recorded.removed,
        "full": recorded.full.as_ref().map(|path| output::name(path)),
    })
}

fn facts(file: &RecordedFile) -> Value {
    let mut facts = json!({
        "file": output::name(&file.path),
        "command": file.command.join(" "),
        "events": file.facts.events,
        "peak_live": file.facts.peak_live,
        "threads": file.threads,
        "lost_events": file.lost,
    });
    if let Some(beginning) = &file.facts.beginning {
        facts["beginning"] = json!(beginning);
    }
    if !file.named.is_null() {
        facts["sites"] = file.named.clone();
    }
    facts
}

/// Gives call stacks their names.
fn name(stacks: &mut Stacks, processes: &[u32]) -> Value {
    let named = metes_sites::name(stacks, processes);
    json!({
        "stacks": stacks.len(),
        "calls": named.places,
        "with_lines": named.with_lines,
        "unnamed": named.unnamed,
        "remark": named.remark(),
    })
}
