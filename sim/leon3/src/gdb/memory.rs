//! Memory and devices as a debugger sees them.
//!
//! A debugger looks for the registers of callers on the stack, where a core puts them only when it runs out of windows.
//! So the place of each window that is not stored yet reads as the window's registers, and a write there sets
//! them: to the debugger all windows are on the stack all the time, and the machine's memory is as it was.
//!
//! Invariant: reading changes nothing, registers of devices included.

use crate::bus::Bus;
use crate::core::{Condition, Core};
use crate::machine::Machine;

/// Bytes that a window takes on the stack: locals and ins.
const FRAME: u32 = 64;
/// The first local; locals and ins are what a window keeps to itself.
const LOCALS: u8 = 16;
/// The stack pointer, and the caller's.
const STACK: u8 = 14;
const FRAME_POINTER: u8 = 30;

/// A window above the current one that is not on the stack yet.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    number: usize,
    /// Where it would go.
    place: u32,
    /// Its locals and ins.
    words: [u32; 16],
}

/// Reads what is there from `address` on, up to where nothing is; gives how many bytes that is.
pub(super) fn read(machine: &mut Machine, core: usize, address: u32, into: &mut [u8]) -> usize {
    let count = if machine.bus.peek(address, into) {
        into.len()
    } else {
        read_words(machine, core, address, into)
    };
    let into = &mut into[..count];
    for window in machine
        .cores()
        .iter()
        .flat_map(|core| windows(core, &machine.bus))
    {
        overlay(&window, address, into);
    }
    count
}

/// Reads word by word, devices too.
fn read_words(machine: &mut Machine, core: usize, address: u32, into: &mut [u8]) -> usize {
    let now = machine.cores()[core].cycles;
    let mut done = 0;
    while done < into.len() {
        let Some(at) = address.checked_add(done as u32) else {
            break;
        };
        let Some(word) = machine.bus.inspect(at & !3, core, now) else {
            break;
        };
        let bytes = &word.to_be_bytes()[(at & 3) as usize..];
        let count = bytes.len().min(into.len() - done);
        into[done..done + count].copy_from_slice(&bytes[..count]);
        done += count;
    }
    done
}

/// Replaces those of `bytes`, which are at `address`, that belong to `window`.
fn overlay(window: &Window, address: u32, bytes: &mut [u8]) {
    let words = window.words.iter().flat_map(|word| word.to_be_bytes());
    for (offset, byte) in words.enumerate() {
        let at = (window.place + offset as u32).wrapping_sub(address) as usize;
        if let Some(seen) = bytes.get_mut(at) {
            *seen = byte;
        }
    }
}

/// Writes `bytes` at `address`: RAM and ROM anyhow, devices by whole words and as `core` would. False where that cannot
/// be, with nothing written.
pub(super) fn write(machine: &mut Machine, core: usize, address: u32, bytes: &[u8]) -> bool {
    let mut before = vec![0; bytes.len()];
    if machine.bus.peek(address, &mut before) {
        let written = machine.bus.write_image(address, bytes).is_ok();
        if written {
            write_windows(machine, address, bytes);
        }
        return written;
    }
    write_devices(machine, core, address, bytes)
}

fn write_devices(machine: &mut Machine, core: usize, address: u32, bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<4>();
    if address & 3 != 0 || !rest.is_empty() {
        return false;
    }
    let now = machine.cores()[core].cycles;
    let there = |bus: &mut Bus, index: usize| {
        let at = address.checked_add(4 * index as u32);
        at.filter(|&at| bus.word(at).is_none() && bus.inspect(at, core, now).is_some())
    };
    if (0..words.len()).any(|index| there(&mut machine.bus, index).is_none()) {
        return false;
    }
    words.iter().enumerate().all(|(index, word)| {
        let (at, word) = (address + 4 * index as u32, u32::from_be_bytes(*word));
        let written = machine.bus.store_elsewhere(at, 4, word, core, now);
        // The debugger waits for it, and no core.
        machine.bus.waits();
        written.is_ok()
    })
}

/// Sets those registers of windows whose places `bytes` at `address` cover.
fn write_windows(machine: &mut Machine, address: u32, bytes: &[u8]) {
    for core in 0..machine.cores().len() {
        for window in windows(&machine.cores()[core], &machine.bus) {
            let mut words: Vec<u8> = window
                .words
                .iter()
                .flat_map(|word| word.to_be_bytes())
                .collect();
            for (offset, byte) in words.iter_mut().enumerate() {
                let at = (window.place + offset as u32).wrapping_sub(address) as usize;
                if let Some(&written) = bytes.get(at) {
                    *byte = written;
                }
            }
            set(machine.core_mut(core), window.number, &words);
        }
    }
}

