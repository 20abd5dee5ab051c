//! Memory for instances: touched, locked, of exactly the right size, between guards.
//!
//! Compiled code checks no bounds: an address of 32 bits and an offset reach less than [`RESERVED`] bytes
//! from the base, and whatever lies there and is not the instance's must not be accessible. So a slot is
//! reserved whole, and accessible for exactly the bytes of its memory; a slot of another size is refused
//! to wasmtime (`slots::Creator`), as it would turn accesses beyond the end into silence.
//!
//! A slot is cut when a function is deployed, which costs system calls. Taking one that was given back
//! costs none.
//!
//! *Invariant:* a slot has one owner; one that is given back holds zeros alone before it is taken again.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use crate::error::SlotError;
use crate::limits::PAGE;

/// Addresses that code reaches from the base of a memory, before its guard.
pub(crate) const RESERVED: usize = 4 << 30;
/// What follows them.
pub(crate) const GUARD: usize = 32 << 20;

/// A pool of slots.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    total: u64,
    lock: bool,
    state: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    /// Bytes of all slots that are cut, taken or not.
    cut: u64,
    /// Bytes of slots that are taken.
    taken: u64,
    free: HashMap<usize, Vec<Cut>>,
}

impl Slots {
    /// A pool of `total` bytes, of which nothing is cut yet.
    pub fn new(total: u64, lock: bool) -> Slots {
        if lock {
            raise_lock_limit();
        }
        Slots(Arc::new(Pool {
            total,
            lock,
            state: Mutex::default(),
        }))
    }

    /// A slot of exactly `bytes`, all zeros. Without a system call where one of that size was given back.
    ///
    /// # Errors
    ///
    /// The pool is used up, the size is no number of pages, or the system gives or locks no memory.
    pub fn take(&self, bytes: u64) -> Result<Slot, SlotError> {
        if bytes == 0 || !bytes.is_multiple_of(PAGE) || bytes > RESERVED as u64 {
            return Err(SlotError::Size { asked: bytes });
        }
        let size = bytes as usize;
        let mut books = self.books();
        if let Some(cut) = books.free.get_mut(&size).and_then(Vec::pop) {
            books.taken += bytes;
            return Ok(Slot {
                cut: Some(cut),
                pool: self.clone(),
            });
        }
        if books.cut + bytes > self.0.total {
            let unused = std::mem::take(&mut books.free);
            books.cut = books.taken;
            drop(unused);
        }
        if books.cut + bytes > self.0.total {
            return Err(SlotError::Exhausted {
                asked: bytes,
                free: self.0.total - books.cut,
                total: self.0.total,
            });
        }
        let cut = Cut::new(size, self.0.lock)?;
        books.cut += bytes;
        books.taken += bytes;
        Ok(Slot {
            cut: Some(cut),
            pool: self.clone(),
        })
    }

    /// Bytes that are taken.
    pub fn taken(&self) -> u64 {
        self.books().taken
    }

    /// Bytes of the pool.
    pub fn total(&self) -> u64 {
        self.0.total
    }

    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        // No code of ours panics between two changes of the books.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot, which goes back when dropped.
#[derive(Debug)]
pub struct Slot {
    /// There until the drop.
    cut: Option<Cut>,
    pool: Slots,
}

impl Slot {
    /// Where it begins.
    pub(crate) fn base(&self) -> *mut u8 {
        self.cut
            .as_ref()
            .map_or(ptr::null_mut(), |cut| cut.base.as_ptr())
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.cut.as_ref().map_or(0, |cut| cut.bytes)
    }

    /// What is in it.
    pub fn memory(&mut self) -> &mut [u8] {
        let (base, bytes) = (self.base(), self.bytes());
        // SAFETY: `bytes` from `base` are accessible and this slot's as long as it lives; an instance over
        // it does not run while its owner, which is borrowed here, does something else.
        unsafe { std::slice::from_raw_parts_mut(base, bytes) }
    }

    /// Where it is.
    pub(crate) fn place(&self) -> Place {
        Place(Some((self.base(), self.bytes())))
    }
}

/// Where a slot is; none of a module without memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(Option<(*mut u8, usize)>);

// SAFETY: an address and a number; whoever reaches what lies there says why.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// No memory.
    pub(crate) const NONE: Place = Place(None);

    pub(crate) fn base(self) -> *mut u8 {
        self.0.map_or(ptr::null_mut(), |(base, _)| base)
    }

    pub(crate) fn bytes(self) -> usize {
        self.0.map_or(0, |(_, bytes)| bytes)
    }

    /// Runs `instantiate`, whose memory, if it has one, will be here.
    pub(crate) fn offer<R>(self, instantiate: impl FnOnce() -> R) -> R {
        OFFERED.set(self.0);
        let result = instantiate();
        OFFERED.set(None);
        result
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(cut) = self.cut.take() else { return };
        self.view(&cut).fill(0);
        let mut books = self.pool.books();
        books.taken -= cut.bytes as u64;
        books.free.entry(cut.bytes).or_default().push(cut);
    }
}

impl Slot {
    fn view(&mut self, cut: &Cut) -> &mut [u8] {
        // SAFETY: as in `memory`; the cut was this slot's until now.
        unsafe { std::slice::from_raw_parts_mut(cut.base.as_ptr(), cut.bytes) }
    }
}

