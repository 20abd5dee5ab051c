//! The named heaps that every exploration begins with.

use metes_heap::Description;

/// A heap under its usual name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// The heap, with default parameters.
    pub description: Description,
}

/// Every named heap: TLSF, then the others of constant time, then those that
/// search. So that a search which is cut short has the quickest to replay.
pub fn catalogue() -> Vec<Named> {
    let mut heaps: Vec<Named> = metes_config::named()
        .into_iter()
        .map(|(name, config)| Named {
            name,
            description: config.heap,
        })
        .collect();
    heaps.sort_by_key(|heap| {
        let constant = crate::constant_time(&heap.description);
        (heap.name != "tlsf", !constant)
    });
    heaps
}
