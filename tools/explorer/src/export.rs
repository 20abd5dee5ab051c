//! The configurations for other tools: CSV, gnuplot, xlsx.
//!
//! Invariant: figures are exact, in the units that the results file has them in,
//! which the column's name says; a file is written whole or not at all.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use metes_trace::whole;
use rust_xlsxwriter::{DocProperties, Format, Workbook, XlsxError};

use crate::columns::{Columns, Values};
use crate::error::Error;
use crate::folder::Folder;

/// Whom a workbook names as its author.
const AUTHOR: &str = "Metes";
/// Rows of a sheet, the heading among them.
const SHEET_ROWS: usize = 1_048_576;
/// Integers that a sheet's numbers hold exactly.
const EXACT: u64 = 1 << 53;

/// A form of export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Comma-separated values, one line a configuration.
    Csv,
    /// A script and its data, for `gnuplot -p`.
    Gnuplot,
    /// A workbook.
    Xlsx,
}

impl Form {
    /// Ending of the file.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Form::Csv => "csv",
            Form::Gnuplot => "gp",
            Form::Xlsx => "xlsx",
        }
    }
}

/// Writes a folder's configurations; the files written. O(configurations).
///
/// # Errors
/// [`Error::Io`]; [`Error::Content`] when there are more rows than a sheet has.
pub fn write(folder: &Folder, form: Form, path: &Path) -> Result<Vec<PathBuf>, Error> {
    let paths = files(form, path)?;
    let data = paths.last().and_then(|path| path.file_name());
    let contents = contents(folder, form, &data.unwrap_or_default().to_string_lossy())?;
    for (path, content) in paths.iter().zip(&contents).rev() {
        whole(path, content)?;
    }
    Ok(paths)
}

/// The files that an export to `path` writes.
///
/// # Errors
/// [`Error::Content`] where the two of gnuplot would be one.
pub fn files(form: Form, path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = vec![path.to_owned()];
    if form == Form::Gnuplot {
        paths.push(path.with_extension("dat"));
        if paths[1] == path {
            return Err(Error::Content(format!(
                "the gnuplot script cannot be {}: its data goes there; choose another ending",
                path.display()
            )));
        }
    }
    Ok(paths)
}

/// Whether a file is a workbook that [`write()`] made: its properties name Metes.
#[must_use]
pub fn is_workbook(path: &Path) -> bool {
    const PROPERTIES: &[u8] = b"docProps/core.xml";
    /// More than they take.
    const MOST: u64 = 1 << 16;
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    // The name stands twice, before the properties and in the index at the end;
    // before it the header has their extra bytes.
    let Some(at) = bytes
        .windows(PROPERTIES.len())
        .position(|name| name == PROPERTIES)
    else {
        return false;
    };
    let extra = at.checked_sub(2).and_then(|at| bytes.get(at..at + 2));
    let extra = extra.map_or(0, |pair| {
        usize::from(u16::from_le_bytes([pair[0], pair[1]]))
    });
    let packed = bytes
        .get(at + PROPERTIES.len() + extra..)
        .unwrap_or_default();
    let mut text = Vec::new();
    // What is no workbook ends in an error or in other text.
    let _ = flate2::read::DeflateDecoder::new(packed)
        .take(MOST)
        .read_to_end(&mut text);
    String::from_utf8_lossy(&text).contains(&format!(">{AUTHOR}<"))
}

/// The files of a form, as they are named in `/export/`.
pub(crate) fn bytes(folder: &Folder, form: Form) -> Result<Vec<Vec<u8>>, Error> {
    contents(folder, form, "results.dat")
}

/// One file, or script and data for gnuplot; `data` is the name of the latter.
fn contents(folder: &Folder, form: Form, data: &str) -> Result<Vec<Vec<u8>>, Error> {
    let columns = &folder.columns;
    Ok(match form {
        Form::Csv => vec![csv(columns).into()],
        Form::Xlsx => vec![xlsx(folder)?],
        Form::Gnuplot => vec![gnuplot(columns, data).into(), table(columns).into()],
    })
}

/// Replaces a file whole.
pub(crate) fn whole(path: &Path, content: &[u8]) -> Result<(), Error> {
    whole::replace(path, |part| fs::write(part, content)).map_err(Error::io("write", path))
}

/// Comma-separated values with a heading; absent values are empty.
#[must_use]
pub fn csv(columns: &Columns) -> String {
    lines(columns, ",", "", true)
}

/// Columns parted by blanks, as gnuplot reads them; absent values are `?`.
fn table(columns: &Columns) -> String {
    format!("# {}", lines(columns, " ", "?", false))
}

