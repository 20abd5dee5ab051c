//! Which of many good heaps to recommend, by a rule that can be said in a sentence.
//!
//! Invariant: the sentence states figures of the outcomes at hand, never opinions.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;
use crate::search::{Exploration, Guarantees};
use crate::terms::Rule;

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
    /// The least memory that is proved to suffice, whatever a program within the demand does.
    Guarantee,
}

/// Which memory of several runs a heap is chosen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// The mean footprint, of those whose largest is at most a twentieth above the least.
    #[default]
    Both,
    /// The largest footprint: what a machine must have.
    Worst,
    /// The mean footprint.
    Mean,
}

impl Over {
    /// The heaps that count, and what each is weighed by.
    fn weigh<'o>(self, outcomes: &[&'o Outcome]) -> Vec<([u64; 2], &'o Outcome)> {
        let least = outcomes.iter().map(|outcome| outcome.footprint).min();
        let limit = least.unwrap_or(0);
        let limit = limit + limit / ABOVE_LEAST;
        let among = outcomes.iter().copied();
        let among = among.filter(|outcome| self != Over::Both || outcome.footprint <= limit);
        let weigh = |outcome: &'o Outcome| match self {
            Over::Worst => [outcome.footprint, outcome.footprint_sum],
            Over::Both | Over::Mean => [outcome.footprint_sum, outcome.footprint],
        };
        among.map(|outcome| (weigh(outcome), outcome)).collect()
    }
}

/// What the largest footprint may be above the least such where the mean decides: a part of it.
const ABOVE_LEAST: u64 = 20;

/// Several runs that a heap was searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OfRuns {
    /// What counts of their memory.
    pub over: Over,
    /// What their shares come to: a mean is a sum divided by this.
    pub weight: u64,
}

/// The recommended heap, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The outcome.
    pub outcome: Outcome,
    /// Some sentences.
    pub why: String,
    /// Where the heap was chosen for its guarantee and another would have been without: that one.
    pub without: Option<Outcome>,
}

/// How much slower than the fastest a balanced heap may be: half as much again.
const SLOWER: (u64, u64) = (3, 2);

/// The fronts that one is chosen from, and of what they are.
struct Fronts<'a> {
    /// What nothing beats, by rising footprint.
    pareto: &'a [Outcome],
    /// The same of those of constant time.
    constant_time: &'a [Outcome],
    /// Of what a chosen heap is the best.
    judged: String,
    /// Where they serve several runs.
    runs: Option<OfRuns>,
}

/// Recommends one outcome, and says of how many heaps it is the best. Where a search knows when a
/// guarantee is useful, it is the best that has one, and the best without stands beside it; where none
/// has, the best without one, unless a guarantee was asked for. For [`Preference::Balanced`] one without constant
/// time is none to rely on. `None` when every heap failed a request.
pub fn choose(exploration: &Exploration, preference: Preference) -> Option<Choice> {
    let all = Fronts {
        pareto: &exploration.pareto,
        constant_time: &exploration.constant_time,
        judged: judged(exploration),
        runs: exploration.runs,
    };
    let without = best(&all, preference);
    let mut choice = match &exploration.guaranteed {
        Some(guarantees) => relied_on(exploration, guarantees, without, preference)?,
        None => without?,
    };
    if let Some(unfinished) = unfinished(exploration) {
        choice.why.push_str(&unfinished);
    }
    Some(choice)
}

