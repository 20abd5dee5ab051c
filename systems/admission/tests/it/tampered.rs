//! Certificates that were changed are found out.

use metes_admission::{Certificate, Decision, Flaw, Function, Host, Set, admit};

fn example() -> (Set, Certificate) {
    let set = Set {
        host: Host::new(2, 100),
        functions: vec![
            Function::new("a", 10, 4, 3, 40).on(0),
            Function::new("b", 10, 9, 4, 40),
            Function::new("c", 20, 20, 5, 10),
        ],
    };
    match admit(&set) {
        Decision::Admitted(certificate) => (set, certificate),
        Decision::Refused(refusal) => panic!("{refusal}"),
    }
}

fn flaw(change: impl FnOnce(&mut Set, &mut Certificate)) -> Flaw {
    let (mut set, mut certificate) = example();
    assert_eq!(certificate.check(&set), Ok(()));
    change(&mut set, &mut certificate);
    certificate.check(&set).expect_err("it was changed")
}

#[test]
fn a_certificate_is_of_its_set_alone() {
    assert!(matches!(
        flaw(|set, _| set.functions[0].budget = 5),
        Flaw::Missed { .. }
    ));
    assert!(matches!(
        flaw(|set, _| set.functions[0].core = Some(1)),
        Flaw::Placement(_)
    ));
    assert!(matches!(
        flaw(|set, _| set.functions[0].memory += 1),
        Flaw::Memory { .. }
    ));
    assert!(matches!(
        flaw(|set, _| set.host.cores = 3),
        Flaw::Cores { .. }
    ));
    assert!(matches!(
        flaw(|set, _| set.functions[0].period = 0),
        Flaw::Set(_)
    ));
    let more = Function::new("d", 20, 20, 1, 0);
    assert!(matches!(
        flaw(|set, _| set.functions.push(more)),
        Flaw::Placement(_)
    ));
    assert!(matches!(
        flaw(|set, _| drop(set.functions.pop())),
        Flaw::Memory { .. } | Flaw::Placement(_)
    ));
}

#[test]
fn what_a_certificate_says_is_computed_again() {
    assert!(matches!(
        flaw(|_, said| said.memory.left += 1),
        Flaw::Memory { .. }
    ));
    assert!(matches!(
        flaw(|_, said| drop(said.cores.pop())),
        Flaw::Cores { .. }
    ));
    let twice = |_: &mut Set, said: &mut Certificate| {
        let name = said.cores[0].functions[0].clone();
        said.cores[1].functions.push(name);
    };
    assert!(matches!(flaw(twice), Flaw::Placement(_)));
    assert!(matches!(
        flaw(|_, said| said.cores[0].compile_server = true),
        Flaw::Placement(_)
    ));
    assert!(matches!(
        flaw(|_, said| said.cores[0].decides[0].demand -= 1),
        Flaw::Point { .. }
    ));
    assert!(matches!(
        flaw(|_, said| said.cores[0].spare[0].budget += 1),
        Flaw::Spare { .. }
    ));
}

#[test]
fn a_certificate_is_read_as_it_was_written() {
    let (_, mut certificate) = example();
    certificate.cores[0].horizon = u128::MAX;
    let text = serde_json::to_string(&certificate).expect("it is written");
    assert_eq!(
        serde_json::from_str::<Certificate>(&text).expect("it is read"),
        certificate
    );
    let other = text.replace("\"left\"", "\"kept\"");
    assert!(serde_json::from_str::<Certificate>(&other).is_err());
}
