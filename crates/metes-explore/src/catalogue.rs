//! The named heaps that every exploration begins with.

use metes_heap::{Description, Fit, IndexKind, Order};

/// A heap under its usual name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// The heap, with default parameters.
    pub description: Description,
}

/// Every named heap, the constant-time ones first.
pub fn catalogue() -> Vec<Named> {
    let fit = |fit| IndexKind::list(fit, Order::Address);
    let segregated = IndexKind::Classes {
        second_level: 1,
        probes: usize::MAX,
    };
    [
        ("tlsf", IndexKind::tlsf(32)),
        ("half-fit", IndexKind::tlsf(1)),
        ("buddy", IndexKind::Buddy { lowest: false }),
        ("kingsley", IndexKind::Kingsley),
        ("segregated-fit", segregated),
        ("first-fit", fit(Fit::First)),
        ("next-fit", fit(Fit::Next)),
        ("best-fit", fit(Fit::Best)),
        ("worst-fit", fit(Fit::Worst)),
        ("exact-fit", fit(Fit::Exact)),
    ]
    .into_iter()
    .map(|(name, index)| Named {
        name,
        description: Description::of(index),
    })
    .collect()
}
