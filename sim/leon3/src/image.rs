//! Programs in ELF files: what of them goes into memory, and their symbols.
//!
//! Invariant: an image is 32-bit, big-endian, for SPARC, and has an entry; where it fits is the machine's to say.

use object::elf::{EM_SPARC, EM_SPARC32PLUS, ET_EXEC, PT_LOAD};
use object::read::elf::{ElfFile32, FileHeader, ProgramHeader};
use object::{BigEndian, Object, ObjectSymbol, SymbolKind};

use crate::bus::NoMemory;
use crate::machine::Impossible;

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    entry: u32,
    segments: Vec<Segment>,
    symbols: Vec<Symbol>,
}

/// Bytes of it that lie together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Physical address of the first.
    pub address: u32,
    /// The bytes; those that are zero from the beginning are written out.
    pub bytes: Vec<u8>,
    /// Whether it holds code.
    pub code: bool,
}

/// A name for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// First address.
    pub address: u32,
    /// Bytes, up to the next symbol where the file says nothing.
    pub size: u32,
    /// Its name.
    pub name: String,
    /// Whether it is a function.
    pub function: bool,
}

/// Why there is no machine with an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoImage {
    /// No ELF file, or a damaged one.
    #[error("it is no ELF file that can be read: {0}; link the program as a static executable")]
    Format(String),
    /// An ELF file of another kind.
    #[error(
        "it is an ELF file {is}, but must be one {must}; build it for LEON3 (sparc, -mcpu=leon3)"
    )]
    Kind {
        /// What it is.
        is: String,
        /// What it must be.
        must: &'static str,
    },
    /// Nothing to load.
    #[error(
        "nothing in it is to be loaded into memory; link it as an executable, not as an object or a library"
    )]
    Empty,
    /// It does not fit into memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// There is no such machine.
    #[error(transparent)]
    Impossible(#[from] Impossible),
}

/// Most bytes that the segments of an image have in memory together.
const MOST_BYTES: usize = 512 << 20;

impl Image {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// It is no executable for SPARC V8.
    pub fn read(bytes: &[u8]) -> Result<Image, NoImage> {
        check_kind(bytes)?;
        let format = |error: object::read::Error| NoImage::Format(error.to_string());
        let file: ElfFile32<'_, BigEndian> = ElfFile32::parse(bytes).map_err(format)?;
        let header = file.elf_header();
        let machine = header.e_machine(BigEndian);
        if machine != EM_SPARC && machine != EM_SPARC32PLUS {
            return Err(NoImage::Kind {
                is: format!("for machine {machine}"),
                must: "for SPARC (2)",
            });
        }
        let kind = header.e_type(BigEndian);
        if kind != ET_EXEC {
            return Err(NoImage::Kind {
                is: format!("of type {kind}"),
                must: "that is executable (2): linked, at fixed addresses",
            });
        }
        let mut segments = Vec::new();
        let mut whole = 0;
        for segment in file.elf_program_headers() {
            if segment.p_type(BigEndian) != PT_LOAD || segment.p_memsz(BigEndian) == 0 {
                continue;
            }
            let data = segment
                .data(BigEndian, bytes)
                .map_err(|()| NoImage::Format("a segment lies outside the file".to_owned()))?;
            let size = segment.p_memsz(BigEndian) as usize;
            if data.len() > size {
                return Err(NoImage::Format(format!(
                    "a segment has {size} bytes in memory, and {} in the file",
                    data.len()
                )));
            }
            // A few bytes of a file may claim any number.
            whole += size;
            if whole > MOST_BYTES {
                return Err(NoImage::Format(format!(
                    "its segments have more than {MOST_BYTES} bytes in memory"
                )));
            }
            let mut in_memory = vec![0; size];
            in_memory[..data.len()].copy_from_slice(data);
            segments.push(Segment {
                address: segment.p_paddr(BigEndian),
                bytes: in_memory,
                code: segment.p_flags(BigEndian) & object::elf::PF_X != 0,
            });
        }
        if segments.is_empty() {
            return Err(NoImage::Empty);
        }
        Ok(Image {
            entry: file.entry() as u32,
            segments,
            symbols: symbols(&file),
        })
    }

    /// As [`elf`], without the file.
    pub fn of_words(address: u32, words: &[u32]) -> Image {
        Image {
            entry: address,
            segments: vec![Segment {
                address,
                bytes: words.iter().flat_map(|word| word.to_be_bytes()).collect(),
                code: true,
            }],
            symbols: Vec::new(),
        }
    }

    /// Address of the first instruction.
    pub fn entry(&self) -> u32 {
        self.entry
    }

    /// What goes into memory.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The word at `address`, as it is loaded.
    pub fn word(&self, address: u32) -> Option<u32> {
        let mut segments = self.segments.iter();
        segments.find_map(|segment| {
            let offset = address.checked_sub(segment.address)? as usize;
            let bytes = segment.bytes.get(offset..)?.first_chunk()?;
            Some(u32::from_be_bytes(*bytes))
        })
    }

