//! Sets whose answers are known.

use metes_admission::{
    Certificate, Change, Decision, Flaw, Function, Host, Network, Reason, Refusal, Server, Set,
    admit,
};

fn set(functions: Vec<Function>) -> Set {
    Set {
        host: Host::new(2, 1000),
        functions,
    }
}

fn admitted(set: &Set) -> Certificate {
    match admit(set) {
        Decision::Admitted(certificate) => {
            assert_eq!(certificate.check(set), Ok(()));
            certificate
        }
        Decision::Refused(refusal) => panic!("{refusal}"),
    }
}

fn refused(set: &Set) -> Refusal {
    match admit(set) {
        Decision::Admitted(certificate) => panic!("{certificate:?}"),
        Decision::Refused(refusal) => refusal,
    }
}

#[test]
fn demand_decides_where_utilisation_would_not() {
    let two = |deadline| {
        set(vec![
            Function::new("a", 10, 4, 3, 0).on(0),
            Function::new("b", 10, deadline, 2, 0).on(0),
        ])
    };
    let certificate = admitted(&two(5));
    assert_eq!(certificate.cores[0].utilisation.as_deref(), Some("1/2"));
    assert_eq!(certificate.core_of("b"), Some(0));
    let refusal = refused(&two(4));
    assert_eq!(
        refusal.reason,
        Reason::Demand {
            core: 0,
            time: 4,
            demand: 5
        }
    );
    let name = |name: &str| name.to_owned();
    assert_eq!(
        refusal.changes,
        [
            Change::Budget {
                name: name("a"),
                to: 2
            },
            Change::Deadline {
                name: name("a"),
                to: 5
            },
            Change::Budget {
                name: name("b"),
                to: 1
            },
            Change::Deadline {
                name: name("b"),
                to: 5
            },
        ]
    );
    assert_eq!(
        refusal.to_string(),
        "core 0 must do 5 in a window of 4, so a deadline is missed: lower the budget of `a` to 2, or raise the deadline \
         of `a` to 5, or lower the budget of `b` to 1, or raise the deadline of `b` to 5"
    );
}

#[test]
fn a_whole_core_is_admitted_and_no_more() {
    let thirds = |last| {
        set(vec![
            Function::new("a", 3, 3, 1, 0).on(1),
            Function::new("b", 6, 6, 2, 0).on(1),
            Function::new("c", 9, 9, last, 0).on(1),
        ])
    };
    assert_eq!(
        admitted(&thirds(3)).cores[1].utilisation_millionths,
        1_000_000
    );
    let refusal = refused(&thirds(4));
    let Reason::Utilisation {
        core: 1, fraction, ..
    } = &refusal.reason
    else {
        panic!("{refusal}");
    };
    assert_eq!(fraction.as_deref(), Some("10/9"));
    assert!(refusal.changes.contains(&Change::Period {
        name: "c".to_owned(),
        to: 12
    }));
}

#[test]
fn memory_is_summed() {
    let bytes = |memory| {
        set(vec![
            Function::new("a", 9, 9, 1, 600),
            Function::new("b", 9, 9, 1, memory),
        ])
    };
    let certificate = admitted(&bytes(300));
    assert_eq!(
        (certificate.memory.used, certificate.memory.left),
        (900, 100)
    );
    let refusal = refused(&bytes(u64::MAX));
    assert_eq!(
        refusal.changes,
        [Change::Memory {
            missing: u128::from(u64::MAX) - 400
        }]
    );
}

#[test]
fn functions_without_a_core_are_placed_or_none_exists() {
    let third = |count: usize, budget| {
        set((0..count)
            .map(|index| Function::new(index.to_string(), 12, 12, budget, 0))
            .collect())
    };
    admitted(&third(4, 6));
    let refusal = refused(&third(3, 7));
    assert_eq!(refusal.reason, Reason::NoPartition { whole: true });
    assert_eq!(refusal.changes[0], Change::Cores { to: 3 });
    // More than all ways are tried for, and the heuristics give up.
    let refusal = refused(&third(15, 2));
    assert_eq!(refusal.reason, Reason::NoPartition { whole: false });
    assert!(refusal.to_string().contains("though one may exist"));
}

#[test]
fn the_whole_search_finds_what_heuristics_do_not() {
    // Two cores of 100: 100 = 45 + 30 + 25 = 40 + 35 + 25.
    let budgets = [45, 40, 35, 30, 25, 25];
    let functions = budgets.iter().enumerate();
    let functions = functions
        .map(|(index, budget)| Function::new(index.to_string(), 100, 100, *budget, 0))
        .collect();
    let certificate = admitted(&set(functions));
    for core in &certificate.cores {
        assert_eq!(core.utilisation_millionths, 1_000_000);
    }
}

#[test]
fn overheads_and_the_compile_server_count_if_they_are_declared() {
    let one = || {
        let mut set = set(vec![Function::new("a", 10, 5, 4, 0).on(0)]);
        set.host.cores = 1;
        set
    };
    admitted(&one());
    for (release, scrub, blocking) in [(1, 0, 0), (0, 1, 0), (0, 0, 1)] {
        let mut declared = one();
        declared.host.overheads.release = release;
        declared.host.overheads.scrub = scrub;
        declared.host.overheads.blocking = blocking;
        admitted(&declared);
        declared.functions[0].budget = 5;
        refused(&declared);
    }
    let server = |budget| {
        let mut set = one();
        set.host.compile_server = Some(Server {
            budget,
            period: 10,
            memory: 10,
            core: None,
        });
        set
    };
    assert!(admitted(&server(6)).cores[0].compile_server);
    refused(&server(7));
}

#[test]
fn a_burst_is_due_at_once_and_a_network_takes_of_the_deadline() {
    let burst = |burst, deadline| {
        set(vec![Function {
            burst,
            ..Function::new("a", 10, deadline, 2, 0).on(0)
        }])
    };
    admitted(&burst(3, 6));
    refused(&burst(3, 5));
    let network = |deadline, rate| {
        set(vec![Function {
            burst: 2,
            network: Some(Network {
                bytes: 100,
                latency: 7,
                rate,
            }),
            ..Function::new("a", 10, deadline, 2, 0).on(0)
        }])
    };
    // 7 + 200 / 50 on the way, and then two of 2, and one that was late: within 6.
    admitted(&network(17, 50));
    refused(&network(16, 50));
    let refusal = refused(&network(17, 9));
    assert_eq!(
        refusal.changes,
        [Change::NetworkRate {
            name: "a".to_owned(),
            to: 10
        }]
    );
}

#[test]
fn extreme_figures_have_an_answer() {
    let most = u64::MAX;
    for period in [1, 2, most - 1, most] {
        for deadline in [1, most] {
            for budget in [1, most] {
                for burst in [1, most] {
                    let mut set = set(vec![
                        Function {
                            burst,
                            ..Function::new("a", period, deadline, budget, 0).on(0)
                        },
                        Function::new("b", most - 2, most - 4, most / 2, 0),
                        Function::new("c", 3, most, 1, 0),
                    ]);
                    set.host.overheads.release = budget;
                    if let Decision::Admitted(certificate) = admit(&set) {
                        // A walk of 2⁶³ deadlines is refused.
                        let checked = certificate.check(&set);
                        let refused = matches!(checked, Err(Flaw::TooLong(0)));
                        assert!(refused || checked == Ok(()), "{checked:?}");
                    }
                }
            }
        }
    }
}
