//! The exact test of a core beside the definition of demand, unit of time by unit of time, with bursts and blocking.

use metes_admission::{Decision, Function, Host, Set, admit};
use proptest::prelude::*;

/// Demand of windows of every length below an end, by counting releases one by one.
fn demands(functions: &[Function], blocking: u64, end: usize) -> Vec<u64> {
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
    let summed = due.iter().scan(blocking, |sum, more| {
        *sum += more;
        Some(*sum)
    });
    summed.collect()
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
    ) {
        for (index, function) in functions.iter_mut().enumerate() {
            function.name = index.to_string();
        }
        // Behind the last deadline demand less supply repeats itself, or falls, each hyperperiod of at most 199.
        let common: u64 = functions.iter().fold(1, |common, function| {
            let (mut left, mut right) = (common, function.period);
            while right != 0 { (left, right) = (right, left % right); }
            common / left * function.period
        });
        prop_assume!(common < 200);
        let over = functions.iter().map(|f| common / f.period * f.budget).sum::<u64>() > common;
        let demands = demands(&functions, blocking, 41 + 2 * common as usize);
        let fits = !over && (0..).zip(demands).all(|(window, demand)| demand <= window || demand == blocking);
        let mut host = Host::new(1, 0);
        host.overheads.blocking = blocking;
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
