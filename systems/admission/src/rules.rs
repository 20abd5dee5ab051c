//! Simpler tests of a core, beside which the exact one stands: by utilisation, by density, and Linux's own.
//!
//! *Invariant:* each decides as its source says, in whole numbers; functions without a core are left out.

use crate::demand::Utilisation;
use crate::set::{Function, Set};

/// Whether no core is asked for more than all of its time: necessary, and sufficient if no deadline is below its period
/// (Liu and Layland 1973).
#[must_use]
pub fn utilisation(set: &Set) -> bool {
    each_core(set, |functions| {
        at_most_all(functions, |function| function.period)
    })
}

/// Whether budgets over deadlines, or periods where these are shorter, come to no more than a core: sufficient.
#[must_use]
pub fn density(set: &Set) -> bool {
    each_core(set, |functions| {
        at_most_all(functions, |function| function.period.min(function.deadline))
    })
}

/// Whether Linux admits the set to `SCHED_DEADLINE` with each core a scheduling domain of its own: budgets over periods, to
/// 20 binary digits rounded down, at most 95 of 100 (`sched_rt_runtime_us`). Deadlines are not looked at.
#[must_use]
pub fn sched_deadline(set: &Set) -> bool {
    const UNIT: u128 = 1 << 20;
    const LIMIT: u128 = 950_000 * UNIT / 1_000_000;
    each_core(set, |functions| {
        let shares = functions
            .iter()
            .map(|function| u128::from(function.budget) * UNIT / u128::from(function.period));
        let possible = |function: &&Function| {
            function.budget <= function.deadline && function.deadline <= function.period
        };
        functions.iter().all(possible) && shares.sum::<u128>() <= LIMIT
    })
}

fn at_most_all(functions: &[&Function], over: impl Fn(&Function) -> u64) -> bool {
    let parts = functions
        .iter()
        .map(|function| (u128::from(function.budget), over(function)));
    let asked = Utilisation::of(parts);
    asked.numerator <= asked.denominator
}

fn each_core(set: &Set, holds: impl Fn(&[&Function]) -> bool) -> bool {
    (0..set.host.cores).all(|core| {
        let on = |function: &&Function| function.core == Some(core);
        let functions: Vec<&Function> = set.functions.iter().filter(on).collect();
        holds(&functions)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::Host;

    #[test]
    fn linux_looks_at_no_deadline() {
        let ten = |deadline| Set {
            host: Host::new(1, 0),
            functions: (0..9)
                .map(|index| Function::new(index.to_string(), 10, deadline, 1, 0).on(0))
                .collect(),
        };
        assert!(sched_deadline(&ten(1)) && utilisation(&ten(1)) && !density(&ten(1)));
        assert!(density(&ten(10)));
    }
}
