//! The kernels from outside: beside their definitions, beside another library, and what they allocate.

mod definitions;
mod figures;
mod files;
mod peer;
