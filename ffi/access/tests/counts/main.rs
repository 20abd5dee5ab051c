//! The access counter on programs whose accesses are known, against a Valgrind
//! tool and DHAT, on three architectures, and on programs that end badly.
//!
//! Needs Debian's qemu-user, valgrind, gcc, gcc-arm-linux-gnueabi, clang and
//! binutils-sparc64-linux-gnu; a missing one fails the test that needs it.

mod endings;
mod foreign;
mod known;
mod support;
mod touches;
