//! The unit's line to the ground as a TCP socket: raw space packets either way, in about real time.
//!
//! One ground at a time; while there is none, the unit goes on, and what it sends is lost, as on a line that nobody listens
//! to. A ground that comes, goes or stalls changes nothing in the unit.
//!
//! *Invariant:* bytes are handed on in their order, unchanged; mission time is not ahead of the host's.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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

fn is_later(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Lets `unit` run, `speed` times as fast as real time, with the ground that connects to `listener`, until `stop`. What
/// it logs goes to `log`, and a line on every reset.
///
/// # Errors
/// The listener's.
pub fn serve(
    unit: &mut Unit,
    listener: &TcpListener,
    speed: f64,
    stop: &AtomicBool,
    mut log: impl FnMut(&str),
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut ground: Option<Ground> = None;
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
        let telemetry = unit.take_telemetry();
        if ground
            .as_mut()
            .is_some_and(|ground| !ground.send(&telemetry))
        {
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
