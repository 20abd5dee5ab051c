//! Connections: how many there are, and how each ends.
//!
//! *Invariant:* there are never more than the limit and a few that are told so, none is open for longer than its client
//! keeps its times, and one that ends has told why before it is closed.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use super::wire::Wire;
use crate::host::Host;
use crate::http::{Failed, HttpLimits, Kind, full, router, slow};

/// Most connections above the limit that are told so; further ones are closed at once.
const TOLD: usize = 16;
/// How long a client that was told something may take to read it, and to end what it sends.
const FAREWELL: Duration = Duration::from_secs(1);
/// Most bytes of a head.
const HEAD: usize = 16 << 10;

/// Where connections come in.
pub(super) struct Door {
    router: Router,
    full: Router,
    open: Arc<Semaphore>,
    told: Arc<Semaphore>,
    timeout: Duration,
}

impl Door {
    pub(super) fn new(host: Host, limits: &HttpLimits) -> Door {
        Door {
            router: router(host, limits.clone()),
            full: full(limits.connections),
            open: Arc::new(Semaphore::new(limits.connections)),
            told: Arc::new(Semaphore::new(TOLD)),
            timeout: limits.timeout,
        }
    }

    /// Serves a connection on a task of its own, if there is room.
    pub(super) fn enter<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut http = http1::Builder::new();
        let (router, timeout, permit) = match self.open.clone().try_acquire_owned() {
            Ok(permit) => (self.router.clone(), self.timeout, permit),
            Err(_) => match self.told.clone().try_acquire_owned() {
                Ok(permit) => {
                    http.keep_alive(false);
                    (self.full.clone(), self.timeout.min(FAREWELL), permit)
                }
                Err(_) => return,
            },
        };
        http.timer(TokioTimer::new())
            .header_read_timeout(timeout)
            .max_header_size(HEAD);
        tokio::spawn(async move {
            converse(&http, router, Wire::new(stream, timeout), timeout).await;
            drop(permit);
        });
    }
}

/// Serves a connection to its end.
async fn converse<S>(http: &http1::Builder, router: Router, wire: Wire<S>, timeout: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let mut connection = http.serve_connection(TokioIo::new(wire), service);
    let ended = std::future::poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let parts = connection.into_parts();
    let mut wire = parts.io.into_inner();
    if let Err(error) = ended {
        let last = if !wire.between_answers() {
            None
        } else if error.is_timeout() {
            // Who is silent between two requests has asked for nothing.
            (!parts.read_buf.is_empty()).then(|| slow("head", timeout))
        } else if error.is_parse() && !wire.refused() {
            Some(Failed::new(Kind::Version, "this is not HTTP/1.1"))
        } else {
            None
        };
        if let Some(last) = last
            && wire.say(&last.last_words()).await.is_err()
        {
            return;
        }
    }
    // A socket that is closed with bytes unread takes back what was sent: so they are read.
    let farewell = std::future::poll_fn(|context| Pin::new(&mut wire).poll_farewell(context));
    drop(tokio::time::timeout(FAREWELL.min(timeout), farewell).await);
}