fn lines(columns: &Columns, comma: &str, absent: &str, quoted: bool) -> String {
    let cell = |text: &str| match quoted {
        true if text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        true => text.to_owned(),
        false if text.is_empty() => absent.to_owned(),
        false => text.replace(char::is_whitespace, "_"),
    };
    let names: Vec<_> = columns
        .list
        .iter()
        .map(|column| cell(&column.name))
        .collect();
    let mut text = names.join(comma) + "\n";
    for row in 0..columns.rows() {
        for (index, column) in columns.list.iter().enumerate() {
            if index > 0 {
                text += comma;
            }
            match column.values.text(row) {
                Some(value) => text += &cell(&value),
                None => text += absent,
            }
        }
        text.push('\n');
    }
    text
}

/// A script that draws accesses over footprint, both logarithmic, and the front.
fn gnuplot(columns: &Columns, data: &str) -> String {
    let at = |name| {
        1 + columns
            .list
            .iter()
            .position(|column| column.name == name)
            .unwrap_or(0)
    };
    let (x, y) = (at("footprint"), at("accesses"));
    let (front, status) = (at("front"), at("status"));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "# Configurations of an exploration: gnuplot -p FILE\n\
         # The columns are named in the first line of the data.\n\
         data = \"{data}\"\n\
         set datafile missing \"?\"\n\
         set logscale xy\n\
         set grid\n\
         set key outside\n\
         set xlabel \"Footprint, bytes\"\n\
         set ylabel \"Accesses, words\"\n\
         ended(s, v) = (s eq \"complete\") ? v : NaN\n\
         plot data using {x}:(ended(strcol({status}), ${y})) with dots lc rgb \"#7e93a8\" title \"configurations\", \\\n     \
         data using (${front} == 1 ? ${x} : NaN):{y} with points pt 7 ps 0.7 lc rgb \"#0a6c6a\" title \"front\"\n"
    );
    text
}

/// A workbook: all configurations, the front, what the results say of themselves.
fn xlsx(folder: &Folder) -> Result<Vec<u8>, Error> {
    let columns = &folder.columns;
    if columns.rows() >= SHEET_ROWS {
        return Err(Error::Content(format!(
            "a sheet holds {} configurations, and the exploration has {}; export CSV instead",
            SHEET_ROWS - 1,
            columns.rows()
        )));
    }
    let front: Vec<usize> = (0..columns.rows())
        .filter(|&row| columns.integer("front", row) == Some(1))
        .collect();
    let all: Vec<usize> = (0..columns.rows()).collect();
    let mut workbook = Workbook::new();
    workbook.set_properties(&DocProperties::new().set_author(AUTHOR));
    let built = sheet(&mut workbook, "configurations", columns, &all)
        .and_then(|()| sheet(&mut workbook, "front", columns, &front))
        .and_then(|()| about(&mut workbook, folder))
        .and_then(|()| workbook.save_to_buffer());
    built.map_err(|error| Error::Content(format!("the workbook cannot be built: {error}")))
}

fn sheet(
    workbook: &mut Workbook,
    name: &str,
    columns: &Columns,
    rows: &[usize],
) -> Result<(), XlsxError> {
    let heading = Format::new().set_bold();
    let sheet = workbook.add_worksheet_with_constant_memory()?;
    sheet.set_name(name)?.set_freeze_panes(1, 0)?;
    for (index, column) in columns.list.iter().enumerate() {
        sheet.set_column_width(index as u16, (column.name.len() + 3).clamp(9, 22) as f64)?;
    }
    for (index, column) in columns.list.iter().enumerate() {
        sheet.write_with_format(0, index as u16, column.name.as_str(), &heading)?;
    }
    for (line, &row) in (1..).zip(rows) {
        for (index, column) in columns.list.iter().enumerate() {
            let at = index as u16;
            match &column.values {
                Values::Integers(values) => match values[row] {
                    Some(value) if value < EXACT => sheet.write(line, at, value as f64)?,
                    Some(value) => sheet.write(line, at, value.to_string())?,
                    None => continue,
                },
                Values::Words { .. } => match column.values.text(row) {
                    Some(text) => sheet.write(line, at, text)?,
                    None => continue,
                },
            };
        }
    }
    if !rows.is_empty() {
        sheet.autofilter(0, 0, rows.len() as u32, columns.list.len() as u16 - 1)?;
    }
    Ok(())
}

fn about(workbook: &mut Workbook, folder: &Folder) -> Result<(), XlsxError> {
    /// Characters that a cell holds.
    const CELL: usize = 32_767;
    let sheet = workbook.add_worksheet();
    sheet.set_name("about")?.set_column_width(0, 28)?;
    for (line, (key, value)) in (0..).zip(&folder.provenance) {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        sheet.write(line, 0, key.as_str())?;
        sheet.write(line, 1, text.chars().take(CELL).collect::<String>())?;
    }
    Ok(())
}
