//! Contracts: read, kept and broken.

use metes_bounds::{Axis, Breach, Contract, Options, observe};
use metes_curve::{Rational, Value};
use metes_trace::{Provenance, Trace, TraceBuilder};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_trace_keeps_what_it_declares_itself(trace in crate::common::traces(100), nanoseconds in any::<bool>()) {
        prop_assume!(!nanoseconds || trace.times().iter().any(|time| time > 0));
        let mut options = Options::default();
        if nanoseconds {
            options.axis = Axis::Nanoseconds;
        }
        let observed = observe(&trace, options).unwrap();
        let contract = Contract::kept_by(&observed);
        prop_assert_eq!(contract.first_breach(&trace), None);
        let read = Contract::parse(&contract.to_toml()).unwrap();
        prop_assert_eq!(&read, &contract);
        prop_assert!(contract.bound().unwrap() >= observed.total.peak);
        for (class, share) in contract.classes().iter().zip(&observed.classes) {
            prop_assert!(class.bound().unwrap() >= share.peak);
            // A token bucket is above the staircase, so its bound is above that of the lifetime.
            let curve = class.arrival().unwrap();
            for (time, value) in share.arrival.steps().iter().take(20) {
                let behind = &Rational::from(*time as i64) + &Rational::new(1, 2).unwrap();
                let step = Value::Finite(Rational::from(*value as i64));
                if share.arrival.is_exact() {
                    prop_assert!(curve.value(&behind).unwrap() >= step);
                }
            }
            // One byte less of burst is broken.
            if class.burst > 0 {
                let less = contract.to_toml().replace(
                    &format!("largest = {}\nburst = {}\n", class.largest, class.burst),
                    &format!("largest = {}\nburst = {}\n", class.largest, class.burst - 1),
                );
                let less = Contract::parse(&less).unwrap();
                prop_assert!(less.first_breach(&trace).is_some());
            }
        }
    }
}

/// Two blocks of 16, the second for three events, and one of 100 that stays.
fn small() -> Trace {
    let mut builder = TraceBuilder::new();
    let first = builder.alloc(0, 0, 16, 8).unwrap();
    let second = builder.alloc(0, 0, 16, 8).unwrap();
    builder.free(0, 0, first).unwrap();
    builder.alloc(0, 0, 100, 8).unwrap();
    builder.free(0, 0, second).unwrap();
    builder.finish(Provenance::default())
}

fn contract(burst: u64, lifetime: u64, largest: u64) -> Contract {
    let text = format!(
        "[[class]]\nlargest = 16\nburst = {burst}\nrate = \"1/2\"\nlifetime = {lifetime}\n\
         [[class]]\nlargest = {largest}\nburst = 100\nrate = 0\n"
    );
    Contract::parse(&text).unwrap()
}

#[test]
fn the_first_window_that_breaks_a_contract_is_named() {
    let trace = small();
    assert_eq!(contract(32, 2, 100).first_breach(&trace), None);
    // 32 + 1/2 · 2, and 100 without a lifetime because nothing more comes.
    assert_eq!(contract(32, 2, 100).bound(), Some(133));
    let Some(Breach::Burst {
        class: 0,
        window,
        from_event: 0,
        event: 1,
        allowed: 31,
    }) = contract(31, 2, 100).first_breach(&trace)
    else {
        panic!("32 bytes in events 0 and 1, 31 + 1/2 declared")
    };
    assert_eq!((window.from, window.to, window.bytes), (0, 1, 32));
    let aged = contract(32, 1, 100).first_breach(&trace).unwrap();
    assert!(
        matches!(
            aged,
            Breach::Lifetime {
                class: 0,
                event: 1,
                last: 3,
                ..
            }
        ),
        "{aged}"
    );
    let large = contract(32, 2, 99).first_breach(&trace).unwrap();
    assert!(
        matches!(
            large,
            Breach::TooLarge {
                size: 100,
                event: 3,
                ..
            }
        ),
        "{large}"
    );
}

#[test]
fn what_is_no_contract_is_said_with_a_remedy() {
    let class = |rest: &str| format!("[[class]]\nlargest = 8\nburst = 8\n{rest}");
    let cases = [
        (String::new(), "no [[class]]"),
        (class("rate = \"1/0\"\n"), "22/7"),
        (class("rate = 0.5\n"), "22/7"),
        (class("rate = -1\n"), "22/7"),
        (class("rate = 1\nlife = 3\n"), "line 5"),
        (class(""), "rate"),
        (format!("{0}{0}", class("rate = 1\n")), "sort the classes"),
        ("axis = \"days\"\n".to_owned(), "events or nanoseconds"),
        ("[class".to_owned(), "line 1"),
    ];
    for (text, part) in cases {
        let error = Contract::parse(&text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    // Without a lifetime a class that goes on arriving has no bound.
    assert_eq!(Contract::parse(&class("rate = 1\n")).unwrap().bound(), None);
}
