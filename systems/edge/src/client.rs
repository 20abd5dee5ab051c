//! A client of a host: one request a connection, over a Unix socket or TCP.
//!
//! *Invariant:* an answer is whole, or an error: one that is cut off is not shown as the function's.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Where a host listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Client {
    /// A Unix socket.
    Unix(PathBuf),
    /// An address and port.
    Tcp(String),
}

/// What a host answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The status of HTTP.
    pub status: u16,
    /// Headers, names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// How long an answer may take; a compiler may be at work.
const PATIENCE: Duration = Duration::from_secs(120);
/// Largest answer.
const MOST: u64 = 128 << 20;

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl Client {
    fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Client::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok(Box::new(stream))
            }
            Client::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
        }
    }

    /// Sends a request, and waits for its answer.
    ///
    /// # Errors
    /// No host there, or an answer that is none.
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> io::Result<Answered> {
        let mut stream = self.connect()?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: metes\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        // A host that refuses by the head alone may close before it has read the body: its answer counts.
        let sent = stream.write_all(head.as_bytes());
        let sent = sent.and_then(|()| stream.write_all(body));
        let mut bytes = Vec::new();
        let read = stream.take(MOST).read_to_end(&mut bytes);
        match read_answer(&bytes) {
            Some(answer) => Ok(answer),
            None => {
                sent?;
                read?;
                Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "what answers there is no host of Metes, or its answer was cut off",
                ))
            }
        }
    }
}

/// An answer, if it is whole.
fn read_answer(bytes: &[u8]) -> Option<Answered> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?;
    let status = status.get(..3)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length?.1.parse().ok()?;
    let body = bytes.get(end + 4..)?.get(..length)?.to_vec();
    Some(Answered {
        status,
        headers,
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_none() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nmetes-time-ns: 7\r\n\r\nabc";
        let answer = read_answer(whole).expect("it is whole");
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"abc"[..]));
        assert_eq!(
            answer.headers[1],
            ("metes-time-ns".to_owned(), "7".to_owned())
        );
        for end in 0..whole.len() {
            assert_eq!(read_answer(&whole[..end]), None);
        }
        assert_eq!(
            read_answer(b"HTTP/1.1 2\xff0\r\ncontent-length: 0\r\n\r\n"),
            None
        );
    }
}