/// Addresses of a slot: guard, memory, and nothing up to the end of what code reaches.
#[derive(Debug)]
struct Cut {
    mapping: NonNull<u8>,
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its addresses and does nothing with them that depends on the thread.
unsafe impl Send for Cut {}
// SAFETY: a shared reference gives nothing but addresses.
unsafe impl Sync for Cut {}

const MAPPED: usize = GUARD + RESERVED + GUARD;

impl Cut {
    fn new(bytes: usize, lock: bool) -> Result<Cut, SlotError> {
        let system = || SlotError::System {
            asked: bytes as u64,
            cause: io::Error::last_os_error().to_string(),
        };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), MAPPED, libc::PROT_NONE, flags, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(system());
        }
        let mapping = NonNull::new(mapping.cast::<u8>()).ok_or_else(system)?;
        // SAFETY: `GUARD` lies inside the mapping.
        let base = unsafe { mapping.add(GUARD) };
        let cut = Cut {
            mapping,
            base,
            bytes,
        };
        // SAFETY: `bytes` (at most `RESERVED`) from `base` lie inside the mapping, which is ours.
        if unsafe {
            libc::mprotect(
                base.as_ptr().cast(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        } != 0
        {
            return Err(system());
        }
        for at in (0..bytes).step_by(4096) {
            // SAFETY: inside the accessible bytes.
            unsafe { base.add(at).write_volatile(0) };
        }
        // SAFETY: the accessible bytes of the mapping.
        if lock && unsafe { libc::mlock(base.as_ptr().cast(), bytes) } != 0 {
            let cause = io::Error::last_os_error().to_string();
            return Err(SlotError::Lock {
                asked: bytes as u64,
                cause,
            });
        }
        Ok(cut)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it: its slot was given back or never had.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), MAPPED) };
    }
}

/// Asks for as much locked memory as the system lets this process have.
fn raise_lock_limit() {
    let all = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: limits are plain numbers; where raising is not permitted, locking says so later.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &all) };
}

thread_local! {
    /// The memory of the instance that this thread is making.
    static OFFERED: Cell<Option<(*mut u8, usize)>> = const { Cell::new(None) };
}

/// Gives wasmtime the slot that is offered, and nothing else.
pub(crate) struct Creator;

// SAFETY: what it gives is accessible for exactly the memory's size, reserved for all that compiled code
// reaches, and lives as long as the instance: `seat::Seat` drops the instance before the slot. It is not
// zero but the image of the module, whose segments were taken out and stand in it.
unsafe impl MemoryCreator for Creator {
    fn new_memory(
        &self,
        ty: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let Some((base, bytes)) = OFFERED.take() else {
            return Err("no slot is offered to this instance".to_owned());
        };
        if bytes != minimum || maximum != Some(minimum) {
            return Err(format!(
                "a slot of {bytes} bytes is offered to a memory of {minimum} up to {maximum:?}"
            ));
        }
        if ty.is_64()
            || ty.is_shared()
            || reserved.is_none_or(|reserved| reserved > RESERVED)
            || guard > GUARD
        {
            return Err(format!(
                "code reaches {reserved:?} and {guard} bytes; slots reserve {RESERVED} and {GUARD}"
            ));
        }
        Ok(Box::new(Lent { base, bytes }))
    }
}

/// A slot in the hands of an instance.
struct Lent {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: an address; what lies there is reached by the one thread that runs the instance.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

// SAFETY: the base is page-aligned, the size whole pages, and the guard of `Cut` follows at once.
unsafe impl LinearMemory for Lent {
    fn byte_size(&self) -> usize {
        self.bytes
    }

    fn byte_capacity(&self) -> usize {
        self.bytes
    }

    fn grow_to(&mut self, _: usize) -> wasmtime::Result<()> {
        Err(wasmtime::Error::msg(
            "the memory of a function does not grow",
        ))
    }

    fn as_ptr(&self) -> *mut u8 {
        self.base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(
        offered: Option<u64>,
        pages: u32,
        maximum: Option<u32>,
        guard: usize,
    ) -> Result<usize, String> {
        let slots = Slots::new(1 << 20, false);
        let slot = offered.map(|bytes| slots.take(bytes).expect("there is room"));
        OFFERED.set(slot.as_ref().map(|slot| (slot.base(), slot.bytes())));
        let bytes = pages as usize * PAGE as usize;
        let most = maximum.map(|pages| pages as usize * PAGE as usize);
        let ty = MemoryType::new(pages, maximum);
        Creator
            .new_memory(ty, bytes, most, Some(RESERVED), guard)
            .map(|mut memory| {
                assert!(memory.grow_to(2 * bytes).is_err());
                assert_eq!(memory.byte_capacity(), memory.byte_size());
                memory.byte_size()
            })
    }

    #[test]
    fn a_slot_serves_a_memory_of_its_own_size_alone() {
        let page = PAGE as usize;
        assert_eq!(asked(Some(PAGE), 1, Some(1), GUARD), Ok(page));
        for (offered, pages, maximum, guard) in [
            (None, 1, Some(1), GUARD),
            (Some(2 * PAGE), 1, Some(1), GUARD),
            (Some(2 * PAGE), 1, Some(2), GUARD),
            (Some(PAGE), 2, Some(2), GUARD),
            (Some(PAGE), 1, None, GUARD),
            (Some(PAGE), 1, Some(1), GUARD + page),
        ] {
            assert!(
                asked(offered, pages, maximum, guard).is_err(),
                "{offered:?} {pages} {maximum:?}"
            );
        }
    }

    #[test]
    fn an_offer_is_for_one_memory() {
        let slots = Slots::new(1 << 20, false);
        let slot = slots.take(PAGE).expect("there is room");
        let offers = slot
            .place()
            .offer(|| [OFFERED.take().is_some(), OFFERED.take().is_some()]);
        assert_eq!(offers, [true, false]);
        slot.place().offer(|| ());
        assert!(
            OFFERED.take().is_none(),
            "one that was not taken does not stay"
        );
    }
}
