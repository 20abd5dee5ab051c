//! A window of MPI-3: memory of each rank that all others reach one-sidedly.
//!
//! Invariant: no access leaves the window of its rank; each has taken effect when its call returns. What several ranks write
//! at a time is accessed as words alone, by MPI's accumulating operations, which exclude each other.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Communicator};

unsafe extern "C" {
    static metes_mpi_replace: ffi::MPI_Op;
    static metes_mpi_no_op: ffi::MPI_Op;
}

/// Why an access has not taken place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// MPI refuses.
    #[error("{call} fails: {said}")]
    Refused {
        /// The call.
        call: &'static str,
        /// What MPI says.
        said: String,
    },
    /// It would leave the window.
    #[error("{length} bytes at {at} of rank {rank} leave its window of {bytes}")]
    Outside {
        /// Whose window.
        rank: u32,
        /// Where.
        at: u64,
        /// How many bytes.
        length: u64,
        /// What the window has.
        bytes: u64,
    },
    /// A word does not begin at a multiple of its size.
    #[error("a word of {size} bytes at {at} is not aligned")]
    Misaligned {
        /// Where.
        at: u64,
        /// Its bytes.
        size: u64,
    },
    /// There is no such rank.
    #[error("there is no rank {rank}: there are {ranks}")]
    NoRank {
        /// Which one.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
}

