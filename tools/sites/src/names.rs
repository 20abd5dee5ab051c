//! Names of calls: of functions, those inlined among them, with files and lines.
//!
//! A module's file is read where the loader had it. Debug information that is not in it is looked for by its build
//! id in `/usr/lib/debug/.build-id`. Where there is none, a function's name comes from a symbol table, and what
//! has no symbol is called `module+0x1234`. Code that was made at run time lies in no module; its names are those that
//! its process has told.
//!
//! *Invariant:* a file that is not the one that ran, by its build id, names nothing. What is wrong with a file costs
//! its names, nothing else.

mod lines;
mod module;
mod run_time;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use metes_trace::Stacks;
use metes_trace::caught::caught;
use serde::Serialize;

use module::Name;
use run_time::Pieces;
pub use run_time::remove_python;

/// Where debug information of installed modules lies.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

/// Why places have no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unnamed {
    /// The module's file has no symbol there.
    NoSymbol,
    /// The module's file is gone, or cannot be read.
    NoFile,
    /// The module's file is another one by now.
    OtherFile,
    /// No module lay there.
    NoModule,
}

impl Unnamed {
    /// In words.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Unnamed::NoSymbol => "in modules without symbols for them (stripped)",
            Unnamed::NoFile => "in modules whose files are gone",
            Unnamed::OtherFile => "in modules whose files have changed since",
            Unnamed::NoModule => {
                "in no module (code made at run time, which its runtime does not name)"
            }
        }
    }
}

/// What naming found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Different places.
    pub places: u64,
    /// Those with a source line.
    pub with_lines: u64,
    /// Those without a name, by why.
    pub unnamed: BTreeMap<Unnamed, u64>,
}

impl Named {
    /// What is to be said of places without a name, in a line; `None` if all have one.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let all: u64 = self.unnamed.values().sum();
        if all == 0 {
            return None;
        }
        let each = self.unnamed.iter().map(|(why, count)| {
            let count = metes_quantity::grouped(*count);
            format!("{count} {}", why.reason())
        });
        Some(format!(
            "{} of {} calls have no name: {}; debug files of the distribution name more",
            metes_quantity::grouped(all),
            metes_quantity::grouped(self.places),
            each.collect::<Vec<_>>().join(", "),
        ))
    }
}

/// How many places have no name.
#[must_use]
pub fn nameless(stacks: &Stacks) -> u64 {
    let places = 0..stacks.places().len() as u32;
    places
        .filter(|&place| stacks.names(place).next().is_none())
        .count() as u64
}

/// Gives the calls of stacks their names. Reads programs, libraries and debug files, and what `processes`, in which the
/// stacks were taken, have told of code that they made at run time: the first that has told of an address counts.
pub fn name(stacks: &mut Stacks, processes: &[u32]) -> Named {
    let pieces: Vec<Pieces> = processes.iter().map(|&own| Pieces::of(own)).collect();
    let debug_files = Path::new(DEBUG_FILES);
    let mut addresses: HashMap<u32, Vec<u64>> = HashMap::new();
    for place in stacks.places() {
        if let Some(module) = place.module {
            addresses.entry(module).or_default().push(place.address);
        }
    }
    // One module at a time: the debug information of a large program is large.
    let mut known: HashMap<(u32, u64), Vec<Name>> = HashMap::new();
    let mut without: HashMap<u32, Unnamed> = HashMap::new();
    for (number, mut addresses) in addresses {
        let Some(module) = stacks.modules().get(number as usize) else {
            continue;
        };
        addresses.sort_unstable();
        let found = caught(|| module::find(module, debug_files, &addresses));
        match found.unwrap_or(Err(Unnamed::NoFile)) {
            Ok(names) => {
                let places = addresses.iter().map(|&address| (number, address));
                known.extend(places.zip(names));
            }
            Err(why) => drop(without.insert(number, why)),
        }
    }
    let mut named = Named::default();
    stacks.name(|_, place| {
        named.places += 1;
        let names = match place.module {
            Some(module) => known.remove(&(module, place.address)).unwrap_or_default(),
            None => {
                let told = pieces.iter().map(|own| own.name(place.address));
                told.into_iter()
                    .find(|names| !names.is_empty())
                    .unwrap_or_default()
            }
        };
        if names.is_empty() {
            let why = match place.module {
                None => Unnamed::NoModule,
                Some(module) => without.get(&module).copied().unwrap_or(Unnamed::NoSymbol),
            };
            *named.unnamed.entry(why).or_default() += 1;
        }
        named.with_lines += u64::from(names.iter().any(|(_, _, line)| *line > 0));
        names
    });
    named
}
