//! Lines of source code, as an image compiled with `-g` tells them (DWARF's line tables).
//!
//! Invariant: ranges of addresses are in order, do not overlap, and each has its file and line.

use std::cmp::Ordering;
use std::collections::HashMap;

use gimli::{BigEndian, Dwarf, EndianSlice, LineRow, SectionId, Unit};
use object::read::elf::ElfFile32;
use object::{Object, ObjectSection};

/// Why there are no lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its lines of source code cannot be read: {0}; compile with -g, and link without compressing debug sections"
)]
pub struct NoLines(String);

/// Which line each address belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    files: Vec<String>,
    ranges: Vec<Range>,
    /// Lines of which nothing but their address is left, as that of a function's name, in the order of addresses.
    marks: Vec<Range>,
}

/// Addresses of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    begin: u32,
    end: u32,
    file: u32,
    line: u32,
}

type Slice<'a> = EndianSlice<'a, BigEndian>;

impl Lines {
    /// Reads the lines of an ELF file; none if it was compiled without `-g`.
    ///
    /// # Errors
    /// They are there, but damaged or compressed.
    pub fn read(elf: &[u8]) -> Result<Lines, NoLines> {
        let why = |error: &dyn std::fmt::Display| NoLines(error.to_string());
        let file: ElfFile32<'_, object::BigEndian> =
            ElfFile32::parse(elf).map_err(|error| why(&error))?;
        let section = |id: SectionId| -> Result<Slice<'_>, NoLines> {
            let bytes = match file.section_by_name(id.name()) {
                Some(section) => section.data().map_err(|error| why(&error))?,
                None => &[],
            };
            Ok(EndianSlice::new(bytes, BigEndian))
        };
        let dwarf = Dwarf::load(section)?;
        let mut lines = Lines::default();
        lines.take_units(&dwarf).map_err(|error| why(&error))?;
        lines.ranges.sort_unstable();
        lines.marks.sort_by_key(|mark| mark.begin);
        // Of what overlaps, as code that the linker has thrown away does at address 0, the first stays.
        lines.ranges.dedup_by(|next, kept| next.begin < kept.end);
        Ok(lines)
    }

    fn take_units(&mut self, dwarf: &Dwarf<Slice<'_>>) -> gimli::Result<()> {
        let mut numbers = HashMap::new();
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            self.take_unit(dwarf, &unit, &mut numbers)?;
        }
        Ok(())
    }

    fn take_unit(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        numbers: &mut HashMap<String, u32>,
    ) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else {
            return Ok(());
        };
        let mut rows = program.rows();
        let mut last: Option<(u32, u32, u32)> = None;
        while let Some((header, row)) = rows.next_row()? {
            let address = row.address() as u32;
            if let Some((begin, file, line)) = last
                && line != 0
            {
                let range = Range {
                    begin,
                    end: address,
                    file,
                    line,
                };
                match begin.cmp(&address) {
                    Ordering::Less => self.ranges.push(range),
                    Ordering::Equal => self.marks.push(range),
                    Ordering::Greater => {}
                }
            }
            last = None;
            if !row.end_sequence() {
                let name = file_name(dwarf, unit, header, row)?;
                let next = self.files.len() as u32;
                let file = *numbers.entry(name).or_insert_with_key(|name| {
                    self.files.push(name.clone());
                    next
                });
                let line = row.line().map_or(0, |line| line.get() as u32);
                last = Some((address, file, line));
            }
        }
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// File and line of `address`.
    pub fn at(&self, address: u32) -> Option<(&str, u32)> {
        let behind = self.ranges.partition_point(|range| range.begin <= address);
        let range = self.ranges[behind.checked_sub(1)?];
        (address < range.end).then(|| self.place(range))
    }

    /// The first of the lines that begin at `address`, or else the one it belongs to: of a function, that of its name.
    pub fn first_at(&self, address: u32) -> Option<(&str, u32)> {
        let index = self.marks.partition_point(|mark| mark.begin < address);
        match self.marks.get(index) {
            Some(&mark) if mark.begin == address => Some(self.place(mark)),
            _ => self.at(address),
        }
    }

    /// Lines of which nothing but their address is left, with that.
    pub(super) fn marks(&self) -> impl Iterator<Item = (u32, &str, u32)> {
        self.marks.iter().map(|&mark| {
            let (file, line) = self.place(mark);
            (mark.begin, file, line)
        })
    }

    fn place(&self, range: Range) -> (&str, u32) {
        (self.files[range.file as usize].as_str(), range.line)
    }
}

/// The file of a row, with its folder where that is known.
fn file_name(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    header: &gimli::LineProgramHeader<Slice<'_>>,
    row: &LineRow,
) -> gimli::Result<String> {
    let Some(file) = row.file(header) else {
        return Ok("unknown".to_owned());
    };
    let text = |value| -> gimli::Result<String> {
        Ok(dwarf
            .attr_string(unit, value)?
            .to_string_lossy()
            .into_owned())
    };
    let mut path = std::path::PathBuf::new();
    if let Some(folder) = unit.comp_dir {
        path.push(folder.to_string_lossy().as_ref());
    }
    if let Some(folder) = file.directory(header) {
        path.push(text(folder)?);
    }
    path.push(text(file.path_name())?);
    Ok(path.to_string_lossy().into_owned())
}
