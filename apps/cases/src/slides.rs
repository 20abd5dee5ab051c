//! The complexity tables of the slides of Kirsch and Sokolova ("Explicit, dynamic memory
//! management with temporal and spatial guarantees", ARTIST summer school 2009), beside what our
//! heaps declare.
//!
//! The slides print both tables several times over, and not always alike (one printing of the
//! overview also lists malloc of first fit under O(1)); here they stand as most of them do.
//!
//! Invariant: what is said of our heaps is read off their declarations; only the slides' side and
//! the reasons for differences are written down here.

use metes_heap::bounds::Times;
use metes_heap::compact::complexity::{CONFIGURATIONS, Configuration};
use metes_heap::complexity::{Declaration, Growth, Predictability, Time};
use metes_worst::growth::designs;

/// The operations of the overview, in the order of its arrays.
pub const OPERATIONS: [&str; 3] = ["allocate", "free", "access"];

/// What the slides say of a heap: how fast each operation grows with the block, `None` where
/// that is unbounded in n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Its name there.
    pub name: &'static str,
    /// By [operation](OPERATIONS).
    pub times: [Option<Growth>; 3],
    /// Whether its space is predictable.
    pub fragmentation: Predictability,
}

const ONE: Option<Growth> = Some(Growth::Constant);
const LOG: Option<Growth> = Some(Growth::Logarithmic);
const N: Option<Growth> = Some(Growth::Linear);
const UNBOUNDED: Option<Growth> = None;

const fn printed(
    name: &'static str,
    times: [Option<Growth>; 3],
    fragmentation: Predictability,
) -> Printed {
    Printed {
        name,
        times,
        fragmentation,
    }
}

/// What the slides say of the heap that is called so here.
fn printed_of(heap: &str) -> Option<Printed> {
    use Predictability::{Predictable, Unpredictable};
    let searched = [UNBOUNDED, ONE, ONE];
    Some(match heap {
        "first-fit" | "first-fit:order=lifo" => printed("First-fit", searched, Unpredictable),
        "best-fit" | "best-fit:order=lifo" => printed("Best-fit", searched, Unpredictable),
        "lea" => printed("DL (Doug Lea)", searched, Unpredictable),
        "tlsf" => printed("TLSF", [ONE; 3], Unpredictable),
        "half-fit" => printed("Half-fit", [ONE; 3], Unpredictable),
        "compact-fit:kappa=1" => printed("CFM (moving)", [ONE, N, ONE], Predictable),
        "compact-fit, block table" => printed("CFNM (non-moving)", [N, N, ONE], Predictable),
        "fragmented:shape=chain" => printed("Jamaica", [N; 3], Predictable),
        "fragmented" => printed("Jamaica", [N, N, LOG], Predictable),
        _ => return None,
    })
}

/// Why an operation of ours is declared otherwise.
fn reason(heap: &str, operation: &str) -> &'static str {
    match (heap, operation) {
        ("first-fit", "free") => {
            "our list is in address order, which first fit's space bound needs; order=lifo frees \
             in O(1)"
        }
        ("best-fit", "free") => "our list is in address order; order=lifo frees in O(1)",
        ("lea", "free") => {
            "our bins of large blocks are sorted by size, and a freed block is walked to its place"
        }
        _ => "no reason is known",
    }
}

/// Where a declaration of ours is not what the slides say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs: an operation, or a column.
    pub what: &'static str,
    /// Theirs.
    pub slides: String,
    /// Ours.
    pub ours: String,
    /// Why.
    pub reason: &'static str,
}

/// A heap of the overview.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name here.
    pub heap: String,
    /// What it declares.
    pub declared: Declaration,
    /// What the slides say, where they have it.
    pub slides: Option<Printed>,
}

impl Entry {
    /// Declared times, by [operation](OPERATIONS).
    pub fn times(&self) -> [Time; 3] {
        let Times {
            allocate,
            free,
            access,
            ..
        } = self.declared.times;
        [allocate, free, access]
    }

    /// Where it differs from the slides.
    pub fn differences(&self) -> Vec<Difference> {
        let Some(slides) = self.slides else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (index, what) in OPERATIONS.into_iter().enumerate() {
            let (ours, theirs) = (self.times()[index], slides.times[index]);
            if ours.in_block() != theirs {
                found.push(Difference {
                    what,
                    slides: row(theirs).to_owned(),
                    ours: ours.notation().to_owned(),
                    reason: reason(&self.heap, what),
                });
            }
        }
        let ours = self.declared.fragmentation;
        if ours != slides.fragmentation {
            found.push(Difference {
                what: "fragmentation",
                slides: slides.fragmentation.name().to_owned(),
                ours: ours.name().to_owned(),
                reason: reason(&self.heap, "fragmentation"),
            });
        }
        found
    }
}

