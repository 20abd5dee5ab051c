//! What goes to stdout.
//!
//! Invariant: a reader that goes away (`metes … | head`) ends the printing, not
//! the work, and is no error. What files say (names, commands, titles) controls no terminal:
//! of all that is printed only lines, tabs and styles pass.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use metes_trace::whole;
use serde::Serialize;

use crate::error::Failure;
use crate::own::{self, Form};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = Style::new()
    .bold()
    .fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
pub(crate) const POOR: Style = Style::new()
    .bold()
    .fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

/// Prints text; colours are left out where stdout is no terminal.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    finish(
        anstream::stdout()
            .lock()
            .write_all(metes_quantity::showable(text).as_bytes())
            .and_then(|()| io::stdout().flush()),
    )
}

/// Prints the one JSON document.
pub(crate) fn json(document: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(document).map_err(|error| {
        Failure::input(format!("the result cannot be written as JSON: {error}"))
    })?;
    text.push('\n');
    let mut stdout = io::stdout().lock();
    finish(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
}

fn finish(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io("write to", Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
}

/// A remark to the side, on stderr.
pub(crate) fn note(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let text = metes_quantity::showable(text);
    let _ = writeln!(stderr, "{DIM}metes:{DIM:#} {text}");
}

/// A table with aligned columns: the first to the left, all others to the right,
/// but for a last one without a heading, which holds remarks.
pub(crate) struct Table {
    rows: Vec<(Style, Vec<String>)>,
    /// Whether all columns are aligned to the left: words instead of figures.
    words: bool,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Table {
        let head = head.iter().map(|text| (*text).to_owned()).collect();
        Table {
            rows: vec![(DIM, head)],
            words: false,
        }
    }

    /// A table of words, all columns to the left.
    pub(crate) fn left(head: &[&str]) -> Table {
        Table {
            words: true,
            ..Table::new(head)
        }
    }

    pub(crate) fn row(&mut self, style: Style, cells: Vec<String>) {
        self.rows.push((style, cells));
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self
            .rows
            .iter()
            .map(|(_, cells)| cells.len())
            .max()
            .unwrap_or(0);
        let width = |column: usize| {
            let lengths = self.rows.iter().filter_map(|(_, cells)| cells.get(column));
            lengths.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let head = self.rows.first().map_or(&[][..], |(_, cells)| cells);
        let remarks = head.iter().position(|heading| heading.is_empty());
        for (style, cells) in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let width = *width;
                line += &match column {
                    _ if column == 0 || self.words => format!("  {cell:<width$}"),
                    _ if Some(column) == remarks => format!("  {cell}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
            writeln!(f, "{style}{}{style:#}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Writes a file whole or not at all.
pub(crate) fn write_file(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    whole::replace(path, |part| std::fs::write(part, contents))
        .map_err(|error| Failure::io("write", path, error))
}

/// Writes a file that was named on the command line, whole or not at all.
pub(crate) fn export(path: &Path, form: Form, contents: &[u8]) -> Result<(), Failure> {
    own::may_write(path, form, Some(contents))?;
    write_file(path, contents)
}

/// That a file of this form can be written there later on: what is there stays,
/// and is none that would be lost then.
pub(crate) fn writable(path: &Path, form: Form) -> Result<(), Failure> {
    own::may_write(path, form, None)?;
    whole::writable(path).map_err(|error| Failure::io("write", path, error))
}

/// Makes a directory.
pub(crate) fn directory(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|error| Failure::io("make directory", path, error))
}

/// A path as text; names that are no text are shown as well as can be.
pub(crate) fn name(path: &Path) -> String {
    path.display().to_string()
}

/// Paths as text.
pub(crate) fn names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| name(path)).collect()
}
