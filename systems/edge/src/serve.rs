//! Serves a host on TCP and a Unix socket until it is told to end.
//!
//! *Invariant:* a socket file of another host that lives is not taken from it.

mod connection;
mod wire;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use axum::serve::{Listener, ListenerExt};

use crate::host::Host;
use crate::http::HttpLimits;
use connection::Door;

/// Where a host listens.
pub struct Listeners {
    tcp: Option<TcpListener>,
    unix: Option<(UnixListener, PathBuf)>,
    limits: HttpLimits,
}

impl Listeners {
    /// Begins to listen.
    ///
    /// # Errors
    /// An address or a path that cannot be listened on, as of a host that is there already.
    pub fn new(tcp: Option<SocketAddr>, unix: Option<&Path>) -> io::Result<Listeners> {
        let tcp = tcp.map(TcpListener::bind).transpose()?;
        let unix = unix
            .map(|path| Ok::<_, io::Error>((listen(path)?, path.to_owned())))
            .transpose()?;
        Ok(Listeners {
            tcp,
            unix,
            limits: HttpLimits::default(),
        })
    }

    /// With other limits on what clients may take.
    #[must_use]
    pub fn with(mut self, limits: HttpLimits) -> Listeners {
        self.limits = limits;
        self
    }

    /// The address on TCP.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref()?.local_addr().ok()
    }
}

/// A socket at a path, on which nobody listens any more.
fn listen(path: &Path) -> io::Result<UnixListener> {
    // An empty path would be a name of the kernel's choice, which nobody finds.
    if path.as_os_str().is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path is empty",
        ));
    }
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let socket = std::fs::symlink_metadata(path)
                .is_ok_and(|about| std::os::unix::fs::FileTypeExt::is_socket(&about.file_type()));
            if !socket || UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        other => other,
    }
}

/// Serves until `end` is ready.
///
/// # Errors
/// What the system says of the sockets.
pub fn serve(host: Host, listeners: Listeners, end: impl Future<Output = ()>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let socket = listeners.unix.as_ref().map(|(_, path)| path.clone());
    let served = runtime.block_on(async {
        let door = Door::new(host, &listeners.limits);
        let tcp = match listeners.tcp {
            Some(tcp) => {
                tcp.set_nonblocking(true)?;
                Some(tokio::net::TcpListener::from_std(tcp)?)
            }
            None => None,
        };
        let unix = match listeners.unix {
            Some((unix, _)) => {
                unix.set_nonblocking(true)?;
                Some(tokio::net::UnixListener::from_std(unix)?)
            }
            None => None,
        };
        // A connection of little that waits for nothing to be added.
        let tcp = tcp.map(|tcp| tcp.tap_io(|stream| drop(stream.set_nodelay(true))));
        tokio::select! {
            () = greet(tcp, &door) => {}
            () = greet(unix, &door) => {}
            () = end => {}
        }
        Ok(())
    });
    // Compilers that still run are not waited for.
    runtime.shutdown_background();
    if let Some(path) = socket {
        drop(std::fs::remove_file(path));
    }
    served
}

/// Takes what connects, for ever.
async fn greet(listener: Option<impl Listener>, door: &Door) {
    let Some(mut listener) = listener else {
        return std::future::pending().await;
    };
    loop {
        let (stream, _) = listener.accept().await;
        door.enter(stream);
    }
}
