//! Which versions were measured: read from the lock file this build used.

use serde::Serialize;

use crate::peer::Peer;

/// The lock file of the workspace at build time.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// A peer and what it was built from.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Origin {
    /// Allocator.
    pub(crate) heap: String,
    /// Package and version, or what else it is.
    pub(crate) origin: String,
    /// Floor, arena, out of band or general.
    pub(crate) kind: &'static str,
}

/// Origins of the peers, in their order.
pub(crate) fn origins(peers: &[Peer]) -> Vec<Origin> {
    peers
        .iter()
        .map(|peer| Origin {
            heap: peer.name.to_owned(),
            origin: origin(peer),
            kind: peer.kind.label(),
        })
        .collect()
}

fn origin(peer: &Peer) -> String {
    match (peer.package, peer.name) {
        ("", "glibc") => format!("glibc {}", glibc()),
        ("", _) => format!("metes {}", env!("CARGO_PKG_VERSION")),
        (package, _) => format!("{package} {}", locked(package).unwrap_or("?")),
    }
}

/// Version of a package in the lock file.
pub(crate) fn locked(package: &str) -> Option<&'static str> {
    let entry = format!("name = \"{package}\"\nversion = \"");
    let start = LOCK.find(&entry)? + entry.len();
    LOCK[start..].split('"').next()
}

fn glibc() -> String {
    // SAFETY: returns a static string.
    unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_in_the_lock_file() {
        for peer in crate::peers::all() {
            if !peer.package.is_empty() {
                assert!(locked(peer.package).is_some(), "{}", peer.package);
            }
        }
    }
}
