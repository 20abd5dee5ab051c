//! Looking at an emitted heap returns, whatever was written over its memory.

use std::process::Command;

use crate::{sample, support};

#[test]
fn looking_at_a_damaged_heap_returns() {
    for (name, description) in sample::named() {
        let directory = support::emitted(&description);
        // The sanitizer sees what is read outside, even where it is mapped.
        let flags = ["-O1", "-g", "-fsanitize=address"];
        let program = support::build_program(directory.path(), "damaged", &flags);
        println!("{name}");
        support::succeed(&mut Command::new(program));
    }
}
