//! The power supplies: high voltage, which ramps and trips, and four low voltages.
//!
//! Each answers a request (`metes_duster_protocol::supply`) once it is whole; one whose checksum is wrong it does not
//! answer, and looks for the next beginning in it. A silence of 2 ms begins anew.
//!
//! | order | high voltage | low voltages |
//! | --- | --- | --- |
//! | status | volts, microamperes | 0.01 V and milliamperes of the channel in the argument's highest 4 bits |
//! | set | volts, 0 to 6000 | the channel, and 0.01 V in the other 12 bits |
//! | on, off | ramps at 2000 V/s | that channel, at once |
//! | clear trip | a trip is forgotten; it stays off | nothing |
//!
//! A supply that has tripped, or is inhibited, is off, its voltage gone at once, and refuses to be switched on.
//!
//! *Invariant:* the high voltage is what [`Truth::high_voltage`] says, and 0 from the cycle of a trip until it is switched on.

use metes_duster_protocol::supply::{
    self, Order, REQUEST, REQUEST_MARK, Reply, read_request, status,
};

use crate::truth::Truth;

/// Most volts of the high voltage.
pub const MOST_VOLTS: u16 = 6000;

/// Which supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// High voltage, serial line 1.
    High = 0,
    /// Low voltages, serial line 2.
    Low = 1,
}

/// What one voltage is set to, and whether it is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Output {
    set: u16,
    on: bool,
}

/// A supply.
#[derive(Clone, Debug)]
pub struct Supply {
    kind: Kind,
    /// Cycles of 2 ms.
    silence: u64,
    outputs: [Output; 4],
    tripped: bool,
    inhibited: bool,
    request: Vec<u8>,
    heard: u64,
}

impl Supply {
    /// One that is off.
    #[must_use]
    pub fn new(kind: Kind, frequency: u32) -> Supply {
        Supply {
            kind,
            silence: u64::from(frequency) / 500,
            outputs: [Output::default(); 4],
            tripped: false,
            inhibited: false,
            request: Vec::new(),
            heard: 0,
        }
    }

    /// Whether it has tripped.
    #[must_use]
    pub fn tripped(&self) -> bool {
        self.tripped
    }

    /// Whether output `channel` is on.
    #[must_use]
    pub fn on(&self, channel: usize) -> bool {
        self.outputs[channel & 3].on
    }

    /// Its load is too much: it goes off, if it is on.
    pub fn trip(&mut self, now: u64, truth: &mut Truth) {
        if self.outputs[0].on {
            self.tripped = true;
            self.fall(now, truth);
        }
    }

    /// GPIO line 16: while it is inhibited it is off.
    pub fn inhibit(&mut self, inhibited: bool, now: u64, truth: &mut Truth) {
        if inhibited && !self.inhibited && self.outputs[0].on {
            self.fall(now, truth);
        }
        self.inhibited = inhibited;
    }

    fn fall(&mut self, now: u64, truth: &mut Truth) {
        self.outputs[0].on = false;
        truth.ramp(now, 0, true);
    }

    /// A byte has come at cycle `now`: what it answers.
    pub fn receive(&mut self, byte: u8, now: u64, truth: &mut Truth) -> Option<[u8; 8]> {
        if now.saturating_sub(self.heard) > self.silence {
            self.request.clear();
        }
        self.heard = now;
        self.request.push(byte);
        loop {
            let mark = self.request.iter().position(|&byte| byte == REQUEST_MARK);
            self.request.drain(..mark.unwrap_or(self.request.len()));
            let frame = self.request.first_chunk::<REQUEST>()?;
            if let Some((order, argument)) = read_request(frame) {
                self.request.clear();
                return Some(supply::reply(self.obey(order, argument, now, truth)));
            }
            self.request.remove(0);
        }
    }

    fn obey(&mut self, order: u8, argument: u16, now: u64, truth: &mut Truth) -> Reply {
        let channel = match self.kind {
            Kind::High => 0,
            Kind::Low => usize::from(argument >> 12),
        };
        let good = channel < 4 && self.execute(order, channel, argument, now, truth);
        let channel = channel & 3;
        let output = self.outputs[channel];
        let (voltage, current, stable) = match self.kind {
            Kind::High => {
                let millivolts = truth.high_voltage(now);
                let target = if output.on {
                    u64::from(output.set) * 1000
                } else {
                    0
                };
                // A divider of 500 megohms is its load.
                (
                    millivolts / 1000,
                    millivolts / 500_000,
                    millivolts == target,
                )
            }
            Kind::Low => {
                let volts = if output.on { output.set.into() } else { 0 };
                (volts, volts / 20, true)
            }
        };
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        Reply {
            order,
            status: bit(output.on, status::ON)
                | bit(stable, status::STABLE)
                | bit(self.tripped, status::TRIPPED)
                | bit(!good, status::BAD_REQUEST),
            voltage: voltage as u16,
            current: current as u16,
        }
    }

