//! The DUSTER data processing unit on its bench.

pub mod page;
