//! Levels and tables as people write them down.
//!
//! A file gives all there is to say:
//!
//! ```toml
//! [run]
//! clock_mhz = 200
//! leakage = "interpolated"    # or "tool", "none"
//! [[level]]
//! name = "scratchpad"
//! size = "64 KiB"             # figures of the shipped table `sram`
//! [[level]]
//! name = "main"
//! size = "1 MiB..8 MiB"       # the smallest power of two that holds its pools
//! table = "mine.toml"         # rows of your own, beside this file
//! ```
//!
//! A specification, `scratchpad=64KiB,main=1MiB..8MiB@sram`, says the same
//! without a file.
//!
//! Invariant: what is refused is refused with the place of the value at fault;
//! every memory of a level that is returned has all its figures.

use std::ops::Range;
use std::path::Path;

use metes_config::{Error, Source, read_size};
use metes_heap::description::LEVELS;
use serde::Deserialize;
use toml::Spanned;

use super::error::EnergyError;
use super::table::{Leakage, MOST, Measures, Row, Table, shipped};
use crate::hierarchy::{Hierarchy, Level, Memory};

/// The table of levels that name none.
const DEFAULT_TABLE: &str = "sram";
/// Bits of an access where nothing says otherwise.
pub(super) const DEFAULT_WORD: u32 = 32;
/// 200 MHz: an embedded processor of the shipped table's 130 nm.
pub(super) const DEFAULT_CLOCK: u64 = 200_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelsFile {
    #[serde(default)]
    run: RunText,
    #[serde(default)]
    level: Vec<Spanned<LevelText>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunText {
    clock_mhz: Option<Spanned<f64>>,
    #[serde(default)]
    leakage: Leakage,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelText {
    name: Spanned<String>,
    size: Spanned<SizeText>,
    table: Option<Spanned<String>>,
    word_bits: Option<Spanned<u32>>,
    read_nj: Option<Spanned<f64>>,
    write_nj: Option<Spanned<f64>>,
    latency_ns: Option<Spanned<f64>>,
    leakage_mw: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SizeText {
    Bytes(u64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    #[serde(default)]
    table: TableText,
    row: Vec<Spanned<RowText>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    source: Option<String>,
    word_bits: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowText {
    size: Spanned<SizeText>,
    read_nj: Spanned<f64>,
    write_nj: Spanned<f64>,
    latency_ns: Spanned<f64>,
    leakage_mw: Spanned<f64>,
}

impl Hierarchy {
    /// Levels from a specification if `text` has an `=`, else from a file.
    ///
    /// # Errors
    /// [`EnergyError`] with cause and place.
    pub fn resolve(text: &str) -> Result<Self, EnergyError> {
        match text.contains('=') {
            true => Self::spec(text),
            false => Self::read(Path::new(text)),
        }
    }

    /// Levels from a file; its tables are looked for beside it.
    ///
    /// # Errors
    /// [`EnergyError`] with cause and place.
    pub fn read(path: &Path) -> Result<Self, EnergyError> {
        let text = read_file(path)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, &path.display().to_string(), directory)
    }

    /// Levels from the text of a file that errors call `name`; tables of the
    /// user's own are looked for in `directory`.
    ///
    /// # Errors
    /// [`EnergyError`] with cause and place.
    pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Self, EnergyError> {
        let source = Source { name, text };
        let file: LevelsFile = read_toml(source)?;
        let clock_hz = match &file.run.clock_mhz {
            None => DEFAULT_CLOCK,
            Some(clock) => match clock.get_ref() * 1e6 {
                hertz if (1.0..=1e12).contains(&hertz) => hertz.round() as u64,
                _ => {
                    let message = "`clock_mhz` must be a number above 0 and up to 1000000";
                    return Err(source.error(clock.span(), message, None).into());
                }
            },
        };
        if file.level.is_empty() {
            let message = "a hierarchy needs a level: add `[[level]]` with a `name` and a `size`";
            return Err(source.error(0..0, message, None).into());
        }
        let mut levels: Vec<Level> = Vec::new();
        for (number, level) in file.level.iter().enumerate() {
            let LevelText { name, .. } = level.get_ref();
            let refuse = |at, message: String| Err(source.error(at, message, None).into());
            if number == LEVELS {
                return refuse(
                    level.span(),
                    format!("there can be at most {LEVELS} levels"),
                );
            }
            if let Err(why) = check_name(name.get_ref(), &levels) {
                return refuse(name.span(), why);
            }
            levels.push(read_level(level, file.run.leakage, source, directory)?);
        }
        Ok(Hierarchy {
            levels,
            clock_hz,
            leakage: file.run.leakage,
        })
    }

    /// Levels from a specification: `NAME=SIZE[..SIZE][@TABLE]`, separated by
    /// commas, the nearest first.
    ///
    /// # Errors
    /// [`EnergyError::Spec`] and those of tables.
    pub fn spec(text: &str) -> Result<Self, EnergyError> {
        let wrong = |why: String| {
            EnergyError::Spec(format!(
                "levels `{text}`: {why}; write levels as in `scratchpad=64KiB,main=1MiB..8MiB`, \
                 or name a levels file"
            ))
        };
        let leakage = Leakage::default();
        let mut levels: Vec<Level> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let Some((name, rest)) = part.split_once('=') else {
                return Err(wrong(format!("`{part}` has no `=`")));
            };
            let (name, rest) = (name.trim(), rest.trim());
            check_name(name, &levels).map_err(wrong)?;
            if levels.len() == LEVELS {
                return Err(wrong(format!("there can be at most {LEVELS} levels")));
            }
            let (size, table) = match rest.split_once('@') {
                Some((size, table)) => (size.trim(), table.trim()),
                None => (rest, DEFAULT_TABLE),
            };
            let sizes = read_sizes(size).map_err(wrong)?;
            let table = find_table(table, Path::new(""))?;
            let no_own = |measures| measures;
            let level = level_of(name, table.word_bits, &sizes, &table, leakage, no_own)?;
            levels.push(level);
        }
        Ok(Hierarchy {
            levels,
            clock_hz: DEFAULT_CLOCK,
            leakage,
        })
    }
}

fn read_file(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| Error {
        message: format!(
            "cannot read {}: {error}; check the path, or write levels as in \
             `scratchpad=64KiB,main=1MiB..8MiB`",
            path.display()
        ),
        place: None,
        help: None,
    })
}

fn read_toml<'t, T: Deserialize<'t>>(source: Source<'t>) -> Result<T, Error> {
    toml::from_str(source.text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        source.error(at, error.message().replace('\n', ", "), None)
    })
}

fn check_name(name: &str, levels: &[Level]) -> Result<(), String> {
    if name.is_empty() || name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a level's name must not be empty or a number".to_owned());
    }
    match levels.iter().any(|level| level.name == name) {
        true => Err(format!("there are two levels named `{name}`")),
        false => Ok(()),
    }
}

