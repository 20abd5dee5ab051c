//! Tests of the protocol over all of its tables: each row written and read, any bytes read, packets that other decoders
//! read, the stream of telecommands.

mod framing;
mod generate;
mod golden;
mod packets;
mod samples;
mod tables;
