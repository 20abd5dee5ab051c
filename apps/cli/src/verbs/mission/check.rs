//! `metes mission check`: the certificate of a declaration.

use std::path::Path;

use metes_duster::check::{Certificate, Row, certify};
use metes_duster_system::System;
use metes_leon3::Image;

use crate::arguments::MissionCheck;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, DIM, GOOD, POOR, Table};

pub(super) fn run(arguments: &MissionCheck, json: bool) -> Result<u8, Failure> {
    let system = match &arguments.system {
        Some(path) => read(path)?,
        None => System::of_mission(),
    };
    let image = arguments.image.as_deref().map(read_image).transpose()?;
    let certificate = certify(&system, image.as_ref());
    if json {
        output::json(&certificate.document(&system))?;
    } else {
        output::text(&text(&certificate))?;
    }
    Ok(if certificate.holds() {
        0
    } else {
        DOES_NOT_HOLD
    })
}

pub(super) fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::input(format!("{}: {error}", output::name(path)))
}

pub(super) fn read(path: &Path) -> Result<System, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
    System::read(&text).map_err(|error| about(path, error))
}

fn read_image(path: &Path) -> Result<Image, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::io("read", path, error))?;
    Image::read(&bytes).map_err(|error| about(path, error))
}

fn text(certificate: &Certificate) -> String {
    let mut table = Table::new(&["finding", "bound", "limit", ""]);
    for row in &certificate.rows {
        table.row(
            if row.holds {
                anstyle::Style::new()
            } else {
                POOR
            },
            cells(row),
        );
    }
    let mut text = format!("{table}\n");
    let reasons = certificate.reasons();
    text += &match reasons.is_empty() {
        true => format!("{GOOD}holds{GOOD:#}: {} findings\n", certificate.rows.len()),
        false => format!(
            "{POOR}does not hold{POOR:#}: {} of {} findings\n",
            reasons.len(),
            certificate.rows.len()
        ),
    };
    for reason in reasons {
        text += &format!("  {reason}\n");
    }
    for assumption in &certificate.assumptions {
        text += &format!("{DIM}  assumed: {assumption}{DIM:#}\n");
    }
    text
}

fn cells(row: &Row) -> Vec<String> {
    let figure = |value: Option<u64>| value.map_or("-".to_owned(), |value| row.unit.text(value));
    vec![
        format!("{} {}", row.subject, row.quantity),
        figure(row.bound),
        figure(row.limit),
        row.note.clone(),
    ]
}
