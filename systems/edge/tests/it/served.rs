//! A host that serves, on TCP and on a Unix socket, for the tests of both.
//!
//! *Invariant:* it serves until it is dropped, and ends well.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::JoinHandle;

use metes_edge::client::Client;
use metes_edge::http::HttpLimits;
use metes_edge::serve::{Listeners, serve};
use metes_edge::{Host, HostOptions, Options};

/// Of a host for tests: so many slots of 128 KiB, and nothing that a machine could refuse.
pub(crate) fn options(slots: usize) -> HostOptions {
    HostOptions {
        engine: Options {
            slots,
            slot_bytes: 1 << 17,
            lock: false,
            deadline_priority: None,
            ..Options::default()
        },
        ..HostOptions::default()
    }
}

/// A host that serves until it is dropped.
pub(crate) struct Served {
    pub(crate) host: Host,
    pub(crate) address: SocketAddr,
    pub(crate) socket: PathBuf,
    end: Option<tokio::sync::oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
    _directory: tempfile::TempDir,
}

impl Served {
    pub(crate) fn new(options: HostOptions, limits: HttpLimits) -> Served {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("edge.sock");
        let host = Host::start(options).expect("a host");
        let listeners = Listeners::new(Some(([127, 0, 0, 1], 0).into()), Some(&socket));
        let listeners = listeners.expect("sockets").with(limits);
        let address = listeners.address().expect("an address");
        let (end, ended) = tokio::sync::oneshot::channel();
        let served = host.clone();
        let server = std::thread::spawn(move || {
            let ended = async { drop(ended.await) };
            serve(served, listeners, ended).expect("it serves");
        });
        Served {
            host,
            address,
            socket,
            end: Some(end),
            server: Some(server),
            _directory: directory,
        }
    }

    /// A client of each socket.
    pub(crate) fn clients(&self) -> [Client; 2] {
        [
            Client::Unix(self.socket.clone()),
            Client::Tcp(self.address.to_string()),
        ]
    }

    /// Ends it, which it does well.
    pub(crate) fn end(&mut self) {
        // A server that has ended has nobody to tell.
        let _ = self.end.take().map(|end| end.send(()));
        let ended = self.server.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, None | Some(Ok(()))));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}
