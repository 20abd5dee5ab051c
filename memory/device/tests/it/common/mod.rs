//! What tests share.

pub(crate) use metes_random::Random;
