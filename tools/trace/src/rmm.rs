//! Replay logs of RMM (`logging_resource_adaptor`) as traces: a header
//! `Thread,Time,Action,Pointer,Size,Stream`, then a line an event.
//!
//! `allocate` begins a block, `free` (or `deallocate`) ends it; `allocate failure` gave none and
//! is left out. Pointers and streams are numbers, decimal or with 0x. Time is of the day
//! (`14:21:19.998533`; `:` before the fraction will do) or in seconds.
//!
//! Invariant: reads line by line; a line longer than any event ends the import.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::{Inconsistency, TraceError};
use crate::event::Op;
use crate::trace::{Provenance, Trace, TraceBuilder};

/// Longest line read, bytes.
const LONGEST_LINE: usize = 1024;
/// What RMM aligns to, bytes.
const ALIGN: u32 = 256;
/// How such a log begins.
pub(crate) const HEADER: &str = "Thread,Time,Action,Pointer,Size,Stream";

/// What is wrong with a line of a replay log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// See [`Inconsistency`].
    #[error(transparent)]
    Inconsistent(#[from] Inconsistency),
    /// The first line is another one.
    #[error("a replay log begins with the line {HEADER}")]
    Header,
    /// Too few fields or too many.
    #[error("{0} fields instead of 6; a line is {HEADER}")]
    Fields(usize),
    /// None of the actions.
    #[error("unknown action {0:?}; allocate, allocate failure, free and deallocate are known")]
    Action(String),
    /// A field that should be a number.
    #[error("{field} is {text:?}, not a whole number in its range")]
    Number {
        /// The field.
        field: &'static str,
        /// What it holds.
        text: String,
    },
    /// A time of no known form.
    #[error("Time is {0:?}: write it as 14:21:19.998533 or in seconds")]
    Time(String),
    /// Longer than any event.
    #[error("longer than {0} bytes, so no event; is this a text file?")]
    TooLong(usize),
}

/// Reads the replay log in file `path`. See [`import_rmm`].
///
/// # Errors
/// As [`import_rmm`], and if the file cannot be opened.
pub fn import_rmm_file(path: &Path) -> Result<Trace, TraceError> {
    let file = File::open(path).map_err(|source| cannot_read(path, source))?;
    import_rmm(BufReader::new(file), path)
}

fn cannot_read(path: &Path, source: std::io::Error) -> TraceError {
    TraceError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    }
}

/// Reads a replay log; `name` is what errors call it. Threads are numbered by first appearance.
/// O(1) a line.
///
/// # Errors
/// [`TraceError::Log`] names the line and what is wrong with it; [`TraceError::Empty`] if there is
/// no event.
pub fn import_rmm(mut input: impl BufRead, name: &Path) -> Result<Trace, TraceError> {
    let mut importer = Importer::default();
    let mut text = Vec::new();
    let mut line = 0;
    loop {
        text.clear();
        let mut limited = input.by_ref().take(LONGEST_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut text);
        if read.map_err(|source| cannot_read(name, source))? == 0 {
            break;
        }
        line += 1;
        importer
            .line(line, &text)
            .map_err(|cause| TraceError::Log {
                path: name.to_owned(),
                line,
                cause,
            })?;
    }
    if importer.builder.is_empty() {
        return Err(TraceError::Empty {
            path: name.to_owned(),
        });
    }
    Ok(importer.builder.finish(Provenance {
        recorder: "rmm".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        threads: importer.threads.len() as u32,
        timed: true,
        ..Provenance::default()
    }))
}

#[derive(Default)]
struct Importer {
    builder: TraceBuilder,
    /// Serial numbers of live blocks, by pointer.
    live: HashMap<u64, u64>,
    threads: HashMap<u64, u32>,
    /// Time of the first event.
    start: Option<u64>,
}

