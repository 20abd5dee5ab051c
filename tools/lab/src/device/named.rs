//! Names of device heaps: `tlsf:probes=4`, `segregated-fit`, `hybrid:largest=4096`,
//! `sparse:page=2MiB`, `best-fit`.
//!
//! Invariant: a parameter that is not known, or has no such value, is an error that says what
//! there is.

use metes_config::{read_size, suggest};
use metes_device::heap::{DirectHeap, Extent, HandleHeap, HashedHeap, ListHeap, Lists};
use metes_device::hybrid::{HybridHeap, SlotSizes};
use metes_heap::index::classes::{HalfFit, SegregatedFit};
use metes_heap::store::ledger::{ByHandle, Direct, Hashed};

use super::best_fit::BestFit;
use super::measure::{Candidate, Measured};
use super::pages::Sparse;
use super::subject::Subject;
use super::workload::ROUND;

/// What is measured unless heaps are named.
pub const DEFAULT: [&str; 8] = [
    "tlsf",
    "tlsf:store=table",
    "tlsf:store=hash",
    "tlsf:probes=0",
    "segregated-fit",
    "hybrid",
    "sparse",
    BEST_FIT,
];

/// The heap that others are compared with.
pub const BEST_FIT: &str = "best-fit";

const NAMES: [&str; 5] = ["tlsf", "segregated-fit", "hybrid", "sparse", BEST_FIT];
const STORES: [&str; 3] = ["handle", "table", "hash"];
const PROBES: [&str; 6] = ["0", "1", "2", "3", "4", "8"];

/// Why a name names no device heap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No heap has that name.
    #[error("no device heap is named `{name}`: {meant}")]
    Unknown {
        /// The name.
        name: String,
        /// What may be meant, or what there is.
        meant: String,
    },
    /// Something that is no `key=value`.
    #[error("`{item}` of `{heap}` is no parameter: write `key=value`")]
    NotAParameter {
        /// The heap.
        heap: String,
        /// What stands there.
        item: String,
    },
    /// The heap has no such parameter.
    #[error("`{heap}` has no parameter `{key}`{}", listed(.known))]
    Parameter {
        /// The heap.
        heap: String,
        /// The key.
        key: String,
        /// Its parameters.
        known: Vec<&'static str>,
    },
    /// A parameter is given twice.
    #[error("`{key}` of `{heap}` is given twice")]
    Twice {
        /// The heap.
        heap: String,
        /// The key.
        key: String,
    },
    /// The parameter cannot be that.
    #[error("`{key}` of `{heap}` cannot be `{value}`: {wanted}")]
    Value {
        /// The heap.
        heap: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What it can be.
        wanted: String,
    },
}

fn listed(known: &[&str]) -> String {
    match known {
        [] => ": it has none".to_owned(),
        known => format!(": it has {}", known.join(", ")),
    }
}

/// The heap that is named so.
///
/// # Errors
/// [`NameError`].
pub fn named(text: &str) -> Result<Box<dyn Measured>, NameError> {
    let (heap, parameters) = text.split_once(':').unwrap_or((text, ""));
    let mut said = Said {
        heap,
        items: Vec::new(),
        known: Vec::new(),
    };
    for item in parameters.split(',').filter(|item| !item.is_empty()) {
        let Some((key, value)) = item.split_once('=') else {
            return Err(NameError::NotAParameter {
                heap: heap.to_owned(),
                item: item.to_owned(),
            });
        };
        if said.items.iter().any(|(other, _)| *other == key) {
            return Err(NameError::Twice {
                heap: heap.to_owned(),
                key: key.to_owned(),
            });
        }
        said.items.push((key, value));
    }
    let name = text.to_owned();
    match heap {
        "tlsf" => tlsf(name, said),
        "segregated-fit" => {
            let store = said.store("hash")?;
            said.finish()?;
            Ok(lists::<HalfFit>(name, store))
        }
        "hybrid" => hybrid(name, said),
        "sparse" => sparse(name, said),
        BEST_FIT => {
            said.finish()?;
            Ok(Box::new(Candidate {
                name: BEST_FIT.to_owned(),
                store: "trees",
                constant: false,
                counted: false,
                make: |extent| Some(BestFit::new(extent)),
            }))
        }
        _ => Err(NameError::Unknown {
            name: heap.to_owned(),
            meant: suggest(heap, NAMES).unwrap_or_default(),
        }),
    }
}

/// What is said of a heap.
struct Said<'a> {
    heap: &'a str,
    items: Vec<(&'a str, &'a str)>,
    /// Keys that were asked for.
    known: Vec<&'static str>,
}

