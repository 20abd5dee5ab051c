//! The exact test of a core beside the definition of demand, unit of time by unit of time, with bursts and blocking.

use metes_admission::{Decision, Function, Host, Interference, Scheduling, Set, admit};
use metes_random::Random;
use proptest::prelude::*;

/// Demand of windows of every length below an end, by counting releases one by one; none where nothing is due.
fn demands(
    functions: &[Function],
    blocking: u64,
    above: Option<Interference>,
    end: usize,
) -> Vec<Option<u64>> {
    let mut due = vec![0; end];
    for function in functions {
        let (mut release, mut number) = (0, 0);
        while let Some(sum) = due.get_mut((release + function.deadline) as usize) {
            *sum += function.budget;
            number += 1;
            if number >= function.burst {
                release += function.period;
            }
        }
    }
    let mut sum = blocking;
    let summed = (0..).zip(&due).map(|(window, more)| {
        sum += more;
        let more_above = above.map_or(0, |above| above.budget * (2 + window / above.period));
        (*more > 0).then_some(sum + more_above)
    });
    summed.collect()
}

fn above() -> impl Strategy<Value = Option<Interference>> {
    let above = (1..3_u64, prop::sample::select(vec![4_u64, 8, 10, 12, 30]));
    prop::option::of(above.prop_map(|(budget, period)| Interference { budget, period }))
}

fn function() -> impl Strategy<Value = Function> {
    (
        prop::sample::select(vec![1_u64, 2, 3, 4, 5, 6, 8, 10, 12]),
        1..40_u64,
        1..6_u64,
        1..4_u64,
    )
        .prop_map(|(period, deadline, budget, burst)| Function {
            burst,
            ..Function::new("", period, deadline, budget, 0).on(0)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_core_fits_if_no_window_demands_more_than_its_length(
        mut functions in prop::collection::vec(function(), 1..5),
        blocking in 0..4_u64,
        above in above(),
    ) {
        for (index, function) in functions.iter_mut().enumerate() {
            function.name = index.to_string();
        }
        // Behind the last deadline demand less supply repeats itself, or falls, each hyperperiod of at most 199.
        let periods = functions.iter().map(|function| function.period);
        let common: u64 = periods.chain(above.map(|above| above.period)).fold(1, |common, period| {
            let (mut left, mut right) = (common, period);
            while right != 0 { (left, right) = (right, left % right); }
            common / left * period
        });
        prop_assume!(common < 200);
        let shares = functions.iter().map(|function| (function.budget, function.period));
        let shares = shares.chain(above.map(|above| (above.budget, above.period)));
        let over = shares.map(|(budget, period)| common / period * budget).sum::<u64>() > common;
        let demands = demands(&functions, blocking, above, 41 + 2 * common as usize);
        let fits = !over && (0..).zip(demands).all(|(window, demand)| demand.is_none_or(|demand| demand <= window));
        let mut host = Host::new(1, 0);
        host.overheads.blocking = blocking;
        host.interference.extend(above);
        let set = Set { host, functions };
        match admit(&set) {
            Decision::Admitted(certificate) => {
                prop_assert!(fits);
                prop_assert_eq!(certificate.check(&set), Ok(()));
            }
            Decision::Refused(refusal) => {
                prop_assert!(!fits, "{}", refusal);
            }
        }
    }
}

/// A busy period that ends where what is above comes again, and where a deadline is.
#[test]
fn the_end_of_a_busy_period_decides_too() {
    let set = |budget| {
        let mut host = Host::new(1, 0);
        host.interference.push(Interference {
            budget: 1,
            period: 12,
        });
        let functions = vec![Function::new("a", 12, 12, budget, 0).on(0)];
        Set { host, functions }
    };
    let Decision::Admitted(certificate) = admit(&set(1)) else {
        panic!("it fits")
    };
    assert_eq!(certificate.check(&set(1)), Ok(()));
    let spare = certificate.cores[0].spare[0].budget;
    assert_eq!(spare, 8, "with nine, a window of 12 demands 13");
    assert!(matches!(admit(&set(9)), Decision::Admitted(_)));
    assert!(matches!(admit(&set(10)), Decision::Refused(_)));
}

/// Whether a deadline is missed on a core that runs what it has begun to its end, while what is above it takes its budget of
/// each period whenever chance has it, in so many units of time from arrivals at random.
fn misses(functions: &[Function], above: Interference, units: u64, seed: u64) -> bool {
    let mut random = Random::new(seed);
    let offsets: Vec<u64> = functions
        .iter()
        .map(|one| random.below(one.period))
        .collect();
    // By deadline, with the time that is left to be served.
    let mut waiting: Vec<(u64, u64)> = Vec::new();
    let mut runs: Option<(u64, u64)> = None;
    let mut left = 0;
    for now in 0..units {
        for (function, offset) in functions.iter().zip(&offsets) {
            if now >= *offset && (now - offset).is_multiple_of(function.period) {
                waiting.push((now + function.deadline, function.budget));
            }
        }
        if now.is_multiple_of(above.period) {
            left = above.budget;
        }
        // Late in one period and early in the next is what hurts most.
        let must = left > 0 && above.period - now % above.period <= left;
        if left > 0 && (must || random.below(4) == 0) {
            left -= 1;
            continue;
        }
        let running = runs.take().or_else(|| {
            let first = (0..waiting.len()).min_by_key(|index| waiting[*index])?;
            Some(waiting.swap_remove(first))
        });
        let Some((deadline, rest)) = running else {
            continue;
        };
        if now >= deadline {
            return true;
        }
        runs = (rest > 1).then_some((deadline, rest - 1));
    }
    waiting.iter().any(|(deadline, _)| *deadline < units)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn what_a_host_without_preemption_admits_below_interference_misses_nothing(
        mut functions in prop::collection::vec(function(), 1..5),
        above in above(),
        seed in any::<u64>(),
    ) {
        for (index, function) in functions.iter_mut().enumerate() {
            function.name = index.to_string();
            function.burst = 1;
            function.period *= 4;
        }
        let Some(above) = above else { return Ok(()) };
        let mut host = Host::new(1, 0);
        host.scheduling = Scheduling::NonPreemptive;
        host.interference = vec![above];
        let set = Set { host, functions };
        let Decision::Admitted(certificate) = admit(&set) else { return Ok(()) };
        prop_assert_eq!(certificate.check(&set), Ok(()));
        for run in 0..20 {
            prop_assert!(!misses(&set.functions, above, 2_000, seed.wrapping_add(run)));
        }
    }
}
