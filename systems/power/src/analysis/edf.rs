//! Exact response times and demand under earliest deadline first (Spuri 1996; Baruah, Rosier and Howell 1990; Zhang and
//! Burns 2009 for QPA), with jitter, phases and blocking.
//!
//! *Invariant:* demand and response times decide the same.

use super::item::{Budget, Item, Stop, Whole, arrivals, firsts, starts};

/// The longest response of item `index`. With `bounded`, one above its deadline ends it. What arrives in a busy period behind
/// `repeats` responds as what arrived before.
pub(crate) fn response<N: Whole>(
    items: &[Item<N>],
    index: usize,
    bounded: bool,
    repeats: Option<&N>,
    budget: &mut Budget,
) -> Result<N, Stop> {
    let own = &items[index];
    let mut longest = own.time.clone();
    for start in starts(items, budget)? {
        let mut firsts = firsts(items, &start);
        let busy = busy_period(items, &firsts, repeats, budget)?;
        for arrival in candidates(items, index, &firsts, &busy, budget)? {
            if own.offset.is_none() {
                // As many of its own before it as can be ready no earlier than the start.
                let before = (arrival.clone() + own.jitter.clone()).div_floor(&own.period);
                firsts[index] = arrival.clone() - before * own.period.clone();
            }
            let end = end_of(items, index, &firsts, &arrival, budget)?;
            if end <= arrival {
                continue;
            }
            longest = longest.max(end - arrival);
            if bounded && longest > own.deadline {
                return Ok(longest);
            }
        }
    }
    Ok(longest)
}

/// Arrivals of item `index` in a busy period that may have the longest response: its own that are known, or those at
/// which some deadline is its own.
fn candidates<N: Whole>(
    items: &[Item<N>],
    index: usize,
    firsts: &[N],
    busy: &N,
    budget: &mut Budget,
) -> Result<Vec<N>, Stop> {
    let own = &items[index];
    let earliest = &firsts[index];
    let mut found = Vec::new();
    for (item, first) in items.iter().zip(firsts) {
        let itself = std::ptr::eq(item, own);
        if own.offset.is_some() && !itself {
            continue;
        }
        let mut arrival = first.clone() + item.deadline.clone() - own.deadline.clone();
        if arrival < *earliest {
            let late = earliest.clone() - arrival.clone();
            arrival = arrival + super::item::div_ceil(&late, &item.period) * item.period.clone();
        }
        while arrival < *busy {
            budget.take(0)?;
            found.push(arrival.clone());
            arrival = arrival + item.period.clone();
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// When the job of item `index` that arrives at `arrival` ends, if the core is busy from 0 to then.
fn end_of<N: Whole>(
    items: &[Item<N>],
    index: usize,
    firsts: &[N],
    arrival: &N,
    budget: &mut Budget,
) -> Result<N, Stop> {
    let own = &items[index];
    let due = arrival.clone() + own.deadline.clone();
    let urgent: Vec<N> = items
        .iter()
        .zip(firsts)
        .map(|(item, first)| due_by(item, first, &due))
        .collect();
    let blocking = blocking(items, firsts, &due).max(own.blocking.clone());
    let mut end = blocking.clone() + own.time.clone();
    loop {
        budget.take(items.len())?;
        let mut longer = blocking.clone();
        for ((item, first), urgent) in items.iter().zip(firsts).zip(&urgent) {
            let come = arrivals(&end, first, &item.period).min(urgent.clone());
            longer = longer + come * item.time.clone();
        }
        if longer <= end {
            return Ok(longer);
        }
        too_wide(&longer)?;
        end = longer;
    }
}

fn too_wide<N: Whole>(value: &N) -> Result<(), Stop> {
    match N::most() {
        Some(most) if *value > most => Err(Stop::Wide),
        _ => Ok(()),
    }
}

/// Jobs of an item that are due by a time.
fn due_by<N: Whole>(item: &Item<N>, first: &N, due: &N) -> N {
    let since = due.clone() - item.deadline.clone() - first.clone();
    if since.is_negative() {
        N::zero()
    } else {
        since.div_floor(&item.period) + N::one()
    }
}

/// The longest blocking of what is due by a time.
fn blocking<N: Whole>(items: &[Item<N>], firsts: &[N], due: &N) -> N {
    let concerned = items.iter().zip(firsts);
    let concerned = concerned
        .filter(|(item, first)| (*first).clone() + item.deadline.clone() <= *due)
        .map(|(item, _)| item.blocking.clone());
    concerned.max().unwrap_or_else(N::zero)
}

/// How long the core is busy from a start on; no longer than until all repeats itself.
fn busy_period<N: Whole>(
    items: &[Item<N>],
    firsts: &[N],
    repeats: Option<&N>,
    budget: &mut Budget,
) -> Result<N, Stop> {
    let blocking = items.iter().map(|item| item.blocking.clone()).max();
    let blocking = blocking.unwrap_or_else(N::zero);
    let mut length = N::one();
    loop {
        budget.take(items.len())?;
        let mut longer = blocking.clone();
        for (item, first) in items.iter().zip(firsts) {
            longer = longer + arrivals(&length, first, &item.period) * item.time.clone();
        }
        if longer <= length {
            return Ok(longer);
        }
        if let Some(repeats) = repeats.filter(|repeats| longer > **repeats) {
            return Ok(repeats.clone());
        }
        too_wide(&longer)?;
        length = longer;
    }
}

/// Whether no window demands more than its length: quick processor-demand analysis. Phases must be unknown, and the sum of
/// utilisations not above 1.
pub(crate) fn demand_fits<N: Whole>(
    items: &[Item<N>],
    repeats: Option<&N>,
    budget: &mut Budget,
) -> Result<bool, Stop> {
    let firsts = firsts(items, &N::zero());
    let end = busy_period(items, &firsts, repeats, budget)?;
    // Deadlines up to the end of the busy period: behind it there is an instant without work.
    let mut end = end + N::one();
    while let Some(time) = last_due(items, &firsts, &end) {
        budget.take(items.len())?;
        let mut demand = blocking(items, &firsts, &time);
        for (item, first) in items.iter().zip(&firsts) {
            demand = demand + due_by(item, first, &time) * item.time.clone();
        }
        if demand > time {
            return Ok(false);
        }
        end = time.min(demand + N::one());
    }
    Ok(true)
}

/// The last deadline below `end`.
fn last_due<N: Whole>(items: &[Item<N>], firsts: &[N], end: &N) -> Option<N> {
    let before = end.clone() - N::one();
    let due = items.iter().zip(firsts).filter_map(|(item, first)| {
        let count = due_by(item, first, &before);
        let last = first.clone() + item.deadline.clone() - item.period.clone();
        count
            .is_positive()
            .then(|| last + count * item.period.clone())
    });
    due.max()
}
