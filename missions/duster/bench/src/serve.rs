//! The unit's line to the ground as a TCP socket: raw space packets either way, in about real time.
//!
//! One ground at a time; while there is none, the unit goes on, and what it sends is lost, as on a line that nobody listens
//! to. A ground that comes, goes or stalls changes nothing in the unit.
//!
//! *Invariant:* what the unit sends is handed on in its order and unchanged, in whole packets, so that a ground that comes
//! is in step from its first byte on; mission time is not ahead of the host's.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use metes_duster_protocol::MAX_PACKET;

use crate::unit::Unit;

/// Milliseconds of mission time in a step.
const STEP: u64 = 10;
/// Most bytes that are taken from the ground in a step: what the line carries in one, and more.
const MOST: usize = 1024;
/// Most bytes that wait for a ground that does not read.
const WAITING: usize = 1 << 20;

/// A ground that is connected, and what it is to be sent.
struct Ground {
    stream: TcpStream,
    waiting: Vec<u8>,
}

impl Ground {
    /// What it has sent; none when it has gone.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut bytes = [0; MOST];
        match self.stream.read(&mut bytes) {
            Ok(0) => None,
            Ok(count) => Some(bytes[..count].to_vec()),
            Err(error) if is_later(error.kind()) => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// Sends as much as it takes; whether it is still there.
    fn send(&mut self, bytes: &[u8]) -> bool {
        if self.waiting.len() + bytes.len() <= WAITING {
            self.waiting.extend_from_slice(bytes);
        }
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return false,
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(error) if is_later(error.kind()) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

/// What of the line is not yet a whole packet.
#[derive(Debug, Default)]
struct Packets(Vec<u8>);

impl Packets {
    /// The whole packets that `bytes` complete, one behind the other. What begins none is lost.
    fn complete(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.0.extend_from_slice(bytes);
        let (mut whole, mut at) = (Vec::new(), 0);
        while let Some(&[a, _, _, _, e, f]) = self.0[at..].first_chunk() {
            let length = usize::from(u16::from_be_bytes([e, f])) + 7;
            // No telemetry packet of version 0 with a secondary header, or longer than any.
            if a >> 3 != 1 || length > MAX_PACKET {
                at += 1;
                continue;
            }
            let Some(packet) = self.0.get(at..at + length) else {
                break;
            };
            whole.extend_from_slice(packet);
            at += length;
        }
        self.0.drain(..at);
        whole
    }
}

fn is_later(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Lets `unit` run, `speed` times as fast as real time, with the ground that connects to `listener`, until `stop`. What
/// it logs goes to `log`, and a line on every reset; its telemetry also to `telemetry`, whether a ground is there or not.
///
/// # Errors
/// The listener's.
pub fn serve(
    unit: &mut Unit,
    listener: &TcpListener,
    speed: f64,
    stop: &AtomicBool,
    mut log: impl FnMut(&str),
    mut telemetry: impl FnMut(&[u8]),
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut ground: Option<Ground> = None;
    let mut packets = Packets::default();
    let mut resets = 0;
    let mut begun = Instant::now();
    let mut since = unit.now();
    let step = STEP * unit.frequency() / 1000;
    while !stop.load(Ordering::Relaxed) {
        if let Ok((stream, address)) = listener.accept() {
            stream.set_nonblocking(true)?;
            // Small packets are not to wait for each other.
            let _ = stream.set_nodelay(true);
            log(&format!("the ground is connected from {address}"));
            ground = Some(Ground {
                stream,
                waiting: Vec::new(),
            });
        }
        let received = ground.as_mut().map(Ground::receive);
        match received {
            Some(Some(bytes)) if !bytes.is_empty() => unit.send(&bytes),
            Some(None) => {
                ground = None;
                log("the ground is gone");
            }
            _ => {}
        }
        unit.advance(unit.now() + step);
        if unit.resets.len() > resets {
            // A packet that was under way has no end.
            packets = Packets::default();
        }
        let whole = packets.complete(&unit.take_telemetry());
        telemetry(&whole);
        if ground.as_mut().is_some_and(|ground| !ground.send(&whole)) {
            ground = None;
            log("the ground is gone");
        }
        let logged = unit.take_log();
        for line in String::from_utf8_lossy(&logged).lines() {
            log(line);
        }
        for reset in &unit.resets[resets..] {
            log(&format!("the unit is reset: {}", reset.why));
        }
        resets = unit.resets.len();
        let passed = (unit.now() - since) as f64 / unit.frequency() as f64;
        let due = Duration::from_secs_f64(passed / speed);
        match due.checked_sub(begun.elapsed()) {
            Some(early) => std::thread::sleep(early),
            // A host that was late does not hurry afterwards.
            None => (begun, since) = (Instant::now(), unit.now()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::invented::Mission;

    #[test]
    fn packets_are_handed_on_whole() {
        let bytes = Mission::new(1, 1).bytes();
        for size in [1, 13, 781, 5000] {
            let (mut packets, mut whole) = (Packets::default(), Vec::new());
            for piece in bytes.chunks(size) {
                let given = packets.complete(piece);
                whole.extend_from_slice(&given);
                let mut at = 0;
                while at < given.len() {
                    at += usize::from(u16::from_be_bytes([given[at + 4], given[at + 5]])) + 7;
                }
                assert_eq!(at, given.len(), "{size}");
            }
            assert!(whole == bytes, "{size}");
        }
    }

    #[test]
    fn what_begins_no_packet_is_lost() {
        let bytes = Mission::new(2, 1).bytes();
        let mut packets = Packets::default();
        let whole = packets.complete(&[&[0xff, 0x18, 0x00], bytes.as_slice()].concat());
        assert!(whole == bytes);
    }
}
