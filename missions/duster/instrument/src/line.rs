//! The serial line between the unit and a supply: an APBUART with the supply at its other end.
//!
//! A supply answers 200 us after the last byte of a request, a byte each 10 bits of 115200 baud. In the place of the
//! machine's own line it stands at its address ([`attach`]).
//!
//! *Invariant:* the unit sees the registers and the times of an APBUART; what the supply does, it does at the cycle of the
//! byte.

use metes_leon3::Machine;
use metes_leon3::devices::{Access, Device, Identity, Uart};

use crate::supply::Kind;
use crate::world::Shared;

/// Where the lines of both supplies stand, and their interrupts.
const PLACES: [(u32, u8); 2] = [(0x8000_1000, 17), (0x8000_1100, 18)];

/// A serial line with a supply.
#[derive(Debug)]
pub struct SupplyLine {
    uart: Uart,
    kind: Kind,
    world: Shared,
    /// Cycles of a byte, and until an answer.
    byte: u64,
    pause: u64,
}

/// Puts the lines of both supplies into `machine`.
pub fn attach(machine: &mut Machine, world: &Shared) {
    let frequency = u64::from(machine.configuration().frequency);
    let depth = machine.configuration().uart_depth;
    for (kind, (base, interrupt)) in [Kind::High, Kind::Low].into_iter().zip(PLACES) {
        let line = SupplyLine {
            uart: Uart::new(interrupt, depth),
            kind,
            world: world.clone(),
            byte: frequency * 10 / 115_200,
            pause: frequency / 5000,
        };
        machine.bus.attach(base, 0x100, Box::new(line));
    }
}

impl SupplyLine {
    /// The supply hears what was sent by `now`.
    fn hear(&mut self, now: u64) {
        let sent = self.uart.printed().unwrap_or_default();
        if sent.is_empty() {
            return;
        }
        let world = &mut *self.world.lock();
        let supply = self.kind as usize;
        for byte in sent {
            if world.losses[supply] > 0 {
                world.losses[supply] -= 1;
                continue;
            }
            let now_there = now + world.offset;
            let answer = world.supplies[supply].receive(byte, now_there, &mut world.truth);
            for (index, byte) in answer.into_iter().flatten().enumerate() {
                let at = now + self.pause + (index as u64 + 1) * self.byte;
                self.uart.arrive(at, byte);
            }
        }
    }
}

impl Device for SupplyLine {
    fn name(&self) -> &'static str {
        "supply line"
    }

    fn identity(&self) -> Option<Identity> {
        self.uart.identity()
    }

    fn read(&mut self, offset: u32, access: &mut Access) -> u32 {
        self.uart.read(offset, access)
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        self.uart.write(offset, value, access);
        self.hear(access.now);
    }

    fn next(&self) -> u64 {
        self.uart.next()
    }

    fn holds(&self) -> u32 {
        self.uart.holds()
    }

    fn advance(&mut self, access: &mut Access) {
        self.uart.advance(access);
        self.hear(access.now);
    }

    fn save(&self) -> Vec<u8> {
        self.uart.save()
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.uart.restore(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use metes_duster_protocol::supply::{Order, read_reply, request};
    use metes_leon3::Configuration;

    #[test]
    fn a_supply_answers_within_two_milliseconds() {
        let world = World::new(1, 100_000_000);
        let mut machine = Machine::new(&Configuration {
            frequency: 100_000_000,
            uarts: 5,
            uart_depth: 32,
            ..Configuration::default()
        })
        .unwrap();
        attach(&mut machine, &world);
        let line: &mut SupplyLine = machine.bus.device(0).unwrap();
        let mut access = Access::new(0, 0);
        line.write(0xc, 107, &mut access);
        line.write(0x8, 3, &mut access);
        for byte in request(Order::Status, 0) {
            line.write(0, byte.into(), &mut access);
        }
        let mut replied = Vec::new();
        while line.next() < 300_000 {
            let mut access = Access::new(line.next(), 0);
            line.advance(&mut access);
            if line.read(4, &mut access) & 1 != 0 {
                replied.push((access.now, line.read(0, &mut access) as u8));
            }
        }
        let bytes: Vec<u8> = replied.iter().map(|&(_, byte)| byte).collect();
        let reply = read_reply(bytes[..].first_chunk().expect("eight bytes"));
        assert_eq!(reply.map(|reply| reply.order), Some(1));
        // The request takes 0.43 ms of 8640 cycles a byte.
        let took = replied[7].0 - 5 * 8_640;
        assert!(took < 200_000, "{took} cycles");
        assert_eq!(
            machine.uart(2).map(|_| ()),
            Some(()),
            "telemetry, log, debug"
        );
        assert!(machine.uart(3).is_none());
    }
}
