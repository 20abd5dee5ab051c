//! An admitted set, asked for as often as it may be, beside programs that take what they can: every deadline that is missed is
//! told, with what the kernel says of that second.
//!
//!     cargo run --release -p metes-edge --example admitted [SECONDS] [NOISE]
//!
//! SECONDS is 600 and NOISE 1 unless given; 0 leaves the machine alone. Needs the right to real-time priority
//! (`CAP_SYS_NICE`), and says so if it has none.
//!
//! *Invariant:* what is counted is every invocation of the time; nothing is left out as an outlier.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use metes_edge::{Host, HostOptions, Options, Outcome, Response};

/// Name, core, period and deadline in milliseconds, budget in microseconds, rounds of its loop.
const FUNCTIONS: [(&str, u32, u64, u64, u32); 6] = [
    ("control", 0, 5, 400, 40_000),
    ("filter", 0, 10, 1_000, 150_000),
    ("detect", 0, 20, 2_000, 400_000),
    ("fast", 1, 4, 300, 30_000),
    ("fuse", 1, 20, 1_500, 300_000),
    ("log", 1, 50, 2_000, 400_000),
];

const WASM: &str = r#"(module (memory (export "memory") 4)
    (func (export "_start") (local $left i32) (local $at i32)
        (local.set $left (i32.const ROUNDS))
        (loop $on
            (local.set $at (i32.and (i32.add (local.get $at) (i32.const 68)) (i32.const 0x3fffc)))
            (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (local.get $left)))
            (br_if $on (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))))"#;

/// What happened in a second.
#[derive(Default)]
struct Second {
    missed: Vec<String>,
    /// Milliseconds that the machine below took, of all processors.
    stolen: u64,
}

#[derive(Default)]
struct Log {
    seconds: BTreeMap<u64, Second>,
    overruns: u64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments
        .next()
        .map_or(600, |text| text.parse().expect("seconds"));
    let noise = arguments.next().is_none_or(|text| text != "0");
    let options = HostOptions {
        cores: 2,
        priority: Some(50),
        engine: Options {
            slots: FUNCTIONS.len() + 1,
            slot_bytes: 1 << 18,
            ..Options::default()
        },
        ..HostOptions::default()
    };
    let host = Host::start(options).expect("a host");
    for worker in host.told().workers {
        println!("core {}: {}", worker.core, worker.class);
    }
    println!("{:?}", host.told().overheads);
    for (name, core, period, budget, rounds) in FUNCTIONS {
        let wasm = wat::parse_str(WASM.replace("ROUNDS", &rounds.to_string())).expect("ours");
        let manifest = format!(
            "name = \"{name}\"\nmodule = \"-\"\ncore = {core}\nperiod = \"{period} ms\"\nbudget = \"{budget} us\"\n"
        );
        let told = host.deploy(&manifest, &wasm).expect("it is admitted");
        println!(
            "{name}: overhead {} ns, empty {:?} ns",
            told.overhead_ns, told.measured_ns
        );
    }
    if let Some(certificate) = host.told().certificate {
        for core in certificate.cores {
            println!(
                "core {}: {:.1} % asked for, overheads included",
                core.core,
                core.utilisation_millionths as f64 / 1e4
            );
        }
    }
    let ended = Arc::new(AtomicBool::new(false));
    let others = if noise { disturb(&ended) } else { Vec::new() };
    let log = Arc::new(Mutex::new(Log::default()));
    let begin = Instant::now();
    for (name, ..) in FUNCTIONS {
        // Two at a time: the second waits for its release, so that there is always a next.
        for _ in 0..2 {
            again(&host, name, begin, &log, &ended);
        }
    }
    let mut stolen = steal();
    while begin.elapsed() < Duration::from_secs(seconds) {
        let second = begin.elapsed().as_secs();
        thread::sleep(
            Duration::from_millis(1000).saturating_sub(Duration::from_nanos(u64::from(
                begin.elapsed().subsec_nanos(),
            ))),
        );
        let now = steal();
        let mut log = log.lock().expect("nobody panics with it");
        log.seconds.entry(second).or_default().stolen = now - stolen;
        stolen = now;
    }
    ended.store(true, Ordering::Relaxed);
    thread::sleep(Duration::from_millis(200));
    for other in others {
        other.join().expect("it ends");
    }
    tell(&host, &log.lock().expect("nobody panics with it"));
}

