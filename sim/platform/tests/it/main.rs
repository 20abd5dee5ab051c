//! The platform from outside: its managers, its faults, its bound.

mod faults;
mod managers;
mod setups;
