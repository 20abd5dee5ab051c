//! Measures what the host promises, beside wasmtime's own allocators of instances, in one run:
//!
//!     cargo run --release -p metes-edge --example goals [INVOCATIONS]
//!
//! *Invariant:* all strategies run the same module by the same compiler with the same checks of epochs, and
//! each figure is of this run.

mod cost;
mod invoke;
mod overrun;
mod samples;
mod scrub;
#[path = "../../tests/it/system_calls.rs"]
mod system_calls;
mod tiers;

fn main() {
    let invocations = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(20_000);
    samples::real_time();
    println!("instantiate, call and set back a function that does nothing, 2 pages of memory");
    invoke::quiet(invoke::NOP, invocations);
    println!(
        "\nthe same, of a function that uses 4 KiB of stack and heap, with 64 KiB of data and 3 pages of memory"
    );
    invoke::quiet(&invoke::work(), invocations);
    println!(
        "\nthe same, once a millisecond, while two threads of the process map, touch and unmap 1 MiB each"
    );
    invoke::noisy(&invoke::work(), (invocations / 5).max(200) as u32);
    println!(
        "\nsetting a memory back, by its size, p50, beside looking for a byte that is not zero"
    );
    scrub::measure();
    println!("\nend of an overrun, budget 500 us, late by");
    overrun::measure((invocations / 50).max(50) as u32);
    println!("\na module that nobody has seen");
    tiers::measure();
    println!("\noperators, and what they take here");
    cost::measure();
}
