//! Programs in C on the library and on wasi-libc's own allocator.

use metes_edge_heap::run::{Input, Ran, RunError, run};

use crate::support::compiled;

fn input(arguments: &[&str]) -> Input {
    // Any text will do that has words, as often as makes a program need memory.
    let stdin = include_bytes!("../c/contract.c").repeat(8);
    Input {
        arguments: arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect(),
        stdin,
        stop: None,
    }
}

fn run_of(source: &str, ours: bool, arguments: &[&str]) -> Ran {
    let wasm = compiled(&[source], ours, &[]);
    run(&wasm, &input(arguments)).expect("a program that ends")
}

#[test]
fn the_contract_of_c_is_kept() {
    let ran = run_of("contract.c", true, &["contract"]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "ok\n");
    assert_eq!((ran.status, ran.pages), (0, ran.first_pages));
}

#[test]
fn a_program_says_the_same() {
    let ours = run_of("words.c", true, &["words", "12"]);
    let theirs = run_of("words.c", false, &["words", "12"]);
    assert!(ours.stdout.ends_with(b"words\n"));
    assert_eq!((ours.stdout, ours.status), (theirs.stdout, theirs.status));
    // Its memory is what it was linked with; the other's grew.
    assert_eq!(ours.pages, ours.first_pages);
    assert!(theirs.pages > theirs.first_pages);
}

#[test]
fn what_cannot_run_is_told() {
    let wasm = compiled(&["nothing.c"], false, &["-mexec-model=reactor"]);
    let refused = run(&wasm, &Input::default());
    assert!(matches!(refused, Err(RunError::Refused(_))), "{refused:?}");
    assert!(run(b"\x7fELF", &Input::default()).is_err());
}
