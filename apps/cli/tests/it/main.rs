//! The `metes` binary from outside: what it prints, what it returns, what it
//! leaves on disk.
//!
//! Needs a C compiler, python3, perl, sqlite3, gcc, and the programs of the case
//! studies; a missing one fails the test that needs it.

mod accesses;
mod bad_input;
mod beside;
mod bounds;
mod cases;
mod compare;
mod curve;
mod device;
mod energy;
mod files;
mod firmware;
mod guarantee;
mod interleave;
mod leon3;
mod mapped;
mod mesh;
mod mission;
mod module;
mod pages;
mod platform;
mod power_explore;
mod power_models;
mod runs;
mod signals;
mod support;
mod tune;
mod verbs;
mod worst_case;
mod wrong;
