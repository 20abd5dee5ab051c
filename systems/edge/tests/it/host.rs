//! What a host counts when it admits, and what it does between invocations.

use std::sync::mpsc;

use metes_edge::{Host, HostError, HostOptions, Options, Overheads, Response, Tier};

/// Tells how often it was called, by what it keeps.
const COUNTER: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (func (export "_start")
        (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
        (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 4))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 20)))))"#;

fn options(cores: u32) -> HostOptions {
    HostOptions {
        cores,
        engine: Options {
            slots: 8,
            slot_bytes: 1 << 16,
            lock: false,
            deadline_priority: None,
            ..Options::default()
        },
        // A machine under load measures what it likes.
        overheads: Some(overheads(10_000)),
        ..HostOptions::default()
    }
}

fn overheads(release_ns: u64) -> Overheads {
    Overheads {
        release_ns,
        blocking_ns: 0,
        look_ns: 0,
        look_period_ns: 100_000,
    }
}

fn manifest(name: &str, more: &str) -> String {
    format!(
        "name = \"{name}\"\nmodule = \"m.wasm\"\nperiod = \"10 ms\"\nbudget = \"2 ms\"\n{more}\n"
    )
}

fn counter() -> Vec<u8> {
    wat::parse_str(COUNTER).expect("a guest of ours")
}

fn refused(host: &Host, manifest: &str) -> String {
    match host.deploy(manifest, &counter()) {
        Err(error @ HostError::NotAdmitted(_)) => error.to_string(),
        other => panic!("it was to be refused: {other:?}"),
    }
}

fn invoke(host: &Host, name: &str) -> Response {
    let (send, receive) = mpsc::channel();
    let reply = move |response| drop(send.send(response));
    host.invoke(name, Vec::new(), reply).expect("it is there");
    receive.recv().expect("an answer")
}

#[test]
fn what_the_host_takes_is_admitted_with_the_function() {
    for (release, fits) in [(10_000, true), (2_900_000, false)] {
        let mut options = options(1);
        options.overheads = Some(overheads(release));
        let host = Host::start(options).expect("a host");
        host.deploy(&manifest("a", ""), &counter())
            .expect("it fits");
        host.deploy(&manifest("b", ""), &counter())
            .expect("it fits");
        let third = host.deploy(&manifest("c", ""), &counter());
        assert_eq!(third.is_ok(), fits, "{release}: {third:?}");
    }
    // A look of 45 us twice in each 100 us leaves no time for budgets of 2 ms that must end in 2 ms.
    let mut options = options(1);
    options.overheads = Some(Overheads {
        look_ns: 45_000,
        ..overheads(0)
    });
    let host = Host::start(options).expect("a host");
    let said = refused(&host, &manifest("a", "deadline = \"2100 us\""));
    assert!(said.contains("lower the budget"), "{said}");
}

#[test]
fn what_is_measured_is_told() {
    let mut options = options(2);
    options.overheads = None;
    let host = Host::start(options).expect("a host");
    let told = host.told();
    assert!(
        told.overheads.release_ns > told.overheads.look_ns,
        "{told:?}"
    );
    assert!(told.overheads.look_ns > 0, "{told:?}");
    assert_eq!(told.overheads.look_period_ns, 100_000);
    let told = host
        .deploy(&manifest("a", ""), &counter())
        .expect("it fits");
    assert!(told.overhead_ns > 0);
}

#[test]
fn a_function_that_may_hold_its_worker_has_a_core_to_itself() {
    let host = Host::start(options(1)).expect("a host");
    host.deploy(&manifest("a", "overrun = \"suspend\""), &counter())
        .expect("there is none");
    let said = refused(&host, &manifest("b", ""));
    assert!(said.contains("a core to itself"), "{said}");

    let host = Host::start(options(3)).expect("a host");
    let core = |name: &str, more: &str| {
        host.deploy(&manifest(name, more), &counter())
            .map(|told| told.core)
    };
    assert_eq!(core("a", "core = 0").expect("it fits"), 0);
    let suspended = core("b", "overrun = \"suspend\"").expect("it fits");
    let degraded = core("c", "overrun = \"degrade\"").expect("it fits");
    assert!(suspended != degraded && suspended > 0 && degraded > 0);
    assert_eq!(core("d", "").expect("it fits"), 0);
    assert!(core("e", "core = 1").is_err());
    assert!(core("f", "overrun = \"suspend\"").is_err());
    host.remove("c").expect("it is there");
    assert_eq!(
        core("f", "overrun = \"suspend\"").expect("it fits"),
        degraded
    );
}

#[test]
fn a_budget_shorter_than_two_looks_is_refused() {
    let host = Host::start(options(1)).expect("a host");
    let manifest = manifest("a", "").replace("2 ms", "199 us");
    match host.deploy(&manifest, &counter()) {
        Err(HostError::ShortBudget { budget, least }) => {
            assert_eq!((budget, least), (199_000, 200_000));
        }
        other => panic!("it was to be refused: {other:?}"),
    }
}

#[test]
fn code_that_becomes_ready_goes_on_with_what_the_function_keeps() {
    let host = Host::start(options(1)).expect("a host");
    // An ordinary thread that is held up for longer than a budget would lose what it keeps.
    let manifest = manifest("a", "state = \"kept\"")
        .replace("10 ms", "300 ms")
        .replace("2 ms", "290 ms");
    host.deploy(&manifest, &counter()).expect("it fits");
    let mut tiers = Vec::new();
    for call in 1..100_u32 {
        let response = invoke(&host, "a");
        assert_eq!(response.output, call.to_le_bytes());
        tiers.push(response.invocation.tier);
        if tiers
            .iter()
            .filter(|tier| **tier == Tier::Optimised)
            .count()
            == 2
        {
            assert_eq!(tiers.first(), Some(&Tier::Baseline));
            return;
        }
    }
    panic!("it never took over: {tiers:?}");
}

#[test]
fn a_function_is_removed_with_its_memory_while_others_are_asked() {
    let host = Host::start(options(2)).expect("a host");
    for name in ["a", "b"] {
        host.deploy(&manifest(name, ""), &counter())
            .expect("it fits");
    }
    let taken = host.told().memory_taken;
    for round in 0..5 {
        let name = format!("c{round}");
        host.deploy(&manifest(&name, ""), &counter())
            .expect("it fits");
        assert_eq!(invoke(&host, "a").output, 1_u32.to_le_bytes());
        host.remove(&name).expect("it is there");
        assert_eq!(host.told().memory_taken, taken);
    }
}
