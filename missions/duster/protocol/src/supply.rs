//! Frames between the unit and its power supplies, on a serial line each.
//!
//! *Invariant:* a frame that is accepted begins with its mark and ends with the right CRC-8 (polynomial 0x07, begins at 0).

/// Bytes of a request.
pub const REQUEST: usize = 5;
/// Bytes of a reply.
pub const REPLY: usize = 8;
/// First byte of a request.
pub const REQUEST_MARK: u8 = 0xa5;
/// First byte of a reply.
pub const REPLY_MARK: u8 = 0x5a;

/// What a supply is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Order {
    /// How it is.
    Status = 1,
    /// To go to a voltage.
    Set = 2,
    /// To switch on.
    On = 3,
    /// To switch off.
    Off = 4,
    /// To forget a trip.
    ClearTrip = 5,
}

impl Order {
    /// The order of a number.
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Status,
            2 => Self::Set,
            3 => Self::On,
            4 => Self::Off,
            5 => Self::ClearTrip,
            _ => return None,
        })
    }
}

/// Status bits of a reply.
pub mod status {
    /// On.
    pub const ON: u8 = 1;
    /// At its voltage.
    pub const STABLE: u8 = 2;
    /// Tripped: off until the trip is cleared.
    pub const TRIPPED: u8 = 4;
    /// The request made no sense to it.
    pub const BAD_REQUEST: u8 = 8;
}

/// What a supply answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reply {
    /// Number of the order that it answers.
    pub order: u8,
    /// Bits of [`status`].
    pub status: u8,
    /// Volts (high voltage), or 0.01 V (low).
    pub voltage: u16,
    /// Microamperes (high voltage), or milliamperes (low).
    pub current: u16,
}

/// CRC-8, polynomial 0x07.
#[must_use]
pub fn crc8(bytes: &[u8]) -> u8 {
    let mut crc = 0;
    for byte in bytes {
        crc ^= byte;
        for _ in 0..8 {
            crc = if crc & 0x80 != 0 {
                crc << 1 ^ 0x07
            } else {
                crc << 1
            };
        }
    }
    crc
}

/// The frame of a request.
#[must_use]
pub fn request(order: Order, argument: u16) -> [u8; REQUEST] {
    let [high, low] = argument.to_be_bytes();
    let frame = [REQUEST_MARK, order as u8, high, low];
    [frame[0], frame[1], frame[2], frame[3], crc8(&frame)]
}

/// What a request asks for, and its argument; none when the frame is no request.
#[must_use]
pub fn read_request(frame: &[u8; REQUEST]) -> Option<(u8, u16)> {
    let [mark, order, high, low, crc] = *frame;
    (mark == REQUEST_MARK && crc8(&frame[..4]) == crc)
        .then(|| (order, u16::from_be_bytes([high, low])))
}

/// The frame of a reply.
#[must_use]
pub fn reply(reply: Reply) -> [u8; REPLY] {
    let [v_high, v_low] = reply.voltage.to_be_bytes();
    let [i_high, i_low] = reply.current.to_be_bytes();
    let mut frame = [
        REPLY_MARK,
        reply.order,
        reply.status,
        v_high,
        v_low,
        i_high,
        i_low,
        0,
    ];
    frame[7] = crc8(&frame[..7]);
    frame
}

/// What a reply says; none when the frame is no reply.
#[must_use]
pub fn read_reply(frame: &[u8; REPLY]) -> Option<Reply> {
    let [mark, order, status, v_high, v_low, i_high, i_low, crc] = *frame;
    (mark == REPLY_MARK && crc8(&frame[..7]) == crc).then_some(Reply {
        order,
        status,
        voltage: u16::from_be_bytes([v_high, v_low]),
        current: u16::from_be_bytes([i_high, i_low]),
    })
}
