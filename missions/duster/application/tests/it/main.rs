//! Core 0 on the host: each service, each bad input, any telecommand.

mod any;
mod bad;
mod memory;
mod modes;
mod science;
mod services;
mod supplies;
