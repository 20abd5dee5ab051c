//! Bounds on code for LEON3 beside what the simulator counts.

mod corners;
mod firmware;
mod machine;
mod random;
mod words;
