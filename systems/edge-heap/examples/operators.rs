//! What allocators cost in a module, as a table: `cargo run --release -p metes-edge-heap --example operators`.
//!
//! Needs what the tests need, and the registry for the peers.

#[path = "../tests/it/support.rs"]
mod support;

use metes_edge_heap::adversary::{Search, attack, replay};
use metes_edge_heap::fuel::{Allocator, Guest, GuestError};
use metes_edge_heap::longest::{Code, Given};
use metes_edge_heap::run::{Input, run};
use metes_edge_heap::traffic::{Most, churn, comb, first_request};

fn main() -> Result<(), GuestError> {
    println!(
        "| allocator | code | first request | allocate: churn, comb, adversaries, programs, bound | free: the same | mean | \
         pages grown |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (name, ours) in [
        ("tlsf", true),
        ("half_fit", true),
        ("wasi_libc", false),
        ("dlmalloc", false),
        ("talc", false),
        ("rlsf", false),
        ("rlsf_pool", false),
        ("lol_alloc", false),
    ] {
        row(name, &support::guest(name, !ours), ["allocate", "release"])?;
    }
    row(
        "C: metes-wasi",
        &support::allocator_of_c(true),
        ["malloc", "free"],
    )?;
    row(
        "C: wasi-libc",
        &support::allocator_of_c(false),
        ["malloc", "free"],
    )?;
    for ours in [true, false] {
        let wasm = support::compiled(&["words.c"], ours, &[]);
        let input = Input {
            arguments: vec!["words".to_owned(), "12".to_owned()],
            stdin: include_bytes!("../tests/c/contract.c").repeat(8),
            stop: None,
        };
        match run(&wasm, &input) {
            Ok(ran) => println!(
                "words.c, {}: {} operators, {} pages",
                if ours { "metes-wasi" } else { "wasi-libc" },
                ran.operators,
                ran.pages
            ),
            Err(error) => eprintln!("words.c: {error}"),
        }
    }
    Ok(())
}

fn row(name: &str, wasm: &[u8], [allocate, free]: [&str; 2]) -> Result<(), GuestError> {
    let mut guest = Guest::new(wasm)?;
    let first = first_request(&mut guest)?;
    let of_chance = churn(&mut guest, 1, 100_000, 400, false)?;
    let mut combed = Guest::new(wasm)?;
    first_request(&mut combed)?;
    let of_comb = comb(&mut combed, 2000, 100, 1)?;
    let allocator = Allocator::new(wasm)?;
    let of_adversaries = attack(&allocator, &Search::default())?;
    let (mut of_programs, mut grown) = (Most::default(), 0);
    for (_, events) in support::recorded() {
        let mut guest = allocator.guest()?;
        first_request(&mut guest)?;
        of_programs = of_programs.max(replay(&mut guest, events)?);
        grown += guest.grown();
    }
    let bound = |name: &str| {
        let code = Code::new(wasm).ok()?;
        let mut given = Given::default();
        for once in ["settle", "find_aligned"] {
            let functions = code.named(once).into_iter();
            given
                .functions
                .extend(functions.map(|function| (function, 0)));
        }
        code.longest(code.exported(name)?, &given).ok()
    };
    let shown = |bound: Option<u64>| bound.map_or("none".to_owned(), |bound| bound.to_string());
    println!(
        "| {name} | {} | {first} | {}, {}, {}, {}, {} | {}, {}, {}, {}, {} | {:.0} | {} |",
        Code::new(wasm).map_or(0, |code| code.all_bytes()),
        of_chance.allocate,
        of_comb.allocate,
        of_adversaries.allocate.operators,
        of_programs.allocate,
        shown(bound(allocate)),
        of_chance.free,
        of_comb.free,
        of_adversaries.free.operators,
        of_programs.free,
        shown(bound(free)),
        of_chance.total as f64 / of_chance.calls as f64,
        guest.grown() + combed.grown() + of_adversaries.grown + grown,
    );
    eprintln!("{name}: {of_adversaries:?}");
    Ok(())
}
