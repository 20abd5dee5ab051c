//! What the pages of a Parquet file claim to hold, before anything is decompressed.
//!
//! A page says in its header how long it is when decompressed, and the values in it where it is a dictionary, and
//! the decoder takes that much memory. Headers are Thrift structures in the compact protocol; three of their
//! fields count here.
//!
//! *Invariant:* memory is taken for a buffer of one size, whatever the file says.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Most bytes of a page, decompressed: pages are a megabyte as a rule, and one page a column is decoded at a
/// time.
pub const MOST_PAGE: u64 = 32 << 20;

/// Kinds of values: whole numbers of 32 bits, and structures.
const NUMBER: u8 = 5;
const STRUCTURE: u8 = 12;
/// Structures within structures that a header may have; it has two.
const DEEPEST: u32 = 8;
/// Numbers of the fields of a page header that hold its lengths, decompressed and as it stands in the file.
const DECOMPRESSED: i64 = 2;
const STANDING: i64 = 3;
/// Number of the structure that a dictionary has, and in it of the field that counts its values.
const DICTIONARY: i64 = 7;
const VALUES: i64 = 1;

/// What the header of a page says.
#[derive(Default)]
struct Claims {
    decompressed: Option<i64>,
    standing: Option<i64>,
    /// Values of a dictionary.
    values: i64,
}

/// The length that the largest page of some column chunks claims, decompressed, where that is more than
/// [`MOST_PAGE`]. A chunk is its first byte and its bytes. O(pages).
///
/// # Errors
/// What the system says; [`io::ErrorKind::InvalidData`] and [`io::ErrorKind::UnexpectedEof`] for what are no
/// pages.
pub fn page_beyond(
    file: &File,
    chunks: impl Iterator<Item = (u64, u64)>,
) -> io::Result<Option<u64>> {
    let mut bytes = BufReader::new(file);
    for (first, length) in chunks {
        bytes.seek(SeekFrom::Start(first))?;
        let end = first.saturating_add(length);
        while bytes.stream_position()? < end {
            let Claims {
                decompressed: Some(decompressed),
                standing: Some(standing),
                values,
            } = claims(&mut bytes)?
            else {
                return Err(wrong());
            };
            let length = |length| u64::try_from(length).map_err(|_| wrong());
            let (decompressed, standing) = (length(decompressed)?, length(standing)?);
            if decompressed > MOST_PAGE {
                return Ok(Some(decompressed));
            }
            // A value that is no flag takes a byte at least, and no dictionary is of flags.
            if length(values)? > decompressed {
                let why = format!("a dictionary claims {values} values in {decompressed} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            skip(&mut bytes, standing)?;
        }
    }
    Ok(None)
}

fn wrong() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a page has no header")
}

/// What the header that begins here says.
fn claims(bytes: &mut impl Bytes) -> io::Result<Claims> {
    let mut claims = Claims::default();
    let mut field = 0;
    while let Some(kind) = next_field(bytes, &mut field)? {
        match (field, kind) {
            (DECOMPRESSED, NUMBER) => claims.decompressed = Some(zigzag(bytes)?),
            (STANDING, NUMBER) => claims.standing = Some(zigzag(bytes)?),
            (DICTIONARY, STRUCTURE) => {
                let mut field = 0;
                while let Some(kind) = next_field(bytes, &mut field)? {
                    match (field, kind) {
                        (VALUES, NUMBER) => claims.values = zigzag(bytes)?,
                        _ => skip_value(bytes, kind, 1)?,
                    }
                }
            }
            _ => skip_value(bytes, kind, 0)?,
        }
    }
    Ok(claims)
}

/// The kind of the next field, whose number is put into `field`; `None` at the end of a structure.
fn next_field(bytes: &mut impl Bytes, field: &mut i64) -> io::Result<Option<u8>> {
    let byte = byte(bytes)?;
    if byte == 0 {
        return Ok(None);
    }
    *field = match byte >> 4 {
        0 => zigzag(bytes)?,
        more => field.saturating_add(i64::from(more)),
    };
    Ok(Some(byte & 15))
}

/// Passes over a value of a kind.
fn skip_value(bytes: &mut impl Bytes, kind: u8, deep: u32) -> io::Result<()> {
    if deep > DEEPEST {
        return Err(wrong());
    }
    match kind {
        // True and false are their kinds.
        1 | 2 => Ok(()),
        3 => skip(bytes, 1),
        4..=6 => varint(bytes).map(drop),
        7 => skip(bytes, 8),
        8 => {
            let length = varint(bytes)?;
            skip(bytes, length)
        }
        9 | 10 => {
            let head = byte(bytes)?;
            let count = match head >> 4 {
                15 => varint(bytes)?,
                few => u64::from(few),
            };
            for _ in 0..count {
                match head & 15 {
                    // In a list a flag takes a byte.
                    1 | 2 => skip(bytes, 1)?,
                    kind => skip_value(bytes, kind, deep + 1)?,
                }
            }
            Ok(())
        }
        STRUCTURE => {
            let mut field = 0;
            while let Some(kind) = next_field(bytes, &mut field)? {
                skip_value(bytes, kind, deep + 1)?;
            }
            Ok(())
        }
        _ => Err(wrong()),
    }
}

/// Bytes that can be passed over.
trait Bytes: Read {
    fn pass(&mut self, count: i64) -> io::Result<()>;
}

impl Bytes for BufReader<&File> {
    fn pass(&mut self, count: i64) -> io::Result<()> {
        self.seek_relative(count)
    }
}

/// Passes over bytes; beyond the end the next read fails.
fn skip(bytes: &mut impl Bytes, count: u64) -> io::Result<()> {
    bytes.pass(i64::try_from(count).map_err(|_| wrong())?)
}

fn byte(bytes: &mut impl Bytes) -> io::Result<u8> {
    let mut one = [0];
    bytes.read_exact(&mut one)?;
    Ok(one[0])
}

/// An unsigned number, seven bits a byte.
fn varint(bytes: &mut impl Bytes) -> io::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(bytes)?;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(number);
        }
    }
    Err(wrong())
}

/// A signed one.
fn zigzag(bytes: &mut impl Bytes) -> io::Result<i64> {
    let number = varint(bytes)?;
    Ok((number >> 1) as i64 ^ -((number & 1) as i64))
}
