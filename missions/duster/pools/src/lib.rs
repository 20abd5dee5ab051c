//! Memory pools as flight software has them: baselines.
#![no_std]
