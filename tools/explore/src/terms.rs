//! What a heap must guarantee so that it can be relied on, and what each guarantees.
//!
//! A guarantee is of a *demand*: most live bytes, largest and smallest request. The trace has one;
//! whoever knows more of the program declares another. It is *useful* where it is at most what was asked
//! for (`--guarantee`, `--arena`), and else at most [`USEFUL`] times what is necessary.
//!
//! Invariant: a guarantee is given only where `metes_heap::bounds` gives a bound, and holds all that a
//! heap takes: pools, what lies outside of them, pages of mapped blocks.

use std::collections::HashMap;
use std::sync::Mutex;

use metes_config::Config;
use metes_heap::Description;
use metes_heap::bounds::{self, Demand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalogue::catalogue;
use crate::choose::bytes;
use crate::pools::Arena;
use crate::report::DemandFigures;

/// A guarantee is useful up to so many times what any heap that does not move blocks needs (Robson). It parts
/// two kinds of proofs: at 64 to 4096 bytes those of heaps that choose by address, or never merge, lie at two to
/// five times of it, those of heaps that take any hole of a class at sixteen and more.
pub const USEFUL: u64 = 8;

/// What is asked of a guarantee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// Most that it may be, in times the live bytes.
    pub times: Option<f64>,
    /// Most that it may be, in bytes.
    pub arena: Option<u64>,
    /// What programs may ask for, where it is declared.
    pub declared: Option<Declared>,
    /// Percent by which live bytes and largest block may exceed the recorded ones.
    pub margin: u32,
    /// Whether heaps that a trace suggests are searched for by their guarantee, too: none beats one that
    /// guarantees more.
    pub weighed: bool,
}

/// A declared demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// Most live bytes.
    pub live: u64,
    /// Largest request.
    pub max_block: u64,
    /// Smallest request; that of the trace where it is not said.
    pub min_block: Option<u64>,
}

/// What a guarantee is of, and when it is useful.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// What programs may ask for.
    pub demand: Demand,
    /// No heap that does not move blocks does with less.
    pub necessary: u64,
    /// A guarantee of at most so many bytes is useful.
    pub limit: u64,
    /// What the limit is.
    pub rule: Rule,
    arena: Arena,
}

/// Where the limit of a useful guarantee comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// [`USEFUL`] times what is necessary.
    Default,
    /// Times the live bytes, by `--guarantee`.
    Times,
    /// `--arena`.
    Arena,
}

/// Why there are no terms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// Nothing was requested.
    #[error(
        "the trace has no request, so most live bytes and the largest block are unknown: declare them by \
         --live and --max-block"
    )]
    Unknown,
    /// The trace has more than was declared.
    #[error(
        "the trace has {recorded}, and {declared} were declared by {option}: declare what programs may ask for at most"
    )]
    Exceeded {
        /// What it has.
        recorded: String,
        /// What was declared.
        declared: u64,
        /// By which option.
        option: &'static str,
    },
    /// The demand contradicts itself.
    #[error("{0}")]
    Demand(#[from] bounds::BoundError),
    /// No heap can guarantee so little.
    #[error(
        "no heap can guarantee {limit} bytes for {live} live bytes in blocks of {smallest} to {largest}: {necessary} are necessary for any that does not move blocks (Robson){does}"
    )]
    Below {
        /// What was asked for.
        limit: u64,
        /// Most live bytes.
        live: u64,
        /// Smallest block.
        smallest: u64,
        /// Largest block.
        largest: u64,
        /// What is necessary.
        necessary: u64,
        /// What would do.
        does: String,
    },
}

impl Declared {
    /// This demand, of programs of which nothing is recorded.
    #[must_use]
    pub fn demand(&self) -> Demand {
        Demand::new(self.live, self.max_block, self.min_block.unwrap_or(1))
    }
}

impl Wanted {
    /// Whether a limit was asked for: then nothing else is chosen.
    pub fn limited(&self) -> bool {
        self.times.is_some() || self.arena.is_some()
    }

    /// Whether anything was asked for.
    pub fn asked(&self) -> bool {
        *self != Wanted::default()
    }

    /// Verifies what can be before anything is recorded.
    ///
    /// # Errors
    /// [`TermsError`] where no trace could meet what is declared.
    pub fn check(&self, arena: &Arena) -> Result<(), TermsError> {
        match self.declared {
            Some(declared) => self.terms(declared.demand(), arena).map(drop),
            None => Ok(()),
        }
    }

    /// The terms for a recorded demand.
    ///
    /// # Errors
    /// [`TermsError`].
    pub fn of(&self, recorded: &DemandFigures, arena: &Arena) -> Result<Terms, TermsError> {
        let mut demand = recorded.demand();
        if let Some(declared) = self.declared {
            demand.live = declared.live;
            demand.largest = declared.max_block;
            demand.smallest = declared
                .min_block
                .unwrap_or(demand.smallest.min(declared.max_block));
            let exceeded = |recorded: String, declared, option| TermsError::Exceeded {
                recorded,
                declared,
                option,
            };
            if recorded.live > demand.live {
                let what = format!("{} bytes live at once", recorded.live);
                return Err(exceeded(what, demand.live, "--live"));
            }
            if recorded.live > 0 && recorded.largest > demand.largest {
                let what = format!("a request of {} bytes", recorded.largest);
                return Err(exceeded(what, demand.largest, "--max-block"));
            }
            if recorded.live > 0 && recorded.smallest < demand.smallest {
                let what = format!("a request of {} bytes", recorded.smallest);
                return Err(exceeded(what, demand.smallest, "--min-block"));
            }
        } else if recorded.live == 0 {
            return Err(TermsError::Unknown);
        }
        let more = |bytes: u64| {
            let wide = u128::from(bytes) * u128::from(100 + self.margin) / 100;
            u64::try_from(wide).unwrap_or(u64::MAX)
        };
        (demand.live, demand.largest) = (more(demand.live), more(demand.largest));
        self.terms(demand, arena)
    }

