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
        for segment in file.elf_program_headers() {
            if segment.p_type(BigEndian) != PT_LOAD || segment.p_memsz(BigEndian) == 0 {
                continue;
            }
            let data = segment
                .data(BigEndian, bytes)
                .map_err(|()| NoImage::Format("a segment lies outside the file".to_owned()))?;
            let size = segment.p_memsz(BigEndian) as usize;
            if size > 1 << 30 || data.len() > size {
                return Err(NoImage::Format(format!(
                    "a segment has {size} bytes in memory"
                )));
            }
            let mut in_memory = data.to_vec();
            in_memory.resize(size, 0);
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

    /// A program of `words` at `address`, where it begins.
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

/// What an assembler names without a type, at a place in the program.
fn is_label<'a>(symbol: &impl ObjectSymbol<'a>) -> bool {
    matches!(symbol.kind(), SymbolKind::Label | SymbolKind::Unknown)
        && symbol.section_index().is_some()
}

/// Functions and labels of code, and data; what has no size reaches to the next one.
fn symbols(file: &ElfFile32<'_, BigEndian>) -> Vec<Symbol> {
    let named = file
        .symbols()
        .filter(|symbol| symbol.is_definition() || is_label(symbol));
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
    for index in (1..symbols.len()).rev() {
        let next = symbols[index].address;
        let symbol = &mut symbols[index - 1];
        if symbol.size == 0 {
            symbol.size = next - symbol.address;
        }
    }
    symbols
}
