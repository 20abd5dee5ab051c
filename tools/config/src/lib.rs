//! `heap.toml` and specs: heaps as people write them down.
//!
//! A [`Config`] is a [`metes_heap::Description`] with what surrounds it: the
//! store, the arena, the memory levels. It is read from a `heap.toml`, from a
//! *spec* such as `tlsf:second_level=8` or `best-fit:order=fifo,depth=50`, and
//! written back as either.
//!
//! ```
//! let config = metes_config::spec("best-fit:max_fit=150")?;
//! assert_eq!(config.spec().as_deref(), Some("best-fit:max_fit=150"));
//! let same = metes_config::parse(&config.to_toml(), "heap.toml")?;
//! assert_eq!(same, config);
//!
//! // On a host, large blocks are mappings of their own unless something else is said.
//! assert_eq!(metes_config::spec_on_host("tlsf")?.arena.mapped, Some(128 << 10));
//! assert_eq!(metes_config::spec("tlsf:mapped=1MiB")?.arena.mapped, Some(1 << 20));
//! assert_eq!(metes_config::spec_on_host("tlsf:mapped=no")?, metes_config::spec("tlsf")?);
//!
//! // A heap of several pools in a line; its name is read back as the same heap.
//! let pools = metes_config::spec("objects 16/32 + dedicated 40/56 + tlsf")?;
//! assert_eq!(pools.name(), "objects 16/32 + dedicated 40/56 + tlsf");
//!
//! // What is said of their pages is said of mapped blocks.
//! let buried = metes_config::spec("tlsf:pages=graveyard")?;
//! assert_eq!(buried.spec().as_deref(), Some("tlsf:mapped=128KiB,pages=graveyard"));
//!
//! let error = metes_config::parse("[heap]\nname = \"tslf\"\n", "heap.toml").unwrap_err();
//! assert_eq!(
//!     error.one_line(),
//!     "heap.toml:2:8: there is no heap named `tslf` (did you mean `tlsf`?)",
//! );
//! # Ok::<(), metes_config::Error>(())
//! ```
//!
//! Invariant: a `Config` that this crate returns holds a valid description.

mod composite;
mod document;
mod error;
mod fields;
mod guarantee;
mod guaranteed;
mod handles;
mod levels;
mod names;
mod pages;
mod partition;
mod quantity;
mod spec;
mod threads;
mod write;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use metes_heap::compact::Kappa;
use metes_heap::description::{General, LEVELS, List};
use metes_heap::{Description, Geometry};

pub use document::ranged;
pub use error::{Error, Place, Source, suggest};
pub use guarantee::{GuaranteeError, guarantee, parts, span_for};
pub use guaranteed::{AnyHeap, CompactGuarantee, Guaranteed, MappedPart, NamedPart, suffices};
pub use handles::HandleHeap;
pub use pages::{BOUNDED, Pages};
pub use quantity::{read_size, spell_size};
pub use threads::ThreadHeap;

/// Bytes of a slab where an object pool does not say: 256 slots of 16 bytes.
pub const DEFAULT_SLAB: usize = 4096;

/// The geometry that descriptions are verified against: boundary tags of 64-bit
/// hosts, whose granule every other store's granule divides.
pub(crate) const GEOMETRY: Geometry = Geometry::tagged(8);

/// Where the records of blocks live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// Boundary tags inside the memory: what malloc uses.
    #[default]
    Tagged,
    /// Boundary tags with a keyed check: bad frees and overwritten records are found.
    Hardened,
    /// Outside the memory, found by handle.
    Ledger,
    /// Outside the memory, found by page index.
    LedgerDirect,
    /// Outside the memory, found by hash.
    LedgerHashed,
    /// Behind handles: compact-fit, whose blocks move. The heap is the description's
    /// partition; there is nothing behind it.
    Moving(Moving),
}

/// How the blocks of compact-fit move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moving {
    /// The partial compaction bound κ of every size class.
    pub kappa: Kappa,
    /// The compaction increment ι in bytes; `None` moves at once.
    pub increment: Option<usize>,
}

impl StoreKind {
    /// Whether records lie in the memory itself, as malloc needs it.
    pub const fn inside(self) -> bool {
        matches!(self, StoreKind::Tagged | StoreKind::Hardened)
    }
}

