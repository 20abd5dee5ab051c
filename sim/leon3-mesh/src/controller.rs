//! The command registers of a node's controller, as a device of the machine that is the node's core.
//!
//! | offset | register | |
//! | --- | --- | --- |
//! | 0x00 | command | written: the core waits until the last command is answered, then the controller begins with this one |
//! | 0x04 | operand | |
//! | 0x08 | result | read: the core waits until the controller has answered the last command |
//! | 0x0c | self | the node's number |
//! | 0x10 | nodes | how many there are |
//! | 0x14 | shift | the heap of node *n* begins at space + (*n* << shift) |
//! | 0x18 | space | where heaps begin: the heap space map of the paper (section II) |
//!
//! A program that needs no answer does not read the result, and goes on while the controller is at work, until its next command.
//! The registers are on no bridge: what it takes a command to arrive and an answer to come back is the platform's to say.
//!
//! *Invariant:* the core executes nothing behind a command before whoever runs the machine has taken it; commands are issued one
//! after the other, none before the last one is answered.

use metes_leon3::devices::{Access, Device, Identity, NEVER};
use serde::{Deserialize, Serialize};

use crate::command::Command;

/// Where the registers lie.
pub const CONTROLLER: u32 = 0x7000_0000;
/// Bytes of their place.
pub const SIZE: u32 = 0x100;

/// Which node a core is, of how many, and where their heaps lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The node's number.
    pub node: u32,
    /// How many nodes there are.
    pub nodes: u32,
    /// The address of node 0's heap.
    pub space: u32,
    /// The binary logarithm of the bytes from a heap's beginning to the next one's.
    pub shift: u32,
}

/// The registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    place: Place,
    operand: u32,
    result: u32,
    /// The cycle at which the result is there.
    ready: u64,
    /// A command that nobody has taken, and its cycle.
    issued: Option<((u32, u32), u64)>,
    /// When it wants the machine to pause.
    next: u64,
}

impl Controller {
    /// The controller of a node, which has done nothing.
    #[must_use]
    pub fn new(place: Place) -> Controller {
        Controller {
            place,
            operand: 0,
            result: 0,
            ready: 0,
            issued: None,
            next: NEVER,
        }
    }

    /// Which node it is of.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Takes the command that was issued, if one was: its cycle, and the command, or the word that is none.
    pub fn take(&mut self) -> Option<(u64, Result<Command, u32>)> {
        let ((word, operand), cycle) = self.issued.take()?;
        Some((cycle, Command::of_words(word, operand).ok_or(word)))
    }

    /// Answers the last command: `word` is there at `cycle`, if the core asks.
    pub fn answer(&mut self, word: u32, cycle: u64) {
        self.result = word;
        self.ready = cycle;
    }
}

impl Device for Controller {
    fn name(&self) -> &'static str {
        "controller of a node"
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn read(&mut self, offset: u32, access: &mut Access) -> u32 {
        match offset {
            0x04 => self.operand,
            0x08 => {
                access.wait(self.ready.saturating_sub(access.cycle));
                self.result
            }
            0x0c => self.place.node,
            0x10 => self.place.nodes,
            0x14 => self.place.shift,
            0x18 => self.place.space,
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        match offset {
            0x00 => {
                let cycle = access.cycle.max(self.ready);
                access.wait(cycle - access.cycle);
                self.issued = Some(((value, self.operand), cycle));
                self.next = access.now;
            }
            0x04 => self.operand = value,
            _ => {}
        }
    }

    fn next(&self) -> u64 {
        self.next
    }

    fn advance(&mut self, _access: &mut Access) {
        self.next = NEVER;
    }

    fn may_raise(&self) -> u32 {
        // It acts only to be looked at.
        u32::from(self.issued.is_some())
    }

    fn expired(&self) -> bool {
        self.issued.is_some()
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let saved: Controller = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
        // Far behind all that comes, and far from where sums overflow.
        if saved.ready > 1 << 62 {
            return Err("its answer comes at no cycle that there is".to_owned());
        }
        *self = saved;
        Ok(())
    }
}
