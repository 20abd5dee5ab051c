//! The admission as a whole: against simulation, against naive demand, and by examples.

mod against_naive;
mod criticality;
mod examples;
mod manifest;
mod non_preemptive;
mod random_sets;
mod tampered;
mod text;
