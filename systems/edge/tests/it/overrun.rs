//! What becomes of an invocation at the end of its budget.

use std::time::Duration;

use metes_edge::{Budget, BudgetClock, Limits, Outcome, Policy, Worker};

use crate::guests::{NOP, SPIN, TIERS, binary, engine, limits, status};

const SHORT: Duration = Duration::from_millis(2);

#[test]
fn an_endless_loop_is_stopped_and_never_early() {
    for tiers in TIERS {
        let engine = engine();
        let spin = engine
            .compile(&binary(SPIN), &limits(tiers))
            .expect("a guest of ours");
        let nop = engine
            .compile(&binary(NOP), &limits(tiers))
            .expect("a guest of ours");
        let mut worker = Worker::new(&engine);
        for _ in 0..5 {
            let invocation = worker.invoke(&spin, &[], &mut Vec::new(), SHORT);
            let Outcome::Overrun { late_ns } = invocation.outcome else {
                panic!("{invocation:?}")
            };
            assert_eq!(invocation.time_ns, SHORT.as_nanos() as u64 + late_ns);
            assert_eq!(status(&mut worker, &nop), 0);
        }
    }
}

#[test]
fn a_recursion_that_never_ends_is_stopped() {
    let text = r#"(module (func $f (param i32) (result i32) (if (result i32) (local.get 0)
        (then (i32.add (call $f (i32.sub (local.get 0) (i32.const 1))) (call $f (i32.sub (local.get 0) (i32.const 1)))))
        (else (i32.const 1)))) (func (export "_start") (drop (call $f (i32.const 60)))))"#;
    for tiers in TIERS {
        let engine = engine();
        let module = engine
            .compile(&binary(text), &limits(tiers))
            .expect("a guest of ours");
        let invocation = Worker::new(&engine).invoke(&module, &[], &mut Vec::new(), SHORT);
        assert!(
            matches!(invocation.outcome, Outcome::Overrun { .. }),
            "{invocation:?}"
        );
    }
}

#[test]
fn the_overrun_of_one_worker_does_not_end_another_s() {
    let engine = engine();
    let spin = engine
        .compile(&binary(SPIN), &Limits::default())
        .expect("a guest of ours");
    std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            let mut worker = Worker::new(&engine);
            worker.invoke(&spin, &[], &mut Vec::new(), Duration::from_millis(120))
        });
        scope.spawn(|| {
            let mut worker = Worker::new(&engine);
            for _ in 0..20 {
                worker.invoke(&spin, &[], &mut Vec::new(), Duration::from_millis(1));
            }
        });
        let invocation = long.join().expect("the worker does not panic");
        assert!(matches!(invocation.outcome, Outcome::Overrun { .. }));
        assert!(invocation.time_ns >= 120_000_000, "{invocation:?}");
    });
}

#[test]
fn a_suspended_function_goes_on_in_its_next_period() {
    let engine = engine();
    let spin = engine
        .compile(&binary(SPIN), &Limits::default())
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    let policy = Policy::Suspend {
        period: Duration::from_millis(10),
        times: 3,
    };
    let invocation = worker.invoke(
        &spin,
        &[],
        &mut Vec::new(),
        Budget {
            time: SHORT,
            policy,
        },
    );
    assert!(
        matches!(invocation.outcome, Outcome::Overrun { .. }),
        "{invocation:?}"
    );
    assert_eq!(invocation.suspended, 3);
    // Released again at 10, 20 and 30 ms, each time with its budget.
    assert!(invocation.time_ns >= 32_000_000, "{invocation:?}");
}

#[test]
fn a_suspended_function_may_end_well() {
    // Thirty million turns: more than its budget on any processor, however often it is interrupted.
    let text = r#"(module (memory 1) (func (export "_start") (local $turn i32)
            (loop $again (local.set $turn (i32.add (local.get $turn) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $turn) (i32.const 30000000))))))"#;
    let engine = engine();
    let module = engine
        .compile(&binary(text), &Limits::default())
        .expect("a guest of ours");
    let policy = Policy::Suspend {
        period: Duration::from_millis(10),
        times: 100_000,
    };
    let invocation = Worker::new(&engine).invoke(
        &module,
        &[],
        &mut Vec::new(),
        Budget {
            time: SHORT,
            policy,
        },
    );
    assert_eq!(invocation.outcome, Outcome::Done { exit: 0 });
    assert!(invocation.suspended >= 1, "{invocation:?}");
}

#[test]
fn a_degraded_function_gets_further_time_and_the_thread_its_class_back() {
    let engine = engine();
    let spin = engine
        .compile(&binary(SPIN), &Limits::default())
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    // SAFETY: asks for a number.
    let class = || unsafe { libc::sched_getscheduler(0) };
    let before = class();
    let policy = Policy::Degrade {
        further: Duration::from_millis(20),
    };
    let invocation = worker.invoke(
        &spin,
        &[],
        &mut Vec::new(),
        Budget {
            time: SHORT,
            policy,
        },
    );
    assert!(
        matches!(invocation.outcome, Outcome::Overrun { .. }),
        "{invocation:?}"
    );
    assert!(
        invocation.degraded && invocation.time_ns >= 22_000_000,
        "{invocation:?}"
    );
    assert_eq!(class(), before);
}

#[test]
fn a_budget_of_nothing_is_refused() {
    let engine = engine();
    let nop = engine
        .compile(&binary(NOP), &Limits::default())
        .expect("a guest of ours");
    let invocation = Worker::new(&engine).invoke(&nop, &[], &mut Vec::new(), Duration::ZERO);
    assert!(matches!(invocation.outcome, Outcome::Refused(_)));
}

#[test]
fn a_budget_of_processor_time_is_not_spent_by_others() {
    let engine = engine();
    let spin = engine
        .compile(&binary(SPIN), &Limits::default())
        .expect("a guest of ours");
    let budget = Duration::from_millis(30);
    let pin = || {
        // SAFETY: a plain structure of ours, for the calling thread; zeros are valid.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(0, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    };
    let used = || {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: a structure of ours.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin();
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let worker = scope.spawn(|| {
            pin();
            let mut worker = Worker::new(&engine);
            worker.set_clock(BudgetClock::Processor);
            worker.prepare(&spin).expect("there is room");
            let mut runs = Vec::new();
            for policy in [
                Policy::Stop,
                Policy::Suspend {
                    period: Duration::from_millis(50),
                    times: 1,
                },
            ] {
                let before = used();
                let invocation = worker.invoke(
                    &spin,
                    &[],
                    &mut Vec::new(),
                    Budget {
                        time: budget,
                        policy,
                    },
                );
                runs.push((invocation, used() - before));
            }
            runs
        });
        let runs = worker.join().expect("the worker does not panic");
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        for (times, (invocation, used)) in (1..).zip(runs) {
            assert!(
                matches!(invocation.outcome, Outcome::Overrun { .. }),
                "{invocation:?}"
            );
            assert!(used >= budget * times, "{used:?} {invocation:?}");
        }
    });
}
