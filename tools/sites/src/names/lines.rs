//! Names by debug information (DWARF): functions with those inlined into them, files and lines.
//!
//! *Invariant:* a section is taken whole or, if it is too long or cannot be decompressed, not at all.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use addr2line::Context;
use flate2::read::ZlibDecoder;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::{CompressionFormat, Object, ObjectSection};

use super::module::{Code, Name, demangled, open};

/// Bytes of the longest section that is read.
const MOST_SECTION: u64 = 4 << 30;

/// Finds the names at addresses that have none yet.
pub(super) fn find(file: &Code<'_>, path: &Path, addresses: &[u64], names: &mut [Vec<Name>]) {
    let has_lines = file
        .section_by_name(".debug_info")
        .is_some_and(|lines| lines.size() > 0);
    if !has_lines {
        return;
    }
    let Some(sections) = sections(file) else {
        return;
    };
    // What several debug files have in common lies in a file of its own.
    let shared = file
        .gnu_debugaltlink()
        .ok()
        .flatten()
        .and_then(|(name, _)| {
            let directory = path.parent().unwrap_or(Path::new("/"));
            open(&directory.join(OsStr::from_bytes(name)))
        });
    let shared = shared
        .as_ref()
        .and_then(|cache| object::File::parse(cache).ok());
    let shared_sections = shared.as_ref().and_then(self::sections);
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let dwarf = sections.borrow_with_sup(shared_sections.as_ref(), |section| {
        EndianSlice::new(section, endian)
    });
    let Ok(context) = Context::from_dwarf(dwarf) else {
        return;
    };
    for (&address, names) in addresses.iter().zip(names) {
        if names.is_empty() {
            *names = at(&context, address).unwrap_or_default();
        }
    }
}

/// The names at an address, the innermost function first.
fn at(context: &Context<EndianSlice<'_, RunTimeEndian>>, address: u64) -> Option<Vec<Name>> {
    // What lies in files beside this one (split DWARF) is not looked for.
    let mut frames = context.find_frames(address).skip_all_loads().ok()?;
    let mut names = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let function = frame
            .function
            .and_then(|name| Some(demangled(&name.raw_name().ok()?)));
        let location = frame.location;
        let file = location.as_ref().and_then(|location| location.file);
        names.push((
            function.unwrap_or_default(),
            file.unwrap_or_default().to_owned(),
            location.and_then(|location| location.line).unwrap_or(0),
        ));
    }
    Some(names)
}

/// The sections of debug information.
fn sections<'a>(file: &Code<'a>) -> Option<DwarfSections<Cow<'a, [u8]>>> {
    DwarfSections::load(|id: SectionId| {
        let section = file.section_by_name(id.name());
        let Some(section) = section else {
            return Ok(Cow::Borrowed(&[][..]));
        };
        let packed = section.compressed_data().map_err(|_| ())?;
        if packed.uncompressed_size > MOST_SECTION {
            return Err(());
        }
        let mut bytes = Vec::new();
        let read = match packed.format {
            CompressionFormat::None => return Ok(Cow::Borrowed(packed.data)),
            CompressionFormat::Zlib => ZlibDecoder::new(packed.data)
                .take(packed.uncompressed_size)
                .read_to_end(&mut bytes),
            CompressionFormat::Zstandard => {
                let decoder = zstd::Decoder::new(packed.data).map_err(|_| ())?;
                decoder
                    .take(packed.uncompressed_size)
                    .read_to_end(&mut bytes)
            }
            _ => return Err(()),
        };
        match read {
            Ok(length) if length as u64 == packed.uncompressed_size => Ok(Cow::Owned(bytes)),
            _ => Err(()),
        }
    })
    .ok()
}