impl Importer {
    fn line(&mut self, number: u64, text: &[u8]) -> Result<(), LogError> {
        if text.len() > LONGEST_LINE {
            return Err(LogError::TooLong(LONGEST_LINE));
        }
        let text = String::from_utf8_lossy(text);
        let text = text.trim_start_matches('\u{feff}').trim();
        if number == 1 {
            return match text == HEADER {
                true => Ok(()),
                false => Err(LogError::Header),
            };
        }
        if text.is_empty() {
            return Ok(());
        }
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let [thread, time, action, pointer, size, stream] = fields[..] else {
            return Err(LogError::Fields(fields.len()));
        };
        let allocates = match action {
            "allocate" => true,
            "free" | "deallocate" => false,
            "allocate failure" => return Ok(()),
            other => return Err(LogError::Action(other.to_owned())),
        };
        let thread = whole("Thread", thread)?;
        let time = nanoseconds(time)?;
        let pointer = whole("Pointer", pointer)?;
        let size = whole("Size", size)?;
        whole("Stream", stream)?;
        if pointer == 0 {
            // A request of no bytes.
            return Ok(());
        }
        let next = self.threads.len() as u32;
        let thread = *self.threads.entry(thread).or_insert(next);
        // Logs of several threads are not in the order of time to the last digit.
        let time = time.saturating_sub(*self.start.get_or_insert(time));
        if allocates {
            if self.live.contains_key(&pointer) {
                return Err(Inconsistency::LiveBlock { block: pointer }.into());
            }
            let block = self.builder.alloc(time, thread, size, ALIGN)?;
            self.live.insert(pointer, block);
        } else {
            let block = self.live.remove(&pointer);
            let op = Op::Free;
            let block = block.ok_or(Inconsistency::UnknownBlock { op, block: pointer })?;
            self.builder.free(time, thread, block)?;
        }
        Ok(())
    }
}

/// A number, decimal or with 0x; `(nil)` is what C prints for null.
fn whole(field: &'static str, text: &str) -> Result<u64, LogError> {
    let number = match text.strip_prefix("0x") {
        Some(hex) if hex.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u64::from_str_radix(hex, 16).ok()
        }
        None if text == "(nil)" => Some(0),
        None if text.bytes().all(|digit| digit.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| LogError::Number {
        field,
        text: text.to_owned(),
    })
}

/// A time of the day or in seconds, as nanoseconds.
fn nanoseconds(text: &str) -> Result<u64, LogError> {
    let parsed = || {
        let parts: Vec<&str> = text.split(':').collect();
        let (clock, seconds) = match parts[..] {
            [seconds] => ([0, 0], seconds.to_owned()),
            [hours, minutes, seconds] => ([digits(hours)?, digits(minutes)?], seconds.to_owned()),
            [hours, minutes, seconds, fraction] => (
                [digits(hours)?, digits(minutes)?],
                format!("{seconds}.{fraction}"),
            ),
            _ => return None,
        };
        let (whole, fraction) = seconds.split_once('.').unwrap_or((&seconds, "0"));
        let nanos: String = fraction
            .chars()
            .chain("000000000".chars())
            .take(9)
            .collect();
        digits(fraction)?;
        let minutes = clock[0].checked_mul(60)?.checked_add(clock[1])?;
        let seconds = minutes.checked_mul(60)?.checked_add(digits(whole)?)?;
        seconds
            .checked_mul(1_000_000_000)?
            .checked_add(digits(&nanos)?)
    };
    parsed().ok_or_else(|| LogError::Time(text.to_owned()))
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn times() {
        assert_eq!(nanoseconds("0"), Ok(0));
        assert_eq!(nanoseconds("1.5"), Ok(1_500_000_000));
        assert_eq!(
            nanoseconds("1634567890.123456"),
            Ok(1_634_567_890_123_456_000)
        );
        assert_eq!(nanoseconds("01:02:03.000001"), Ok(3_723_000_001_000));
        assert_eq!(nanoseconds("01:02:03:000001"), Ok(3_723_000_001_000));
        for wrong in [
            "",
            "x",
            "1:2",
            "1:2:3:4:5",
            "-1",
            "1.2.3",
            "1e9",
            "99999999999999",
        ] {
            assert!(nanoseconds(wrong).is_err(), "{wrong}");
        }
    }
}
