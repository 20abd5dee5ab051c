//! The library of communication between processes (`nccl.h`), for one process: what it sends comes
//! back to itself.
//!
//! Invariant: there is no communicator of more than one process; in one of one, every collective
//! operation leaves in its destination what was in its source, but for operations that scale.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};

use crate::entry::{entry_points, put, put_if_wanted};
use crate::error::{Answer, Code};
use crate::launched;
use crate::libraries;
use crate::runtime::answer_of;
use crate::runtime::memory::{cudaFree, cudaMalloc, cudaMemcpyAsync};

/// `ncclUniqueId`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct UniqueId {
    bytes: [u8; 128],
}

/// What every communication is known by: there are no two to tell apart.
const UNIQUE: UniqueId = UniqueId { bytes: [0x6d; 128] };

/// Bytes of elements by `ncclDataType_t`: whole numbers, fractions, those of 16 and of 8 bits.
const SIZES: [usize; 12] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];
/// The first operation that a program makes: a sum of what it scales.
const SCALED: c_int = 5;
/// `ncclResult_t` for a use that is not possible, and for any other refusal.
const INVALID_USAGE: c_int = 5;
const INVALID_ARGUMENT: c_int = 4;

static TEXT: &std::ffi::CStr =
    c"not modelled by the dry device, which has one process (world size 1) in a communicator";

/// What an error of the library means.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(_error: c_int) -> *const c_char {
    TEXT.as_ptr()
}

/// The last error of a communicator.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_communicator: *mut c_void) -> *const c_char {
    TEXT.as_ptr()
}

/// The library's number for an answer.
fn communicated(action: impl FnOnce() -> Answer) -> c_int {
    match action() {
        Ok(()) => 0,
        Err(Code::NotSupported) => INVALID_USAGE,
        Err(_) => INVALID_ARGUMENT,
    }
}

/// A place of `size` bytes on the device, and the stream that works on it.
#[derive(Clone, Copy, Debug)]
struct Part {
    place: *mut c_void,
    size: usize,
    stream: *mut c_void,
}

thread_local! {
    /// What this thread sent to itself and did not receive yet, and the other way round.
    static WAITING: RefCell<[VecDeque<Part>; 2]> = const {
        RefCell::new([VecDeque::new(), VecDeque::new()])
    };
}

/// Refuses any number of processes but one.
fn alone(processes: c_int) -> Answer {
    match processes {
        1 => Ok(()),
        _ => Err(Code::NotSupported),
    }
}

/// Refuses any process but this one.
fn own(process: c_int) -> Answer {
    match process {
        0 => Ok(()),
        _ => Err(Code::InvalidValue),
    }
}

fn bytes(count: usize, kind: c_int) -> Answer<usize> {
    let kind = usize::try_from(kind).map_err(|_| Code::InvalidValue)?;
    let size = SIZES.get(kind).ok_or(Code::InvalidValue)?;
    count.checked_mul(*size).ok_or(Code::InvalidValue)
}

/// What a collective operation of one process does.
fn copy(from: *const c_void, to: *mut c_void, size: usize, stream: *mut c_void) -> Answer {
    if size == 0 || from.addr() == to.addr() {
        return Ok(());
    }
    // SAFETY: addresses of the device, which the model verifies.
    answer_of(unsafe { cudaMemcpyAsync(to, from, size, 3, stream) })
}

/// What a collective operation of one process does that reduces: a copy, whose scaled result is not
/// known.
fn reduce(
    from: *const c_void,
    to: *mut c_void,
    size: usize,
    operation: c_int,
    stream: *mut c_void,
) -> Answer {
    copy(from, to, size, stream)?;
    if operation >= SCALED {
        launched::library(&[to.addr()]);
    }
    Ok(())
}

/// Half of an exchange with this process itself; the other half may come first.
fn exchange(part: Part, receives: bool) -> Answer {
    let (first, second) = (usize::from(receives), usize::from(!receives));
    let met = WAITING.with_borrow_mut(|waiting| {
        let other = waiting[second].pop_front();
        if other.is_none() {
            waiting[first].push_back(part);
        }
        other
    });
    let Some(other) = met else { return Ok(()) };
    if other.size != part.size {
        return Err(Code::InvalidValue);
    }
    let (from, to) = if receives {
        (other, part)
    } else {
        (part, other)
    };
    copy(from.place, to.place, part.size, part.stream)
}

