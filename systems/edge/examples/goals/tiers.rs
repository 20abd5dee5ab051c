//! The first result of a module that nobody has seen, and how fast it is in the end.
//!
//! *Invariant:* the host is started before; reading the module's bytes is not part of the time.

use std::time::{Duration, Instant};

use metes_edge::{CompileServer, Engine, Limits, Options, Outcome, State, Tier, Tiers, Worker};

use crate::samples::ordinary;

/// About 30 KB of code: many functions of which each is a little loop over memory, called in turn.
pub(crate) fn module() -> Vec<u8> {
    let functions = 210;
    let mut text = String::from(r#"(module (memory (export "memory") 2)"#);
    for number in 0..functions {
        let (factor, step, shift) = (number * 2 + 3, number % 7 + 1, number % 31 + 1);
        text.push_str(&format!(
            r#"(func $f{number} (param $n i32) (result i64) (local $at i32) (local $sum i64) (local $x f64)
            (local.set $sum (i64.const {factor}))
            (loop $again
                (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const {factor}))
                    (i64.load (i32.and (i32.mul (local.get $at) (i32.const {step}8)) (i32.const 0xfff8)))))
                (local.set $sum (i64.xor (local.get $sum) (i64.shr_u (local.get $sum) (i64.const {shift}))))
                (local.set $x (f64.add (f64.mul (local.get $x) (f64.const 0.5)) (f64.convert_i32_s (local.get $at))))
                (if (i32.and (local.get $at) (i32.const 1)) (then
                    (i64.store (i32.and (i32.mul (local.get $at) (i32.const 40)) (i32.const 0xfff8)) (local.get $sum))))
                (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (local.get $n))))
            (i64.add (local.get $sum) (i64.trunc_sat_f64_s (local.get $x))))"#
        ));
    }
    text.push_str(r#"(func (export "_start") (local $sum i64)"#);
    for number in 0..functions {
        text.push_str(&format!(
            "(local.set $sum (i64.add (local.get $sum) (call $f{number} (i32.const 100))))"
        ));
    }
    text.push_str("(i64.store (i32.const 0) (local.get $sum))))");
    wat::parse_str(&text).expect("a module of ours")
}

pub(crate) fn measure() {
    let wasm = module();
    println!("bytes of the module                         {}", wasm.len());
    for (tiers, name) in [
        (Tiers::Both, "both tiers"),
        (Tiers::Optimised, "optimised alone"),
    ] {
        for (real_time, class) in [(true, "FIFO"), (false, "ordinary class")] {
            let mut firsts: Vec<_> = (0..15).map(|_| run(&wasm, tiers, 1, real_time).0).collect();
            firsts.sort_unstable();
            let name = format!("first result, {name}, {class}");
            println!(
                "{name:<44}p50 {:.2}  max {:.2} ms of 15",
                ms(firsts[7]),
                ms(firsts[14])
            );
        }
    }
    let (_, _, alone) = run(&wasm, Tiers::Optimised, 3000, false);
    let (_, switched, both) = run(&wasm, Tiers::Both, 3000, false);
    let (_, _, baseline) = run(&wasm, Tiers::Baseline, 3000, false);
    let (_, reserved, _) = run_with(&wasm, Tiers::Both, 3000, false, RESERVED);
    for (call, time, held) in [switched, reserved].into_iter().flatten() {
        let server = if held {
            "10 ms in 20 reserved"
        } else {
            "no budget reserved"
        };
        println!(
            "switched, {server:<34}after {call} calls, {:.0} ms",
            ms(time)
        );
    }
    println!(
        "steady: least of a thousand calls           baseline {:.1}  both {:.1}  optimised {:.1} us",
        us(baseline),
        us(both),
        us(alone)
    );
    println!(
        "steady, both tiers to optimised             {:.3}",
        both.as_secs_f64() / alone.as_secs_f64()
    );
}

const RESERVED: Option<CompileServer> = Some(CompileServer {
    budget: Duration::from_millis(10),
    period: Duration::from_millis(20),
});

type Run = (Duration, Option<(u32, Duration, bool)>, Duration);

fn run(wasm: &[u8], tiers: Tiers, calls: u32, real_time: bool) -> Run {
    run_with(wasm, tiers, calls, real_time, None)
}

/// Time to the first result, when the optimised code ran first, and the least time of a call by the last tier.
fn run_with(
    wasm: &[u8],
    tiers: Tiers,
    calls: u32,
    real_time: bool,
    compile_server: Option<CompileServer>,
) -> Run {
    let wasm = wasm.to_vec();
    let work = move || {
        let engine = Engine::new(Options {
            slots: 4,
            slot_bytes: 1 << 20,
            lock: false,
            compile_server,
            ..Options::default()
        })
        .expect("an engine");
        let limits = Limits {
            tiers,
            state: State::Fresh,
            ..Limits::default()
        };
        let begin = Instant::now();
        let module = engine.compile(&wasm, &limits).expect("a module of ours");
        let mut worker = Worker::new(&engine);
        let mut output = Vec::new();
        let mut first = None;
        let mut switched = None;
        let mut least = Duration::MAX;
        for call in 0..calls {
            let invocation = worker.invoke(&module, &[], &mut output, Duration::from_secs(1));
            assert_eq!(invocation.outcome, Outcome::Done { exit: 0 });
            first.get_or_insert_with(|| begin.elapsed());
            if invocation.tier == Tier::Optimised && tiers == Tiers::Both {
                switched.get_or_insert((call, begin.elapsed(), engine.compiler_reserved()));
            }
            if invocation.tier == module.best() {
                least = least.min(Duration::from_nanos(invocation.time_ns));
            }
            if call + 1000 == calls {
                engine.settle();
                least = Duration::MAX;
            }
        }
        (first.unwrap_or_default(), switched, least)
    };
    if real_time {
        work()
    } else {
        ordinary(work).join().expect("no panic")
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
