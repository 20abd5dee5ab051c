//! Connections that are given up when nothing happens on them.
//!
//! A client that sends half a request, or does not read its answer, would hold
//! a connection for ever.
//!
//! Invariant: a connection on which a byte passes every half minute is never
//! given up.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep};

/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A listener for such connections.
pub(crate) struct Patient(pub(crate) TcpListener);

impl Listener for Patient {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        let idle = Box::pin(sleep(PATIENCE));
        (Connection { stream, idle }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A connection and the time at which it is given up.
pub(crate) struct Connection {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
}

impl Connection {
    /// Begins anew after something happened; an error when nothing did for too
    /// long.
    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        happened: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if happened.is_ready() {
            self.idle.as_mut().reset(Instant::now() + PATIENCE);
            return happened;
        }
        match self.idle.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let happened = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.timed(context, happened)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let happened = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, happened)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
