//! Interleavings beside all that there are: small recordings, whose every order is tried.

mod naive;
mod peak;
mod sharing;
mod shuffles;
