//! The bytes of a connection.
//!
//! *Invariant:* an answer that the protocol's own code makes, which has no body, leaves as a document like every other; a
//! client that does not read ends its connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::http::{Failed, Kind};

/// A stream under HTTP.
pub(super) struct Wire<S> {
    stream: S,
    timeout: Duration,
    /// When what is being written must be taken.
    late: Option<Pin<Box<Sleep>>>,
    /// Whether bytes of an answer are out, and others of it may follow.
    within: bool,
    /// What is sent instead, and how much of it is out.
    instead: Option<(Vec<u8>, usize)>,
    refused: bool,
    /// Whether the client has ended what it sends.
    heard: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S, timeout: Duration) -> Wire<S> {
        Wire {
            stream,
            timeout,
            late: None,
            within: false,
            instead: None,
            refused: false,
            heard: false,
        }
    }

    /// Whether no answer is half out.
    pub(super) fn between_answers(&self) -> bool {
        !self.within
    }

    /// Whether the protocol's own code has answered.
    pub(super) fn refused(&self) -> bool {
        self.refused
    }

    /// Writes the last answer of a connection.
    pub(super) async fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = &bytes[sent..];
            sent += std::future::poll_fn(|context| Pin::new(&mut *self).poll_write(context, rest))
                .await?;
        }
        Ok(())
    }

    /// Ends what is sent, and reads until the client has ended, too.
    pub(super) fn poll_farewell(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        let mut space = [0; 4096];
        while !self.heard {
            let mut buffer = ReadBuf::new(&mut space);
            ready!(self.as_mut().poll_read(context, &mut buffer))?;
        }
        Poll::Ready(Ok(()))
    }

    /// What writing gives when the client takes nothing now.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let timeout = self.timeout;
        let late = self
            .late
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(late.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Sends what is to be sent instead of `length` bytes of the protocol's.
    fn poll_instead(
        &mut self,
        context: &mut Context<'_>,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        while let Some((bytes, sent)) = &mut self.instead {
            if *sent == bytes.len() {
                self.instead = None;
                break;
            }
            match Pin::new(&mut self.stream).poll_write(context, &bytes[*sent..]) {
                Poll::Ready(Ok(more)) => *sent += more,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.wait(context),
            }
        }
        Poll::Ready(Ok(length))
    }

    /// Whether `head`, with which an answer of `length` bytes begins, is replaced.
    fn replaces(&mut self, head: &[u8]) -> bool {
        if self.instead.is_none()
            && !self.within
            && let Some(failed) = wordless(head)
        {
            self.instead = Some((failed.last_words(), 0));
            self.refused = true;
        }
        self.instead.is_some()
    }

    fn written(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => self.wait(context),
            Poll::Ready(Ok(length)) => {
                self.within |= length > 0;
                Poll::Ready(Ok(length))
            }
            failed => failed,
        }
    }
}

/// What the protocol's own code means by a head without a body, as it answers what is no request.
fn wordless(head: &[u8]) -> Option<Failed> {
    let head = str::from_utf8(head).ok()?.strip_prefix("HTTP/1.1 ")?;
    let (head, body) = head.split_once("\r\n\r\n")?;
    // Every answer of ours has a type.
    if !body.is_empty() || head.contains("content-type:") {
        return None;
    }
    Some(match head.get(..3)? {
        "400" => Failed::new(Kind::Request, "this is no request of HTTP/1.1"),
        "431" => Failed::new(Kind::Head, "address and headers are too long, or too many"),
        _ => return None,
    })
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.heard |= buffer.filled().len() == before;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.replaces(bytes) {
            return self.poll_instead(context, bytes.len());
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(head) = slices.first()
            && self.replaces(head)
        {
            return self.poll_instead(context, slices.iter().map(|slice| slice.len()).sum());
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        // All of an answer is out.
        self.within = false;
        self.late = None;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
