//! The `metes` binary from outside: what it prints, what it returns, what it
//! leaves on disk.
//!
//! Needs a C compiler, python3, perl, sqlite3 and gcc; a missing one fails the
//! test that needs it.

mod bad_input;
mod energy;
mod support;
mod tune;
mod verbs;