/// Sets locals and ins of `window`.
fn set(core: &mut Core, window: usize, bytes: &[u8]) {
    let current = core.registers.current();
    core.registers.enter(window);
    for (number, word) in (LOCALS..).zip(bytes.as_chunks::<4>().0) {
        core.registers.set(number, u32::from_be_bytes(*word));
    }
    core.registers.enter(current);
}

/// The windows of callers that `core` holds, from the latest one to that which is marked invalid, or which no stack in
/// memory is for.
fn windows(core: &Core, bus: &Bus) -> Vec<Window> {
    let mut windows = Vec::new();
    if core.condition == Condition::Waiting {
        return windows;
    }
    let mut registers = core.registers.clone();
    for _ in 1..registers.windows() {
        let number = registers.above();
        let place = registers.get(FRAME_POINTER);
        let stored = core.wim >> number & 1 == 1;
        if stored || place & 7 != 0 || !bus.peek(place, &mut [0; FRAME as usize]) {
            break;
        }
        registers.enter(number);
        debug_assert_eq!(registers.get(STACK), place);
        windows.push(Window {
            number,
            place,
            words: std::array::from_fn(|index| registers.get(LOCALS + index as u8)),
        });
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Configuration;

    const PLACE: u32 = 0x4000_1000;

    /// A core in window 5 whose caller's frame is at `PLACE`, and no further caller.
    fn called() -> Machine {
        let mut machine = Machine::new(&Configuration::default()).expect("the usual machine");
        let core = machine.core_mut(0);
        core.wim = 1 << 7;
        core.registers.enter(6);
        for number in LOCALS..32 {
            core.registers.set(number, 0x6000 + u32::from(number));
        }
        core.registers.set(STACK, PLACE);
        core.registers.enter(5);
        machine
    }

    fn word(machine: &mut Machine, address: u32) -> Option<u32> {
        let mut bytes = [0; 4];
        (read(machine, 0, address, &mut bytes) == 4).then(|| u32::from_be_bytes(bytes))
    }

    #[test]
    fn a_window_of_a_caller_is_on_the_stack() {
        let mut machine = called();
        assert_eq!(word(&mut machine, PLACE), Some(0x6010));
        assert_eq!(word(&mut machine, PLACE + 60), Some(0x601f));
        assert_eq!(word(&mut machine, PLACE + 64), Some(0));
        assert_eq!(word(&mut machine, PLACE - 2), Some(0));
        assert_eq!(machine.bus.word(PLACE), Some(0), "memory is as it was");
    }

    #[test]
    fn a_stored_window_is_read_from_memory() {
        let mut machine = called();
        machine.core_mut(0).wim = 1 << 6;
        assert_eq!(word(&mut machine, PLACE), Some(0));
    }

    #[test]
    fn a_write_to_a_frame_sets_the_register() {
        let mut machine = called();
        assert!(write(&mut machine, 0, PLACE + 4, &[0, 1, 2, 3]));
        assert_eq!(word(&mut machine, PLACE), Some(0x6010));
        assert_eq!(word(&mut machine, PLACE + 4), Some(0x0001_0203));
        let core = machine.core_mut(0);
        assert_eq!(core.registers.current(), 5);
        core.registers.enter(6);
        assert_eq!(core.registers.get(LOCALS + 1), 0x0001_0203);
    }

    /// A byte that waits in the serial line is still there after a look at it.
    #[test]
    fn a_look_at_a_device_takes_nothing_from_it() {
        let mut machine = called();
        assert!(
            write(&mut machine, 0, 0x8000_0108, &[0, 0, 0, 0x83]),
            "looped back"
        );
        assert!(write(&mut machine, 0, 0x8000_0100, &[0, 0, 0, 65]));
        assert_eq!(word(&mut machine, 0x8000_0100), Some(65));
        assert_eq!(word(&mut machine, 0x8000_0100), Some(65));
        assert!(!write(&mut machine, 0, 0x8000_0101, &[0; 4]), "not a word");
        assert!(!write(&mut machine, 0, 0x8000_0100, &[0; 3]), "not a word");
    }

    #[test]
    fn nothing_is_read_or_written_where_nothing_is() {
        let mut machine = called();
        assert_eq!(word(&mut machine, 0x2000_0000), None);
        assert_eq!(read(&mut machine, 0, 0xffff_fffc, &mut [0; 8]), 4);
        assert!(!write(&mut machine, 0, 0x2000_0000, &[0; 4]));
        assert!(
            !write(&mut machine, 0, 0, &[0; 4]),
            "there is no ROM, and none comes"
        );
        assert!(!write(&mut machine, 0, 0xffff_fffc, &[0; 8]));
        let end = 0x4000_0000 + machine.configuration().memory as u32;
        assert_eq!(read(&mut machine, 0, end - 4, &mut [0; 8]), 4);
        assert!(!write(&mut machine, 0, end - 4, &[0; 8]));
    }
}
