//! Records programs whose calls are known, and checks each stack, its names and its figures.
//!
//! Needs a C compiler (`cc`), a C++ compiler (`c++`), `strip` and python3.

mod exports;
mod programs;
mod support;
