//! `metes trace import`, `metes trace export`, `metes trace touches` and `metes trace generate`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use metes_cases::packets::{self, CaptureError};
use metes_cases::{texture, touches as generated};
use metes_trace::{Format, TOUCHES_MARK, TouchProfile};
use serde_json::json;

use crate::arguments::{Case, Foreign, Trace, TraceAction};
use crate::error::Failure;
use crate::own::Form;
use crate::quantity::grouped;
use crate::verbs::record::{emulated, touched as says_touched};
use crate::{output, tracefile};

pub(crate) fn run(arguments: &Trace, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        TraceAction::Import {
            file,
            format,
            device,
            output,
        } => import(file, *format, *device, output, json),
        TraceAction::Export { trace, output } => export(trace, output.as_deref(), json),
        TraceAction::Touches { file } => touches(file, json),
        TraceAction::Generate {
            case,
            capture: Some(_),
            ..
        } if *case != Case::Packets => Err(Failure::input(
            "only packets have a capture: leave --capture out",
        )),
        TraceAction::Generate {
            case,
            actions,
            largest,
            ..
        } if *case != Case::Touches && (actions.is_some() || largest.is_some()) => Err(
            Failure::input("--actions and --largest are of touches: leave them out"),
        ),
        TraceAction::Generate {
            case: Case::Touches,
            output,
            seed,
            actions,
            largest,
            ..
        } => {
            let default = generated::Options::default();
            let options = generated::Options {
                seed: *seed,
                actions: actions.unwrap_or(default.actions),
                largest: largest.unwrap_or(default.largest),
                ..default
            };
            generate_touches(&options, output, json)
        }
        TraceAction::Generate {
            case: Case::Texture,
            output,
            ..
        } => made(&texture::trace(), output, json),
        TraceAction::Generate {
            case: Case::Packets,
            output,
            capture,
            packets,
            seed,
            ..
        } => {
            let packets = packets::packets(&packets::Options {
                packets: *packets as usize,
                seed: *seed,
            });
            if let Some(path) = capture {
                write_capture(&packets, path)?;
            }
            made(&packets::trace(&packets), output, json)
        }
    }
}

/// Reads a touch trace to its end.
fn touches(file: &Path, json: bool) -> Result<u8, Failure> {
    let mut profile = TouchProfile::default();
    for operation in metes_trace::open_touches(file)? {
        profile.take(&operation?);
    }
    touched(file, &profile, json)
}

/// Writes random actions as they are drawn.
fn generate_touches(options: &generated::Options, to: &Path, json: bool) -> Result<u8, Failure> {
    output::writable(to, Form::Touches)?;
    let actions = generated::actions(options).map_err(|error| Failure::input(error.to_string()))?;
    let mut profile = TouchProfile::default();
    let write = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create(to)?);
        writeln!(file, "{TOUCHES_MARK}")?;
        writeln!(
            file,
            "# random actions: seed {}, blocks of {} to {} B",
            options.seed, options.smallest, options.largest
        )?;
        for operation in actions {
            profile.take(&operation);
            writeln!(file, "{operation}")?;
        }
        file.flush()
    };
    write().map_err(|error| Failure::io("write", to, error))?;
    touched(to, &profile, json)
}

fn touched(file: &Path, profile: &TouchProfile, json: bool) -> Result<u8, Failure> {
    if json {
        output::json(&json!({ "trace": output::name(file), "profile": profile }))?;
    } else {
        output::text(&format!("{}\n", says_touched(file, profile)))?;
    }
    Ok(0)
}

fn import(
    file: &Path,
    format: Option<Foreign>,
    device: Option<usize>,
    to: &Path,
    json: bool,
) -> Result<u8, Failure> {
    let format = format.map(|format| match format {
        Foreign::Text => Format::Text,
        Foreign::Pytorch => Format::PyTorch,
        Foreign::Rmm => Format::Rmm,
        Foreign::Target => Format::Target,
    });
    let format = match format {
        Some(format) => format,
        None => Format::of_file(file)?,
    };
    if format == Format::Target {
        return emulated::imported(file, to, json);
    }
    let trace = metes_trace::import_file(file, Some(format), device)?;
    made(&trace, to, json)
}

fn write_capture(packets: &[packets::Packet], path: &Path) -> Result<(), Failure> {
    let file = File::create(path).map_err(|error| Failure::io("create", path, error))?;
    packets::write_capture(packets, &mut BufWriter::new(file)).map_err(|error| match error {
        CaptureError::Write(error) => Failure::io("write", path, error),
        CaptureError::Size { .. } => Failure::input(error.to_string()),
    })
}

/// Writes a trace that was made, and says what is in it.
fn made(trace: &metes_trace::Trace, to: &Path, json: bool) -> Result<u8, Failure> {
    output::writable(to, Form::Trace)?;
    metes_trace::write_parquet(trace, to)?;
    if json {
        output::json(&json!({
            "trace": output::name(to),
            "events": trace.len(),
            "blocks": trace.block_count(),
            "threads": trace.provenance.threads,
        }))?;
    } else {
        output::text(&format!(
            "{}: {} events, {} blocks\n",
            to.display(),
            grouped(trace.len() as u64),
            grouped(trace.block_count() as u64)
        ))?;
    }
    Ok(0)
}

fn export(from: &Path, to: Option<&Path>, json: bool) -> Result<u8, Failure> {
    let trace = tracefile::read(from)?;
    let Some(to) = to else {
        if json {
            return Err(Failure::input(
                "with --json stdout holds the JSON document: name a file for the text with -o",
            ));
        }
        let mut stdout = BufWriter::new(io::stdout().lock());
        return match metes_trace::export_csv(&trace, &mut stdout).and_then(|_| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::io("write to", Path::new("standard output"), error))
            }
            _ => Ok(0),
        };
    };
    let mut text = Vec::new();
    let exported = metes_trace::export_csv(&trace, &mut text)
        .map_err(|error| Failure::io("write", to, error))?;
    output::export(to, Form::TraceText, &text)?;
    if json {
        output::json(&json!({
            "file": output::name(to),
            "written": exported.written,
            // Every kind of event has a line since accesses do.
            "skipped": trace.len() as u64 - exported.written,
        }))?;
    } else {
        output::text(&format!(
            "{}: {} lines\n",
            to.display(),
            grouped(exported.written)
        ))?;
    }
    Ok(0)
}
