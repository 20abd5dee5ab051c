//! The plug-and-play tables of the buses, from which software learns what there is (GRLIB user's manual, chapter 5).
//!
//! Invariant: a record's address and mask answer to exactly the addresses of its device, in the bus's granules: a
//! mebibyte on AHB, 256 bytes on APB.

use crate::bus::{PERIPHERALS, PERIPHERALS_SIZE};
use crate::devices::{ESA, GAISLER, Identity};

/// Where the table of the peripheral bus lies: the last 4 KiB of the bridge.
const PERIPHERAL_TABLE: u32 = PERIPHERALS + 0xf_f000;
/// Where the table of the main bus lies: masters, and slaves behind them.
const TABLE: u32 = 0xffff_f000;
const SLAVES: u32 = TABLE + 0x800;

/// Gaisler's LEON3 and its bridge to peripherals, and ESA's memory controller.
const LEON3: u16 = 0x003;
const BRIDGE: u16 = 0x006;
const MEMORY_CONTROLLER: u16 = 0x00f;

/// Both tables.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    masters: Vec<[u32; 8]>,
    slaves: Vec<[u32; 8]>,
    peripherals: Vec<[u32; 2]>,
}

impl Tables {
    pub(crate) fn new(base: u32, ram: usize) -> Tables {
        let own = |vendor, device| Identity {
            vendor,
            device,
            version: 0,
            interrupt: 0,
        };
        let mut memory = [0; 8];
        memory[0] = word(own(ESA, MEMORY_CONTROLLER));
        memory[4] = area(0, 1 << 29, 20, 3, 2);
        memory[6] = area(base, ram as u64, 20, 3, 2);
        let mut bridge = [0; 8];
        bridge[0] = word(own(GAISLER, BRIDGE));
        bridge[4] = area(PERIPHERALS, u64::from(PERIPHERALS_SIZE), 20, 0, 2);
        Tables {
            masters: Vec::new(),
            slaves: vec![memory, bridge],
            peripherals: Vec::new(),
        }
    }

    /// A core is a master of the bus.
    pub(crate) fn add_core(&mut self) {
        let mut master = [0; 8];
        master[0] = word(Identity {
            vendor: GAISLER,
            device: LEON3,
            version: 0,
            interrupt: 0,
        });
        self.masters.push(master);
    }

    pub(crate) fn add(&mut self, base: u32, size: u32, identity: Identity) {
        if base.wrapping_sub(PERIPHERALS) < PERIPHERALS_SIZE {
            let area = area(base & 0xf_ff00, u64::from(size.max(256)), 8, 0, 1);
            self.peripherals.push([word(identity), area]);
        } else {
            let mut slave = [0; 8];
            slave[0] = word(identity);
            slave[4] = area(base, u64::from(size.max(1 << 20)), 20, 0, 2);
            self.slaves.push(slave);
        }
    }

    /// The word at `address`, if that lies in a table.
    pub(crate) fn read(&self, address: u32) -> Option<u32> {
        let of = |records: &[[u32; 8]], offset: u32| {
            let record = records.get((offset / 32) as usize);
            record.map_or(0, |record| record[(offset / 4 % 8) as usize])
        };
        match address {
            SLAVES.. => Some(of(&self.slaves, address - SLAVES)),
            TABLE.. => Some(of(&self.masters, address - TABLE)),
            PERIPHERAL_TABLE..=0x800f_ffff => {
                let offset = address - PERIPHERAL_TABLE;
                let record = self.peripherals.get((offset / 8) as usize);
                Some(record.map_or(0, |record| record[(offset / 4 % 2) as usize]))
            }
            _ => None,
        }
    }
}

fn word(identity: Identity) -> u32 {
    u32::from(identity.vendor) << 24
        | u32::from(identity.device) << 12
        | u32::from(identity.version) << 5
        | u32::from(identity.interrupt)
}

/// An address record: the upper 12 bits of address and mask, counted in `1 << granule` bytes; whether prefetched and
/// cached; its type.
fn area(base: u32, size: u64, granule: u32, cached: u32, kind: u32) -> u32 {
    let granules = size.next_power_of_two() >> granule;
    let mask = 0x1000 - granules.clamp(1, 0x1000) as u32;
    (base >> granule & 0xfff) << 20 | cached << 16 | (mask & 0xfff) << 4 | kind
}
