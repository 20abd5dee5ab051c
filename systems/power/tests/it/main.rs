//! Frequencies and speeds: exact analysis against naive runs, plans against brute force, by examples; models beside other
//! implementations and planted faults; machines as trees of files.

mod analysis;
mod anomalies;
mod foreign;
mod heaps;
mod machine;
mod meter;
mod peers;
mod phases;
mod plans;
mod planted;
mod speed;
mod text;
