//! Which explored heap is taken.
//!
//! Invariant: the choice depends on outcomes only, and its reason is said in
//! the words of the rule.

use metes_explore::{Exploration, Outcome};

use crate::quantity::{bytes, grouped};

/// The named heap whose mean cost no chosen heap exceeds.
const MEASURE: &str = "tlsf";

/// The smallest footprint among unbeaten heaps that cost no more than TLSF;
/// of equals the cheapest. The error says why there is none.
pub(crate) fn choose(found: &Exploration, limit: Option<u64>) -> Result<(Outcome, String), String> {
    let able = |outcome: &&Outcome| limit.is_none_or(|limit| outcome.footprint <= limit);
    let front: Vec<&Outcome> = found.pareto.iter().collect();
    if front.is_empty() {
        return Err("no heap serves every request of this program".to_owned());
    }
    let within: Vec<&Outcome> = front.iter().copied().filter(able).collect();
    if within.is_empty() {
        let least = front
            .iter()
            .map(|outcome| outcome.footprint)
            .min()
            .unwrap_or(0);
        return Err(format!(
            "no heap stays within {} bytes: the smallest footprint found is {}",
            grouped(limit.unwrap_or(0)),
            grouped(least)
        ));
    }
    let measure = found
        .named
        .iter()
        .find(|outcome| outcome.named == Some(MEASURE) && outcome.failed == 0);
    let cheap = |outcome: &&&Outcome| measure.is_none_or(|tlsf| outcome.cycles <= tlsf.cycles);
    let key = |outcome: &&&Outcome| (outcome.footprint, outcome.cycles, outcome.cycles_max);
    if let Some(chosen) = within.iter().filter(cheap).min_by_key(key) {
        let why = match measure {
            Some(tlsf) => format!(
                "The smallest footprint ({}) of all heaps found whose modelled mean cost does not \
                 exceed that of tlsf ({:.1} against {:.1} cycles an event).",
                bytes(chosen.footprint),
                chosen.cycles_mean,
                tlsf.cycles_mean
            ),
            None => format!(
                "The smallest footprint found ({}).",
                bytes(chosen.footprint)
            ),
        };
        return Ok(((**chosen).clone(), why));
    }
    // Within the limit only heaps dearer than TLSF: the cheapest of them.
    let dear = within
        .iter()
        .min_by_key(|outcome| (outcome.cycles, outcome.footprint));
    match dear {
        Some(chosen) => Ok((
            (**chosen).clone(),
            format!(
                "The cheapest heap found ({:.1} cycles an event) among those within the limit.",
                chosen.cycles_mean
            ),
        )),
        None => Err("no heap is within the limit".to_owned()),
    }
}
