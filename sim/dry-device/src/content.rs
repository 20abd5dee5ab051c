//! What device memory holds: a file in memory, sparse, that only copies and fills reach.
//!
//! Invariant: physical memory is a range of the file from its creation to its release, never
//! shared by two; memory that was given back holds zeros.
//!
//! Reads and writes go through system calls, so that a host pointer that is none (a device
//! address, say) is refused by the kernel instead of ending the process.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;

use crate::error::{Answer, Code};

/// Bytes copied at once.
const CHUNK: usize = 1 << 20;

/// The bytes of the device.
#[derive(Debug)]
pub(crate) struct Content {
    file: File,
    /// Bytes of the file that were given out so far; ranges are not used a second time.
    end: u64,
    /// Whether writes are kept. If not, everything reads as zeros.
    kept: bool,
}

impl Content {
    pub(crate) fn new(kept: bool) -> io::Result<Content> {
        // SAFETY: the name is a C string; the result is checked.
        let descriptor =
            unsafe { libc::memfd_create(c"metes-dry-device".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Content {
            // SAFETY: a new descriptor that nobody else owns.
            file: unsafe { File::from_raw_fd(descriptor) },
            end: 0,
            kept,
        })
    }

    /// Room for `size` bytes of zeros; its offset.
    pub(crate) fn create(&mut self, size: u64) -> Answer<u64> {
        let offset = self.end;
        let end = offset.checked_add(size).ok_or(Code::OutOfMemory)?;
        self.file.set_len(end).map_err(|_| Code::OutOfMemory)?;
        self.end = end;
        Ok(offset)
    }

    /// Gives `size` bytes at `offset` back to the host.
    pub(crate) fn release(&self, offset: u64, size: u64) {
        if self.kept && size > 0 {
            // SAFETY: a descriptor of ours. A failure costs memory of the host, nothing else:
            // the range is not used again.
            unsafe {
                libc::fallocate(
                    self.file.as_raw_fd(),
                    libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                    offset as libc::off_t,
                    size as libc::off_t,
                )
            };
        }
    }

    /// Copies from the host. A source that the host may not read is an invalid value.
    pub(crate) fn write(&self, offset: u64, source: u64, size: u64) -> Answer {
        if !self.kept {
            return Ok(());
        }
        transfer(size, |done, length| {
            // SAFETY: the kernel verifies that the source can be read.
            unsafe {
                libc::pwrite(
                    self.file.as_raw_fd(),
                    ptr::without_provenance((source + done) as usize),
                    length,
                    (offset + done) as libc::off_t,
                )
            }
        })
    }

    /// Copies to the host. A destination that the host may not write is an invalid value.
    pub(crate) fn read(&self, offset: u64, destination: u64, size: u64) -> Answer {
        transfer(size, |done, length| {
            // SAFETY: the kernel verifies that the destination can be written; that it is the
            // caller's to write is what the caller of a copy promises.
            unsafe {
                libc::pread(
                    self.file.as_raw_fd(),
                    ptr::without_provenance_mut((destination + done) as usize),
                    length,
                    (offset + done) as libc::off_t,
                )
            }
        })
    }

    /// Copies within the device.
    pub(crate) fn copy(&self, from: u64, to: u64, size: u64) -> Answer {
        if !self.kept {
            return Ok(());
        }
        let mut buffer = vec![0_u8; CHUNK.min(size as usize)];
        let mut done = 0;
        while done < size {
            let length = (CHUNK as u64).min(size - done);
            let part = &mut buffer[..length as usize];
            let place = part.as_mut_ptr().expose_provenance() as u64;
            self.read(from + done, place, length)?;
            self.write(to + done, place, length)?;
            done += length;
        }
        Ok(())
    }

    /// Repeats `pattern`, of which `size` is a multiple.
    pub(crate) fn fill(&self, offset: u64, pattern: &[u8], size: u64) -> Answer {
        if !self.kept {
            return Ok(());
        }
        if pattern.iter().all(|byte| *byte == 0) {
            self.release(offset, size);
            return Ok(());
        }
        let length = CHUNK.min(size as usize);
        let buffer: Vec<u8> = pattern.iter().copied().cycle().take(length).collect();
        let mut done = 0;
        while done < size {
            let length = (CHUNK as u64).min(size - done);
            self.write(
                offset + done,
                buffer.as_ptr().expose_provenance() as u64,
                length,
            )?;
            done += length;
        }
        Ok(())
    }
}

/// Bytes of the host, read by the kernel: a range that may not be read is an invalid value.
pub(crate) fn host_bytes(source: u64, size: u64) -> Answer<Vec<u8>> {
    let mut content = Content::new(true).map_err(|_| Code::OutOfMemory)?;
    let mut bytes = vec![0; size as usize];
    let offset = content.create(size)?;
    content.write(offset, source, size)?;
    content.read(offset, bytes.as_mut_ptr().expose_provenance() as u64, size)?;
    Ok(bytes)
}

/// Calls `step` with the bytes done and the bytes to do until all are done.
fn transfer(size: u64, mut step: impl FnMut(u64, usize) -> isize) -> Answer {
    let mut done = 0;
    while done < size {
        match step(done, (size - done) as usize) {
            moved @ 1.. => done += moved as u64,
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(Code::InvalidValue),
        }
    }
    Ok(())
}
