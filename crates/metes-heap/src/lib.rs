//! x
#![no_std]

pub mod bounds;
