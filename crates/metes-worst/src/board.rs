//! Emulated boards.
