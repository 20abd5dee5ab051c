//! The names in one module.
//!
//! *Invariant:* a symbol names the addresses that it covers, and no others: what lies between two symbols of a stripped
//! library is a function of neither.

use std::fs::File;
use std::path::{Path, PathBuf};

use metes_trace::stacks::Module;
use object::{Object, ObjectSection, ObjectSymbol, ReadCache, SymbolKind};

use super::Unnamed;
use super::lines;

/// Function, file and line.
pub(super) type Name = (String, String, u32);

/// A file of code or debug information.
pub(super) type Code<'a> = object::File<'a, &'a ReadCache<File>>;

/// The names at addresses in a module, which rise: for each the innermost function first.
pub(super) fn find(
    module: &Module,
    debug_files: &Path,
    addresses: &[u64],
) -> Result<Vec<Vec<Name>>, Unnamed> {
    let own_path = PathBuf::from(&module.path);
    let debug_path = debug_file(&module.build_id, debug_files);
    let own_cache = open(&own_path);
    let own = own_cache
        .as_ref()
        .and_then(|cache| object::File::parse(cache).ok());
    let is_own = |file: &Code<'_>| {
        // A file without a build id is believed.
        build_id(file) == module.build_id
    };
    let changed = own.as_ref().is_some_and(|file| !is_own(file));
    let own = own.filter(is_own);
    let debug_cache = debug_path.as_deref().and_then(open);
    let debug = debug_cache
        .as_ref()
        .and_then(|cache| object::File::parse(cache).ok());
    if own.is_none() && debug.is_none() {
        return Err(match changed {
            true => Unnamed::OtherFile,
            false => Unnamed::NoFile,
        });
    }
    let mut names = vec![Vec::new(); addresses.len()];
    for (file, path) in [(&own, Some(&own_path)), (&debug, debug_path.as_ref())] {
        let (Some(file), Some(path)) = (file, path) else {
            continue;
        };
        lines::find(file, path, addresses, &mut names);
    }
    for file in [&own, &debug].into_iter().flatten() {
        by_symbols(file, addresses, &mut names);
    }
    for names in &mut names {
        names.retain(|(function, ..)| !function.is_empty());
    }
    Ok(names)
}

/// The build id of a file; empty if it has none. Its own section is looked at first: among notes there are some that
/// the library cannot read.
fn build_id(file: &Code<'_>) -> Vec<u8> {
    let section = file.section_by_name(".note.gnu.build-id");
    let note = section.and_then(|section| section.data().ok());
    let id = note.and_then(|note| {
        // Lengths of name and text, kind, the name `GNU`, the text.
        let length = u32::from_le_bytes(*note.get(4..)?.first_chunk()?);
        note.get(16..)?.get(..length as usize)
    });
    match id {
        Some(id) => id.to_vec(),
        None => file.build_id().ok().flatten().unwrap_or_default().to_vec(),
    }
}

/// A regular file, to be read where it is looked at.
pub(super) fn open(path: &Path) -> Option<ReadCache<File>> {
    let file = File::open(path).ok()?;
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    is_file.then(|| ReadCache::new(file))
}

/// Names the outermost functions at addresses that have none, by tables of symbols: the innermost symbol that covers an
/// address.
fn by_symbols(file: &Code<'_>, addresses: &[u64], names: &mut [Vec<Name>]) {
    let mut found: Vec<Option<(u64, String)>> = vec![None; addresses.len()];
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let (start, size) = (symbol.address(), symbol.size());
        if symbol.kind() != SymbolKind::Text || start == 0 || size == 0 {
            continue;
        }
        let first = addresses.partition_point(|&address| address < start);
        let behind = addresses.partition_point(|&address| address < start.saturating_add(size));
        for found in found.get_mut(first..behind).unwrap_or(&mut []) {
            if found.as_ref().is_none_or(|(known, _)| *known < start)
                && let Ok(name) = symbol.name()
            {
                *found = Some((start, name.to_owned()));
            }
        }
    }
    for (names, found) in names.iter_mut().zip(found) {
        let Some((_, symbol)) = found else { continue };
        if names.iter().any(|(function, ..)| !function.is_empty()) {
            continue;
        }
        let function = demangled(&symbol);
        match names.last_mut() {
            Some((place, ..)) => *place = function,
            None => names.push((function, String::new(), 0)),
        }
    }
}

/// A symbol as its language writes it.
pub(super) fn demangled(symbol: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    let name = cpp_demangle::Symbol::new(symbol).ok();
    let name = name.and_then(|name| name.demangle().ok());
    name.unwrap_or_else(|| symbol.to_owned())
}

/// The debug file of a build id.
fn debug_file(build_id: &[u8], debug_files: &Path) -> Option<PathBuf> {
    let (first, rest) = build_id
        .split_first()
        .filter(|(_, rest)| !rest.is_empty())?;
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let path = debug_files
        .join(hex(&[*first]))
        .join(format!("{}.debug", hex(rest)));
    path.is_file().then_some(path)
}
