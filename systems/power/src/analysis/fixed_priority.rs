//! Exact response times under fixed priorities (Joseph and Pandya 1986; Lehoczky 1990; Tindell, Burns and Wellings 1994
//! for jitter; Palencia and González Harbour 1998 for phases).
//!
//! A response is longest in a busy period that begins with a job that is ready as late as can be; from then on all come
//! as early as can be. Where phases are known, a busy period may begin at each such time of a common period: a later
//! start, as long as no arrival is lost, moves the end no earlier.
//!
//! *Invariant:* every response that is reported happens in some run (but for blocking, which is assumed), and none that
//! happens is longer.

use super::item::{Budget, Item, Stop, Whole, arrivals, firsts, starts};

/// The longest response of the last of `items`, the most urgent first. With `bounded`, one above its deadline ends it. What
/// arrives in a busy period behind `repeats` responds as what arrived before.
pub(crate) fn response<N: Whole>(
    items: &[Item<N>],
    bounded: bool,
    repeats: Option<&N>,
    budget: &mut Budget,
) -> Result<N, Stop> {
    let (own, above) = items.split_last().ok_or(Stop::Long)?;
    let mut longest = own.time.clone();
    for start in starts(items, budget)? {
        let firsts = firsts(items, &start);
        let mut arrival = firsts[above.len()].clone();
        let mut work = own.blocking.clone();
        let mut end = work.clone();
        loop {
            work = work + own.time.clone();
            end = settle(above, &firsts, &work, end + own.time.clone(), budget)?;
            // The busy period was over before it came: it is in another one.
            if end <= arrival {
                break;
            }
            longest = longest.max(end.clone() - arrival.clone());
            if bounded && longest > own.deadline {
                return Ok(longest);
            }
            arrival = arrival + own.period.clone();
            if end <= arrival || repeats.is_some_and(|repeats| arrival > *repeats) {
                break;
            }
        }
    }
    Ok(longest)
}

/// The end of `work` and of all that more urgent tasks bring until then; it is not before `end`.
fn settle<N: Whole>(
    above: &[Item<N>],
    firsts: &[N],
    work: &N,
    end: N,
    budget: &mut Budget,
) -> Result<N, Stop> {
    let mut end = end;
    loop {
        budget.take(above.len())?;
        let mut longer = work.clone();
        for (item, first) in above.iter().zip(firsts) {
            longer = longer + arrivals(&end, first, &item.period) * item.time.clone();
        }
        if longer <= end {
            return Ok(end);
        }
        if N::most().is_some_and(|most| longer > most) {
            return Err(Stop::Wide);
        }
        end = longer;
    }
}