/// A size, or the powers of two from one to another.
fn read_sizes(text: &str) -> Result<Vec<u64>, String> {
    let size = |text| {
        let size = read_size(text)?;
        match size {
            0 => Err("a memory level cannot be empty".to_owned()),
            size => Ok(size as u64),
        }
    };
    let Some((from, to)) = text.split_once("..") else {
        return Ok(vec![size(text)?]);
    };
    let (from, to) = (size(from)?, size(to)?);
    if !from.is_power_of_two() || !to.is_power_of_two() || from > to {
        return Err(format!(
            "`{text}` must go from a power of two up to another"
        ));
    }
    Ok((from.trailing_zeros()..=to.trailing_zeros())
        .map(|log2| 1 << log2)
        .collect())
}

impl SizeText {
    fn sizes(&self) -> Result<Vec<u64>, String> {
        match self {
            SizeText::Bytes(bytes) => read_sizes(&bytes.to_string()),
            SizeText::Text(text) => read_sizes(text),
        }
    }
}

/// A shipped table, or a file in `directory`.
fn find_table(name: &str, directory: &Path) -> Result<Table, EnergyError> {
    match name.ends_with(".toml") {
        true => read_table(&directory.join(name)),
        false => shipped(name),
    }
}

/// A table of the user's own.
fn read_table(path: &Path) -> Result<Table, EnergyError> {
    let text = read_file(path)?;
    let name = path.display().to_string();
    let source = Source {
        name: &name,
        text: &text,
    };
    let file: TableFile = read_toml(source)?;
    let word_bits = read_word(source, file.table.word_bits.as_ref())?;
    let mut rows: Vec<Row> = Vec::new();
    for row in &file.row {
        let at = row.get_ref();
        let sizes = at.size.get_ref().sizes();
        let size = match sizes.as_deref() {
            Ok(&[size]) => size,
            Ok(_) => {
                let message = "a row is for one size, not for several";
                return Err(source.error(at.size.span(), message, None).into());
            }
            Err(why) => return Err(source.error(at.size.span(), why, None).into()),
        };
        if rows.last().is_some_and(|last| last.size >= Some(size)) {
            let message = "rows must stand by rising size, each once";
            return Err(source.error(at.size.span(), message, None).into());
        }
        let line = text[..row.span().start].matches('\n').count() + 1;
        let cited = file.table.source.as_ref();
        rows.push(Row {
            size: Some(size),
            read_nj: figure(source, "read_nj", &at.read_nj)?,
            write_nj: figure(source, "write_nj", &at.write_nj)?,
            latency_ns: Some(figure(source, "latency_ns", &at.latency_ns)?),
            leakage_mw: Some(figure(source, "leakage_mw", &at.leakage_mw)?),
            leakage_interpolated_mw: None,
            source: match cited {
                Some(cited) => format!("{name}:{line} ({cited})"),
                None => format!("{name}:{line}"),
            },
        });
    }
    if rows.is_empty() {
        let message = "a table needs a row: add `[[row]]`";
        return Err(source.error(0..0, message, None).into());
    }
    Ok(Table {
        name,
        word_bits,
        rows,
    })
}

