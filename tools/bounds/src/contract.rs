//! Declared contracts: what classes of requests are to keep to, and what follows.
//!
//! A contract is TOML. Each class takes the requests above the class before it, up to `largest`;
//! in any closed window of Δ ticks at most `burst` + `rate` · Δ bytes of it are allocated, and no
//! block is live more than `lifetime` ticks behind its allocation.
//!
//! ```toml
//! axis = "events"
//!
//! [[class]]
//! largest = 64
//! burst = 4096
//! rate = "1/2"
//! lifetime = 5000
//! ```
//!
//! Invariant: classes ascend, and no denominator is 0.

use std::num::NonZeroU64;

use metes_curve::{Curve, Element, Error, Rational, Value};
use metes_monitor::{Bucket, Class, Monitor, Window};
use metes_trace::Trace;
use serde::Deserialize;

use crate::axis::Axis;
use crate::classes::{Classes, Counted};
use crate::observed::{Looked, Observed, Options, Share};
use crate::residency::{Residencies, Residency};
use crate::staircase::rational;

/// What programs are to keep to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    axis: Axis,
    classes: Vec<Declared>,
}

/// A class of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The largest request.
    pub largest: u64,
    /// Bytes at once.
    pub burst: u64,
    /// Bytes that may be asked for in each stretch of `per` ticks, beside the burst.
    pub amount: u64,
    /// Ticks in which at most `amount` bytes are asked for.
    pub per: NonZeroU64,
    /// Longest time that a block is live behind its allocation; `None` for ever.
    pub lifetime: Option<u64>,
}

impl Declared {
    /// The most live bytes: burst + rate · lifetime; `None` where there is no most.
    #[must_use]
    pub fn bound(&self) -> Option<u128> {
        let lifetime = match (self.lifetime, self.amount) {
            (_, 0) => 0,
            (lifetime, _) => lifetime?,
        };
        let later = u128::from(self.amount) * u128::from(lifetime) / u128::from(self.per.get());
        Some(u128::from(self.burst) + later)
    }

    /// Its arrival curve: a token bucket.
    ///
    /// # Errors
    /// [`Error`] of a curve that cannot be; none is known.
    pub fn arrival(&self) -> Result<Curve, Error> {
        let rate = self.rate();
        let (zero, one) = (Rational::from(0), Rational::from(1));
        let burst = rational(self.burst.into());
        let behind = &burst + &rate;
        let point = |time: &Rational, value: &Rational| Element::Point {
            time: time.clone(),
            value: Value::Finite(value.clone()),
        };
        let segment = |start: i64, value: &Rational| Element::Segment {
            start: Rational::from(start),
            end: Rational::from(start + 1),
            value: Value::Finite(value.clone()),
            slope: rate.clone(),
        };
        let elements = [
            point(&zero, &zero),
            segment(0, &burst),
            point(&one, &behind),
            segment(1, &behind),
        ];
        Curve::new(&elements, &one, &one, &rate)
    }

    /// Bytes a tick.
    #[must_use]
    pub fn rate(&self) -> Rational {
        let text = format!("{}/{}", self.amount, self.per);
        // The denominator is not 0, so it is read.
        text.parse().unwrap_or_else(|_| Rational::from(0))
    }
}

