//! Two levels of criticality against simulation with drawn arrivals and execution times.

use metes_admission::simulation::{Behaviour, Outcome, simulate};
use metes_admission::{Criticality, Decision, Function, Host, Set, admit};
use metes_random::Random;

fn drawn(random: &mut Random) -> Set {
    let count = random.between(2, 5);
    let functions = (0..count).map(|index| {
        let period = random.between(6, 40);
        let budget = random.between(1, (period / 4).max(1));
        let deadline = random.between((period / 2).max(budget), period);
        let mut function = Function::new(index.to_string(), period, deadline, budget, 0).on(0);
        match random.below(2) {
            0 => function.criticality = Criticality::Low,
            _ => function.budget_high = Some(budget + random.below(budget + 1)),
        }
        function
    });
    Set {
        functions: functions.collect(),
        host: Host::new(1, 0),
    }
}

#[test]
fn what_is_admitted_by_degrading_misses_no_deadline_that_counts() {
    let mut random = Random::new(5);
    let mut degraded = 0;
    for _ in 0..2000 {
        let set = drawn(&mut random);
        let Decision::Admitted(certificate) = admit(&set) else {
            continue;
        };
        assert_eq!(certificate.check(&set), Ok(()), "{set:?}");
        let scale = certificate.cores[0].degraded.as_ref();
        degraded += u32::from(scale.is_some());
        let scale = scale.map_or(16, |degraded| degraded.virtual_deadlines);
        let functions: Vec<&Function> = set.functions.iter().collect();
        let behaviour = Behaviour::Drawn(Random::new(random.next()));
        let outcome = simulate(&functions, 0, scale, 2000, behaviour);
        assert_eq!(outcome, Outcome::Met, "{set:?} {certificate:?}");
    }
    assert!(degraded > 50, "{degraded}");
}

#[test]
fn nothing_is_given_up_where_all_fits() {
    let mut high = Function::new("h", 10, 10, 2, 0).on(0);
    high.budget_high = Some(6);
    let low = |budget| Function {
        criticality: Criticality::Low,
        ..Function::new("l", 10, 10, budget, 0).on(0)
    };
    let answer = |budget| {
        let set = Set {
            host: Host::new(1, 0),
            functions: vec![high.clone(), low(budget)],
        };
        match admit(&set) {
            Decision::Admitted(certificate) => certificate.cores[0].degraded.clone(),
            Decision::Refused(refusal) => panic!("{refusal}"),
        }
    };
    assert_eq!(answer(4), None);
    let degraded = answer(5).expect("6 and 5 are more than 10");
    assert_eq!(degraded.suspended, ["l"]);
    assert!(degraded.virtual_deadlines < 16);
}