fn checked(call: &'static str, code: i32) -> Result<(), WindowError> {
    if code == ffi::MPI_SUCCESS as i32 {
        return Ok(());
    }
    let mut text = [0u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut length = 0;
    // SAFETY: room for the longest text.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    let said = &text[..usize::try_from(length).unwrap_or(0).min(text.len())];
    let said = String::from_utf8_lossy(said).into_owned();
    Err(WindowError::Refused { call, said })
}

/// A word that ranks exchange at once.
pub trait Word: Copy + Default + sealed::Sealed {}

mod sealed {
    use mpi::ffi;

    /// A plain integer, and what MPI calls it.
    pub trait Sealed {
        fn datatype() -> ffi::MPI_Datatype;
    }

    impl Sealed for u32 {
        fn datatype() -> ffi::MPI_Datatype {
            // SAFETY: a constant.
            unsafe { ffi::RSMPI_UINT32_T }
        }
    }

    impl Sealed for u64 {
        fn datatype() -> ffi::MPI_Datatype {
            // SAFETY: a constant.
            unsafe { ffi::RSMPI_UINT64_T }
        }
    }
}

impl Word for u32 {}
impl Word for u64 {}

/// So many bytes of each rank, which all ranks reach. Dropping it is collective.
#[derive(Debug)]
pub struct Window {
    raw: ffi::MPI_Win,
    ranks: u32,
    bytes: u64,
}

impl Window {
    /// A window of `bytes` bytes of each rank, zeros. Collective: each rank asks for as many.
    ///
    /// # Errors
    /// [`WindowError::Refused`]: there is not so much memory, mostly.
    pub fn new(world: &SimpleCommunicator, bytes: u64) -> Result<Window, WindowError> {
        let mut base: *mut c_void = std::ptr::null_mut();
        let mut raw = MaybeUninit::uninit();
        let size = isize::try_from(bytes).map_err(|_| WindowError::Refused {
            call: "MPI_Win_allocate",
            said: format!("{bytes} bytes are more than there are addresses"),
        })?;
        // SAFETY: a communicator that lives, and room for what is given back. Errors of windows that are not there yet are the
        // communicator's.
        let raw = unsafe {
            ffi::MPI_Comm_set_errhandler(world.as_raw(), ffi::RSMPI_ERRORS_RETURN);
            let code = ffi::MPI_Win_allocate(
                size as ffi::MPI_Aint,
                1,
                ffi::RSMPI_INFO_NULL,
                world.as_raw(),
                (&raw mut base).cast(),
                raw.as_mut_ptr(),
            );
            checked("MPI_Win_allocate", code)?;
            raw.assume_init()
        };
        let window = Window {
            raw,
            ranks: world.size() as u32,
            bytes,
        };
        // SAFETY: a window that lives; what is shared is told so by `lock_all`, for as long as it lives.
        unsafe {
            ffi::MPI_Win_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN);
            checked("MPI_Win_lock_all", ffi::MPI_Win_lock_all(0, raw))?;
        }
        let (rank, zeros) = (world.rank() as u32, [0; 1 << 14]);
        for at in (0..bytes).step_by(zeros.len()) {
            let length = (bytes - at).min(zeros.len() as u64);
            window.put(rank, at, &zeros[..length as usize])?;
        }
        Ok(window)
    }

    /// How many ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    fn check(&self, rank: u32, at: u64, length: u64) -> Result<(), WindowError> {
        let (ranks, bytes) = (self.ranks, self.bytes);
        if rank >= ranks {
            return Err(WindowError::NoRank { rank, ranks });
        }
        if at.checked_add(length).is_none_or(|end| end > bytes) {
            return Err(WindowError::Outside {
                rank,
                at,
                length,
                bytes,
            });
        }
        Ok(())
    }

    fn check_word<T: Word>(&self, rank: u32, at: u64) -> Result<(), WindowError> {
        let size = size_of::<T>() as u64;
        if !at.is_multiple_of(size) {
            return Err(WindowError::Misaligned { at, size });
        }
        self.check(rank, at, size)
    }

    /// Waits until what was begun has taken effect.
    fn flush(&self, rank: u32) -> Result<(), WindowError> {
        // SAFETY: a rank of the window.
        checked("MPI_Win_flush", unsafe {
            ffi::MPI_Win_flush(rank as i32, self.raw)
        })
    }

    /// Reads bytes that no rank writes at the time.
    ///
    /// # Errors
    /// [`WindowError`].
    pub fn get(&self, rank: u32, at: u64, into: &mut [u8]) -> Result<(), WindowError> {
        self.check(rank, at, into.len() as u64)?;
        // SAFETY: so many bytes are there, and writable here; they are there when the flush returns.
        unsafe { self.get_raw(rank, at, into.as_mut_ptr(), into.len()) }
    }

    /// # Safety
    /// So many bytes lie in the window, and may be written to `into`.
    pub(crate) unsafe fn get_raw(
        &self,
        rank: u32,
        at: u64,
        into: *mut u8,
        length: usize,
    ) -> Result<(), WindowError> {
        // SAFETY: as the caller says.
        checked("MPI_Get", unsafe {
            ffi::MPI_Get(
                into.cast(),
                length as i32,
                ffi::RSMPI_UINT8_T,
                rank as i32,
                at as ffi::MPI_Aint,
                length as i32,
                ffi::RSMPI_UINT8_T,
                self.raw,
            )
        })?;
        self.flush(rank)
    }

    /// Writes bytes that no other rank accesses at the time.
    ///
    /// # Errors
    /// [`WindowError`].
    pub fn put(&self, rank: u32, at: u64, from: &[u8]) -> Result<(), WindowError> {
        self.check(rank, at, from.len() as u64)?;
        // SAFETY: so many bytes are there, and readable here until the flush returns.
        unsafe { self.put_raw(rank, at, from.as_ptr(), from.len()) }
    }

    /// # Safety
    /// So many bytes lie in the window, and at `from`.
    pub(crate) unsafe fn put_raw(
        &self,
        rank: u32,
        at: u64,
        from: *const u8,
        length: usize,
    ) -> Result<(), WindowError> {
        // SAFETY: as the caller says.
        checked("MPI_Put", unsafe {
            ffi::MPI_Put(
                from.cast(),
                length as i32,
                ffi::RSMPI_UINT8_T,
                rank as i32,
                at as ffi::MPI_Aint,
                length as i32,
                ffi::RSMPI_UINT8_T,
                self.raw,
            )
        })?;
        self.flush(rank)
    }

    /// Whether bytes of a rank can be reached, so many at a place.
    ///
    /// # Errors
    /// [`WindowError`] says why not.
    pub(crate) fn reaches(&self, rank: u32, at: u64, length: u64) -> Result<(), WindowError> {
        self.check(rank, at, length)
    }

    fn fetch<T: Word>(
        &self,
        rank: u32,
        at: u64,
        value: T,
        operation: ffi::MPI_Op,
    ) -> Result<T, WindowError> {
        self.check_word::<T>(rank, at)?;
        let mut was = T::default();
        // SAFETY: a word of that type is there, and both here live until the flush returns.
        checked("MPI_Fetch_and_op", unsafe {
            ffi::MPI_Fetch_and_op(
                (&raw const value).cast(),
                (&raw mut was).cast(),
                T::datatype(),
                rank as i32,
                at as ffi::MPI_Aint,
                operation,
                self.raw,
            )
        })?;
        self.flush(rank)?;
        Ok(was)
    }

    /// Reads a word that others may write.
    ///
    /// # Errors
    /// [`WindowError`].
    pub fn load<T: Word>(&self, rank: u32, at: u64) -> Result<T, WindowError> {
        // SAFETY: a constant.
        self.fetch(rank, at, T::default(), unsafe { metes_mpi_no_op })
    }

    /// Writes a word that others may access.
    ///
    /// # Errors
    /// [`WindowError`].
    pub fn store<T: Word>(&self, rank: u32, at: u64, value: T) -> Result<(), WindowError> {
        // SAFETY: a constant.
        self.fetch(rank, at, value, unsafe { metes_mpi_replace })
            .map(|_| ())
    }

    /// Adds to a word, modulo its size; what it was.
    ///
    /// # Errors
    /// [`WindowError`].
    pub fn add<T: Word>(&self, rank: u32, at: u64, value: T) -> Result<T, WindowError> {
        // SAFETY: a constant.
        self.fetch(rank, at, value, unsafe { ffi::RSMPI_SUM })
    }

    /// Makes a word `value` at least.
    ///
    /// # Errors
    /// [`WindowError`].
    pub fn raise<T: Word>(&self, rank: u32, at: u64, value: T) -> Result<(), WindowError> {
        // SAFETY: a constant.
        self.fetch(rank, at, value, unsafe { ffi::RSMPI_MAX })
            .map(|_| ())
    }

    /// Writes a word if it is `current`; what it was.
    ///
    /// # Errors
    /// [`WindowError`].
    pub fn compare_exchange<T: Word>(
        &self,
        rank: u32,
        at: u64,
        current: T,
        new: T,
    ) -> Result<T, WindowError> {
        self.check_word::<T>(rank, at)?;
        let mut was = T::default();
        // SAFETY: a word of that type is there, and those here live until the flush returns.
        checked("MPI_Compare_and_swap", unsafe {
            ffi::MPI_Compare_and_swap(
                (&raw const new).cast(),
                (&raw const current).cast(),
                (&raw mut was).cast(),
                T::datatype(),
                rank as i32,
                at as ffi::MPI_Aint,
                self.raw,
            )
        })?;
        self.flush(rank)?;
        Ok(was)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the window lives, and is used no more. What fails cannot be mended any more.
        unsafe {
            ffi::MPI_Win_unlock_all(self.raw);
            ffi::MPI_Win_free(&raw mut self.raw);
        }
    }
}