/// Why a text is no contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// It is no such TOML.
    #[error(
        "{0}; a contract has `axis = \"events\"` or `\"nanoseconds\"`, and for each [[class]] \
         largest, burst, rate and lifetime"
    )]
    Toml(String),
    /// It has no class.
    #[error("the contract has no [[class]]: declare one with largest, burst, rate and lifetime")]
    Empty,
    /// A class is not above the one before.
    #[error(
        "class {class} takes requests up to {largest} bytes, and so does one before it: sort the \
         classes by `largest`, each once"
    )]
    Order {
        /// Which, from 1.
        class: usize,
        /// Its largest request.
        largest: u64,
    },
    /// A rate that is none.
    #[error("class {class}: `{text}` is no rate; write bytes a tick as 3 or \"22/7\"")]
    Rate {
        /// Which, from 1.
        class: usize,
        /// What is written.
        text: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    axis: Option<String>,
    #[serde(default, rename = "class")]
    classes: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    largest: u64,
    burst: u64,
    rate: Rate,
    lifetime: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Rate {
    Whole(u64),
    Written(String),
    Other(toml::Value),
}

impl Contract {
    /// Reads a contract.
    ///
    /// # Errors
    /// [`ContractError`].
    pub fn parse(text: &str) -> Result<Self, ContractError> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            ContractError::Toml(format!("line {line}: {}", error.message()))
        })?;
        let axis = match document.axis {
            None => Axis::Events,
            Some(axis) => axis.parse().map_err(ContractError::Toml)?,
        };
        if document.classes.is_empty() {
            return Err(ContractError::Empty);
        }
        let rows = document.classes.into_iter().enumerate();
        let classes: Vec<_> = rows
            .map(|(index, row)| row.read(index + 1))
            .collect::<Result<_, _>>()?;
        for (index, pair) in classes.windows(2).enumerate() {
            if let [before, class] = pair
                && class.largest <= before.largest
            {
                return Err(ContractError::Order {
                    class: index + 2,
                    largest: class.largest,
                });
            }
        }
        Ok(Contract { axis, classes })
    }

    /// The contract that a trace just keeps: of each class its mean rate, the least burst beside
    /// that, and its longest lifetime.
    #[must_use]
    pub fn kept_by(observed: &Observed) -> Self {
        let classes = observed.classes.iter().map(|share| {
            let (amount, per) = fraction(share.bytes, u128::from(observed.end) + 1);
            Declared {
                largest: share.largest,
                burst: u64::try_from(share.burst).unwrap_or(u64::MAX),
                amount,
                per,
                lifetime: Some(share.lifetime),
            }
        });
        Contract {
            axis: observed.options.axis,
            classes: classes.collect(),
        }
    }

    /// The contract as TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = format!("axis = \"{}\"\n", self.axis);
        for class in &self.classes {
            text += &format!(
                "\n[[class]]\nlargest = {}\nburst = {}\nrate = \"{}/{}\"\n",
                class.largest, class.burst, class.amount, class.per
            );
            if let Some(lifetime) = class.lifetime {
                text += &format!("lifetime = {lifetime}\n");
            }
        }
        text
    }

    /// What its ticks are.
    #[must_use]
    pub fn axis(&self) -> Axis {
        self.axis
    }

    /// Its classes, ascending.
    #[must_use]
    pub fn classes(&self) -> &[Declared] {
        &self.classes
    }

    /// The most live bytes of any program that keeps to it; `None` where there is no most.
    #[must_use]
    pub fn bound(&self) -> Option<u128> {
        self.classes.iter().map(Declared::bound).sum()
    }

    /// The first time at which a trace does not keep to it. A resize counts as an allocation
    /// in the new size and a free of the old. O(events × log events).
    #[must_use]
    pub fn first_breach(&self, trace: &Trace) -> Option<Breach> {
        let residencies =
            Residencies::of(trace, self.axis, Classes::Sizes, Counted::Requested).all();
        let burst = self.first_burst(&residencies);
        let aged = self.first_aged(&residencies);
        [burst, aged].into_iter().flatten().min_by_key(Breach::time)
    }

    /// What a trace does in each class of the contract; requests above all are in none.
    #[must_use]
    pub fn observe(&self, trace: &Trace) -> Vec<Share> {
        let found = Residencies::of(trace, self.axis, Classes::Sizes, Counted::Requested);
        let mut classes = vec![Vec::new(); self.classes.len()];
        for one in found.all() {
            let class = self
                .classes
                .partition_point(|class| class.largest < one.size);
            if let Some(class) = classes.get_mut(class) {
                class.push(one);
            }
        }
        let resolution = Options::default().resolution;
        (self.classes.iter().zip(classes))
            .map(|(class, own)| {
                let looked = Looked::at(&own, found.end, resolution);
                Share::of(class.largest, &looked, Counted::Requested)
            })
            .collect()
    }

    fn first_burst(&self, residencies: &[Residency]) -> Option<Breach> {
        let mut classes: Vec<Class> = (self.classes.iter())
            .filter_map(|class| {
                let bucket = Bucket::new(class.burst, class.amount, class.per.get())?;
                Some(Class {
                    largest: class.largest,
                    lifetime: class.lifetime,
                    bucket,
                })
            })
            .collect();
        let mut monitor = Monitor::new(&mut classes)?;
        residencies
            .iter()
            .find_map(|one| match monitor.allocated(one.born, one.size).err()? {
                metes_monitor::Breach::Burst { class, window } => {
                    let first = residencies.partition_point(|other| other.born < window.from);
                    let declared = &self.classes[class];
                    let allowed = u128::from(declared.amount) * u128::from(window.to - window.from);
                    Some(Breach::Burst {
                        class,
                        window,
                        from_event: residencies[first].event,
                        event: one.event,
                        allowed: u128::from(declared.burst)
                            + allowed / u128::from(declared.per.get()),
                    })
                }
                _ => Some(Breach::TooLarge {
                    size: one.size,
                    time: one.born,
                    event: one.event,
                }),
            })
    }

    fn first_aged(&self, residencies: &[Residency]) -> Option<Breach> {
        let aged = residencies.iter().filter_map(|one| {
            let class = self
                .classes
                .partition_point(|class| class.largest < one.size);
            let lifetime = self.classes.get(class)?.lifetime?;
            (one.last - one.born > lifetime).then_some(Breach::Lifetime {
                class,
                event: one.event,
                born: one.born,
                last: one.last,
                lifetime,
                freed: one.ended.is_some(),
            })
        });
        aged.min_by_key(Breach::time)
    }
}

