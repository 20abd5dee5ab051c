//! What copies to the host give: what the host wrote itself is known, what a kernel may have
//! written is not, and whoever observes is told so and may give values.
//!
//! Functions are those linked into this program, which share one device: one test at a time.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::TURN;
use metes_dry_device::control::{metes_dry_guesses, metes_dry_observe, metes_dry_reader};
use metes_dry_device::device::{self, Settings};
use metes_dry_device::knowledge::Kept;
use metes_dry_device::modules::cuLaunchKernel;
use metes_dry_device::runtime::graphs::{
    cudaGraphInstantiate, cudaGraphLaunch, cudaStreamBeginCapture, cudaStreamEndCapture,
};
use metes_dry_device::runtime::launch::{Extent, cudaLaunchKernel};
use metes_dry_device::runtime::memory::{cudaFree, cudaMalloc, cudaMemcpy, cudaMemset};
use metes_dry_device::runtime::streams::cudaStreamCreateWithFlags;

const IN: c_int = 1;
const OUT: c_int = 2;
const WITHIN: c_int = 3;

fn opened(kept: Kept) -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    device::replace(Some(Settings {
        bytes: 1 << 30,
        kept,
        capability: (9, 0),
    }))
    .unwrap();
    turn
}

fn block(size: usize) -> *mut c_void {
    let mut block = ptr::null_mut();
    // SAFETY: a pointer of ours; so throughout.
    assert_eq!(unsafe { cudaMalloc(&mut block, size) }, 0);
    block
}

fn copy<T>(to: *mut T, from: *const T, size: usize, way: c_int) {
    // SAFETY: as above.
    assert_eq!(unsafe { cudaMemcpy(to.cast(), from.cast(), size, way) }, 0);
}

/// Launches a kernel with a number and a structure of two addresses behind other things.
fn launch(first: *mut c_void, second: *mut c_void) {
    let mut number = 5_i32;
    let mut structure = [7_usize, first.addr(), 9, second.addr()];
    let mut arguments = [
        (&raw mut number).cast::<c_void>(),
        (&raw mut structure).cast::<c_void>(),
    ];
    // SAFETY: as above; the kernel's name is any address.
    unsafe {
        let extent = std::mem::transmute::<[u32; 3], Extent>([1, 1, 1]);
        let kernel = (&raw const TURN).cast();
        let arguments = arguments.as_mut_ptr();
        let launched = cudaLaunchKernel(kernel, extent, extent, arguments, 0, ptr::null_mut());
        assert_eq!(launched, 0);
    }
}

fn guesses() -> [u64; 2] {
    let mut found = [0; 2];
    // SAFETY: room for two numbers.
    assert_eq!(unsafe { metes_dry_guesses(&mut found) }, 0);
    found
}

fn read(from: *mut c_void) -> [u8; 4] {
    let mut bytes = [0xee; 4];
    copy(bytes.as_mut_ptr().cast::<c_void>(), from, 4, OUT);
    bytes
}

#[test]
fn what_the_host_wrote_comes_back_until_a_kernel_is_given_it() {
    for kept in [Kept::All, Kept::Host] {
        let _turn = opened(kept);
        let (first, second, third) = (block(4096), block(4096), block(4096));
        for (place, byte) in [(first, 1_u8), (second, 2), (third, 3)] {
            copy(place, [byte; 4].as_ptr().cast(), 4, IN);
            assert_eq!(read(place), [byte; 4]);
        }
        // SAFETY: a block of ours.
        assert_eq!(unsafe { cudaMemset(second.wrapping_byte_add(8), 9, 8) }, 0);
        assert_eq!(read(second.wrapping_byte_add(10)), [9; 4]);
        assert_eq!(guesses(), [0, 0]);
        launch(first, third);
        assert_eq!(read(second), [2; 4]);
        assert_eq!(guesses(), [0, 0]);
        read(first);
        read(third);
        assert_eq!(guesses(), [2, 8]);
        // What is copied on is known as much as its source.
        copy(third, second, 4, WITHIN);
        assert_eq!(read(third), [2; 4]);
        copy(second, first, 4, WITHIN);
        read(second);
        assert_eq!(guesses(), [3, 12]);
        // A block that was given back is another one afterwards.
        // SAFETY: a block of ours.
        assert_eq!(unsafe { cudaFree(third) }, 0);
        read(block(4096));
        assert_eq!(guesses(), [4, 16]);
    }
}

