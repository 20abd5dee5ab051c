//! What on one side belongs to what on the other: runs by their names, sizes by how many requests went from one to the
//! other.
//!
//! Invariant: a run and a size is in one pair at most.

use std::collections::BTreeMap;

use super::facts::{Facts, RunFacts, SizeFacts};

/// Runs by their names, and by how many of that name came before.
pub(super) fn numbered(runs: &[RunFacts]) -> impl Iterator<Item = ((&str, u64), &RunFacts)> {
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    runs.iter().map(move |run| {
        let count = met.entry(&run.name).or_default();
        *count += 1;
        ((run.name.as_str(), *count), run)
    })
}

/// The size of which requests grew most, for who asks where allocations come from.
pub(super) fn most_grown(before: &Facts, after: &Facts) -> String {
    let grown = after.sizes.iter().map(|(size, own)| {
        let known = before.sizes.get(size).map_or(0, |size| size.requests);
        (own.requests.saturating_sub(known), *size)
    });
    match grown.max() {
        Some((more, size)) if more > 0 => format!("; most of them of {size} bytes, {more} more"),
        _ => String::new(),
    }
}

/// Sizes whose requests went to a larger one: what one size lost and a larger one, at most twice as large, won, within a
/// tenth. Each size is in one pair at most, the largest changes first.
pub(super) fn moved(
    before: &BTreeMap<u64, SizeFacts>,
    after: &BTreeMap<u64, SizeFacts>,
) -> Vec<(u64, u64, u64)> {
    let requests =
        |of: &BTreeMap<u64, SizeFacts>, size: u64| of.get(&size).map_or(0, |own| own.requests);
    let mut lost: Vec<(u64, u64)> = (before.keys())
        .map(|&size| {
            (
                requests(before, size).saturating_sub(requests(after, size)),
                size,
            )
        })
        .filter(|&(count, _)| count > 0)
        .collect();
    lost.sort_by_key(|&(count, size)| (std::cmp::Reverse(count), size));
    let mut won: BTreeMap<u64, u64> = (after.keys())
        .map(|&size| {
            (
                size,
                requests(after, size).saturating_sub(requests(before, size)),
            )
        })
        .filter(|&(_, count)| count > 0)
        .collect();
    let mut pairs = Vec::new();
    for (count, from) in lost {
        let near = won.range(from + 1..=from.saturating_mul(2));
        let alike = near.filter(|&(_, &other)| count.abs_diff(other) * 10 <= count.max(other));
        // The nearest in count, then in size.
        let best = alike.min_by_key(|&(&to, &other)| (count.abs_diff(other), to));
        if let Some((&to, &other)) = best {
            won.remove(&to);
            pairs.push((from, to, count.min(other)));
        }
    }
    pairs.sort_unstable();
    pairs
}