pub(crate) const STORES: [(&str, StoreKind); 5] = [
    ("tagged", StoreKind::Tagged),
    ("hardened", StoreKind::Hardened),
    ("ledger", StoreKind::Ledger),
    ("ledger-direct", StoreKind::LedgerDirect),
    ("ledger-hashed", StoreKind::LedgerHashed),
];

/// How a heap gets its memory from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arena {
    /// Bytes by which it grows, a multiple of 16.
    pub increment: usize,
    /// Bytes of address range reserved for each general pool; the most it can
    /// grow to.
    pub reserve: usize,
    /// Blocks of at least so many bytes are mappings of their own, by the rule of
    /// [`metes_heap::mapped`]; `None`: no block is.
    pub mapped: Option<usize>,
    /// When the pages of freed mapped blocks go back, where a manager of regions has them; `None`: the
    /// system maps and unmaps each block. Only where blocks are mapped. What is decided, and so what a
    /// replay predicts, is the same whatever it is.
    pub pages: Option<Pages>,
}

/// Least and most bytes from which on blocks may be mapped.
pub const MAPPED: std::ops::RangeInclusive<usize> = metes_heap::mapped::PAGE..=1 << 30;

impl Default for Arena {
    fn default() -> Self {
        Arena {
            increment: 4096,
            reserve: 1 << 36,
            mapped: None,
            pages: None,
        }
    }
}

/// A level of the memory hierarchy. Pools refer to it by name or number.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// Bytes that its pools may take together; `None`: no limit.
    pub size: Option<usize>,
    /// Joule per read of a word.
    pub read_energy: Option<f64>,
    /// Joule per write of a word.
    pub write_energy: Option<f64>,
    /// Nanoseconds per access.
    pub latency: Option<f64>,
}

/// A heap and what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The heap itself.
    pub heap: Description,
    /// Where its records live.
    pub store: StoreKind,
    /// How it gets memory from a host.
    pub arena: Arena,
    /// The memory levels that its pools lie in; none: one nameless level.
    pub levels: Vec<Level>,
}

impl Config {
    /// A heap in the default surroundings.
    pub fn of(heap: Description) -> Self {
        Config {
            heap,
            store: StoreKind::default(),
            arena: Arena::default(),
            levels: Vec::new(),
        }
    }

    /// The configuration without parameters that have no effect (merge and
    /// split limits of buddy and Kingsley heaps, which have their own).
    pub fn normal(&self) -> Self {
        let mut general = List::EMPTY;
        for pool in self.heap.general.iter() {
            let (index, limits) = names::normal(pool.index, pool.limits);
            general.push(General {
                index,
                limits,
                ..pool
            });
        }
        let heap = Description {
            general,
            ..self.heap
        };
        Config {
            heap,
            ..self.clone()
        }
    }

    /// Whether a host can serve blocks of this heap by mappings of their own: its records lie in
    /// the memory, as malloc needs it, and there is one memory only.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn can_map(&self) -> Result<(), &'static str> {
        let pools = self.heap.general.iter().map(|pool| pool.level);
        let objects = self.heap.objects.iter().map(|pool| pool.level);
        if !self.store.inside() {
            return Err(
                "only heaps with boundary tags have mapped blocks: leave out `mapped` and `pages`, \
                        or the `store`",
            );
        }
        if !self.levels.is_empty() || pools.chain(objects).any(|level| level != 0) {
            return Err(
                "the pages of mapped blocks come from the host and lie in no memory \
                        level: leave out `mapped` and `pages`, or the levels",
            );
        }
        Ok(())
    }

    /// Bytes that the pools of each memory level may take together, where the
    /// level has a size.
    pub fn level_sizes(&self) -> [Option<usize>; LEVELS] {
        let mut sizes = [None; LEVELS];
        for (size, level) in sizes.iter_mut().zip(&self.levels) {
            *size = level.size;
        }
        sizes
    }

    /// The `heap.toml` that [`parse`] reads back as this configuration, in
    /// [`normal`](Self::normal) form. Only what differs from a default is said.
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }

    /// The spec that says everything about this configuration, if there is one.
    pub fn spec(&self) -> Option<String> {
        write::spec(self)
    }

    /// The heap in a line, such as `objects 16/32 + dedicated 72 + tlsf`; the spec where there is one.
    /// [`spec`] reads it back as the same heap: of the arena it says what is mapped, of levels name and
    /// size.
    pub fn name(&self) -> String {
        write::name(self)
    }
}