    /// Whether the request makes sense.
    fn execute(
        &mut self,
        order: u8,
        channel: usize,
        argument: u16,
        now: u64,
        truth: &mut Truth,
    ) -> bool {
        let output = &mut self.outputs[channel];
        match Order::of(order) {
            Some(Order::Status) => return true,
            Some(Order::Set) if self.kind == Kind::High => {
                if argument > MOST_VOLTS {
                    return false;
                }
                output.set = argument;
            }
            Some(Order::Set) => output.set = argument & 0xfff,
            Some(Order::On) if self.tripped || self.inhibited => return false,
            Some(Order::On) => output.on = true,
            Some(Order::Off) => output.on = false,
            Some(Order::ClearTrip) => {
                self.tripped = false;
                return true;
            }
            None => return false,
        }
        if self.kind == Kind::High && (output.on || order == Order::Off as u8) {
            let volts = if output.on { output.set } else { 0 };
            truth.ramp(now, u64::from(volts) * 1000, false);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metes_duster_protocol::supply::{read_reply, request};

    const MILLI: u64 = 100_000;

    /// Sends `bytes`, a byte each 87 us from `now` on; what is answered last.
    fn send(supply: &mut Supply, truth: &mut Truth, bytes: &[u8], now: u64) -> Option<Reply> {
        let sent = bytes.iter().zip(0u64..);
        let answers = sent.map(|(&byte, index)| supply.receive(byte, now + 8_700 * index, truth));
        answers.last()?.and_then(|answer| read_reply(&answer))
    }

    fn status_of(supply: &mut Supply, truth: &mut Truth, now: u64) -> (u8, u16) {
        let reply = send(supply, truth, &request(Order::Status, 0), now).expect("a reply");
        (reply.status, reply.voltage)
    }

    #[test]
    fn the_high_voltage_ramps_trips_and_is_cleared() {
        let mut truth = Truth::new(1, 100_000_000);
        let mut high = Supply::new(Kind::High, 100_000_000);
        send(&mut high, &mut truth, &request(Order::Set, 5000), 0);
        send(&mut high, &mut truth, &request(Order::On, 0), 10 * MILLI);
        let (bits, volts) = status_of(&mut high, &mut truth, 1000 * MILLI);
        assert_eq!(bits, status::ON);
        assert!((1970..1990).contains(&volts), "{volts}");
        let risen = status_of(&mut high, &mut truth, 2600 * MILLI);
        assert_eq!(risen, (status::ON | status::STABLE, 5000));
        high.trip(2700 * MILLI, &mut truth);
        let tripped = status_of(&mut high, &mut truth, 2800 * MILLI);
        assert_eq!(tripped, (status::TRIPPED | status::STABLE, 0));
        let on = send(&mut high, &mut truth, &request(Order::On, 0), 2900 * MILLI).unwrap();
        assert_ne!(on.status & status::BAD_REQUEST, 0);
        send(
            &mut high,
            &mut truth,
            &request(Order::ClearTrip, 0),
            3000 * MILLI,
        );
        send(&mut high, &mut truth, &request(Order::On, 0), 3100 * MILLI);
        assert_eq!(status_of(&mut high, &mut truth, 5700 * MILLI).1, 5000);
        high.inhibit(true, 5800 * MILLI, &mut truth);
        assert_eq!(
            status_of(&mut high, &mut truth, 5900 * MILLI),
            (status::STABLE, 0)
        );
    }

    #[test]
    fn a_lost_byte_costs_one_answer() {
        let mut truth = Truth::new(1, 100_000_000);
        let mut low = Supply::new(Kind::Low, 100_000_000);
        let set = request(Order::Set, 2 << 12 | 1200);
        assert_eq!(send(&mut low, &mut truth, &set[..4], 0), None);
        // At once behind it, so that there is no silence between them.
        let answer = send(&mut low, &mut truth, &set, 5 * 8_700).unwrap();
        assert_eq!(answer.status & status::BAD_REQUEST, 0);
        let mut spoilt = request(Order::On, 2 << 12);
        spoilt[2] ^= 1;
        assert_eq!(send(&mut low, &mut truth, &spoilt, 10 * MILLI), None);
        let on = request(Order::On, 2 << 12);
        let answer = send(&mut low, &mut truth, &on, 20 * MILLI).unwrap();
        assert_eq!((answer.status & status::ON, answer.voltage), (1, 1200));
        let bad = request(Order::Set, 7 << 12);
        let answer = send(&mut low, &mut truth, &bad, 30 * MILLI).unwrap();
        assert_ne!(answer.status & status::BAD_REQUEST, 0);
    }
}