/// The best heap that has a useful guarantee, or what is said where there is none.
fn relied_on(
    exploration: &Exploration,
    guarantees: &Guarantees,
    without: Option<Choice>,
    preference: Preference,
) -> Option<Choice> {
    let Guarantees {
        terms,
        pareto,
        constant_time,
        ..
    } = guarantees;
    // The least guarantee need not be on a front of other things.
    let all: Vec<Outcome> = match preference {
        Preference::Guarantee => (exploration.outcomes.iter())
            .filter(|one| one.failed == 0 && terms.useful(one.guarantee))
            .cloned()
            .collect(),
        _ => Vec::new(),
    };
    let fronts = Fronts {
        pareto: if all.is_empty() { pareto } else { &all },
        constant_time,
        judged: format!(
            "those of {} that have a useful guarantee",
            judged(exploration)
        ),
        runs: exploration.runs,
    };
    let chosen = match preference {
        Preference::Balanced if constant_time.is_empty() => None,
        _ => best(&fronts, preference),
    };
    if let Some(mut choice) = chosen {
        let guarantee = choice.outcome.guarantee.unwrap_or(0);
        choice.why.push_str(&format!(
            " {} suffice for every program within the demand: useful is {}.",
            bytes(guarantee),
            terms.sentence()
        ));
        choice.without = without
            .map(|without| without.outcome)
            .filter(|without| without.description != choice.outcome.description);
        return Some(choice);
    }
    let mut choice = without.filter(|_| terms.rule == Rule::Default)?;
    let served = exploration.outcomes.iter().filter(|one| one.failed == 0);
    let least = served
        .filter_map(|one| Some((one.guarantee?, &one.heap)))
        .min();
    choice.why.push_str(&match least {
        Some((least, heap)) => format!(
            " No heap that was tried{} has a useful guarantee, {}: the least is {} of {heap}.",
            match preference {
                Preference::Balanced => " and is of constant time",
                _ => "",
            },
            terms.sentence(),
            bytes(least),
        ),
        None => " No heap that was tried has a finite guarantee for this demand.".to_owned(),
    });
    Some(choice)
}

/// Of what a chosen heap is the best.
fn judged(exploration: &Exploration) -> String {
    let whole = exploration.configurations;
    match exploration.sampled {
        _ if whole == 1 => "the only configuration that was replayed whole".to_owned(),
        None => format!("all {whole} configurations replayed"),
        Some(sampled) => format!(
            "{whole} configurations replayed whole, picked from {} on {} of the trace",
            sampled.configurations,
            match sampled.windows {
                1 => "a window".to_owned(),
                windows => format!("{windows} windows"),
            }
        ),
    }
}

/// What nothing is claimed of.
fn unfinished(exploration: &Exploration) -> Option<String> {
    let names: Vec<&str> = (exploration.unfinished.iter())
        .map(|heap| heap.heap.as_str())
        .collect();
    let (first, others) = names.split_first()?;
    let (count, rest) = match others.len() {
        0 => (String::new(), String::new()),
        rest @ 1..4 => (
            format!("{} heaps, ", rest + 1),
            format!(", {}", others.join(", ")),
        ),
        rest => (format!("{} heaps, ", rest + 1), format!(" and {rest} more")),
    };
    Some(format!(
        " Nothing is said of {count}{first}{rest}: not finished in the budget."
    ))
}

fn best(fronts: &Fronts<'_>, preference: Preference) -> Option<Choice> {
    let all = fronts.pareto;
    match preference {
        Preference::Footprint => {
            let outcome = fronts.smallest(&all.iter().collect::<Vec<_>>())?;
            let why = format!(
                "It has the {} of {}: {}. The mean cost is {:.1} modelled cycles \
                 a request.",
                fronts.smallest_what(),
                fronts.judged,
                fronts.memory(outcome),
                outcome.cycles_mean,
            );
            Some(chosen(outcome, why))
        }
        Preference::Speed => {
            let outcome = all
                .iter()
                .min_by_key(|o| (o.cycles, o.footprint, o.cycles_max))?;
            let why = format!(
                "It has the lowest mean cost of {}: {:.1} modelled cycles a request, with a \
                 footprint of {}.",
                fronts.judged,
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
                "No request took more than {} modelled cycles, copying included, the least of \
                 {}, with a footprint of {}.",
                outcome.cycles_max,
                fronts.judged,
                bytes(outcome.footprint),
            );
            Some(chosen(outcome, why))
        }
        Preference::Guarantee => {
            let least = |o: &&Outcome| (o.guarantee.unwrap_or(u64::MAX), o.footprint, o.cycles);
            let outcome = all.iter().min_by_key(least)?;
            let why = format!(
                "It has the least guarantee of {}, at a footprint of {} and a mean cost of {:.1} \
                 modelled cycles a request.",
                fronts.judged,
                bytes(outcome.footprint),
                outcome.cycles_mean,
            );
            Some(chosen(outcome, why))
        }
        Preference::Balanced => balanced(fronts),
    }
}