/// The rows of the overview, from the top.
pub const ROWS: [Option<Growth>; 4] = [ONE, LOG, N, UNBOUNDED];

/// What a row of the overview is called.
pub const fn row(growth: Option<Growth>) -> &'static str {
    match growth {
        Some(growth) => growth.notation(),
        None => "unbounded in n",
    }
}

/// Every heap with what it declares and what the slides say.
pub fn overview() -> Vec<Entry> {
    designs()
        .into_iter()
        .map(|design| Entry {
            slides: printed_of(&design.name),
            heap: design.name,
            declared: design.declared,
        })
        .collect()
}

/// A row of the concurrent table: time, latency, memory and fragmentation of a size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrent {
    /// Which configuration.
    pub configuration: Configuration,
    /// What the slides print, by [column](COLUMNS); the incremental configuration of an instance
    /// a thread is not in them.
    pub slides: Option<[&'static str; 5]>,
}

/// Columns of the concurrent table.
pub const COLUMNS: [&str; 5] = [
    "allocate",
    "free",
    "latency",
    "memory",
    "size-class fragmentation",
];

/// The concurrent table of the slides, row by row as [`CONFIGURATIONS`].
const PRINTED: [[&str; 5]; 5] = [
    ["O(n)", "O(n)", "O(1)", "O(n m π β)", "O(n m (π − 1) β)"],
    [
        "O(n)",
        "O(n + β)",
        "O(β)",
        "O((n m + κ(π − 1)) β)",
        "O(κ(π − 1) β)",
    ],
    ["O(1)", "O(1)", "O(1)", "O(n m π β)", "O(n m (π − 1) β)"],
    [
        "O(1)",
        "O(β)",
        "O(β)",
        "O(n (m + κ(π − 1)) β)",
        "O(n κ(π − 1) β)",
    ],
    [
        "O(n)",
        "O(n + β + ⌊β/ι⌋)",
        "O(min(β, ι))",
        "O((n m + n π + κ(π − 1)) β)",
        "O((n π + κ(π − 1)) β)",
    ],
];

impl Concurrent {
    /// What we declare, by [column](COLUMNS).
    pub fn ours(&self) -> [&'static str; 5] {
        let own = self.configuration;
        [
            own.malloc().notation(),
            own.free().notation(),
            own.latency().notation(),
            own.memory(),
            own.fragmentation(),
        ]
    }

    /// Where it differs from the slides.
    pub fn differences(&self) -> Vec<Difference> {
        let Some(slides) = self.slides else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for ((what, ours), slides) in COLUMNS.into_iter().zip(self.ours()).zip(slides) {
            if ours != slides {
                found.push(Difference {
                    what,
                    slides: slides.to_owned(),
                    ours: ours.to_owned(),
                    reason: "no reason is known",
                });
            }
        }
        found
    }
}

/// Every configuration of compact-fit with what it declares and what the slides say.
pub fn concurrent() -> Vec<Concurrent> {
    let mut printed = PRINTED.into_iter();
    CONFIGURATIONS
        .into_iter()
        .map(|configuration| Concurrent {
            configuration,
            slides: printed.next(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heap_of_the_slides_is_there_and_every_difference_has_a_reason() {
        let all = overview();
        let names = |wanted: &str| {
            let of = |entry: &&Entry| entry.slides.is_some_and(|slides| slides.name == wanted);
            all.iter().filter(of).count()
        };
        for name in [
            "First-fit",
            "Best-fit",
            "DL (Doug Lea)",
            "TLSF",
            "Half-fit",
            "CFM (moving)",
            "CFNM (non-moving)",
            "Jamaica",
        ] {
            assert!(names(name) > 0, "{name}");
        }
        let mut differences = 0;
        for entry in &all {
            for difference in entry.differences() {
                differences += 1;
                assert_ne!(difference.reason, "no reason is known", "{entry:?}");
            }
        }
        // First fit, best fit and Lea's free: what is declared differs from the slides there.
        assert_eq!(differences, 3);
        let lifo = all
            .iter()
            .find(|entry| entry.heap == "first-fit:order=lifo");
        assert_eq!(lifo.map(Entry::differences), Some(Vec::new()));
    }

    #[test]
    fn the_concurrent_table_is_that_of_the_slides() {
        let all = concurrent();
        assert_eq!(all.len(), CONFIGURATIONS.len());
        assert_eq!(all.iter().filter(|row| row.slides.is_some()).count(), 5);
        for row in all {
            assert_eq!(row.differences(), Vec::new(), "{}", row.configuration);
            let beyond = row.slides.is_none();
            assert_eq!(beyond, row.configuration.to_string() == "n-CF(κ, ι)");
        }
    }
}