fn tell(host: &Host, log: &Log) {
    println!(
        "function  invocations  missed  overrun   time p50/p99.9/max us   response p50/p99.9/max us   deadline us"
    );
    for told in host.list() {
        let (time, response) = (told.time_ns, told.response_ns);
        let us = |ns: u64| ns as f64 / 1e3;
        println!(
            "{:9} {:11} {:7} {:8}   {:.0} {:.0} {:.0}   {:.0} {:.0} {:.0}   {:.0}",
            told.name,
            told.counts.done + told.counts.overrun,
            told.counts.missed,
            told.counts.overrun,
            us(time.p50),
            us(time.p999),
            us(time.max),
            us(response.p50),
            us(response.p999),
            us(response.max),
            us(told.deadline_ns),
        );
    }
    let all: u64 = log.seconds.values().map(|second| second.stolen).sum();
    println!(
        "{} overruns; {all} ms stolen by the machine below in {} s",
        log.overruns,
        log.seconds.len()
    );
    for (number, second) in &log.seconds {
        for missed in &second.missed {
            println!(
                "second {number}, {} ms stolen in it: {missed}",
                second.stolen
            );
        }
    }
}

fn again(
    host: &Host,
    name: &'static str,
    begin: Instant,
    log: &Arc<Mutex<Log>>,
    ended: &Arc<AtomicBool>,
) {
    if ended.load(Ordering::Relaxed) {
        return;
    }
    let next = (host.clone(), Arc::clone(log), Arc::clone(ended));
    let reply = move |response: Response| {
        let (host, log, ended) = next;
        let ran = &response.invocation;
        let overrun = matches!(ran.outcome, Outcome::Overrun { .. });
        if overrun || response.missed {
            let before = response
                .response_ns
                .saturating_sub(ran.time_ns + ran.scrub_ns);
            let mut log = log.lock().expect("nobody panics with it");
            log.overruns += u64::from(overrun);
            let what = format!(
                "{name} {}: {} us before it ran, {} us it ran, {} us set back",
                if response.missed { "missed" } else { "overran" },
                before / 1000,
                ran.time_ns / 1000,
                ran.scrub_ns / 1000,
            );
            log.seconds
                .entry(begin.elapsed().as_secs())
                .or_default()
                .missed
                .push(what);
        }
        again(&host, name, begin, &log, &ended);
    };
    host.invoke(name, Vec::new(), reply).expect("it is there");
}

/// Milliseconds that the machine below has taken, as the kernel knows it.
fn steal() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text
        .lines()
        .next()
        .and_then(|line| line.split_whitespace().nth(8));
    ticks
        .and_then(|ticks| ticks.parse::<u64>().ok())
        .unwrap_or(0)
        * 10
}

/// Two threads that count, two that map and unmap memory, one that writes files.
fn disturb(ended: &Arc<AtomicBool>) -> Vec<thread::JoinHandle<()>> {
    let counting = || {
        for number in 0..100_000_u64 {
            std::hint::black_box(number);
        }
    };
    let mapping = || {
        let memory = vec![1_u8; 4 << 20];
        std::hint::black_box(&memory);
    };
    let writing = || {
        let path = std::env::temp_dir().join("metes-edge-noise");
        std::fs::write(&path, vec![7_u8; 1 << 20]).expect("there is room");
        std::fs::remove_file(&path).expect("it is there");
    };
    let kinds: [fn(); 5] = [counting, counting, mapping, mapping, writing];
    kinds
        .into_iter()
        .map(|kind| {
            let ended = Arc::clone(ended);
            thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    kind();
                }
            })
        })
        .collect()
}