impl Fronts<'_> {
    /// The one that takes least memory; of equals the fastest.
    fn smallest<'o>(&self, among: &[&'o Outcome]) -> Option<&'o Outcome> {
        let over = self.runs.map_or(Over::Worst, |runs| runs.over);
        let weighed = over.weigh(among).into_iter();
        let least = weighed.min_by_key(|(weight, o)| (*weight, o.cycles, o.cycles_max));
        least.map(|(_, outcome)| outcome)
    }

    /// What the smallest has.
    fn smallest_what(&self) -> &'static str {
        match self.runs.map(|runs| runs.over) {
            None => "smallest footprint",
            Some(Over::Worst) => "smallest largest footprint over the runs",
            Some(Over::Mean) => "smallest mean footprint over the runs",
            Some(Over::Both) => {
                "smallest mean footprint over the runs where the largest is at most 5 % above the least"
            }
        }
    }

    /// What it takes.
    fn memory(&self, outcome: &Outcome) -> String {
        match self.runs {
            None => bytes(outcome.footprint),
            Some(OfRuns { weight, .. }) => format!(
                "{} in the mean, {} at most,",
                bytes(outcome.footprint_sum / weight.max(1)),
                bytes(outcome.footprint)
            ),
        }
    }
}

fn balanced(fronts: &Fronts<'_>) -> Option<Choice> {
    let constant = fronts.constant_time;
    let fastest = constant.iter().map(|outcome| outcome.cycles).min();
    let Some(fastest) = fastest else {
        // No heap of constant time served the trace, as when a buddy is asked
        // for more alignment than it has: the smallest of all, then.
        let choice = best(fronts, Preference::Footprint)?;
        let why = format!(
            "No heap of constant time served every request. {}",
            choice.why
        );
        return Some(Choice { why, ..choice });
    };
    let limit = slowest_balanced(fastest);
    let fast: Vec<&Outcome> = constant
        .iter()
        .filter(|outcome| u128::from(outcome.cycles) <= limit)
        .collect();
    let outcome = fronts.smallest(&fast)?;
    let mut why = format!(
        "Of {}, those whose every operation takes constant time but for copying, and whose mean \
         cost is at most half as much again as the fastest such heap's, it has the {}: {} at {:.1} \
         modelled cycles a request.",
        fronts.judged,
        fronts.smallest_what(),
        fronts.memory(outcome),
        outcome.cycles_mean,
    );
    if fronts.runs.is_some() {
        return Some(chosen(outcome, why));
    }
    let smaller = (fronts.pareto.iter()).find(|other| other.footprint < outcome.footprint);
    if let Some(other) = smaller {
        let percent =
            (outcome.footprint - other.footprint) as f64 * 100.0 / outcome.footprint as f64;
        let cost = if other.constant_time {
            "more time in the mean"
        } else {
            "the bound on the time of an operation"
        };
        why.push_str(&format!(
            " The smallest of them all, {}, would save {percent:.1} % of that for {cost} ({:.1} cycles).",
            other.heap, other.cycles_mean,
        ));
    }
    Some(chosen(outcome, why))
}

/// Positions of some outcomes in the order in which each preference takes them:
/// balanced, footprint, speed, worst.
pub(crate) fn by_merit(outcomes: &[&Outcome]) -> [Vec<usize>; 4] {
    let constant = outcomes.iter().filter(|outcome| outcome.constant_time);
    let fastest = constant.map(|outcome| outcome.cycles).min();
    let limit = slowest_balanced(fastest.unwrap_or(0));
    let sorted = |key: &dyn Fn(&Outcome) -> [u64; 4]| {
        let mut order: Vec<usize> = (0..outcomes.len()).collect();
        order.sort_by_key(|&index| key(outcomes[index]));
        order
    };
    let unbalanced = |o: &Outcome| !o.constant_time || u128::from(o.cycles) > limit;
    [
        sorted(&|o| {
            [
                u64::from(unbalanced(o)),
                o.footprint,
                o.cycles,
                o.cycles_max,
            ]
        }),
        sorted(&|o| [o.footprint, o.cycles, o.cycles_max, 0]),
        sorted(&|o| [o.cycles, o.footprint, o.cycles_max, 0]),
        sorted(&|o| [o.cycles_max, o.footprint, o.cycles, 0]),
    ]
}

