//! Source lines of addresses, from the DWARF of an image.
//!
//! Invariant: a line is told only where the image tells one.

use gimli::{Dwarf, EndianRcSlice, RunTimeEndian, SectionId};
use object::read::elf::ElfFile32;
use object::{BigEndian, Object, ObjectSection};

type Slice = EndianRcSlice<RunTimeEndian>;

/// Where an image's instructions are from.
pub struct Lines {
    context: addr2line::Context<Slice>,
}

impl Lines {
    /// Those of an ELF file; none if it has no line information that can be read.
    pub fn read(file: &[u8]) -> Option<Lines> {
        let file: ElfFile32<'_, BigEndian> = ElfFile32::parse(file).ok()?;
        let section = |id: SectionId| -> Result<Slice, gimli::Error> {
            let section = file.section_by_name(id.name());
            let data = section.and_then(|section| section.uncompressed_data().ok());
            Ok(Slice::new(
                data.unwrap_or_default().into(),
                RunTimeEndian::Big,
            ))
        };
        file.section_by_name(".debug_line")?;
        let context = addr2line::Context::from_dwarf(Dwarf::load(section).ok()?).ok()?;
        Some(Lines { context })
    }

    /// File and line of the instruction at `address`.
    pub fn of(&self, address: u32) -> Option<(String, u32)> {
        let location = self.context.find_location(u64::from(address)).ok()??;
        Some((location.file?.to_owned(), location.line?))
    }
}
