//! The platform from outside: its managers, its faults, its bound.

mod bound;
mod faults;
mod managers;
mod setups;
