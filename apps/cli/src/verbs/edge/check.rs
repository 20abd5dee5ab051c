//! `metes edge check`: whether a set of functions fits, or whether a certificate says so rightly.

use std::path::Path;

use anstyle::Style;
use metes_admission::{Certificate, Change, Decision, Refusal, Set, admit};
use metes_quantity::bytes;
use serde::Serialize;

use crate::arguments::EdgeCheck;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, GOOD, POOR, Table};
use crate::own::Form;

/// The answer as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    admitted: bool,
    reason: String,
    changes: Vec<Suggestion<'a>>,
    certificate: Option<&'a Certificate>,
}

/// A change that suffices, and how it is said.
#[derive(Serialize)]
struct Suggestion<'a> {
    says: String,
    change: &'a Change,
}

pub(super) fn run(arguments: &EdgeCheck, json: bool) -> Result<u8, Failure> {
    let set = Set::parse(&read(&arguments.set)?).map_err(|error| about(&arguments.set, error))?;
    if let Some(path) = &arguments.certificate {
        return verify(&set, path, json);
    }
    if let Some(path) = &arguments.output {
        output::writable(path, Form::Plain)?;
    }
    match admit(&set) {
        Decision::Admitted(certificate) => {
            let checked = match certificate.check(&set) {
                Ok(()) => "each deadline was checked again apart".to_owned(),
                Err(flaw) => format!("not checked again: {flaw}"),
            };
            if let Some(path) = &arguments.output {
                let text = serde_json::to_string_pretty(&certificate);
                let text = text.map_err(|error| about(path, error))? + "\n";
                output::export(path, Form::Plain, text.as_bytes())?;
            }
            let reason =
                format!("on every core all windows have the time, and memory suffices; {checked}");
            show(json, reason, &[], Some(&certificate))
        }
        Decision::Refused(Refusal { reason, changes }) => {
            show(json, reason.to_string(), &changes, None)
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))
}

fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::input(format!("{}: {error}", output::name(path)))
}

/// A certificate that was written before, alone or in an answer of `--json`.
fn verify(set: &Set, path: &Path, json: bool) -> Result<u8, Failure> {
    let no_json = |error: serde_json::Error| {
        about(
            path,
            format!("{error}: give a file of `metes edge check --output`"),
        )
    };
    let mut document: serde_json::Value = serde_json::from_str(&read(path)?).map_err(no_json)?;
    if let Some(inner) = document.get_mut("certificate") {
        document = inner.take();
    }
    let certificate: Certificate = serde_json::from_value(document).map_err(no_json)?;
    match certificate.check(set) {
        Ok(()) => {
            let reason = "the certificate is one of this set".to_owned();
            show(json, reason, &[], Some(&certificate))
        }
        Err(flaw) => show(
            json,
            format!("the certificate does not hold: {flaw}"),
            &[],
            None,
        ),
    }
}

fn show(
    json: bool,
    reason: String,
    changes: &[Change],
    certificate: Option<&Certificate>,
) -> Result<u8, Failure> {
    let admitted = certificate.is_some();
    if json {
        let changes = changes.iter().map(|change| Suggestion {
            says: change.to_string(),
            change,
        });
        output::json(&Answer {
            admitted,
            reason,
            changes: changes.collect(),
            certificate,
        })?;
    } else {
        let mut text = match certificate {
            Some(certificate) => {
                table(certificate) + &format!("{GOOD}admitted{GOOD:#}: {reason}\n")
            }
            None => format!("{POOR}refused{POOR:#}: {reason}\n"),
        };
        for change in changes {
            text += &format!("  it would fit: {change}\n");
        }
        output::text(&text)?;
    }
    Ok(if admitted { 0 } else { DOES_NOT_HOLD })
}

fn table(certificate: &Certificate) -> String {
    let mut table = Table::new(&["core", "utilisation", "horizon", "windows", "functions", ""]);
    for core in &certificate.cores {
        let share = core.utilisation.clone();
        let millionths = core.utilisation_millionths;
        let share = share.unwrap_or_else(|| format!("≤ 0.{millionths:06}"));
        let server = if core.compile_server {
            " and the compile server"
        } else {
            ""
        };
        let mut remark = String::new();
        if let Some(degraded) = &core.degraded {
            remark = format!("may suspend {}", degraded.suspended.join(", "));
        }
        table.row(
            Style::new(),
            vec![
                core.core.to_string(),
                share,
                core.horizon.to_string(),
                core.decides.len().to_string(),
                format!("{}{server}", core.functions.len()),
                remark,
            ],
        );
    }
    let mut functions = Table::new(&["function", "core", "more budget"]);
    for core in &certificate.cores {
        for spare in &core.spare {
            functions.row(
                Style::new(),
                vec![
                    spare.name.clone(),
                    core.core.to_string(),
                    spare.budget.to_string(),
                ],
            );
        }
    }
    format!(
        "{table}\n{functions}\nmemory: {} used, {} left\n",
        bytes(certificate.memory.used),
        bytes(certificate.memory.left)
    )
}
