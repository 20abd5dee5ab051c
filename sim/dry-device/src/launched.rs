//! Which device addresses a launch was given.
//!
//! A launch has pointers to its arguments, and says neither how many nor how large they are. So
//! whatever could be a device address is taken for one, in the arguments and a little beyond them:
//! more addresses than there are make less known than is, which is the safe side.
//!
//! Invariant: the program's memory is read through the kernel, so that nothing beyond the
//! arguments can end it; and only while something is known that could be lost.

use std::ffi::{c_int, c_void};

use crate::addresses;
use crate::device;
use crate::engine::Task;
use crate::knowledge::{self, Touched};
use crate::process;

/// Pointers to arguments that are looked at.
const MOST_ARGUMENTS: usize = 64;
/// Pointers to arguments that are looked at where the arguments do not lie together.
const MOST_APART: usize = 16;
/// Arguments on the stack lie within this distance of the table of pointers to them.
const NEAR: u64 = 64 << 10;
/// The largest argument that is looked at as a whole.
const LARGEST: u64 = 4096;

/// A launch with pointers to its arguments, or a buffer of them.
pub(crate) fn kernel(arguments: *mut *mut c_void, extra: *mut *mut c_void) -> Task {
    if !knowledge::is_anything_known() {
        return Task::Kernel(Touched::Pointers(Vec::new()));
    }
    let (table, extra) = (address(arguments), address(extra));
    let mut pointers = Vec::new();
    if table != 0 {
        let entries = words(table, MOST_ARGUMENTS);
        if entries.is_empty() {
            return Task::Kernel(Touched::Everything);
        }
        for (start, size) in windows(table, &entries) {
            scan(start, size, &mut pointers);
        }
    }
    if extra != 0 {
        // Pairs of a name and a value, up to a zero: 1 names the buffer.
        for pair in words(extra, 6).chunks(2) {
            match pair {
                [1, buffer] => scan(*buffer, LARGEST, &mut pointers),
                [0, ..] => break,
                _ => {}
            }
        }
    }
    Task::Kernel(Touched::Pointers(pointers))
}

/// A launch of something whose arguments are not known, as a graph is.
pub(crate) fn anything() -> Task {
    Task::Kernel(Touched::Everything)
}

/// A call of a library that computes, by the words that it was given.
pub(crate) fn library(arguments: &[usize]) {
    if knowledge::is_anything_known() {
        let bytes: Vec<u8> = arguments
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let pointers = addresses::among(&bytes).collect();
        device::inspect(|device| device.engine.known.touched(Touched::Pointers(pointers)));
    }
}

fn address(place: *mut *mut c_void) -> u64 {
    place.expose_provenance() as u64
}

/// Up to `most` words at an address.
fn words(address: u64, most: usize) -> Vec<u64> {
    let mut bytes = vec![0_u8; most * 8];
    let read = process::read(address, &mut bytes);
    let whole = bytes[..read].chunks_exact(8);
    whole
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
        .collect()
}

/// Where arguments lie, given the words of their table, which ends somewhere among them.
fn windows(table: u64, entries: &[u64]) -> Vec<(u64, u64)> {
    let near = |entry: &&u64| entry.abs_diff(table) <= NEAR;
    let together: Vec<u64> = entries.iter().take_while(near).copied().collect();
    if let (Some(least), Some(most)) = (together.iter().min(), together.iter().max()) {
        return vec![(*least, most - least + LARGEST)];
    }
    let is_address = |entry: &&u64| (4096..1 << 56).contains(*entry);
    let apart = entries.iter().take_while(is_address).take(MOST_APART);
    apart.map(|entry| (*entry, LARGEST)).collect()
}

fn scan(start: u64, size: u64, pointers: &mut Vec<u64>) {
    let start = start & !7;
    let mut bytes = vec![0_u8; size.next_multiple_of(8) as usize];
    let read = process::read(start, &mut bytes);
    pointers.extend(addresses::among(&bytes[..read]));
}

/// Counts a call of a function of a library without an answer of its own.
pub(crate) fn counted(name: &'static str, answer: c_int, arguments: &[usize]) -> c_int {
    device::count(name);
    if answer == 0 {
        library(arguments);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_together_are_one_window() {
        let table = 0x7fff_0000_1000;
        let entries = [table + 64, table - 200, 7, table + 8];
        assert_eq!(windows(table, &entries), [(table - 200, 264 + LARGEST)]);
    }

    #[test]
    fn arguments_apart_are_windows_of_their_own() {
        let table = 0x7fff_0000_1000;
        let entries = [0x5555_0000_1000, 0x5555_0000_9000, 3, table];
        let found = windows(table, &entries);
        assert_eq!(found, [(entries[0], LARGEST), (entries[1], LARGEST)]);
    }
}
