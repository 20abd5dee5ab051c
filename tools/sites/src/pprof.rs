//! A profile as `pprof` and what imports its form read it: a protocol buffer (`profile.proto`), compressed by gzip.
//!
//! Of the form, what sites need is written; each field has its number beside it. A module's addresses begin at a
//! multiple of 2⁴⁰ each, as in memory: those of its file would lie over those of others.
//!
//! *Invariant:* every number in the profile leads to something that is in it.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use metes_trace::{Stacks, Trace};

use crate::figures::{Figures, Sites};
use crate::tree::at;

/// Kind, unit and figure of what samples count.
type Value = (&'static str, &'static str, fn(&Figures) -> u64);

/// What samples count.
const VALUES: [Value; 6] = [
    ("alloc_objects", "count", |figures| {
        figures.allocations + figures.resizes
    }),
    ("alloc_space", "bytes", |figures| figures.bytes),
    ("inuse_objects", "count", |figures| figures.peak_blocks),
    ("inuse_space", "bytes", |figures| figures.peak_bytes),
    ("leaked_objects", "count", |figures| figures.leaked_blocks),
    ("leaked_space", "bytes", |figures| figures.leaked_bytes),
];
/// What is shown first.
const FIRST: &str = "inuse_space";
/// Bytes of addresses that a module has.
const MODULE_BYTES: u64 = 1 << 40;

/// A message: fields one after the other.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number > 127 {
            self.0.push(number as u8 | 128);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A number; zero is what is not there.
    fn number(&mut self, field: u64, number: u64) {
        if number != 0 {
            self.varint(field << 3);
            self.varint(number);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn message(&mut self, field: u64, fill: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn numbers(&mut self, field: u64, numbers: impl Iterator<Item = u64>) {
        self.message(field, |inner| {
            numbers.for_each(|number| inner.varint(number))
        });
    }
}

/// Texts, each once; number 0 is empty.
struct Texts {
    numbers: HashMap<String, u64>,
    texts: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// The profile of a trace's sites. O(stacks and their calls).
///
/// # Errors
/// None that is met: it is written to memory.
pub fn pprof(trace: &Trace, sites: &Sites) -> io::Result<Vec<u8>> {
    let stacks = &trace.stacks;
    let mut profile = Message::default();
    let mut texts = Texts {
        numbers: HashMap::from([(String::new(), 0)]),
        texts: vec![String::new()],
    };
    for (kind, unit, _) in VALUES {
        let (kind, unit) = (texts.number(kind), texts.number(unit));
        profile.message(1, |message| value_type(message, kind, unit));
    }
    for (site, figures) in (0u64..).zip(&sites.figures) {
        let values = VALUES.map(|(.., figure)| figure(figures));
        let places: Vec<u64> = stacks
            .calls(site)
            .filter_map(|node| Some(u64::from(stacks.nodes().get(node as usize)?.place) + 1))
            .collect();
        if values.iter().all(|&value| value == 0) || places.is_empty() {
            continue;
        }
        profile.message(2, |sample| {
            sample.numbers(1, places.into_iter());
            sample.numbers(2, values.into_iter());
        });
    }
    modules(&mut profile, stacks, &mut texts);
    places(&mut profile, stacks, &mut texts);
    let command = texts.number(&trace.provenance.command.join(" "));
    let first = texts.number(FIRST);
    let (space, unit) = (texts.number("alloc_space"), texts.number("bytes"));
    for text in &texts.texts {
        profile.bytes(6, text.as_bytes());
    }
    if trace.provenance.timed {
        profile.number(10, trace.times().last().unwrap_or(0));
    }
    profile.message(11, |message| value_type(message, space, unit));
    profile.number(12, 1);
    profile.number(13, command);
    profile.number(14, first);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&profile.0)?;
    encoder.finish()
}

fn value_type(message: &mut Message, kind: u64, unit: u64) {
    message.number(1, kind);
    message.number(2, unit);
}

/// The mappings, number 1 on.
fn modules(profile: &mut Message, stacks: &Stacks, texts: &mut Texts) {
    for (number, module) in (1u64..).zip(stacks.modules()) {
        let id: String = module
            .build_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let (path, id) = (texts.number(&module.path), texts.number(&id));
        profile.message(3, |mapping| {
            mapping.number(1, number);
            mapping.number(2, number * MODULE_BYTES);
            mapping.number(3, (number + 1) * MODULE_BYTES);
            mapping.number(5, path);
            mapping.number(6, id);
            // It has functions, files, lines and what was inlined: nobody need look again.
            for field in 7..=10 {
                mapping.number(field, 1);
            }
        });
    }
}

/// The locations, number 1 on, and their functions.
fn places(profile: &mut Message, stacks: &Stacks, texts: &mut Texts) {
    let mut functions: HashMap<(u64, u64), u64> = HashMap::new();
    for (number, place) in (0u32..).zip(stacks.places()) {
        let mut lines = Vec::new();
        for call in at(stacks, number) {
            let key = (texts.number(&call.function), texts.number(&call.file));
            let next = functions.len() as u64 + 1;
            let function = *functions.entry(key).or_insert_with(|| {
                profile.message(5, |function| {
                    function.number(1, next);
                    function.number(2, key.0);
                    function.number(3, key.0);
                    function.number(4, key.1);
                });
                next
            });
            lines.push((function, u64::from(call.line)));
        }
        profile.message(4, |location| {
            let mapping = place.module.map_or(0, |module| u64::from(module) + 1);
            location.number(1, u64::from(number) + 1);
            location.number(2, mapping);
            let within = match mapping {
                0 => place.address,
                _ => place.address % MODULE_BYTES,
            };
            location.number(3, mapping.wrapping_mul(MODULE_BYTES).wrapping_add(within));
            for (function, line) in lines {
                location.message(4, |message| {
                    message.number(1, function);
                    message.number(2, line);
                });
            }
        });
    }
}