impl Row {
    fn read(self, class: usize) -> Result<Declared, ContractError> {
        let wrong = |text: String| ContractError::Rate { class, text };
        let (amount, per) = match self.rate {
            Rate::Whole(amount) => (amount, NonZeroU64::MIN),
            Rate::Written(text) => {
                let (amount, per) = text.split_once('/').unwrap_or((&text, "1"));
                let read = (amount.trim().parse(), per.trim().parse());
                match read {
                    (Ok(amount), Ok(per)) => (amount, per),
                    _ => return Err(wrong(text)),
                }
            }
            Rate::Other(value) => return Err(wrong(value.to_string())),
        };
        Ok(Declared {
            largest: self.largest,
            burst: self.burst,
            amount,
            per,
            lifetime: self.lifetime,
        })
    }
}

/// A fraction that fits; where it does not, one above it.
fn fraction(amount: u128, per: u128) -> (u64, NonZeroU64) {
    let (mut amount, mut per) = (amount, per);
    let divisor = divisor(amount, per).max(1);
    (amount, per) = (amount / divisor, per / divisor);
    while amount > u64::MAX.into() || per > u64::MAX.into() {
        (amount, per) = (amount / 2 + 1, per / 2);
    }
    let per = NonZeroU64::new(per as u64).unwrap_or(NonZeroU64::MIN);
    (amount as u64, per)
}

fn divisor(mut one: u128, mut other: u128) -> u128 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Where a trace does not keep to a contract. Classes are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// More in a window than declared.
    Burst {
        /// The class.
        class: usize,
        /// The window.
        window: Window,
        /// The first event in it.
        from_event: u64,
        /// The event that is too much.
        event: u64,
        /// The most declared for such a window.
        allowed: u128,
    },
    /// A block that lives longer than declared.
    Lifetime {
        /// The class.
        class: usize,
        /// Its allocation.
        event: u64,
        /// When it was allocated.
        born: u64,
        /// The last time at which it is live.
        last: u64,
        /// The longest declared.
        lifetime: u64,
        /// Whether it was freed at all.
        freed: bool,
    },
    /// A request above all classes.
    TooLarge {
        /// Bytes.
        size: u64,
        /// When.
        time: u64,
        /// The event.
        event: u64,
    },
}

impl Breach {
    /// From when on the contract is not kept.
    fn time(&self) -> u64 {
        match self {
            Breach::Burst { window, .. } => window.to,
            Breach::Lifetime { born, lifetime, .. } => born + lifetime + 1,
            Breach::TooLarge { time, .. } => *time,
        }
    }
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Breach::Burst {
                class,
                window,
                from_event,
                event,
                allowed,
            } => write!(
                f,
                "class {}: {} bytes are allocated in the window from {} to {} (events {from_event} to \
                 {event}), {allowed} are declared",
                class + 1,
                window.bytes,
                window.from,
                window.to
            ),
            Breach::Lifetime {
                class,
                event,
                born,
                last,
                lifetime,
                freed,
            } => write!(
                f,
                "class {}: the block of event {event}, allocated at {born}, is {} {last}, {} ticks; {lifetime} \
                 are declared",
                class + 1,
                if *freed {
                    "live until"
                } else {
                    "never freed and live at the end,"
                },
                last - born
            ),
            Breach::TooLarge { size, time, event } => write!(
                f,
                "event {event} at {time} asks for {size} bytes, and no class is declared for so many"
            ),
        }
    }
}
