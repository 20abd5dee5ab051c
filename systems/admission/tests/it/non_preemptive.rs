//! A host whose invocations go on to their end.

use metes_admission::simulation::{Behaviour, Outcome, simulate_scheduled};
use metes_admission::{Decision, Function, Host, Scheduling, Set, admit};
use metes_random::Random;

#[test]
fn what_is_admitted_meets_its_deadlines_behind_others_that_have_begun() {
    let mut random = Random::new(11);
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..2000 {
        let functions = (0..random.between(2, 4)).map(|index| {
            let period = random.between(6, 40);
            let budget = random.between(1, (period / 3).max(1));
            Function::new(
                index.to_string(),
                period,
                random.between(budget, period),
                budget,
                0,
            )
            .on(0)
        });
        let mut set = Set {
            functions: functions.collect(),
            host: Host::new(1, 0),
        };
        let preemptive = matches!(admit(&set), Decision::Admitted(_));
        set.host.scheduling = Scheduling::NonPreemptive;
        let Decision::Admitted(certificate) = admit(&set) else {
            refused += u32::from(preemptive);
            continue;
        };
        admitted += 1;
        assert!(preemptive, "{set:?}");
        assert_eq!(certificate.check(&set), Ok(()), "{set:?}");
        let functions: Vec<&Function> = set.functions.iter().collect();
        let behaviour = Behaviour::Drawn(Random::new(random.next()));
        let held = Scheduling::NonPreemptive;
        let outcome = simulate_scheduled(&functions, held, 0, 16, 2000, behaviour);
        assert_eq!(outcome, Outcome::Met, "{set:?}");
    }
    assert!(admitted > 100 && refused > 100, "{admitted} {refused}");
}

#[test]
fn a_long_invocation_may_have_begun_a_unit_before() {
    let answer = |deadline| {
        let mut set = Set {
            host: Host::new(1, 0),
            functions: vec![
                Function::new("short", 100, deadline, 2, 0).on(0),
                Function::new("long", 100, 100, 50, 0).on(0),
            ],
        };
        set.host.scheduling = Scheduling::NonPreemptive;
        matches!(admit(&set), Decision::Admitted(_))
    };
    assert!(answer(51) && !answer(50));
}
