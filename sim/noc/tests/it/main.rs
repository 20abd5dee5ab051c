//! The network from outside: random traffic over all sizes, faults, published latencies, processes.

mod booksim;
mod closed;
mod faults;
mod flows;
mod processes;
mod traffic;
