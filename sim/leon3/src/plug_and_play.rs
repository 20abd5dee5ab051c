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
    slaves: Vec<Record<8>>,
    peripherals: Vec<Record<2>>,
}

/// The first address of a device, and what the table says of it.
type Record<const WORDS: usize> = (u32, [u32; WORDS]);

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
            slaves: vec![(base, memory), (PERIPHERALS, bridge)],
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

    /// Sets the record of what stands at `base`: another one's place, if one stood there, or else the last.
    pub(crate) fn set(&mut self, base: u32, size: u32, identity: Option<Identity>) {
        if base.wrapping_sub(PERIPHERALS) < PERIPHERALS_SIZE {
            let area = area(base & 0xf_ff00, u64::from(size.max(256)), 8, 0, 1);
            let record = identity.map(|identity| [word(identity), area]);
            set(&mut self.peripherals, base, record);
        } else {
            let area = area(base, u64::from(size.max(1 << 20)), 20, 0, 2);
            let record = identity.map(|identity| [word(identity), 0, 0, 0, area, 0, 0, 0]);
            set(&mut self.slaves, base, record);
        }
    }

    /// The word at `address`, if that lies in a table.
    pub(crate) fn read(&self, address: u32) -> Option<u32> {
        let word = |record: Option<&[u32]>, offset: u32| {
            let place = offset as usize / 4;
            Some(record.map_or(0, |record| record[place % record.len()]))
        };
        match address {
            SLAVES.. => {
                let offset = address - SLAVES;
                let record = self.slaves.get((offset / 32) as usize);
                word(record.map(|record| &record.1[..]), offset)
            }
            TABLE.. => {
                let offset = address - TABLE;
                let record = self.masters.get((offset / 32) as usize);
                word(record.map(|record| &record[..]), offset)
            }
            PERIPHERAL_TABLE..=0x800f_ffff => {
                let offset = address - PERIPHERAL_TABLE;
                let record = self.peripherals.get((offset / 8) as usize);
                word(record.map(|record| &record.1[..]), offset)
            }
            _ => None,
        }
    }
}

