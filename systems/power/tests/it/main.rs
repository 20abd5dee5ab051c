//! Frequencies and speeds: exact analysis against naive runs, plans against brute force, by examples.

mod analysis;
mod plans;
mod speed;
mod text;