#[test]
fn a_table_of_addresses_is_followed() {
    let _turn = opened(Kept::Host);
    let (table, result) = (block(64), block(64));
    copy(result, [1_u8; 4].as_ptr().cast(), 4, IN);
    copy(table, [result.addr(); 2].as_ptr().cast(), 16, IN);
    launch(table, ptr::null_mut());
    read(result);
    assert_eq!(guesses(), [1, 4]);
}

#[test]
fn arguments_in_a_buffer_and_graphs_are_launches() {
    let _turn = opened(Kept::Host);
    let (first, second) = (block(64), block(64));
    for place in [first, second] {
        copy(place, [1_u8; 4].as_ptr().cast(), 4, IN);
    }
    let mut buffer = [4_usize, first.addr()];
    let mut size = size_of_val(&buffer);
    let mut extra = [
        ptr::without_provenance_mut::<c_void>(1),
        (&raw mut buffer).cast(),
        ptr::without_provenance_mut(2),
        (&raw mut size).cast(),
        ptr::null_mut(),
    ];
    let one: c_uint = 1;
    let none = ptr::null_mut::<c_void>();
    // SAFETY: as above.
    unsafe {
        let extra = extra.as_mut_ptr();
        let arguments = ptr::null_mut();
        let launched = cuLaunchKernel(
            none, one, one, one, one, one, one, 0, none, arguments, extra,
        );
        assert_eq!(launched, 0);
    }
    read(first);
    assert_eq!(guesses()[0], 1);
    assert_eq!(read(second), [1; 4]);
    // What a graph does is not kept, so it may be anything.
    let (mut side, mut graph, mut executable) = (none, none, none);
    // SAFETY: as above.
    unsafe {
        assert_eq!(cudaStreamCreateWithFlags(&mut side, 1), 0);
        assert_eq!(cudaStreamBeginCapture(side, 0), 0);
        assert_eq!(cudaStreamEndCapture(side, &mut graph), 0);
        assert_eq!(cudaGraphInstantiate(&mut executable, graph, 0), 0);
        assert_eq!(cudaGraphLaunch(executable, side), 0);
    }
    read(second);
    assert_eq!(guesses()[0], 2);
}

#[test]
fn a_reader_that_knows_its_block_knows_more() {
    let _turn = opened(Kept::Host);
    let whole = block(1 << 20);
    let part = whole.wrapping_byte_add(1 << 10);
    copy(part, [1_u8; 4].as_ptr().cast(), 4, IN);
    launch(whole, ptr::null_mut());
    assert_eq!(read(part), [1; 4]);
    metes_dry_reader(whole.addr() as u64);
    read(part);
    metes_dry_reader(0);
    assert_eq!(guesses(), [1, 4]);
}

static SEEN: Mutex<Vec<(u64, bool)>> = Mutex::new(Vec::new());

unsafe extern "C" fn sevens(place: *mut u8, size: u64, first: bool) {
    SEEN.lock().unwrap().push((size, first));
    // SAFETY: the bytes of a copy that is not over.
    unsafe { place.write_bytes(7, size as usize) };
    // No lock is held.
    assert!(guesses()[0] > 0);
}

#[test]
fn an_observer_gives_values() {
    let _turn = opened(Kept::Host);
    let place = block(64);
    copy(place, [1_u8; 2].as_ptr().cast(), 2, IN);
    metes_dry_observe(Some(sevens));
    assert_eq!(read(place), [1, 1, 7, 7]);
    let mut bytes = [0_u8; 8];
    copy(place.wrapping_byte_add(4), [3_u8; 2].as_ptr().cast(), 2, IN);
    copy(bytes.as_mut_ptr().cast::<c_void>(), place, 8, OUT);
    metes_dry_observe(None);
    assert_eq!(bytes, [1, 1, 7, 7, 3, 3, 7, 7]);
    let seen = std::mem::take(&mut *SEEN.lock().unwrap());
    assert_eq!(seen, [(2, true), (2, true), (2, false)]);
    // Without one, zeros.
    assert_eq!(read(place), [1, 1, 0, 0]);
}

#[test]
fn nothing_is_known_where_nothing_is_kept() {
    let _turn = opened(Kept::Nothing);
    let place = block(64);
    copy(place, [1_u8; 4].as_ptr().cast(), 4, IN);
    assert_eq!(read(place), [0; 4]);
    assert_eq!(guesses(), [1, 4]);
}
