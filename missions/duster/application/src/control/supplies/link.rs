//! The line of a supply: one order at a time, asked again when it is not answered.
//!
//! *Invariant:* an answer is taken for the order that was sent last, and only if it names it.

use metes_duster_protocol::definitions::Supply;
use metes_duster_protocol::supply::{Order, REPLY, REPLY_MARK, Reply, read_reply, request};

use crate::control::fifo::Fifo;
use crate::hardware::Hardware;

/// Bytes taken from a supply in one activation: two replies and a little more.
const BYTES: usize = 20;
/// Orders that wait for a supply.
const ORDERS: usize = 6;

/// A supply's line.
pub(super) struct Link {
    supply: Supply,
    bytes: [u8; REPLY],
    length: usize,
    pub(super) orders: Fifo<(Order, u16), ORDERS>,
    /// The order that is not answered yet, and how often it was sent again.
    asked: Option<(Order, u16)>,
    again: i32,
    /// It did not answer, which was told.
    pub(super) silent: bool,
    pub(super) timeouts: u16,
}

/// What came of a step of a link.
pub(super) enum Heard {
    Nothing,
    /// An order with its argument, and the answer.
    Answer(Order, u16, Reply),
    /// An order was not answered however often it was sent.
    Silence(Order),
}

impl Link {
    pub(super) const fn new(supply: Supply) -> Self {
        Link {
            supply,
            bytes: [0; REPLY],
            length: 0,
            orders: Fifo::new(),
            asked: None,
            again: 0,
            silent: false,
            timeouts: 0,
        }
    }

    /// Takes what came, and asks anew: an order that waits, or what is `polled`.
    pub(super) fn step(
        &mut self,
        hardware: &mut impl Hardware,
        polled: u16,
        retries: i32,
    ) -> Heard {
        let reply = self.receive(hardware);
        let mut heard = Heard::Nothing;
        match (self.asked.take(), reply) {
            (Some((order, argument)), Some(reply)) if reply.order == order as u8 => {
                self.silent = false;
                heard = Heard::Answer(order, argument, reply);
            }
            (Some(asked), _) => {
                self.timeouts = self.timeouts.saturating_add(1);
                if self.again < retries {
                    self.again += 1;
                    self.ask(hardware, asked);
                    return Heard::Nothing;
                }
                heard = Heard::Silence(asked.0);
            }
            (None, _) => {}
        }
        self.again = 0;
        let next = self.orders.take().unwrap_or((Order::Status, polled));
        self.ask(hardware, next);
        heard
    }

    fn ask(&mut self, hardware: &mut impl Hardware, asked: (Order, u16)) {
        hardware.supply_send(self.supply, &request(asked.0, asked.1));
        self.length = 0;
        self.asked = Some(asked);
    }

    /// The last whole reply among what came.
    fn receive(&mut self, hardware: &mut impl Hardware) -> Option<Reply> {
        let mut last = None;
        for _ in 0..BYTES {
            let Some(byte) = hardware.supply_receive(self.supply) else {
                break;
            };
            if self.length == 0 && byte != REPLY_MARK {
                continue;
            }
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
            if self.length == REPLY {
                self.length = 0;
                last = read_reply(&self.bytes).or(last);
            }
        }
        last
    }
}
