//! The program's own memory, reached through the kernel.
//!
//! Invariant: an address that is none, or that may not be read or written, ends nothing: as many
//! bytes are moved as lie before it.

use std::ffi::c_void;
use std::ptr;

fn vector(address: u64, length: usize) -> libc::iovec {
    libc::iovec {
        iov_base: ptr::with_exposed_provenance_mut::<c_void>(address as usize),
        iov_len: length,
    }
}

/// Reads up to `buffer.len()` bytes; how many. None, too, where the host allows no such reads.
pub(crate) fn read(address: u64, buffer: &mut [u8]) -> usize {
    let own = vector(buffer.as_mut_ptr().expose_provenance() as u64, buffer.len());
    let other = vector(address, buffer.len());
    // SAFETY: the kernel writes into the buffer, within its length, and verifies the source.
    let moved = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const own, 1, &raw const other, 1, 0)
    };
    usize::try_from(moved).unwrap_or(0)
}

/// Writes bytes; whether all of them.
pub(crate) fn write(address: u64, bytes: &[u8]) -> bool {
    let own = vector(bytes.as_ptr().expose_provenance() as u64, bytes.len());
    let other = vector(address, bytes.len());
    // SAFETY: the kernel reads the bytes only and verifies the destination; that it is the
    // caller's to write is what the caller of a copy promises.
    let moved = unsafe {
        libc::process_vm_writev(libc::getpid(), &raw const own, 1, &raw const other, 1, 0)
    };
    usize::try_from(moved) == Ok(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_memory_is_not_read() {
        let source = [7_u8; 16];
        let mut buffer = [0_u8; 16];
        let place = source.as_ptr().expose_provenance() as u64;
        assert_eq!(read(place, &mut buffer), 16);
        assert_eq!(buffer, source);
        assert_eq!(read(8, &mut buffer), 0);
        assert!(!write(8, &buffer));
        let place = buffer.as_mut_ptr().expose_provenance() as u64;
        assert!(write(place, &[3; 8]));
        assert_eq!(buffer[7..9], [3, 7]);
    }
}