    fn terms(&self, demand: Demand, arena: &Arena) -> Result<Terms, TermsError> {
        let necessary = bounds::necessary(&arena.target.bounds(), &demand)?;
        let necessary = u64::try_from(necessary)
            .unwrap_or(u64::MAX)
            .max(demand.live);
        let times = self.times.map(|times| (demand.live as f64 * times) as u64);
        let (limit, rule) = match (times, self.arena) {
            (Some(times), Some(arena)) if arena < times => (arena, Rule::Arena),
            (Some(times), _) => (times, Rule::Times),
            (None, Some(arena)) => (arena, Rule::Arena),
            (None, None) => (necessary.saturating_mul(USEFUL), Rule::Default),
        };
        let terms = Terms {
            demand,
            necessary,
            limit,
            rule,
            arena: *arena,
        };
        if limit < necessary {
            let least = terms.least_named();
            return Err(TermsError::Below {
                limit,
                live: demand.live,
                smallest: demand.smallest,
                largest: demand.largest,
                necessary,
                does: least.map_or_else(
                    || "; raise the limit".to_owned(),
                    |(heap, bytes)| format!(", and {bytes} suffice for {heap}"),
                ),
            });
        }
        Ok(terms)
    }
}

impl Terms {
    /// All that suffices for a heap, whatever a program within the demand does; `None` where no finite
    /// size is proved to. O(size classes squared).
    pub fn guarantee(&self, heap: &Description) -> Option<u64> {
        self.guarantee_of(&self.arena.config(*heap))
    }

    /// The same of a heap with what surrounds it.
    pub fn guarantee_of(&self, config: &Config) -> Option<u64> {
        let bytes = if self.arena.target.is_host() {
            metes_config::suffices(config, &self.demand).ok()??
        } else {
            let geometry = self.arena.target.bounds();
            let bound = bounds::described(&config.heap, &geometry, &self.demand).ok()?;
            bound.heap_bytes? + bound.outside_bytes
        };
        u64::try_from(bytes).ok()
    }

    /// Whether heaps with such a guarantee were not asked for.
    pub(crate) fn excludes(&self, guarantee: u64) -> bool {
        self.rule != Rule::Default && guarantee > self.limit
    }

    /// What tells them from others, as JSON; the limit only where heaps beyond it are left out.
    pub(crate) fn written(&self, excluding: bool) -> Value {
        let Demand {
            live,
            largest,
            smallest,
            alignment,
            resized_in_place,
            live_at_largest,
            sizes: _,
        } = self.demand;
        let limit = (excluding && self.rule != Rule::Default).then_some(self.limit);
        json!({
            "live": live,
            "max_block": largest,
            "min_block": smallest,
            "alignment": alignment,
            "resized_in_place": resized_in_place,
            "live_at_largest": live_at_largest,
            "necessary": self.necessary,
            "limit": limit,
        })
    }

    /// Whether a guarantee is useful.
    pub fn useful(&self, guarantee: Option<u64>) -> bool {
        guarantee.is_some_and(|bytes| bytes <= self.limit)
    }

    /// The named heap with the least guarantee.
    pub fn least_named(&self) -> Option<(String, u64)> {
        let named = catalogue().into_iter();
        let bytes = named.filter_map(|named| {
            let bytes = self.guarantee(&named.description)?;
            Some((named.name.to_owned(), bytes))
        });
        bytes.min_by_key(|(_, bytes)| *bytes)
    }

    /// The limit in words.
    pub fn sentence(&self) -> String {
        match self.rule {
            Rule::Default => format!(
                "at most {USEFUL} times the {} that are necessary for any heap that does not move blocks",
                bytes(self.necessary)
            ),
            Rule::Times | Rule::Arena => {
                format!("at most {}, as was asked for", bytes(self.limit))
            }
        }
    }

    /// What decides which heaps stand beside each other in a search.
    pub(crate) fn method(&self) -> String {
        format!("{:?}, at most {}", self.demand, self.limit)
    }
}

/// Guarantees of heaps, each computed once.
pub(crate) struct Judge {
    terms: Terms,
    known: Mutex<HashMap<Description, Option<u64>>>,
}

impl Judge {
    pub(crate) fn new(terms: Terms) -> Self {
        Judge {
            terms,
            known: Mutex::default(),
        }
    }

    /// What a heap guarantees.
    pub(crate) fn guarantee(&self, heap: &Description) -> Option<u64> {
        if let Ok(known) = self.known.lock()
            && let Some(bytes) = known.get(heap)
        {
            return *bytes;
        }
        let bytes = self.terms.guarantee(heap);
        if let Ok(mut known) = self.known.lock() {
            known.insert(*heap, bytes);
        }
        bytes
    }

    /// Whether that is useful.
    pub(crate) fn useful(&self, heap: &Description) -> bool {
        self.terms.useful(self.guarantee(heap))
    }
}
