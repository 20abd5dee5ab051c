//! The DUSTER data processing unit on its bench.

pub mod check;
pub mod fit;
pub mod heaps;
