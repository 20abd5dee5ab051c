//! Instantiate, call, set back: ours beside wasmtime's allocators.
//!
//! *Invariant:* what is timed ends when the strategy could take the next invocation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use metes_edge::{Limits, Options, Outcome, Tiers, Worker};
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, Linker, Module, PoolingAllocationConfig, Store,
};

use crate::samples::{Samples, ordinary};
use crate::system_calls::Counter;

pub(crate) const NOP: &str = r#"(module (memory (export "memory") 2) (func (export "_start")))"#;

/// 64 KiB of data, and 4 KiB each written where a stack and a heap would lie.
pub(crate) fn work() -> String {
    let data: String = (0..65536u32)
        .map(|at| format!("\\{:02x}", (at * 7 + 1) % 255 + 1))
        .collect();
    format!(
        r#"(module (memory (export "memory") 3) (data (i32.const 16384) "{data}") (global $sp (mut i32) (i32.const 16384))
        (func (export "_start") (local $at i32)
            (global.set $sp (i32.sub (global.get $sp) (i32.const 4096)))
            (loop $again
                (i64.store (i32.add (global.get $sp) (local.get $at)) (i64.load offset=16384 (local.get $at)))
                (i64.store offset=90000 (local.get $at) (i64.load offset=20000 (local.get $at)))
                (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.const 4096))))
            (global.set $sp (i32.add (global.get $sp) (i32.const 4096)))))"#
    )
}

type Strategy = (&'static str, Box<dyn FnMut()>);

/// An invocation of each strategy; ours is the last.
fn strategies(text: &str) -> Vec<Strategy> {
    let wasm = wat::parse_str(text).expect("a module of ours");
    let pool = |resident: usize| {
        let mut pooling = PoolingAllocationConfig::new();
        pooling
            .total_core_instances(16)
            .total_memories(16)
            .total_tables(16);
        pooling
            .linear_memory_keep_resident(resident)
            .table_keep_resident(resident);
        InstanceAllocationStrategy::Pooling(pooling)
    };
    let mut all: Vec<Strategy> = [
        (
            "wasmtime, on demand (its default)",
            InstanceAllocationStrategy::OnDemand,
        ),
        ("wasmtime, pooling", pool(0)),
        ("wasmtime, pooling, memory kept resident", pool(1 << 20)),
    ]
    .map(|(name, strategy)| (name, wasmtimes(&wasm, strategy)))
    .into();
    all.push(("metes-edge", ours(&wasm)));
    all
}

fn wasmtimes(wasm: &[u8], strategy: InstanceAllocationStrategy) -> Box<dyn FnMut()> {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .wasm_backtrace_max_frames(None)
        .allocation_strategy(strategy);
    let engine = Engine::new(&config).expect("an engine");
    let module = Module::new(&engine, wasm).expect("a module of ours");
    let linker: Linker<()> = Linker::new(&engine);
    let pre = linker.instantiate_pre(&module).expect("no imports");
    Box::new(move || {
        let mut store = Store::new(&engine, ());
        store.set_epoch_deadline(1_000_000);
        let instance = pre.instantiate(&mut store).expect("there is room");
        let start = instance
            .get_typed_func::<(), ()>(&mut store, "_start")
            .expect("it is there");
        start.call(&mut store, ()).expect("it ends well");
    })
}

fn ours(wasm: &[u8]) -> Box<dyn FnMut()> {
    let options = |lock| Options {
        slots: 4,
        slot_bytes: 1 << 20,
        lock,
        ..Options::default()
    };
    let engine = metes_edge::Engine::new(options(true)).expect("an engine");
    let limits = Limits {
        tiers: Tiers::Optimised,
        ..Limits::default()
    };
    let (engine, module) = match engine.compile(wasm, &limits) {
        Ok(module) => (engine, module),
        Err(error) => {
            println!("without locked memory: {error}");
            let engine = metes_edge::Engine::new(options(false)).expect("an engine");
            let module = engine.compile(wasm, &limits).expect("a module of ours");
            (engine, module)
        }
    };
    let mut worker = Worker::new(&engine);
    worker.prepare(&module).expect("there is room");
    let mut output = Vec::with_capacity(4096);
    Box::new(move || {
        let invocation = worker.invoke(&module, &[], &mut output, Duration::from_millis(500));
        assert_eq!(invocation.outcome, Outcome::Done { exit: 0 });
    })
}

/// Faults and system calls of an invocation, over a hundred.
fn disturbances(invoke: &mut dyn FnMut()) -> String {
    let before = faults();
    for _ in 0..100 {
        invoke();
    }
    let faults = (faults() - before) as f64 / 100.0;
    let counter = Counter::new();
    counter.begin();
    for _ in 0..100 {
        invoke();
    }
    let (calls, _) = counter.end();
    format!(
        "faults {faults:.2}  system calls {:.2}",
        calls as f64 / 100.0
    )
}

fn faults() -> i64 {
    // SAFETY: zeros are valid, and the structure is ours.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_minflt + usage.ru_majflt
    }
}

/// One invocation after the other.
pub(crate) fn quiet(text: &str, invocations: usize) {
    for (name, mut invoke) in strategies(text) {
        for _ in 0..200 {
            invoke();
        }
        let disturbances = disturbances(&mut *invoke);
        let mut times = Vec::with_capacity(invocations);
        for _ in 0..invocations {
            let begin = Instant::now();
            invoke();
            times.push(begin.elapsed().as_nanos() as u64);
        }
        Samples::of(times).row(name, &disturbances);
    }
}

/// One each millisecond, while others of the process are at the mappings.
pub(crate) fn noisy(text: &str, invocations: u32) {
    let ended = Arc::new(AtomicBool::new(false));
    let noise: Vec<_> = (0..2)
        .map(|_| {
            let ended = ended.clone();
            ordinary(move || {
                let mut rounds = 0u64;
                while !ended.load(Ordering::Relaxed) {
                    map_and_unmap();
                    rounds += 1;
                }
                rounds
            })
        })
        .collect();
    let mut rows = Vec::new();
    for (name, mut invoke) in strategies(text) {
        for _ in 0..50 {
            invoke();
        }
        let disturbances = disturbances(&mut *invoke);
        let mut times = Vec::with_capacity(invocations as usize);
        let begin = Instant::now();
        for round in 1..=invocations {
            let release = begin + Duration::from_millis(1) * round;
            std::thread::sleep(release.saturating_duration_since(Instant::now()));
            let begin = Instant::now();
            invoke();
            times.push(begin.elapsed().as_nanos() as u64);
        }
        rows.push((name, Samples::of(times), disturbances));
    }
    ended.store(true, Ordering::Relaxed);
    let rounds: u64 = noise
        .into_iter()
        .map(|thread| thread.join().expect("noise does not panic"))
        .sum();
    let ours = rows.last().expect("ours is there").1.at(990_000);
    for (name, samples, disturbances) in &rows {
        samples.row(
            name,
            &format!(
                "{disturbances}  p99 to ours {:.1}",
                samples.at(990_000) / ours
            ),
        );
    }
    println!("mappings made and removed meanwhile: {rounds}");
}

fn map_and_unmap() {
    const BYTES: usize = 1 << 20;
    // SAFETY: a mapping of its own, touched inside and removed again.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let mapping = libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        assert!(mapping != libc::MAP_FAILED, "no memory for noise");
        for at in (0..BYTES).step_by(4096) {
            mapping.cast::<u8>().add(at).write_volatile(1);
        }
        libc::munmap(mapping, BYTES);
    }
}