impl<'a> Said<'a> {
    fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.push(key);
        let at = self.items.iter().position(|(other, _)| *other == key)?;
        Some(self.items.remove(at).1)
    }

    fn wrong(&self, key: &str, value: &str, wanted: impl Into<String>) -> NameError {
        NameError::Value {
            heap: self.heap.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            wanted: wanted.into(),
        }
    }

    fn choice(
        &mut self,
        key: &'static str,
        values: &[&'static str],
        default: &'static str,
    ) -> Result<&'static str, NameError> {
        let Some(value) = self.take(key) else {
            return Ok(default);
        };
        let found = values.iter().find(|known| **known == value);
        found
            .copied()
            .ok_or_else(|| self.wrong(key, value, format!("it is one of {}", values.join(", "))))
    }

    fn store(&mut self, default: &'static str) -> Result<&'static str, NameError> {
        self.choice("store", &STORES, default)
    }

    /// A size that `holds`, which `wanted` says in words.
    fn size(
        &mut self,
        key: &'static str,
        default: u64,
        wanted: &str,
        holds: impl Fn(u64) -> bool,
    ) -> Result<u64, NameError> {
        let Some(value) = self.take(key) else {
            return Ok(default);
        };
        let size = read_size(value).map_err(|why| self.wrong(key, value, why))? as u64;
        match holds(size) {
            true => Ok(size),
            false => Err(self.wrong(key, value, wanted)),
        }
    }

    /// That nothing else is said.
    fn finish(self) -> Result<(), NameError> {
        match self.items.first() {
            None => Ok(()),
            Some((key, _)) => Err(NameError::Parameter {
                heap: self.heap.to_owned(),
                key: (*key).to_owned(),
                known: self.known,
            }),
        }
    }
}

fn tlsf(name: String, mut said: Said<'_>) -> Result<Box<dyn Measured>, NameError> {
    let probes = said.choice("probes", &PROBES, "4")?;
    let store = said.store("handle")?;
    said.finish()?;
    Ok(match probes {
        "0" => lists::<SegregatedFit<32, 0>>(name, store),
        "1" => lists::<SegregatedFit<32, 1>>(name, store),
        "2" => lists::<SegregatedFit<32, 2>>(name, store),
        "3" => lists::<SegregatedFit<32, 3>>(name, store),
        "4" => lists::<SegregatedFit<32, 4>>(name, store),
        _ => lists::<SegregatedFit<32, 8>>(name, store),
    })
}

fn hybrid(name: String, mut said: Said<'_>) -> Result<Box<dyn Measured>, NameError> {
    let smallest = said.size(
        "smallest",
        ROUND,
        "it is a power of two from 256 bytes to 16 MiB",
        |size| size.is_power_of_two() && (ROUND..=1 << 24).contains(&size),
    )?;
    let largest = said.size(
        "largest",
        16 * smallest,
        "it is from once to 16 times the smallest",
        |size| (smallest..=16 * smallest).contains(&size),
    )?;
    said.finish()?;
    let slots = move |extent: Extent| SlotSizes {
        smallest,
        largest,
        slabs: (extent.blocks / 4).max(16),
    };
    Ok(boxed(name, "handle", move |extent: Extent| {
        HybridHeap::<ByHandle>::new(extent, slots(extent), ListHeap::by_handle).ok()
    }))
}

fn sparse(name: String, mut said: Said<'_>) -> Result<Box<dyn Measured>, NameError> {
    let page = said.size(
        "page",
        2 << 20,
        "it is a power of two from 4 KiB to 1 GiB",
        |size| size.is_power_of_two() && (1 << 12..=1 << 30).contains(&size),
    )?;
    let addresses = said.size(
        "addresses",
        2,
        "it is from 2 to 16 times the peak of live bytes",
        |times| (2..=16).contains(&times),
    )?;
    said.finish()?;
    Ok(Box::new(Sparse {
        name,
        page,
        addresses,
    }))
}

fn lists<I>(name: String, store: &str) -> Box<dyn Measured>
where
    I: Lists<ByHandle> + Lists<Direct<'static>> + Lists<Hashed<'static>> + Default + 'static,
{
    match store {
        "handle" => boxed(name, "handle", |extent| {
            HandleHeap::<I>::by_handle(extent).ok()
        }),
        "table" => boxed(name, "table", |extent| DirectHeap::<I>::direct(extent).ok()),
        // Expected constant: two addresses may meet in the table.
        _ => Box::new(Candidate {
            name,
            store: "hash",
            constant: false,
            counted: true,
            make: |extent| HashedHeap::<I>::hashed(extent).ok(),
        }),
    }
}

fn boxed<S: Subject + 'static>(
    name: String,
    store: &'static str,
    make: impl Fn(Extent) -> Option<S> + Sync + 'static,
) -> Box<dyn Measured> {
    Box::new(Candidate {
        name,
        store,
        constant: true,
        counted: true,
        make,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_heap_and_keeps_its_name() {
        for name in DEFAULT {
            assert_eq!(named(name).unwrap().name(), name);
        }
        let sparse = named("sparse:page=64KiB,addresses=3").unwrap();
        assert_eq!(sparse.name(), "sparse:page=64KiB,addresses=3");
    }

    #[test]
    fn what_is_no_heap_is_said_with_what_there_is() {
        for (name, said) in [
            ("tslf", "did you mean `tlsf`?"),
            ("", "tlsf, segregated-fit, hybrid"),
            ("tlsf:probes", "write `key=value`"),
            ("tlsf:probes=5", "one of 0, 1, 2, 3, 4, 8"),
            ("tlsf:probes=4,probes=4", "given twice"),
            ("tlsf:page=4096", "it has probes, store"),
            ("tlsf:store=heap", "one of handle, table, hash"),
            ("segregated-fit:probes=1", "it has store"),
            ("hybrid:largest=8KiB", "16 times"),
            ("hybrid:smallest=100", "power of two"),
            ("sparse:page=3MiB", "power of two"),
            ("sparse:addresses=1", "from 2 to 16"),
            ("sparse:page=x", "sparse"),
            ("best-fit:x=1", "it has none"),
        ] {
            let error = named(name).err().unwrap().to_string();
            assert!(error.contains(said), "{name}: {error}");
        }
    }
}
