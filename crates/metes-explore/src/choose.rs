//! Which of many good heaps to recommend, by a rule that can be said in a sentence.
//!
//! Invariant: the sentence states figures of the outcomes at hand, never opinions.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;
use crate::search::Exploration;

/// What matters most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preference {
    /// Little memory, as long as every operation takes constant time and costs
    /// at most half as much again as with the fastest such heap.
    #[default]
    Balanced,
    /// Little memory, whatever the time.
    Footprint,
    /// Little time a request in the mean, whatever the memory.
    Speed,
    /// The least cycles that any single operation took.
    Worst,
}

/// The recommended heap, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The outcome.
    pub outcome: Outcome,
    /// One or two sentences.
    pub why: String,
}

/// How much slower than the fastest a balanced heap may be: half as much again.
const SLOWER: (u64, u64) = (3, 2);

/// Recommends one outcome. `None` when every heap failed a request.
pub fn choose(exploration: &Exploration, preference: Preference) -> Option<Choice> {
    let all = &exploration.pareto;
    match preference {
        Preference::Footprint => {
            let outcome = all
                .iter()
                .min_by_key(|o| (o.footprint, o.cycles, o.cycles_max))?;
            let why = format!(
                "It has the smallest footprint of all {} configurations replayed: {}. The mean \
                 cost is {:.1} modelled cycles a request.",
                exploration.configurations,
                bytes(outcome.footprint),
                outcome.cycles_mean,
            );
            Some(chosen(outcome, why))
        }
        Preference::Speed => {
            let outcome = all
                .iter()
                .min_by_key(|o| (o.cycles, o.footprint, o.cycles_max))?;
            let why = format!(
                "It has the lowest mean cost of all {} configurations replayed: {:.1} modelled \
                 cycles a request, with a footprint of {}.",
                exploration.configurations,
                outcome.cycles_mean,
                bytes(outcome.footprint),
            );
            Some(chosen(outcome, why))
        }
        Preference::Worst => {
            let outcome = all
                .iter()
                .min_by_key(|o| (o.cycles_max, o.footprint, o.cycles))?;
            let why = format!(
                "No request took more than {} modelled cycles, the least of all {} \
                 configurations replayed, with a footprint of {}.",
                outcome.cycles_max,
                exploration.configurations,
                bytes(outcome.footprint),
            );
            Some(chosen(outcome, why))
        }
        Preference::Balanced => balanced(exploration),
    }
}

fn balanced(exploration: &Exploration) -> Option<Choice> {
    let constant = &exploration.constant_time;
    let fastest = constant.iter().map(|outcome| outcome.cycles).min();
    let Some(fastest) = fastest else {
        // No heap of constant time served the trace, as when a buddy is asked
        // for more alignment than it has: the smallest of all, then.
        let choice = choose(exploration, Preference::Footprint)?;
        let why = format!(
            "No heap of constant time served every request. {}",
            choice.why
        );
        return Some(Choice { why, ..choice });
    };
    let limit = u128::from(fastest) * u128::from(SLOWER.0) / u128::from(SLOWER.1);
    let outcome = constant
        .iter()
        .filter(|outcome| u128::from(outcome.cycles) <= limit)
        .min_by_key(|outcome| (outcome.footprint, outcome.cycles, outcome.cycles_max))?;
    let mut why = format!(
        "Of the heaps whose every operation takes constant time, and whose mean cost is at most \
         half as much again as the fastest one's, it has the smallest footprint: {} at {:.1} \
         modelled cycles a request.",
        bytes(outcome.footprint),
        outcome.cycles_mean,
    );
    let smaller = exploration
        .pareto
        .iter()
        .find(|other| other.footprint < outcome.footprint);
    if let Some(other) = smaller {
        let percent =
            (outcome.footprint - other.footprint) as f64 * 100.0 / outcome.footprint as f64;
        let cost = if other.constant_time {
            "more time in the mean"
        } else {
            "the bound on the time of an operation"
        };
        why.push_str(&format!(
            " The smallest of all, {}, would save {percent:.1} % of that for {cost} ({:.1} cycles).",
            other.heap, other.cycles_mean,
        ));
    }
    Some(chosen(outcome, why))
}

fn chosen(outcome: &Outcome, why: String) -> Choice {
    Choice {
        outcome: outcome.clone(),
        why,
    }
}

/// Bytes as people read them, exact below ten KiB.
fn bytes(count: u64) -> String {
    match count {
        0..10_240 => format!("{count} bytes"),
        10_240..10_485_760 => format!("{:.1} KiB", count as f64 / 1024.0),
        _ => format!("{:.1} MiB", count as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metes_heap::{Description, IndexKind};

    fn outcome(
        heap: &str,
        constant_time: bool,
        [footprint, cycles, cycles_max]: [u64; 3],
    ) -> Outcome {
        Outcome {
            number: 0,
            named: None,
            heap: heap.to_owned(),
            description: Description::of(IndexKind::tlsf(32)),
            constant_time,
            footprint,
            cycles,
            cycles_mean: cycles as f64 / 100.0,
            cycles_max,
            record_reads: 0,
            record_writes: 0,
            failed: 0,
        }
    }

    fn exploration(pareto: Vec<Outcome>) -> Exploration {
        let constant_time = pareto.iter().filter(|o| o.constant_time).cloned().collect();
        Exploration {
            configurations: 99,
            distinct: 9,
            space: 1000,
            beaten: 0,
            slow: 0,
            seconds: 1.0,
            events_per_second: 1.0,
            interrupted: false,
            named: Vec::new(),
            pareto,
            constant_time,
            outcomes: Vec::new(),
        }
    }

    #[test]
    fn each_preference_picks_by_its_rule() {
        let found = exploration(vec![
            outcome("searching", false, [900, 9000, 500]),
            outcome("too slow", true, [1000, 6200, 60]),
            outcome("balanced", true, [1100, 5900, 70]),
            outcome("fast", true, [2000, 4000, 80]),
            outcome("steady", true, [3000, 5000, 50]),
        ]);
        let pick = |preference| choose(&found, preference).unwrap();
        assert_eq!(pick(Preference::Balanced).outcome.heap, "balanced");
        assert_eq!(pick(Preference::Footprint).outcome.heap, "searching");
        assert_eq!(pick(Preference::Speed).outcome.heap, "fast");
        assert_eq!(pick(Preference::Worst).outcome.heap, "steady");
        let why = pick(Preference::Balanced).why;
        assert!(
            why.contains("1100 bytes") && why.contains("18.2 %"),
            "{why}"
        );
        assert_eq!(choose(&exploration(Vec::new()), Preference::Balanced), None);
    }

    #[test]
    fn without_constant_time_the_smallest_is_taken_and_said_so() {
        let found = exploration(vec![outcome("searching", false, [900, 9000, 500])]);
        let choice = choose(&found, Preference::Balanced).unwrap();
        assert_eq!(choice.outcome.heap, "searching");
        assert!(choice.why.starts_with("No heap of constant time"));
    }
}
