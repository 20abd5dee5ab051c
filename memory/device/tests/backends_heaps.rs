//! Heaps over devices that hold data: each block is written when it is allocated, and still has
//! its bytes when it is freed, so it had memory all the while, and no other block had that.
#![cfg(all(
    feature = "cuda",
    feature = "opencl",
    feature = "vulkan",
    target_os = "linux"
))]

#[path = "it/common/bytes.rs"]
mod bytes;
#[path = "it/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the campaign uses all of it")]
#[path = "../examples/campaign/device.rs"]
mod device;

use core::ptr;
use std::cell::RefCell;

use ash::vk;
use bytes::churn;
use cl3::types::CL_BLOCKING;
use cl3::{command_queue, event};
use metes_device::backend::Backend;
use metes_device::backend::cuda::Cuda;
use metes_device::backend::opencl::{Access, OpenCl, cl_command_queue};
use metes_device::backend::vulkan::{Kind, Vulkan};
use metes_device::fixed::FixedHeap;
use metes_device::heap::{Classes, Extent, HandleHeap};
use metes_device::sparse::{Plan, SparseHeap};
use metes_dry_device::library::Library as Model;

const STEPS: u64 = 20_000;

#[test]
fn sparse_blocks_keep_their_bytes_on_the_model_of_the_driver() {
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
    let heap = RefCell::new(heap);
    let (served, refused) = churn(
        STEPS,
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
    let opencl = OpenCl::open(0).unwrap();
    let extent = Extent {
        bytes: 64 << 20,
        granule: opencl.alignment(),
        blocks: 4000,
    };
    // SAFETY: the device is the context's.
    let queue =
        unsafe { command_queue::create_command_queue(opencl.context(), opencl.device(), 0) }
            .unwrap();
    let heap = FixedHeap::new(opencl, extent, HandleHeap::<Classes>::by_handle).unwrap();
    let heap = RefCell::new(heap);
    let (served, refused) = churn(
        STEPS,
        8 << 20,
        |bytes| {
            let mut heap = heap.borrow_mut();
            let block = heap.allocate(bytes, 1).ok()?;
            Some((block.place, heap.range().start + block.offset))
        },
        |place| heap.borrow_mut().free(place).unwrap(),
        |address, bytes| {
            copy(
                heap.borrow().backend(),
                queue,
                address,
                bytes.as_ptr().cast_mut(),
                bytes.len(),
                true,
            )
        },
        |address, bytes| {
            copy(
                heap.borrow().backend(),
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

/// Through memory that the host can map; on pages of a lavapipe that binds sparsely, too, where
/// `scripts/setup` laid one.
#[test]
fn blocks_keep_their_bytes_on_vulkan() {
    let whole = Vulkan::open_whole(0, Kind::Host).unwrap();
    let extent = Extent {
        bytes: 16 << 20,
        granule: whole.alignment(),
        blocks: 4000,
    };
    let heap = FixedHeap::new(whole, extent, HandleHeap::<Classes>::by_handle).unwrap();
    let heap = RefCell::new(heap);
    let (served, refused) = churn(
        STEPS,
        2 << 20,
        |bytes| {
            let mut heap = heap.borrow_mut();
            let block = heap.allocate(bytes, 1).ok()?;
            Some((block.place, heap.range().start + block.offset))
        },
        |place| heap.borrow_mut().free(place).unwrap(),
        |address, bytes| write(heap.borrow().backend(), address, bytes),
        |address, bytes| read(heap.borrow().backend(), address, bytes),
    );
    println!("whole: {served} served, {refused} refused");
    assert!(served > STEPS / 3);

    let paged = Vulkan::open(0, Kind::Host).unwrap();
    if !paged.paged() {
        let Some(lavapipe) = device::newer_lavapipe() else {
            return println!("not tried: pages, which the first device cannot bind");
        };
        let output = device::again_on(&lavapipe)
            .unwrap()
            .args([
                "--exact",
                "blocks_keep_their_bytes_on_vulkan",
                "--nocapture",
            ])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{errors}");
        assert!(said.contains("paged: "), "{said}");
        return;
    }
    let page = paged.granularity();
    let plan = Plan {
        addresses: 256 * page,
        cap: 128 * page,
        page,
        granule: paged.alignment(),
        blocks: 4000,
        moves: 64,
    };
    let heap = SparseHeap::new(paged, plan, HandleHeap::<Classes>::by_handle).unwrap();
    let heap = RefCell::new(heap);
    let (served, refused) = churn(
        STEPS,
        32 * page,
        |bytes| {
            let mut heap = heap.borrow_mut();
            let block = heap.allocate(bytes, 1).ok()?;
            Some((block.place, heap.range().start + block.offset))
        },
        |place| heap.borrow_mut().free(place).unwrap(),
        |address, bytes| write(heap.borrow().backend(), address, bytes),
        |address, bytes| read(heap.borrow().backend(), address, bytes),
    );
    let heap = heap.into_inner();
    heap.check().unwrap();
    println!(
        "paged: {served} served, {refused} refused, {:?}",
        heap.pages()
    );
    assert!(served > STEPS / 3 && heap.pages().moved > 0);
}

fn write(vulkan: &Vulkan, address: u64, bytes: &[u8]) {
    each_piece(vulkan, address, bytes.len(), |place, from, length| {
        // SAFETY: the piece is mapped, and nothing else uses it.
        unsafe { ptr::copy_nonoverlapping(bytes[from..].as_ptr(), place, length) };
    });
}

fn read(vulkan: &Vulkan, address: u64, bytes: &mut [u8]) {
    each_piece(vulkan, address, bytes.len(), |place, from, length| {
        // SAFETY: the piece is mapped, and nothing else uses it.
        unsafe { ptr::copy_nonoverlapping(place, bytes[from..].as_mut_ptr(), length) };
    });
}

/// Maps the memories under a part of a block to the host, one after another.
fn each_piece(
    vulkan: &Vulkan,
    address: u64,
    bytes: usize,
    mut visit: impl FnMut(*mut u8, usize, usize),
) {
    let page = if vulkan.paged() {
        vulkan.granularity()
    } else {
        u64::MAX
    };
    let mut from = 0;
    while from < bytes {
        let at = address + from as u64;
        let length = (page - at % page).min((bytes - from) as u64);
        let (memory, offset) = vulkan.place(at, length).unwrap();
        // SAFETY: coherent memory that the host can map, which is not mapped yet; the piece lies
        // in it.
        unsafe {
            let flags = vk::MemoryMapFlags::empty();
            let start = vulkan.device().map_memory(memory, 0, vk::WHOLE_SIZE, flags);
            let start = start.unwrap().cast::<u8>();
            visit(start.add(offset as usize), from, length as usize);
            vulkan.device().unmap_memory(memory);
        }
        from += length as usize;
    }
}