impl Config {
    /// The index of a heap that is one general pool with boundary tags, and nothing else: what a node of a mesh has.
    pub fn one_pool(&self) -> Option<(metes_heap::IndexKind, metes_heap::Limits)> {
        let heap = &self.heap;
        let mut pools = heap.general.iter();
        let (pool, more) = (pools.next(), pools.next());
        let alone = more.is_none() && heap.dedicated.is_empty() && heap.objects.is_empty();
        let plain = self.store == StoreKind::default() && self.levels.is_empty();
        let pool = pool.filter(|_| alone && plain)?;
        Some((pool.index, pool.limits))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl FromStr for Config {
    type Err = Error;

    /// Reads a spec; see [`spec`].
    fn from_str(text: &str) -> Result<Self, Error> {
        spec(text)
    }
}

/// Reads the text of a `heap.toml`; `source` is what errors call it.
///
/// # Errors
/// [`Error`] points at the first thing that is wrong.
pub fn parse(text: &str, source: &str) -> Result<Config, Error> {
    document::parse(text, source)
}

/// Reads a spec, or the [name](Config::name) of a heap of several pools.
///
/// # Errors
/// [`Error`] points at the first thing that is wrong.
pub fn spec(text: &str) -> Result<Config, Error> {
    in_a_line(text, None)
}

fn in_a_line(text: &str, mapped: Option<usize>) -> Result<Config, Error> {
    match composite::is_composite(text) {
        true => composite::parse(text, "heap", mapped),
        false => spec::parse(text, "heap", mapped),
    }
}

/// Reads a spec of a heap that serves a program on a host: as [`spec`], but where nothing is said of
/// `mapped`, blocks from [`metes_heap::mapped::THRESHOLD`] on are mappings of their own.
///
/// # Errors
/// As [`spec`].
pub fn spec_on_host(text: &str) -> Result<Config, Error> {
    in_a_line(text, Some(metes_heap::mapped::THRESHOLD))
}

/// Reads a spec that names a heap of handles, such as `fragmented:block=64`; `None` where it
/// names none.
///
/// # Errors
/// As [`spec`].
pub fn handle_heap(text: &str) -> Option<Result<HandleHeap, Error>> {
    handles::parse(text, "heap")
}

/// Reads a spec that asks for a heap for each thread, such as `per-thread:threads=16`; `None` where it does not. Only a
/// program that runs can have one.
///
/// # Errors
/// As [`spec`].
pub fn thread_heap(text: &str) -> Option<Result<ThreadHeap, Error>> {
    threads::parse(text, "heap")
}

/// Reads a `heap.toml` from a file.
///
/// # Errors
/// [`Error`] when the file cannot be read, or points at what is wrong in it.
pub fn load(path: impl AsRef<Path>) -> Result<Config, Error> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let unreadable = |why: String| Error {
        message: format!("cannot read {name}: {why}"),
        place: None,
        help: None,
    };
    let bytes = std::fs::read(path).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => "; check the path",
            std::io::ErrorKind::IsADirectory => "; name the file in it",
            std::io::ErrorKind::PermissionDenied => "; choose a file that you may read",
            _ => "",
        };
        unreadable(format!("{error}{remedy}"))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        unreadable(format!("byte {at} is not UTF-8 text"))
    })?;
    parse(&text, &name)
}

/// Whether [`resolve`] takes the text for a path: it has a directory or ends
/// in `.toml`, and is no [name](Config::name) of several pools.
pub fn is_path(text: &str) -> bool {
    let named = || {
        text.split(':')
            .next()
            .is_some_and(|name| name.contains('/'))
    };
    text.ends_with(".toml") || !composite::is_composite(text) && named()
}

/// Reads a spec or, where the text [is one](is_path), the `heap.toml` at a path.
///
/// # Errors
/// As [`spec`] and [`load`].
pub fn resolve(text: &str) -> Result<Config, Error> {
    if is_path(text) {
        load(text)
    } else {
        spec(text)
    }
}

/// As [`resolve`], but a spec is read by [`spec_on_host`]. A `heap.toml` means what it says.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_on_host(text: &str) -> Result<Config, Error> {
    if is_path(text) {
        load(text)
    } else {
        spec_on_host(text)
    }
}

/// Every heap that can be built, by its usual name, with default parameters.
pub fn named() -> Vec<(&'static str, Config)> {
    let config = |name| Some((name, Config::of(Description::of(names::default_of(name)?))));
    names::NAMES.into_iter().filter_map(config).collect()
}
