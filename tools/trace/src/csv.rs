//! Traces as text: one event a line,
//! `op,block,size[,align[,thread[,reads,writes[,read_bytes,write_bytes]]]]`.
//!
//! `op` is a (allocate), f (free), r (resize) or x (access, for the counts of
//! blocks that are never freed). `reads` and `writes` are the words that the
//! program read and wrote in the block since its last line; words have 4 bytes,
//! unless the header names the two columns `reads8,writes8`. `block` is any number, decimal
//! or with 0x, unique among the live blocks: addresses do. A free may leave out
//! what follows the block. `align` is 16 and `thread` 0 if absent. Blank lines
//! do not count; a first line that begins with `op` is a header.
//!
//! Invariant: reads and writes line by line; a line longer than any event ends
//! the import, so that a file of another kind is not taken into memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use crate::error::{Inconsistency, LineError, TraceError};
use crate::event::{Event, Op};
use crate::trace::{Provenance, Trace, TraceBuilder};

/// Longest line read, bytes.
const LONGEST_LINE: usize = 1024;
/// Alignment of a line that names none: what `malloc` promises.
const DEFAULT_ALIGN: u32 = 16;

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsvExport {
    /// Lines written, without the header.
    pub written: u64,
}

/// Reads the text trace in file `path`. See [`import_csv`].
///
/// # Errors
/// As [`import_csv`], and if the file cannot be opened.
pub fn import_csv_file(path: &Path) -> Result<Trace, TraceError> {
    let file = File::open(path).map_err(|source| cannot_read(path, source))?;
    import_csv(BufReader::new(file), path)
}

fn cannot_read(path: &Path, source: io::Error) -> TraceError {
    TraceError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    }
}

/// Reads a text trace; `name` is what errors call it. Blocks are numbered anew
/// by their allocation; times are not known. O(1) a line.
///
/// # Errors
/// [`TraceError::Line`] names the line and what is wrong with it;
/// [`TraceError::Empty`] if there is no event.
pub fn import_csv(mut input: impl BufRead, name: &Path) -> Result<Trace, TraceError> {
    let mut builder = TraceBuilder::new();
    let mut importer = Importer::default();
    let mut text = Vec::new();
    let mut line = 0;
    loop {
        text.clear();
        let mut limited = input.by_ref().take(LONGEST_LINE as u64 + 1);
        let read = limited
            .read_until(b'\n', &mut text)
            .map_err(|source| cannot_read(name, source))?;
        if read == 0 {
            break;
        }
        line += 1;
        importer
            .line(&mut builder, line, &text)
            .map_err(|cause| TraceError::Line {
                path: name.to_owned(),
                line,
                cause,
            })?;
    }
    if builder.is_empty() {
        return Err(TraceError::Empty {
            path: name.to_owned(),
        });
    }
    Ok(builder.finish(Provenance {
        recorder: "csv".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        threads: importer.threads.len() as u32,
        access_word: if importer.counted { importer.word } else { 0 },
        ..Provenance::default()
    }))
}

#[derive(Default)]
struct Importer {
    /// Serial number by foreign name: of the live block, or the last freed.
    serials: HashMap<u64, (u64, bool)>,
    threads: std::collections::HashSet<u32>,
    /// A line other than a blank one was seen.
    begun: bool,
    /// Some line has counts.
    counted: bool,
    /// Bytes of a word of the counts.
    word: u32,
}

/// What a line says beside its event.
struct Fields {
    block: u64,
    size: u64,
    align: u32,
    thread: u32,
    /// Words read, written, bytes read, written.
    counts: [u64; 4],
}