entry_points! {
    via crate::communication::communicated;

    /// Version of the library.
    fn ncclGetVersion(version: *mut c_int) { put(version, 22_800) }

    /// What a communication is known by.
    fn ncclGetUniqueId(place: *mut UniqueId) { put(place, UNIQUE) }

    /// What a communicator is known by.
    fn ncclCommGetUniqueId(_communicator: *mut c_void, place: *mut UniqueId) {
        put(place, UNIQUE)
    }

    /// A communicator of one process.
    fn ncclCommInitRank(
        place: *mut *mut c_void,
        processes: c_int,
        _unique: UniqueId,
        process: c_int,
    ) {
        alone(processes)?;
        own(process)?;
        libraries::handle(place)
    }

    /// A communicator of one process, made with options, which are not looked at.
    fn ncclCommInitRankConfig(
        place: *mut *mut c_void,
        processes: c_int,
        _unique: UniqueId,
        process: c_int,
        _options: *mut c_void,
    ) {
        alone(processes)?;
        own(process)?;
        libraries::handle(place)
    }

    /// A communicator of one process, whose identifier several processes could know.
    fn ncclCommInitRankScalable(
        place: *mut *mut c_void,
        processes: c_int,
        process: c_int,
        _count: c_int,
        _unique: *mut UniqueId,
        _options: *mut c_void,
    ) {
        alone(processes)?;
        own(process)?;
        libraries::handle(place)
    }

    /// Communicators of one process with several devices: there is one.
    fn ncclCommInitAll(places: *mut *mut c_void, devices: c_int, _numbers: *const c_int) {
        alone(devices)?;
        libraries::handle(places)
    }

    /// A communicator of a part of another: no colour, no part.
    fn ncclCommSplit(
        _communicator: *mut c_void,
        color: c_int,
        _key: c_int,
        place: *mut *mut c_void,
        _options: *mut c_void,
    ) {
        match color {
            -1 => put(place, std::ptr::null_mut()),
            _ => libraries::handle(place),
        }
    }

    /// How many processes: one.
    fn ncclCommCount(_communicator: *mut c_void, count: *mut c_int) { put(count, 1) }

    /// Which process this is.
    fn ncclCommUserRank(_communicator: *mut c_void, process: *mut c_int) { put(process, 0) }

    /// Which device it has.
    fn ncclCommCuDevice(_communicator: *mut c_void, device: *mut c_int) { put(device, 0) }

    /// What went wrong meanwhile: nothing.
    fn ncclCommGetAsyncError(_communicator: *mut c_void, error: *mut c_int) { put(error, 0) }

    /// The end of a communicator.
    fn ncclCommDestroy(_communicator: *mut c_void) { Ok(()) }

    /// The end of a communicator at once, without waiting for its work.
    fn ncclCommAbort(_communicator: *mut c_void) { Ok(()) }

    /// Before that.
    fn ncclCommFinalize(_communicator: *mut c_void) { Ok(()) }

    /// Memory that is known to a communicator.
    fn ncclCommRegister(
        _communicator: *mut c_void,
        _memory: *mut c_void,
        _size: usize,
        place: *mut *mut c_void,
    ) {
        libraries::handle(place)
    }

    /// It is not any more.
    fn ncclCommDeregister(_communicator: *mut c_void, _handle: *mut c_void) { Ok(()) }

    /// Memory that all processes see.
    fn ncclCommWindowRegister(
        _communicator: *mut c_void,
        _memory: *mut c_void,
        _size: usize,
        place: *mut *mut c_void,
        _flags: c_int,
    ) {
        libraries::handle(place)
    }

    /// They do not any more.
    fn ncclCommWindowDeregister(_communicator: *mut c_void, _window: *mut c_void) { Ok(()) }

    /// Memory of the device.
    fn ncclMemAlloc(place: *mut *mut c_void, size: usize) {
        // SAFETY: the caller's pointer, on the same terms.
        answer_of(unsafe { cudaMalloc(place, size) })
    }

    /// Its end.
    fn ncclMemFree(memory: *mut c_void) {
        // SAFETY: an address of the device, which the model verifies.
        answer_of(unsafe { cudaFree(memory) })
    }

    /// Operations that belong together begin: they are done at once all the same.
    fn ncclGroupStart() { Ok(()) }

    /// They end.
    fn ncclGroupEnd() { Ok(()) }

    /// A sum of what is scaled first.
    fn ncclRedOpCreatePreMulSum(
        operation: *mut c_int,
        _scalar: *mut c_void,
        _kind: c_int,
        _residence: c_int,
        _communicator: *mut c_void,
    ) {
        put_if_wanted(operation, SCALED);
        Ok(())
    }

    /// Its end.
    fn ncclRedOpDestroy(_operation: c_int, _communicator: *mut c_void) { Ok(()) }

    /// A reduction that all get.
    fn ncclAllReduce(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: c_int,
        operation: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        reduce(from, to, bytes(count, kind)?, operation, stream)
    }

    /// A reduction that one gets.
    fn ncclReduce(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: c_int,
        operation: c_int,
        root: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        own(root)?;
        reduce(from, to, bytes(count, kind)?, operation, stream)
    }

    /// A reduction of which all get a part.
    fn ncclReduceScatter(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: c_int,
        operation: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        reduce(from, to, bytes(count, kind)?, operation, stream)
    }

    /// What one has, all get.
    fn ncclBroadcast(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: c_int,
        root: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        own(root)?;
        copy(from, to, bytes(count, kind)?, stream)
    }

    /// What one process has, all get, in the memory where it lies.
    fn ncclBcast(
        _memory: *mut c_void,
        count: usize,
        kind: c_int,
        root: c_int,
        _communicator: *mut c_void,
        _stream: *mut c_void,
    ) {
        own(root)?;
        bytes(count, kind).map(drop)
    }

    /// What each has, all get.
    fn ncclAllGather(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        copy(from, to, bytes(count, kind)?, stream)
    }

    /// What each has for each.
    fn ncclAlltoAll(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        copy(from, to, bytes(count, kind)?, stream)
    }

    /// What each has, one gets.
    fn ncclGather(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: c_int,
        root: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        own(root)?;
        copy(from, to, bytes(count, kind)?, stream)
    }

    /// What one has for each.
    fn ncclScatter(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: c_int,
        root: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        own(root)?;
        copy(from, to, bytes(count, kind)?, stream)
    }

    /// To this process itself, which receives it before or after.
    fn ncclSend(
        from: *const c_void,
        count: usize,
        kind: c_int,
        process: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        own(process)?;
        exchange(Part { place: from.cast_mut(), size: bytes(count, kind)?, stream }, false)
    }

    /// From this process itself.
    fn ncclRecv(
        to: *mut c_void,
        count: usize,
        kind: c_int,
        process: c_int,
        _communicator: *mut c_void,
        stream: *mut c_void,
    ) {
        own(process)?;
        exchange(Part { place: to, size: bytes(count, kind)?, stream }, true)
    }
}
