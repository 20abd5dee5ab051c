//! What the flight software asks of its partitions, as it flies: each call of the partitions' heap in the image, seen from
//! outside. `metes mission heaps FILE` compares heaps on it.
//!
//! *Invariant:* a line `a,PARTITION,BLOCK,SIZE` for each block that was given, `f,PARTITION,BLOCK` for each that was
//! taken back or lost by a reset; a block's number is used again when it is free.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use metes_duster_system::System;
use metes_leon3::{Bus, Core, Image, Observer};

/// Registers of arguments and results, and of the call.
const FIRST: u8 = 8;
const SECOND: u8 = 9;
const CALLED_FROM: u8 = 15;

/// A call under way: where it returns to, and the bytes it asked for.
#[derive(Clone, Copy)]
struct Call {
    back: u32,
    size: u32,
}

/// Looks on, and writes down.
pub struct Requests {
    allocate: u32,
    free: u32,
    /// Partitions by their first addresses, in order, and the end.
    partitions: Vec<(u32, String)>,
    end: u32,
    calls: [Option<Call>; 2],
    live: BTreeMap<u32, u32>,
    spare: Vec<u32>,
    blocks: u32,
    text: String,
    /// Requests that were refused.
    pub refused: u64,
}

impl Requests {
    /// Of `image`, whose partitions are as `system` declares; none if the image does not name its calls and its memory.
    #[must_use]
    pub fn new(image: &Image, system: &System) -> Option<Requests> {
        let mut symbols = image.symbols().iter();
        let mut at = symbols
            .find(|symbol| symbol.name.contains("8memories6MEMORY"))?
            .address;
        let mut partitions = Vec::new();
        for it in &system.partitions {
            partitions.push((at, it.name.clone()));
            at += it.size as u32;
        }
        Some(Requests {
            allocate: image.symbol("partition_allocate")?.address,
            free: image.symbol("partition_free")?.address,
            partitions,
            end: at,
            calls: [None; 2],
            live: BTreeMap::new(),
            spare: Vec::new(),
            blocks: 0,
            text: String::new(),
            refused: 0,
        })
    }

    fn partition(&self, address: u32) -> Option<&str> {
        let behind = self
            .partitions
            .partition_point(|&(first, _)| first <= address);
        let (_, name) = self.partitions.get(behind.checked_sub(1)?)?;
        (address < self.end).then_some(name)
    }

    fn given(&mut self, address: u32, size: u32) {
        if address == 0 {
            self.refused += 1;
            return;
        }
        let Some(name) = self.partition(address).map(str::to_owned) else {
            return;
        };
        let block = self.spare.pop().unwrap_or_else(|| {
            self.blocks += 1;
            self.blocks - 1
        });
        self.live.insert(address, block);
        let _ = writeln!(self.text, "a,{name},{block},{size}");
    }

    fn freed(&mut self, address: u32) {
        let Some(block) = self.live.remove(&address) else {
            return;
        };
        if let Some(name) = self.partition(address).map(str::to_owned) {
            let _ = writeln!(self.text, "f,{name},{block}");
        }
        self.spare.push(block);
    }

    /// The unit was reset: nothing is live any more.
    pub(crate) fn reset(&mut self) {
        self.calls = [None; 2];
        for address in self.live.keys().copied().collect::<Vec<_>>() {
            self.freed(address);
        }
    }

    /// All requests so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Observer for Requests {
    fn before(&mut self, core: &Core, _bus: &Bus) -> bool {
        let registers = &core.registers;
        if core.pc == self.allocate {
            let back = registers.get(CALLED_FROM).wrapping_add(8);
            let size = registers.get(SECOND);
            if let Some(call) = self.calls.get_mut(core.number) {
                *call = Some(Call { back, size });
            }
        } else if core.pc == self.free {
            self.freed(registers.get(SECOND));
        } else if let Some(Some(call)) = self.calls.get(core.number).copied()
            && core.pc == call.back
        {
            // An interrupt in between has other addresses, so this is the caller.
            self.calls[core.number] = None;
            self.given(registers.get(FIRST), call.size);
        }
        false
    }
}