    /// Symbols in the order of their addresses.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The symbol that `address` belongs to.
    pub fn symbol_at(&self, address: u32) -> Option<&Symbol> {
        let behind = self
            .symbols
            .partition_point(|symbol| symbol.address <= address);
        let symbol = &self.symbols[behind.checked_sub(1)?];
        (address - symbol.address < symbol.size.max(1)).then_some(symbol)
    }

    /// The symbol called `name`.
    pub fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.iter().find(|symbol| symbol.name == name)
    }
}

/// A program of `words` at `address`, where it begins, as an ELF file without symbols.
pub fn elf(address: u32, words: &[u32]) -> Vec<u8> {
    const HEADER: u16 = 52;
    const SEGMENT: u16 = 32;
    const OFFSET: u32 = 0x1000;
    let size = 4 * words.len() as u32;
    let mut file = b"\x7fELF\x01\x02\x01".to_vec();
    file.resize(16, 0);
    let halves = |file: &mut Vec<u8>, values: &[u16]| {
        file.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    };
    let whole = |file: &mut Vec<u8>, values: &[u32]| {
        file.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    };
    halves(&mut file, &[ET_EXEC, EM_SPARC]);
    // Version, entry, where segments are described, no sections, no flags.
    whole(&mut file, &[1, address, u32::from(HEADER), 0, 0]);
    halves(&mut file, &[HEADER, SEGMENT, 1, 0, 0, 0]);
    // Loaded, readable, writable, executable.
    whole(
        &mut file,
        &[PT_LOAD, OFFSET, address, address, size, size, 7, OFFSET],
    );
    file.resize(OFFSET as usize, 0);
    whole(&mut file, words);
    file
}

/// Class and byte order, which the reader of 32-bit big-endian files would call damage.
fn check_kind(bytes: &[u8]) -> Result<(), NoImage> {
    let must = "of 32 bits, big-endian";
    match bytes {
        [0x7f, b'E', b'L', b'F', 1, 2, ..] => Ok(()),
        [0x7f, b'E', b'L', b'F', class, order, ..] => {
            let bits = if *class == 2 { "64" } else { "32" };
            let order = if *order == 1 { "little" } else { "big" };
            Err(NoImage::Kind {
                is: format!("of {bits} bits, {order}-endian"),
                must,
            })
        }
        _ => Err(NoImage::Format("it does not begin as one".to_owned())),
    }
}

/// Functions, data, and labels outside of them; what has no size reaches to the next one.
fn symbols(file: &ElfFile32<'_, BigEndian>) -> Vec<Symbol> {
    let kinds = [
        SymbolKind::Text,
        SymbolKind::Data,
        SymbolKind::Label,
        SymbolKind::Unknown,
    ];
    let named = file
        .symbols()
        .filter(|symbol| !symbol.is_undefined() && kinds.contains(&symbol.kind()));
    let mut symbols: Vec<Symbol> = named
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some(Symbol {
                address: symbol.address() as u32,
                size: symbol.size() as u32,
                name: name.to_owned(),
                function: symbol.kind() == SymbolKind::Text,
            })
        })
        .collect();
    // Of several names for an address the one of a function with a size is last, and found.
    symbols.sort_by(|a, b| {
        (a.address, a.function, a.size, &a.name).cmp(&(b.address, b.function, b.size, &b.name))
    });
    let mut end = 0;
    symbols.retain(|symbol| {
        let inside = symbol.address < end && symbol.size == 0;
        end = end.max(symbol.address.saturating_add(symbol.size));
        !inside
    });
    for index in (1..symbols.len()).rev() {
        let next = symbols[index].address;
        let symbol = &mut symbols[index - 1];
        if symbol.size == 0 {
            symbol.size = next - symbol.address;
        }
    }
    symbols
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_may_not_claim_all_memory() {
        let mut bytes = elf(0x4000_0000, &[0x0100_0000]);
        // The bytes of the one segment in memory.
        bytes[72..76].copy_from_slice(&(MOST_BYTES as u32).to_be_bytes());
        assert_eq!(
            Image::read(&bytes).unwrap().segments()[0].bytes.len(),
            MOST_BYTES
        );
        bytes[72..76].copy_from_slice(&(MOST_BYTES as u32 + 1).to_be_bytes());
        let told = Image::read(&bytes).unwrap_err().to_string();
        assert!(
            told.contains("more than 536870912 bytes in memory"),
            "{told}"
        );
        bytes[72..76].copy_from_slice(&3_u32.to_be_bytes());
        let told = Image::read(&bytes).unwrap_err().to_string();
        assert!(
            told.contains("3 bytes in memory, and 4 in the file"),
            "{told}"
        );
    }
}