impl Importer {
    fn line(
        &mut self,
        builder: &mut TraceBuilder,
        number: u64,
        text: &[u8],
    ) -> Result<(), LineError> {
        if text.len() > LONGEST_LINE {
            return Err(LineError::TooLong(LONGEST_LINE));
        }
        let text = if number == 1 {
            text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
        } else {
            text
        };
        let text = text.trim_ascii();
        if text.is_empty() {
            return Ok(());
        }
        let first = !std::mem::replace(&mut self.begun, true);
        let mut fields = text.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let op = fields.next().unwrap_or_default();
        if first && op.eq_ignore_ascii_case(b"op") {
            self.word = if text.windows(6).any(|name| name == b"reads8") {
                8
            } else {
                4
            };
            return Ok(());
        }
        if first {
            self.word = 4;
        }
        let op = match op {
            b"a" => Op::Alloc,
            b"f" => Op::Free,
            b"r" => Op::Resize,
            b"x" => Op::Access,
            other => return Err(LineError::UnknownOp(shown(other))),
        };
        let block = number_of("block", fields.next().unwrap_or_default(), None)?;
        // A free needs no size; if one is there it must be a number all the same.
        let default = matches!(op, Op::Free | Op::Access).then_some(0);
        let size = number_of("size", fields.next().unwrap_or_default(), default)?;
        let align = fields.next().unwrap_or_default();
        let align = number_of("align", align, Some(u64::from(DEFAULT_ALIGN)))?;
        let align = u32::try_from(align).map_err(|_| LineError::NotANumber {
            field: "align",
            text: align.to_string(),
        })?;
        let thread = number_of("thread", fields.next().unwrap_or_default(), Some(0))?;
        let thread = u32::try_from(thread).map_err(|_| LineError::NotANumber {
            field: "thread",
            text: thread.to_string(),
        })?;
        let mut counts = [0; 4];
        for (count, name) in counts
            .iter_mut()
            .zip(["reads", "writes", "read_bytes", "write_bytes"])
        {
            if let Some(field) = fields.next() {
                *count = number_of(name, field, Some(0))?;
                self.counted = true;
            }
        }
        if fields.next().is_some() {
            return Err(LineError::TooMany);
        }
        let fields = Fields {
            block,
            size,
            align,
            thread,
            counts,
        };
        self.event(builder, op, &fields)?;
        self.threads.insert(thread);
        Ok(())
    }

    fn event(
        &mut self,
        builder: &mut TraceBuilder,
        op: Op,
        fields: &Fields,
    ) -> Result<(), Inconsistency> {
        let block = fields.block;
        let serial = match (op, self.serials.get(&block).copied()) {
            (Op::Alloc, Some((_, true))) => return Err(Inconsistency::LiveBlock { block }),
            (Op::Alloc, _) => builder.blocks(),
            (_, Some((serial, true))) => serial,
            (_, None) => return Err(Inconsistency::UnknownBlock { op, block }),
            (Op::Free, Some(_)) => return Err(Inconsistency::DoubleFree { block }),
            (_, Some(_)) => return Err(Inconsistency::DeadBlock { op, block }),
        };
        let [reads, writes, read_bytes, write_bytes] = fields.counts;
        builder.push(Event {
            seq: builder.len() as u64,
            time_ns: 0,
            thread: fields.thread,
            op,
            block: serial,
            size: fields.size,
            align: if matches!(op, Op::Alloc | Op::Resize) {
                fields.align
            } else {
                0
            },
            reads,
            writes,
            read_bytes,
            write_bytes,
            site: 0,
        })?;
        self.serials.insert(block, (serial, op != Op::Free));
        Ok(())
    }
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text.get(..40).unwrap_or(text)).into_owned()
}

fn number_of(field: &'static str, text: &[u8], default: Option<u64>) -> Result<u64, LineError> {
    if text.is_empty() {
        return default.ok_or(LineError::Missing(field));
    }
    let wrong = || LineError::NotANumber {
        field,
        text: shown(text),
    };
    let digits = std::str::from_utf8(text).map_err(|_| wrong())?;
    let number = match digits.strip_prefix("0x") {
        // `from_str_radix` would take a sign.
        Some(hex) if hex.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u64::from_str_radix(hex, 16)
        }
        None if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse(),
        _ => return Err(wrong()),
    };
    number.map_err(|_| wrong())
}

/// Writes `trace` as text with a header line. Times and sites are left out, and
/// counts if the trace has none.
///
/// # Errors
/// What `output` reports.
pub fn export_csv(trace: &Trace, output: &mut impl Write) -> io::Result<CsvExport> {
    let mut export = CsvExport::default();
    let counted = trace.provenance.access_word > 0 || trace.iter().any(|event| is_counted(&event));
    let suffix = if trace.provenance.access_word == 8 {
        "8"
    } else {
        ""
    };
    let counts = format!(",reads{suffix},writes{suffix},read_bytes,write_bytes");
    writeln!(
        output,
        "op,block,size,align,thread{}",
        if counted { &counts } else { "" }
    )?;
    for event in trace.iter() {
        let (op, align) = match event.op {
            Op::Alloc => ('a', event.align),
            Op::Free => ('f', DEFAULT_ALIGN),
            Op::Resize => ('r', event.align),
            Op::Access => ('x', DEFAULT_ALIGN),
        };
        write!(
            output,
            "{op},{},{},{align},{}",
            event.block, event.size, event.thread
        )?;
        if counted {
            write!(
                output,
                ",{},{},{},{}",
                event.reads, event.writes, event.read_bytes, event.write_bytes
            )?;
        }
        writeln!(output)?;
        export.written += 1;
    }
    output.flush()?;
    Ok(export)
}

fn is_counted(event: &Event) -> bool {
    event.reads | event.writes | event.read_bytes | event.write_bytes != 0
}