/// Cycles that a balanced heap may cost, beside the fastest one's.
fn slowest_balanced(fastest: u64) -> u128 {
    u128::from(fastest) * u128::from(SLOWER.0) / u128::from(SLOWER.1)
}

fn chosen(outcome: &Outcome, why: String) -> Choice {
    Choice {
        outcome: outcome.clone(),
        why,
        without: None,
    }
}

/// Bytes as people read them, exact below ten KiB.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..10_240 => format!("{count} bytes"),
        10_240..10_485_760 => format!("{:.1} KiB", count as f64 / 1024.0),
        _ => format!("{:.1} MiB", count as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Sampled, Unfinished};
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
            footprint_sum: footprint,
            cycles,
            cycles_mean: cycles as f64 / 100.0,
            cycles_max,
            own_cycles_max: cycles_max,
            copy_cycles: 0,
            copy_cycles_max: 0,
            record_reads: 0,
            record_writes: 0,
            failed: 0,
            guarantee: None,
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
            runs: None,
            sampled: None,
            named: Vec::new(),
            unfinished: Vec::new(),
            pareto,
            constant_time,
            guaranteed: None,
            outcomes: Vec::new(),
            rows: Vec::new(),
            details: Vec::new(),
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
    fn what_was_not_judged_is_not_claimed() {
        let outcomes = || vec![outcome("only", true, [900, 9000, 500])];
        let mut found = exploration(outcomes());
        found.configurations = 12;
        found.sampled = Some(Sampled {
            windows: 3,
            events: 1000,
            configurations: 345,
            unbeaten: 20,
            confirmed: 9,
        });
        for preference in [
            Preference::Balanced,
            Preference::Footprint,
            Preference::Speed,
            Preference::Worst,
        ] {
            let why = choose(&found, preference).unwrap().why;
            let part = "12 configurations replayed whole, picked from 345 on 3 windows";
            assert!(why.contains(part) && !why.contains("not finished"), "{why}");
        }
        let mut found = exploration(outcomes());
        found.configurations = 1;
        for (name, claimed) in [
            (
                "best-fit",
                "Nothing is said of best-fit: not finished in the budget.",
            ),
            (
                "lea",
                "Nothing is said of 2 heaps, best-fit, lea: not finished",
            ),
        ] {
            found.unfinished.push(Unfinished {
                heap: name.to_owned(),
                named: None,
                at_least: None,
                on_windows: None,
            });
            let why = choose(&found, Preference::Footprint).unwrap().why;
            assert!(
                why.contains("of the only configuration") && why.contains(claimed),
                "{why}"
            );
        }
    }

    #[test]
    fn the_first_by_merit_is_what_the_preference_picks() {
        let outcomes = vec![
            outcome("searching", false, [900, 9000, 500]),
            outcome("too slow", true, [1000, 6200, 60]),
            outcome("balanced", true, [1100, 5900, 70]),
            outcome("fast", true, [2000, 4000, 80]),
            outcome("steady", true, [3000, 5000, 50]),
        ];
        let all: Vec<&Outcome> = outcomes.iter().collect();
        let found = exploration(outcomes.clone());
        let firsts = by_merit(&all).map(|order| all[order[0]].heap.clone());
        let chosen = [
            Preference::Balanced,
            Preference::Footprint,
            Preference::Speed,
            Preference::Worst,
        ]
        .map(|preference| choose(&found, preference).unwrap().outcome.heap);
        assert_eq!(firsts, chosen);
    }

    #[test]
    fn without_constant_time_the_smallest_is_taken_and_said_so() {
        let found = exploration(vec![outcome("searching", false, [900, 9000, 500])]);
        let choice = choose(&found, Preference::Balanced).unwrap();
        assert_eq!(choice.outcome.heap, "searching");
        assert!(choice.why.starts_with("No heap of constant time"));
    }
}
