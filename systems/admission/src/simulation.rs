//! Preemptive earliest deadline first on one core, one unit of time after the other: what the admission is held against.
//!
//! *Invariant:* nothing is computed ahead: a miss is a deadline that has come with work left.

use metes_random::Random;

use crate::set::{Criticality, Function, Scheduling};

/// How a simulation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The core was idle, or the time was over, and no deadline had been missed.
    Met,
    /// A deadline was missed.
    Missed {
        /// Whose.
        function: String,
        /// When it was.
        time: u64,
    },
    /// Neither in the units of time that were allowed.
    TooLong,
}

/// How functions behave.
#[derive(Debug)]
pub enum Behaviour {
    /// All arrive at once and then as often as they may, and take all of their budgets; until the core is idle.
    Synchronous,
    /// Arrivals and execution times are drawn; a function of high criticality may take its `budget_high`.
    Drawn(Random),
}

struct Invocation {
    begun: bool,
    /// By which it is scheduled.
    urgency: u64,
    deadline: u64,
    function: usize,
    left: u64,
    /// What it may take before the core is switched to high criticality.
    usual: u64,
}

/// Simulates functions without network on one core for so many units of time, behind a section of `blocking` that is not
/// preempted. Virtual deadlines are so many sixteenths of those of functions of high criticality; 16 is none.
#[must_use]
pub fn simulate(
    functions: &[&Function],
    blocking: u64,
    sixteenths: u64,
    units: u64,
    behaviour: Behaviour,
) -> Outcome {
    simulate_scheduled(
        functions,
        Scheduling::Preemptive,
        blocking,
        sixteenths,
        units,
        behaviour,
    )
}

/// The same under either kind of scheduling.
#[must_use]
pub fn simulate_scheduled(
    functions: &[&Function],
    scheduling: Scheduling,
    blocking: u64,
    sixteenths: u64,
    units: u64,
    mut behaviour: Behaviour,
) -> Outcome {
    let synchronous = matches!(behaviour, Behaviour::Synchronous);
    let mut active: Vec<Invocation> = Vec::new();
    let mut arrivals: Vec<Arrivals> = functions
        .iter()
        .map(|function| Arrivals::new(function))
        .collect();
    let (mut blocked, mut switched) = (blocking, false);
    for time in 0..units {
        if active.is_empty() && blocked == 0 {
            switched = false;
            if synchronous && time > 0 {
                return Outcome::Met;
            }
        }
        for (index, (function, arrivals)) in functions.iter().zip(&mut arrivals).enumerate() {
            let low = function.criticality == Criticality::Low;
            for _ in 0..arrivals.at(time, &mut behaviour) {
                if switched && low {
                    continue;
                }
                let deadline = time + function.deadline;
                let sooner = (function.deadline * sixteenths).div_ceil(16);
                active.push(Invocation {
                    begun: false,
                    urgency: if low || switched {
                        deadline
                    } else {
                        time + sooner
                    },
                    deadline,
                    function: index,
                    left: taken(function, &mut behaviour),
                    usual: function.budget,
                });
            }
        }
        let late = active.iter().find(|invocation| invocation.deadline <= time);
        if let Some(late) = late {
            return Outcome::Missed {
                function: functions[late.function].name.clone(),
                time,
            };
        }
        if blocked > 0 {
            blocked -= 1;
            continue;
        }
        let Some(next) = (0..active.len()).min_by_key(|index| active[*index].urgency) else {
            continue;
        };
        let over = active[next].usual == 0;
        if over && !switched && !synchronous {
            switched = true;
            let kept = |invocation: &Invocation| {
                functions[invocation.function].criticality == Criticality::High
            };
            active.retain(kept);
            for invocation in &mut active {
                invocation.urgency = invocation.deadline;
            }
        }
        let Some(next) = (0..active.len()).min_by_key(|index| active[*index].urgency) else {
            continue;
        };
        let holds = |index: &usize| active[*index].begun && scheduling == Scheduling::NonPreemptive;
        let next = (0..active.len()).find(holds).unwrap_or(next);
        let invocation = &mut active[next];
        invocation.begun = true;
        invocation.left -= 1;
        invocation.usual = invocation.usual.saturating_sub(1);
        if invocation.left == 0 {
            active.swap_remove(next);
        }
    }
    if synchronous {
        Outcome::TooLong
    } else {
        Outcome::Met
    }
}

/// How long an invocation takes.
fn taken(function: &Function, behaviour: &mut Behaviour) -> u64 {
    let most = function.budget_high.unwrap_or(function.budget);
    match behaviour {
        Behaviour::Synchronous => most,
        Behaviour::Drawn(random) => match random.below(4) {
            0 => most,
            1 => random.between(1, most),
            _ => function.budget,
        },
    }
}

/// A bucket of `burst` tokens, of which one comes back each period.
struct Arrivals {
    burst: u64,
    period: u64,
    tokens: u64,
    /// Since the bucket was last full, modulo the period.
    phase: u64,
}

impl Arrivals {
    fn new(function: &Function) -> Self {
        Arrivals {
            burst: function.burst,
            period: function.period,
            tokens: function.burst,
            phase: 0,
        }
    }

    /// How many arrive now.
    fn at(&mut self, time: u64, behaviour: &mut Behaviour) -> u64 {
        if time > 0 && self.tokens < self.burst {
            self.phase += 1;
            if self.phase == self.period {
                self.phase = 0;
                self.tokens += 1;
            }
        }
        let now = match behaviour {
            Behaviour::Synchronous => self.tokens,
            Behaviour::Drawn(random) => match random.below(3) {
                0 => random.between(0, self.tokens),
                _ => 0,
            },
        };
        self.tokens -= now;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_deadline_goes_first_and_a_late_one_is_told() {
        let (first, second) = (
            Function::new("a", 10, 4, 3, 0),
            Function::new("b", 10, 5, 2, 0),
        );
        let run = |functions: &[&Function], blocking| {
            simulate(functions, blocking, 16, 1000, Behaviour::Synchronous)
        };
        assert_eq!(run(&[&first, &second], 0), Outcome::Met);
        assert_eq!(
            run(&[&second, &first], 1),
            Outcome::Missed {
                function: "b".to_owned(),
                time: 5
            }
        );
    }

    #[test]
    fn a_bucket_lets_no_more_through_than_it_holds() {
        let function = Function {
            burst: 3,
            ..Function::new("a", 4, 4, 1, 0)
        };
        let mut arrivals = Arrivals::new(&function);
        let counts: Vec<u64> = (0..10)
            .map(|time| arrivals.at(time, &mut Behaviour::Synchronous))
            .collect();
        assert_eq!(counts, [3, 0, 0, 0, 1, 0, 0, 0, 1, 0]);
    }
}
