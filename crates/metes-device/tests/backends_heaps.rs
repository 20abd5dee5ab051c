//! Heaps over devices that hold data: each block is written when it is allocated, and still has
//! its bytes when it is freed, so it had memory all the while, and no other block had that.
#![cfg(all(feature = "cuda", feature = "opencl", target_os = "linux"))]

mod common;

use core::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cl3::types::CL_BLOCKING;
use cl3::{command_queue, event};
use common::Random;
use metes_device::backend::cuda::Cuda;
use metes_device::backend::opencl::{Access, OpenCl, cl_command_queue};
use metes_device::backend::{Backend, Range};
use metes_device::heap::{Classes, Extent, HandleHeap};
use metes_device::sparse::{Plan, SparseHeap};
use metes_dry_device::library::Library as Model;

/// One test at a time: a process has one model.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const STEPS: u64 = 20_000;

/// A block, and from which number its bytes follow.
struct Live<P> {
    place: P,
    address: u64,
    bytes: u64,
    seed: u64,
}

/// All bytes of a short block, both ends of a long one.
fn parts<P>(block: &Live<P>) -> Vec<(u64, Vec<u8>)> {
    let word = |at: u64| {
        block
            .seed
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(at) as u8
    };
    let part = |from: u64, to: u64| (block.address + from, (from..to).map(word).collect());
    if block.bytes <= 8192 {
        vec![part(0, block.bytes)]
    } else {
        vec![part(0, 4096), part(block.bytes - 4096, block.bytes)]
    }
}

fn churn<P: Copy>(
    most: u64,
    mut allocate: impl FnMut(u64) -> Option<(P, u64)>,
    mut free: impl FnMut(P),
    write: impl Fn(u64, &[u8]),
    read: impl Fn(u64, &mut [u8]),
) -> (u64, u64) {
    let mut random = Random(7);
    let mut live: Vec<Live<P>> = Vec::new();
    let (mut served, mut refused) = (0, 0);
    let check = |block: &Live<P>| {
        for (address, wanted) in parts(block) {
            let mut found = vec![0; wanted.len()];
            read(address, &mut found);
            assert!(
                found == wanted,
                "{} bytes at {address:#x} changed",
                block.bytes
            );
        }
    };
    for seed in 0..STEPS {
        if random.below(2) == 0 || live.is_empty() {
            let bytes = 1 + (random.below(most) >> random.below(14));
            let Some((place, address)) = allocate(bytes) else {
                refused += 1;
                continue;
            };
            served += 1;
            let block = Live {
                place,
                address,
                bytes,
                seed,
            };
            for (address, bytes) in parts(&block) {
                write(address, &bytes);
            }
            live.push(block);
        } else {
            let block = live.swap_remove(random.below(live.len() as u64) as usize);
            check(&block);
            free(block.place);
        }
    }
    for block in live {
        check(&block);
        free(block.place);
    }
    (served, refused)
}

#[test]
fn sparse_blocks_keep_their_bytes_on_the_model_of_the_driver() {
    let _alone = alone();
    let model = Model::load().unwrap();
    model.open(64 << 21, true).unwrap();
    let cuda = Cuda::open(0).unwrap();
    let plan = Plan {
        addresses: 128 << 21,
        cap: 64 << 21,
        page: 2 << 20,
        granule: cuda.alignment(),
        blocks: 4000,
        moves: 64,
    };
    let heap = SparseHeap::new(cuda, plan, HandleHeap::<Classes>::by_handle).unwrap();
    let heap = std::cell::RefCell::new(heap);
    let (served, refused) = churn(
        16 << 20,
        |bytes| {
            let mut heap = heap.borrow_mut();
            let block = heap.allocate(bytes, 256).ok()?;
            Some((block.place, heap.range().start + block.offset))
        },
        |place| heap.borrow_mut().free(place).unwrap(),
        |address, bytes| heap.borrow().backend().write(address, bytes).unwrap(),
        |address, bytes| heap.borrow().backend().read(address, bytes).unwrap(),
    );
    let heap = heap.into_inner();
    heap.check().unwrap();
    println!("{served} served, {refused} refused, {:?}", heap.pages());
    assert!(served > STEPS / 3 && heap.pages().moved > 0);
    drop(heap);
    let left = model.figures().unwrap();
    assert_eq!((left.used, left.reserved, left.handles), (0, 0, 0));
}

#[test]
fn blocks_keep_their_bytes_on_opencl() {
    let _alone = alone();
    let mut opencl = OpenCl::open(0).unwrap();
    let extent = Extent {
        bytes: 64 << 20,
        granule: opencl.alignment(),
        blocks: 4000,
    };
    let memory = opencl.create(extent.bytes).unwrap();
    let Range { start, .. } = opencl.reserve(extent.bytes).unwrap();
    opencl.map(start, memory).unwrap();
    // SAFETY: the device is the context's.
    let queue =
        unsafe { command_queue::create_command_queue(opencl.context(), opencl.device(), 0) }
            .unwrap();
    let heap = HandleHeap::<Classes>::by_handle(extent).unwrap();
    let heap = std::cell::RefCell::new(heap);
    let (served, refused) = churn(
        8 << 20,
        |bytes| {
            let block = heap.borrow_mut().allocate(bytes, 1).ok()?;
            Some((block.place, start + block.offset))
        },
        |place| heap.borrow_mut().free(place).unwrap(),
        |address, bytes| {
            copy(
                &opencl,
                queue,
                address,
                bytes.as_ptr().cast_mut(),
                bytes.len(),
                true,
            )
        },
        |address, bytes| {
            copy(
                &opencl,
                queue,
                address,
                bytes.as_mut_ptr(),
                bytes.len(),
                false,
            )
        },
    );
    println!("{served} served, {refused} refused");
    assert!(served > STEPS / 3);
    // SAFETY: our own reference.
    unsafe { command_queue::release_command_queue(queue) }.unwrap();
}

/// Copies through the sub-buffer of a block's part.
fn copy(
    opencl: &OpenCl,
    queue: cl_command_queue,
    address: u64,
    bytes: *mut u8,
    length: usize,
    to_device: bool,
) {
    // A part may begin anywhere; a sub-buffer begins where the device lets it.
    let skipped = address % opencl.alignment();
    let whole = length as u64 + skipped;
    let block = opencl
        .block(address - skipped, whole, Access::ReadWrite)
        .unwrap();
    // SAFETY: sub-buffer and host memory have so many bytes, and the calls wait.
    unsafe {
        let done = if to_device {
            command_queue::enqueue_write_buffer(
                queue,
                block.get(),
                CL_BLOCKING,
                skipped as usize,
                length,
                bytes.cast(),
                0,
                ptr::null(),
            )
        } else {
            command_queue::enqueue_read_buffer(
                queue,
                block.get(),
                CL_BLOCKING,
                skipped as usize,
                length,
                bytes.cast(),
                0,
                ptr::null(),
            )
        };
        event::release_event(done.unwrap()).unwrap();
    }
}
