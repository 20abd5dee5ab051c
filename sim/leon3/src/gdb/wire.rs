//! The connection to a debugger: bytes in and out of a stream.
//!
//! Invariant: what was written leaves at a flush, whole; a peer that takes nothing for ten seconds is gone.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use gdbstub::conn::Connection;

/// How long a peer may take nothing of what is sent to it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection stays open for the last answer to be taken.
const LINGER: Duration = Duration::from_secs(1);

/// A connection.
pub(super) struct Wire<'a> {
    stream: &'a TcpStream,
    output: Vec<u8>,
    input: Box<[u8]>,
    /// What of `input` has come and is not taken.
    taken: usize,
    come: usize,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Come {
    Byte(u8),
    Nothing,
    End,
}

impl<'a> Wire<'a> {
    pub(super) fn new(stream: &'a TcpStream) -> io::Result<Wire<'a>> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Wire {
            stream,
            output: Vec::new(),
            input: vec![0; 4096].into_boxed_slice(),
            taken: 0,
            come: 0,
        })
    }

    /// The next byte, for which it waits.
    pub(super) fn wait(&mut self) -> io::Result<Come> {
        self.next(true)
    }

    /// The next byte, if it has come already.
    pub(super) fn look(&mut self) -> io::Result<Come> {
        self.next(false)
    }

    fn next(&mut self, wait: bool) -> io::Result<Come> {
        if self.taken == self.come {
            (self.taken, self.come) = (0, 0);
            match self.fill(wait) {
                Ok(0) => return Ok(Come::End),
                Ok(come) => self.come = come,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Come::Nothing),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Come::End),
                Err(error) => return Err(error),
            }
        }
        self.taken += 1;
        Ok(Come::Byte(self.input[self.taken - 1]))
    }

    fn fill(&mut self, wait: bool) -> io::Result<usize> {
        self.stream.set_nonblocking(!wait)?;
        let come = loop {
            match self.stream.read(&mut self.input) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                come => break come,
            }
        };
        self.stream.set_nonblocking(false)?;
        come
    }

    /// Shows `text` on the debugger's console, while the program runs.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        let hex = text.bytes().map(|byte| format!("{byte:02x}"));
        let body = format!("O{}", hex.collect::<String>());
        let sum = body.bytes().fold(0, u8::wrapping_add);
        self.output.extend(format!("${body}#{sum:02x}").bytes());
        self.flush()
    }
}

/// Says that nothing more comes, and waits a little until the peer is gone, too: closing at once would throw away what
/// it has not taken.
pub(super) fn close(stream: &TcpStream) {
    let begin = Instant::now();
    let mut rest = [0; 4096];
    // Of a peer that is gone already nothing more is wanted.
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(LINGER));
    while begin.elapsed() < LINGER
        && let Ok(1..) = (&*stream).read(&mut rest)
    {}
}

impl Connection for Wire<'_> {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.output.push(byte);
        Ok(())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.extend(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let output = std::mem::take(&mut self.output);
        self.stream.write_all(&output)
    }
}
