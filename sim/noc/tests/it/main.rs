//! The network from outside: random traffic over all sizes, faults, published latencies, processes.
