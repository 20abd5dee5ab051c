//! `metes trace import`, `metes trace export` and `metes trace generate`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use metes_cases::packets::{self, CaptureError};
use metes_cases::texture;
use metes_trace::Format;
use serde_json::json;

use crate::arguments::{Case, Foreign, Trace, TraceAction};
use crate::error::Failure;
use crate::own::Form;
use crate::quantity::grouped;
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
        TraceAction::Generate {
            case: Case::Texture,
            capture: Some(_),
            ..
        } => Err(Failure::input(
            "only packets have a capture: leave --capture out",
        )),
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
    });
    let trace = metes_trace::import_file(file, format, device)?;
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
