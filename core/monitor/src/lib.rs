//! Whether a running program keeps to what was declared of its allocations.
//!
//! A declaration says for each class of request sizes: in any window of length Δ at most
//! burst + rate · Δ bytes are allocated, and no block lives longer than a lifetime. [`Bucket`]
//! verifies the first with one addition and one multiplication a request, [`Monitor`] both. Nothing is
//! allocated, nothing is rounded, and there is no dependency but `core`.
//!
//! Time is any whole number that does not go back: nanoseconds, cycles, or requests counted.
//!
//! ```
//! use metes_monitor::{Breach, Class, Monitor};
//!
//! // Requests of up to 64 bytes: 128 at once, then 16 every 10 ticks; freed within 100 ticks.
//! let mut classes = [Class::new(64, 128, 16, 10, Some(100)).expect("a rate")];
//! let mut monitor = Monitor::new(&mut classes).expect("ascending");
//! assert_eq!(monitor.allocated(0, 64), Ok(()));
//! assert_eq!(monitor.allocated(0, 64), Ok(()));
//! assert_eq!(monitor.allocated(40, 64), Ok(()));
//! let Err(Breach::Burst { window, .. }) = monitor.allocated(41, 64) else { panic!("192 + 64 of 193") };
//! assert_eq!((window.from, window.to, window.bytes), (0, 41, 256));
//! assert!(monitor.freed(200, 64, 0).is_err());
//! ```
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;

/// A token bucket: at most burst + amount / per · Δ bytes in any closed window of length Δ.
///
/// Invariant: `level` is `per` times the most by which the bytes of a window that ends at `now`
/// exceed the rate; that window begins at `since` and holds `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    burst: u64,
    amount: u64,
    per: u64,
    level: u128,
    since: u64,
    now: u64,
    bytes: u128,
}

/// A window of time, both ends included, and what was allocated in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first time.
    pub from: u64,
    /// The last time.
    pub to: u64,
    /// Bytes.
    pub bytes: u128,
}

impl Bucket {
    /// A bucket of `burst` bytes that drains `amount` bytes every `per` ticks; `None` if `per` is
    /// 0.
    #[must_use]
    pub const fn new(burst: u64, amount: u64, per: u64) -> Option<Self> {
        if per == 0 {
            return None;
        }
        Some(Bucket {
            burst,
            amount,
            per,
            level: 0,
            since: 0,
            now: 0,
            bytes: 0,
        })
    }

    /// Takes `bytes` at time `now` into account; a time before the last one counts as that one.
    /// O(1).
    ///
    /// # Errors
    /// The window in which more was allocated than declared. The bucket goes on counting.
    pub fn take(&mut self, now: u64, bytes: u64) -> Result<(), Window> {
        let now = now.max(self.now);
        let drained = u128::from(self.amount) * u128::from(now - self.now);
        self.now = now;
        self.level = self.level.saturating_sub(drained);
        if self.level == 0 {
            (self.since, self.bytes) = (now, 0);
        }
        // At most 2^128 - 2^65 + 1 by one request, and a sum that does not fit is more than any
        // burst, which is below 2^128, too.
        self.level = self
            .level
            .saturating_add(u128::from(bytes) * u128::from(self.per));
        self.bytes = self.bytes.saturating_add(bytes.into());
        if self.level > u128::from(self.burst) * u128::from(self.per) {
            return Err(self.window());
        }
        Ok(())
    }

    /// The least burst, rounded up, that would have allowed what the window at hand holds.
    #[must_use]
    pub fn level(&self) -> u128 {
        self.level.div_ceil(u128::from(self.per))
    }

    /// The window that ends now and exceeds the rate by most.
    #[must_use]
    pub fn window(&self) -> Window {
        Window {
            from: self.since,
            to: self.now,
            bytes: self.bytes,
        }
    }
}

/// What is declared of the requests of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The largest request of the class; it begins above that of the class before.
    pub largest: u64,
    /// Longest time from allocation to free; `None` if blocks may live for ever.
    pub lifetime: Option<u64>,
    /// Its arrivals.
    pub bucket: Bucket,
}

impl Class {
    /// Requests up to `largest` bytes: `burst` bytes at once and `amount` every `per` ticks;
    /// `None` if `per` is 0.
    #[must_use]
    pub const fn new(
        largest: u64,
        burst: u64,
        amount: u64,
        per: u64,
        lifetime: Option<u64>,
    ) -> Option<Self> {
        match Bucket::new(burst, amount, per) {
            Some(bucket) => Some(Class {
                largest,
                lifetime,
                bucket,
            }),
            None => None,
        }
    }
}

/// What was not as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// More bytes were allocated in a window than declared.
    Burst {
        /// The class, from 0.
        class: usize,
        /// The window.
        window: Window,
    },
    /// A block lived longer than declared.
    Lifetime {
        /// The class, from 0.
        class: usize,
        /// When it was allocated.
        born: u64,
        /// When it was freed, or when it was still there.
        now: u64,
    },
    /// A request is larger than every class.
    TooLarge {
        /// Bytes.
        size: u64,
        /// When.
        now: u64,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::Burst { class, window } => write!(
                f,
                "{} bytes of class {class} were allocated from {} to {}, more than declared",
                window.bytes, window.from, window.to
            ),
            Breach::Lifetime { class, born, now } => write!(
                f,
                "a block of class {class}, allocated at {born}, was there until {now}, longer than \
                 declared"
            ),
            Breach::TooLarge { size, now } => write!(
                f,
                "a request of {size} bytes at {now} is larger than every declared class"
            ),
        }
    }
}

impl core::error::Error for Breach {}

/// Watches requests, class by class.
///
/// Invariant: classes ascend by their largest request.
#[derive(Debug)]
pub struct Monitor<'a> {
    classes: &'a mut [Class],
}

impl<'a> Monitor<'a> {
    /// A monitor over classes; `None` unless they ascend.
    #[must_use]
    pub fn new(classes: &'a mut [Class]) -> Option<Self> {
        let ascend = classes.is_sorted_by(|one, next| one.largest < next.largest);
        ascend.then_some(Monitor { classes })
    }

    /// The class of a request; `None` if it is larger than all. Logarithmic in the classes.
    #[must_use]
    pub fn class_of(&self, size: u64) -> Option<usize> {
        let class = self.classes.partition_point(|class| class.largest < size);
        (class < self.classes.len()).then_some(class)
    }

    /// A block of `size` bytes was allocated. O(1) but for finding the class.
    ///
    /// # Errors
    /// [`Breach::Burst`], [`Breach::TooLarge`].
    pub fn allocated(&mut self, now: u64, size: u64) -> Result<(), Breach> {
        let class = self.class_of(size).ok_or(Breach::TooLarge { size, now })?;
        let taken = self.classes[class].bucket.take(now, size);
        taken.map_err(|window| Breach::Burst { class, window })
    }

    /// A block of `size` bytes, allocated at `born`, was freed, or is still there now. O(1) but
    /// for finding the class.
    ///
    /// # Errors
    /// [`Breach::Lifetime`], [`Breach::TooLarge`].
    pub fn freed(&self, now: u64, size: u64, born: u64) -> Result<(), Breach> {
        let class = self.class_of(size).ok_or(Breach::TooLarge { size, now })?;
        match self.classes[class].lifetime {
            Some(lifetime) if now.saturating_sub(born) > lifetime => {
                Err(Breach::Lifetime { class, born, now })
            }
            _ => Ok(()),
        }
    }
}