/// Bits of an access: whole bytes, a power of two of them.
fn read_word(source: Source<'_>, given: Option<&Spanned<u32>>) -> Result<u32, Error> {
    match given {
        None => Ok(DEFAULT_WORD),
        Some(bits) if (8..=1024).contains(bits.get_ref()) && bits.get_ref().is_power_of_two() => {
            Ok(*bits.get_ref())
        }
        Some(bits) => {
            let message = "`word_bits` must be a power of two from 8 to 1024";
            Err(source.error(bits.span(), message, None))
        }
    }
}

/// A figure that can be one: not negative, and not larger than a slip of units.
fn figure(source: Source<'_>, key: &str, given: &Spanned<f64>) -> Result<f64, Error> {
    let most = match key {
        "leakage_mw" => MOST[2],
        "latency_ns" => MOST[1],
        _ => MOST[0],
    };
    let value = *given.get_ref();
    if (0.0..=most).contains(&value) {
        return Ok(value);
    }
    let message = format!("`{key}` must be a number from 0 to {most}, not {value}");
    Err(source.error(given.span(), message, None))
}

fn read_level(
    level: &Spanned<LevelText>,
    leakage: Leakage,
    source: Source<'_>,
    directory: &Path,
) -> Result<Level, EnergyError> {
    let text = level.get_ref();
    let refuse = |at: Range<usize>, message: &str| source.error(at, message, None);
    let sizes = text.size.get_ref().sizes();
    let sizes = sizes.map_err(|why| refuse(text.size.span(), &why))?;
    let own = |key: &'static str, given: &Option<Spanned<f64>>| {
        given
            .as_ref()
            .map(|given| figure(source, key, given))
            .transpose()
    };
    let given = [
        own("read_nj", &text.read_nj)?,
        own("write_nj", &text.write_nj)?,
        own("latency_ns", &text.latency_ns)?,
        own("leakage_mw", &text.leakage_mw)?,
    ];
    let line = source.text[..level.span().start].matches('\n').count() + 1;
    let place = format!("{}:{line}", source.name);
    let word_bits = text.word_bits.as_ref();
    let table = match (&text.table, given) {
        (Some(name), _) => {
            let found = find_table(name.get_ref(), directory);
            found.map_err(|error| point(error, source, name.span()))?
        }
        (None, [None, None, None, None]) => shipped(DEFAULT_TABLE)?,
        (None, [Some(read_nj), Some(write_nj), Some(_), Some(_)]) => {
            if sizes.len() > 1 {
                let message = "figures hold for one size: give that, or a `table` for several";
                return Err(refuse(text.size.span(), message).into());
            }
            Table {
                name: place.clone(),
                word_bits: read_word(source, word_bits)?,
                rows: vec![Row {
                    size: None,
                    read_nj,
                    write_nj,
                    latency_ns: None,
                    leakage_mw: None,
                    leakage_interpolated_mw: None,
                    source: place.clone(),
                }],
            }
        }
        (None, _) => {
            let message = "a level needs all of `read_nj`, `write_nj`, `latency_ns` and \
                           `leakage_mw`, or a `table` for those it does not give";
            return Err(refuse(level.span(), message).into());
        }
    };
    let word_bits = match word_bits {
        Some(_) => read_word(source, word_bits)?,
        None => table.word_bits,
    };
    let replace = |mut measures: Measures| {
        let [read_nj, write_nj, latency_ns, leakage_mw] = given;
        measures.read_nj = read_nj.unwrap_or(measures.read_nj);
        measures.write_nj = write_nj.unwrap_or(measures.write_nj);
        measures.latency_ns = latency_ns.or(measures.latency_ns);
        let charged = leakage != Leakage::None;
        measures.leakage_mw = leakage_mw.filter(|_| charged).or(measures.leakage_mw);
        measures
    };
    let name = text.name.get_ref();
    let mut level = level_of(name, word_bits, &sizes, &table, leakage, replace)
        .map_err(|error| point(error, source, text.size.span()))?;
    let keys = ["read_nj", "write_nj", "latency_ns", "leakage_mw"];
    let replaced: Vec<&str> = keys
        .into_iter()
        .zip(given)
        .filter_map(|(key, given)| given.map(|_| key))
        .collect();
    if text.table.is_some() && !replaced.is_empty() {
        for memory in &mut level.memories {
            memory.source += &format!("; {} by {place}", replaced.join(", "));
        }
    }
    Ok(level)
}

/// Points an error that knows no place to one.
fn point(error: EnergyError, source: Source<'_>, at: Range<usize>) -> EnergyError {
    match error {
        EnergyError::File(error) => EnergyError::File(error),
        other => source.error(at, other.to_string(), None).into(),
    }
}

fn level_of(
    name: &str,
    word_bits: u32,
    sizes: &[u64],
    table: &Table,
    leakage: Leakage,
    replace: impl Fn(Measures) -> Measures,
) -> Result<Level, EnergyError> {
    let memory = |&size: &u64| {
        let (measures, source) = table.at(size, leakage)?;
        Ok(Memory {
            size,
            figures: replace(measures).figures(&table.name)?,
            source,
        })
    };
    Ok(Level {
        name: name.to_owned(),
        word_bits,
        memories: sizes
            .iter()
            .map(memory)
            .collect::<Result<_, EnergyError>>()?,
    })
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