fn set<const WORDS: usize>(
    records: &mut Vec<Record<WORDS>>,
    base: u32,
    record: Option<[u32; WORDS]>,
) {
    let place = records.iter().position(|record| record.0 == base);
    match (place, record) {
        (Some(place), Some(record)) => records[place].1 = record,
        (Some(place), None) => {
            records.remove(place);
        }
        (None, Some(record)) => records.push((base, record)),
        (None, None) => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::Numbers;
    use crate::{Configuration, Machine};

    /// What software finds: vendor, device, first address, bytes, interrupt.
    type Found = (u32, u32, u32, u64, u32);

    /// Reads records until one is zero, as a scan at start does.
    fn walk(machine: &mut Machine, from: u32, words: u32, most: u32) -> Vec<Vec<u32>> {
        let mut load = |address| machine.bus.load_elsewhere(address, 4, 0, 0).unwrap();
        let records = (0..most).map(|record| from + record * words * 4);
        let records = records.map(|at| {
            (0..words)
                .map(|word| load(at + word * 4))
                .collect::<Vec<_>>()
        });
        records.take_while(|record| record[0] != 0).collect()
    }

    fn who(word: u32) -> (u32, u32, u32) {
        (word >> 24, word >> 12 & 0xfff, word & 31)
    }

    fn bytes(area: u32, granule: u32) -> u64 {
        u64::from(0x1000 - (area >> 4 & 0xfff)) << granule
    }

    fn peripherals(machine: &mut Machine) -> Vec<Found> {
        let records = walk(machine, PERIPHERAL_TABLE, 2, 512);
        let found = records.iter().map(|record| {
            assert_eq!(record[1] & 15, 1, "a peripheral's area");
            let (vendor, device, interrupt) = who(record[0]);
            let at = PERIPHERALS | record[1] >> 20 << 8;
            (vendor, device, at, bytes(record[1], 8), interrupt)
        });
        found.collect()
    }

    /// Vendor and device of a slave, and its areas.
    type Slave = (u32, u32, Vec<(u32, u64)>);

    fn areas(machine: &mut Machine) -> Vec<Slave> {
        let records = walk(machine, SLAVES, 8, 64);
        let found = records.iter().map(|record| {
            let areas = record[4..].iter().filter(|&&area| area != 0);
            let areas = areas.map(|area| (area >> 20 << 20, bytes(*area, 20)));
            let (vendor, device, _) = who(record[0]);
            (vendor, device, areas.collect())
        });
        found.collect()
    }

    #[test]
    fn a_walk_finds_every_device_where_it_answers() {
        let configuration = Configuration {
            cores: 2,
            uarts: 5,
            spi: 3,
            gpio: true,
            timer_interrupt: 8,
            ..Configuration::default()
        };
        let mut machine = Machine::new(&configuration).unwrap();
        let masters = walk(&mut machine, TABLE, 8, 64);
        let masters: Vec<_> = masters.iter().map(|record| who(record[0])).collect();
        assert_eq!(masters, [(1, 3, 0), (1, 3, 0)]);
        let expected = [
            (4, 0x00f, 0x8000_0000, 0x100, 0),
            (1, 0x00c, 0x8000_0100, 0x100, 3),
            (1, 0x00c, 0x8000_1000, 0x100, 17),
            (1, 0x00c, 0x8000_1100, 0x100, 18),
            (1, 0x00c, 0x8000_1200, 0x100, 19),
            (1, 0x00c, 0x8000_1300, 0x100, 20),
            (1, 0x00d, 0x8000_0200, 0x100, 0),
            (1, 0x011, 0x8000_0300, 0x100, 8),
            (1, 0x01a, 0x8000_0900, 0x100, 0),
            (1, 0x02d, 0x8000_4000, 0x800, 13),
            (1, 0x02d, 0x8000_5000, 0x800, 11),
            (1, 0x02d, 0x8000_6000, 0x800, 10),
        ];
        assert_eq!(peripherals(&mut machine), expected);
        let slaves = [
            (4, 0x00f, vec![(0, 1 << 29), (0x4000_0000, 64 << 20)]),
            (1, 0x006, vec![(0x8000_0000, 1 << 20)]),
        ];
        assert_eq!(areas(&mut machine), slaves);
        // A device stands where its record says: none of its first words is what an empty address reads as.
        for &(_, device, at, size, _) in &expected {
            let mut load = |address| machine.bus.load_elsewhere(address, 4, 0, 0).unwrap();
            let any = (0..size as u32 / 4).any(|word| load(at + 4 * word) != 0);
            assert!(any || device == 0x00d, "{device:#x} at {at:#x}");
        }
        let empty = |note: &&String| note.contains("no peripheral");
        assert_eq!(machine.bus.notes().iter().find(empty), None);
    }

    /// Records come in the order in which devices were attached; one without an identity has none.
    #[test]
    fn what_is_attached_later_is_found_later() {
        let mut machine = Machine::new(&Configuration::default()).unwrap();
        let before = peripherals(&mut machine).len();
        machine
            .bus
            .attach(0x800a_0000, 0x100, Box::new(Numbers::new(1)));
        for (at, size) in [(0x8009_0000, 0x1000), (0x8008_0000, 0x100)] {
            let uart = crate::devices::Uart::new(5, 1);
            machine.bus.attach(at, size, Box::new(uart));
        }
        let uart = crate::devices::Uart::new(5, 1);
        machine.bus.attach(0xa000_0000, 0x100, Box::new(uart));
        let behind = &peripherals(&mut machine)[before..];
        let expected = [
            (1, 0x00c, 0x8009_0000, 0x1000, 5),
            (1, 0x00c, 0x8008_0000, 0x100, 5),
        ];
        assert_eq!(behind, expected);
        let last = areas(&mut machine).pop();
        assert_eq!(last, Some((1, 0x00c, vec![(0xa000_0000, 1 << 20)])));
    }
    #[test]
    fn what_stands_in_anothers_place_has_its_record() {
        let mut machine = Machine::new(&Configuration::default()).unwrap();
        let before = peripherals(&mut machine);
        let place = before.iter().position(|found| found.2 == 0x8000_0100);
        let place = place.expect("a serial line");
        let uart = crate::devices::Uart::new(9, 4);
        machine.bus.attach(0x8000_0100, 0x200, Box::new(uart));
        let mut after = before.clone();
        after[place] = (1, 0x00c, 0x8000_0100, 0x200, 9);
        assert_eq!(peripherals(&mut machine), after);
        // What has no record takes that of what stood there.
        machine
            .bus
            .attach(0x8000_0100, 0x100, Box::new(Numbers::new(1)));
        after.remove(place);
        assert_eq!(peripherals(&mut machine), after);
    }
}
