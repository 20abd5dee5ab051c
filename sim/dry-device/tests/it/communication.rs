//! The library of communication: one process, which gets what it sends.
//!
//! Functions are those linked into this program, which share one device: one test at a time.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::PoisonError;

use crate::TURN;
use metes_dry_device::communication::{
    UniqueId, ncclAllGather, ncclAllReduce, ncclCommCount, ncclCommInitRank, ncclCommSplit,
    ncclCommUserRank, ncclGetErrorString, ncclGetUniqueId, ncclGroupEnd, ncclGroupStart, ncclRecv,
    ncclRedOpCreatePreMulSum, ncclReduce, ncclSend,
};
use metes_dry_device::control::{metes_dry_guesses, metes_dry_open};
use metes_dry_device::runtime::memory::{cudaMalloc, cudaMemcpy, cudaMemset};

const INT: c_int = 2;
const SUM: c_int = 0;

fn block(words: [i32; 4]) -> *mut c_void {
    let mut block = ptr::null_mut();
    // SAFETY: pointers of ours; so throughout.
    unsafe {
        assert_eq!(cudaMalloc(&mut block, 16), 0);
        assert_eq!(cudaMemset(block, 0, 16), 0);
        assert_eq!(cudaMemcpy(block, words.as_ptr().cast(), 16, 1), 0);
    }
    block
}

fn read(block: *mut c_void) -> [i32; 4] {
    let mut words = [-1; 4];
    // SAFETY: as above.
    let copied = unsafe { cudaMemcpy(words.as_mut_ptr().cast(), block, 16, 2) };
    assert_eq!(copied, 0);
    words
}

fn unknown() -> u64 {
    let mut found = [0; 2];
    // SAFETY: room for two numbers.
    assert_eq!(unsafe { metes_dry_guesses(&mut found) }, 0);
    found[0]
}

#[test]
fn one_process_gets_what_it_sends() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(metes_dry_open(64 << 20, true), 0);
    let none = ptr::null_mut();
    // SAFETY: as above; the identifier is plain bytes.
    unsafe {
        let mut unique = std::mem::zeroed::<UniqueId>();
        assert_eq!(ncclGetUniqueId(&mut unique), 0);
        let mut group = none;
        assert_eq!(ncclCommInitRank(&mut group, 2, unique, 0), 5);
        let said = CStr::from_ptr(ncclGetErrorString(5)).to_string_lossy();
        assert!(
            said.contains("dry device") && said.contains("world size 1"),
            "{said}"
        );
        assert_eq!(ncclCommInitRank(&mut group, 1, unique, 0), 0);
        let (mut count, mut process) = (9, 9);
        assert_eq!(ncclCommCount(group, &mut count), 0);
        assert_eq!(ncclCommUserRank(group, &mut process), 0);
        assert_eq!((count, process), (1, 0));
        let mut part = group;
        assert_eq!(ncclCommSplit(group, -1, 0, &mut part, none), 0);
        assert!(part.is_null());

        let (from, to) = (block([1, 2, 3, 4]), block([0; 4]));
        assert_eq!(ncclAllReduce(from, from, 4, INT, SUM, group, none), 0);
        assert_eq!(read(from), [1, 2, 3, 4]);
        assert_eq!(ncclAllGather(from, to, 3, INT, group, none), 0);
        assert_eq!(read(to), [1, 2, 3, 0]);
        assert_eq!(ncclReduce(from, to, 4, INT, SUM, 1, group, none), 4);
        assert_eq!(ncclAllReduce(from, to, 4, 99, SUM, group, none), 4);
        // To itself, whichever half comes first.
        for receives_first in [false, true] {
            let to = block([0; 4]);
            assert_eq!(ncclGroupStart(), 0);
            if receives_first {
                assert_eq!(ncclRecv(to, 2, INT, 0, group, none), 0);
            }
            assert_eq!(ncclSend(from, 2, INT, 0, group, none), 0);
            if !receives_first {
                assert_eq!(ncclRecv(to, 2, INT, 0, group, none), 0);
            }
            assert_eq!(ncclGroupEnd(), 0);
            assert_eq!(read(to), [1, 2, 0, 0]);
        }
        assert_eq!(unknown(), 0);
        // What is scaled was not computed.
        let mut operation = 0;
        assert_eq!(
            ncclRedOpCreatePreMulSum(&mut operation, none, INT, 0, group),
            0
        );
        assert_eq!(ncclAllReduce(from, to, 4, INT, operation, group, none), 0);
        read(to);
        assert_eq!(unknown(), 1);
    }
}
