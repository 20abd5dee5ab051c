//! The line to the ground: bytes go and come by interrupt, tasks see rings.
//!
//! The sender interrupts while its FIFO is less than half full and there is something to send, the receiver while its is at
//! least half full; what is less than that is taken at the next tick. A tick also sends, so an interrupt that is lost is no
//! end, and a UART without interrupts of its FIFOs does, too, if slower.
//!
//! *Invariant:* what is done here in interrupts is done in one piece, as a tick would come between; bytes leave and come in order; the sender's interrupt is on as long as its ring is not empty.

use duster_registers::uart::{self, DEPTH};
use duster_runtime::masked;
use metes_duster_application::Ring;
use metes_duster_application::declared::{LINE_CAPACITY, LINES};

use crate::devices::UARTS;

/// UART 0's interrupt line.
pub(crate) const LEVEL: u32 = 3;
/// Bytes that may wait to be read: a long telecommand and more.
const WAITING: usize = 2048;

static SEND: Ring<u8, LINE_CAPACITY> = Ring::new();
static RECEIVED: Ring<u8, WAITING> = Ring::new();

/// Sets all serial lines up.
pub(crate) fn prepare() {
    for line in LINES {
        let device = UARTS[line.uart];
        device.write(uart::SCALER, line.scaler);
        let receive = if line.uart == 0 {
            uart::RECEIVE_INTERRUPT
        } else {
            0
        };
        device.write(uart::CONTROL, uart::ON | receive);
    }
}

/// What the line's interrupt does, and a tick.
pub(crate) fn serve() {
    masked(|| {
        receive();
        send();
    });
}

/// Takes what has come.
fn receive() {
    let device = UARTS[0];
    for _ in 0..DEPTH {
        if device.read(uart::STATUS) & uart::READY == 0 {
            return;
        }
        // What finds no room is lost, as on any line; the telecommand's checksum tells.
        let _ = RECEIVED.put(device.read(uart::DATA) as u8);
    }
}

fn send() {
    let device = UARTS[0];
    let control = device.read(uart::CONTROL);
    if control & uart::SEND_INTERRUPT == 0 {
        return;
    }
    for _ in 0..DEPTH {
        if device.read(uart::STATUS) & uart::FULL != 0 {
            return;
        }
        match SEND.take() {
            Some(byte) => device.write(uart::DATA, byte.into()),
            None => {
                device.write(uart::CONTROL, control & !uart::SEND_INTERRUPT);
                return;
            }
        }
    }
}

/// Bytes that there is room for.
pub(crate) fn free() -> usize {
    SEND.room()
}

/// Bytes on their way to the ground; those that find no room are left out, so ask [`free`] before.
pub(crate) fn transmit(bytes: &[u8]) {
    for &byte in bytes {
        if SEND.put(byte).is_err() {
            break;
        }
    }
    masked(|| {
        let device = UARTS[0];
        device.write(
            uart::CONTROL,
            device.read(uart::CONTROL) | uart::SEND_INTERRUPT,
        );
    });
}

/// The next byte that has come.
pub(crate) fn next() -> Option<u8> {
    RECEIVED.take()
}
