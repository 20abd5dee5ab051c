//! OpenCL on a real device: PoCL where there is no other.
#![cfg(feature = "opencl")]

#[path = "it/common/backends.rs"]
mod common;

use core::ffi::c_void;
use core::ptr;
use std::ffi::CString;

use cl3::types::CL_BLOCKING;
use cl3::{command_queue, event, kernel, program};
use common::{alone, child, conforms, is_child, refused_in_a_fork, without};
use metes_device::backend::opencl::{Access, OpenCl, Queues, cl_command_queue, cl_mem};
use metes_device::backend::timeline::{self, Timeline};
use metes_device::backend::{Backend, Error, Memory};

/// The first device; without one the test fails and says how to get it.
fn open() -> OpenCl {
    let devices = OpenCl::devices().unwrap_or_else(|error| panic!("{error}"));
    println!("on {} ({})", devices[0].name, devices[0].platform);
    OpenCl::open(0).unwrap()
}

fn queue(opencl: &OpenCl) -> cl_command_queue {
    // SAFETY: the device is the context's.
    unsafe { command_queue::create_command_queue(opencl.context(), opencl.device(), 0) }.unwrap()
}

#[test]
fn answers_as_it_must() {
    let _alone = alone();
    let mut opencl = open();
    let answers = [
        "create: done",
        "create: too large",
        "map: done",
        "map: not paged",
        "map: mapped",
        "unmap: done",
        "unreserve: mapped",
        "release: in use",
        "release: done",
    ];
    conforms(&mut opencl, 40, 64, true, &answers);
}

/// Kernels write through sub-buffers at the offsets of blocks; the host reads through the whole
/// buffer what they wrote, and that nothing beside it changed.
#[test]
fn kernels_write_their_blocks_and_nothing_else() {
    const BYTES: u64 = 1 << 20;
    const BEFORE: u32 = 0x5555_5555;
    let _alone = alone();
    let mut opencl = open();
    let range = opencl.reserve(BYTES).unwrap();
    let memory = opencl.create(BYTES).unwrap();
    opencl.map(range.start, memory).unwrap();
    let queue = queue(&opencl);
    let kernel = fill_kernel(&opencl);
    let whole = opencl.buffer(memory).unwrap();
    let mut expected = vec![BEFORE; (BYTES / 4) as usize];
    write(queue, whole, &expected);

    let align = opencl.alignment();
    let mut address = range.start;
    for number in 0..100_u32 {
        // Blocks of odd lengths, at every alignment that the device allows; every other is left
        // alone.
        let bytes = 4 * (1 + u64::from(number) * 13 % 500);
        if number % 2 == 0 {
            let block = opencl.block(address, bytes, Access::ReadWrite).unwrap();
            launch(queue, kernel, block.get(), number, bytes / 4);
            let first = ((address - range.start) / 4) as usize;
            for (place, word) in expected[first..][..(bytes / 4) as usize]
                .iter_mut()
                .enumerate()
            {
                *word = number * 1000 + place as u32;
            }
        }
        address += bytes.next_multiple_of(align);
    }
    assert!(address < range.end());
    let mut found = vec![0_u32; expected.len()];
    read(queue, whole, &mut found);
    assert!(found == expected, "blocks or their neighbours differ");

    // A sub-buffer outlives the release of what it lies in.
    let block = opencl.block(range.start, 400, Access::ReadWrite).unwrap();
    opencl.unmap(range.start, BYTES).unwrap();
    opencl.release(memory).unwrap();
    launch(queue, kernel, block.get(), 7, 100);
    let mut first = [0_u32; 100];
    read(queue, block.get(), &mut first);
    assert_eq!(first[99], 7099);
    // SAFETY: made here, and nothing uses them any more.
    unsafe {
        kernel::release_kernel(kernel).unwrap();
        command_queue::release_command_queue(queue).unwrap();
    }
}

#[test]
fn impossible_blocks_are_refused() {
    let _alone = alone();
    let mut opencl = open();
    let align = opencl.alignment();
    let bytes = align * 8;
    let range = opencl.reserve(bytes).unwrap();
    let block = |opencl: &OpenCl, address, bytes| {
        opencl
            .block(address, bytes, Access::Read)
            .map(|_| ())
            .unwrap_err()
    };
    let unmapped = block(&opencl, range.start, 4);
    assert!(matches!(unmapped, Error::NotMapped { .. }));
    let memory = opencl.create(bytes).unwrap();
    opencl.map(range.start, memory).unwrap();
    assert_eq!(block(&opencl, range.start, 0), Error::Empty("a block"));
    assert!(matches!(
        block(&opencl, range.start + 1, 4),
        Error::Granularity { .. }
    ));
    assert!(matches!(
        block(&opencl, range.start + align, bytes),
        Error::NotMapped { .. }
    ));
}

#[test]
fn what_is_not_there_is_said() {
    let _alone = alone();
    let mut opencl = open();
    let many = OpenCl::devices().unwrap().len();
    let error = OpenCl::open(many).unwrap_err();
    assert!(matches!(error, Error::Absent { .. }), "{error}");
    assert!(error.to_string().contains("choose one of them"), "{error}");
    let most = opencl.largest();
    let beyond = (most + 1).next_multiple_of(opencl.granularity());
    assert_eq!(
        opencl.create(beyond),
        Err(Error::TooLarge {
            wanted: beyond,
            most
        })
    );
    assert_eq!(opencl.create(0), Err(Error::Empty("memory")));
    assert_eq!(opencl.release(Memory(3)), Err(Error::NoMemory(Memory(3))));
}

/// Without the library, and without a platform.
#[cfg(target_os = "linux")]
#[test]
fn what_is_not_installed_is_said() {
    if is_child() {
        return println!("{}", OpenCl::open(0).unwrap_err());
    }
    let broken = without("libOpenCL.so.1");
    for (variable, wanted) in [
        (
            "LD_LIBRARY_PATH",
            "the OpenCL library (libOpenCL.so.1) is not there",
        ),
        // Where the loader looks for drivers: here is none.
        ("OCL_ICD_VENDORS", "a device of OpenCL is not there"),
    ] {
        let said = child("what_is_not_installed_is_said", &[(variable, &broken)]);
        assert!(said.contains(wanted) && said.contains("install"), "{said}");
    }
}

/// Work is held back by an event that the host completes, so that no clock decides.
#[test]
fn queues_complete_their_tickets_in_order() {
    let _alone = alone();
    let opencl = open();
    let [first, second] = [(); 2].map(|()| queue(&opencl));
    let mut queues = Queues::new(2);
    // SAFETY: queues that live beyond the timeline.
    let [a, b] = [first, second].map(|queue| unsafe { queues.join(queue) }.unwrap());
    // SAFETY: as before.
    let again = unsafe { queues.join(first) };
    assert_eq!(again, Ok(a), "a known queue keeps its name");
    assert_eq!(queues.completed(a), Ok(0));

    let gate = event::create_user_event(opencl.context()).unwrap();
    // SAFETY: queue and event are alive; the barrier's own event is not needed.
    unsafe {
        let held = command_queue::enqueue_barrier_with_wait_list(first, 1, &raw const gate);
        event::release_event(held.unwrap()).unwrap();
    }
    for ticket in 1..=20 {
        queues.mark(a, ticket).unwrap();
    }
    queues.order(b, a, 20).unwrap();
    queues.mark(b, 1).unwrap();
    assert_eq!(queues.completed(a), Ok(0), "nothing can have run");
    assert_eq!(
        queues.completed(b),
        Ok(0),
        "the other queue waits for the first"
    );
    assert_eq!(
        queues.mark(a, 20),
        Err(timeline::Error::Order {
            stream: a,
            ticket: 20,
            last: 20
        })
    );
    assert_eq!(
        queues.wait(b, 2),
        Err(timeline::Error::Unmarked {
            stream: b,
            ticket: 2,
            last: 1
        })
    );
    event::set_user_event_status(gate, event::CL_COMPLETE).unwrap();
    queues.wait(b, 1).unwrap();
    assert_eq!(queues.completed(b), Ok(1));
    assert_eq!(
        queues.completed(a),
        Ok(20),
        "the second ran behind the first"
    );

    // The queue is kept alive by the timeline alone.
    // SAFETY: our own reference.
    unsafe { command_queue::release_command_queue(first) }.unwrap();
    queues.mark(a, 21).unwrap();
    queues.leave(a).unwrap();
    assert_eq!(queues.mark(a, 22), Err(timeline::Error::NoStream(a)));
    drop(queues);
    // SAFETY: our own references.
    unsafe {
        command_queue::release_command_queue(second).unwrap();
        event::release_event(gate).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_fork_is_refused() {
    let _alone = alone();
    refused_in_a_fork(open());
}

fn fill_kernel(opencl: &OpenCl) -> *mut c_void {
    let source = "kernel void fill(global uint *block, uint number) {
        block[get_global_id(0)] = number * 1000 + get_global_id(0);
    }";
    let program = program::create_program_with_source(opencl.context(), &[source]).unwrap();
    let options = CString::default();
    program::build_program(program, &[opencl.device()], &options, None, ptr::null_mut()).unwrap();
    let name = CString::new("fill").unwrap();
    let kernel = kernel::create_kernel(program, &name).unwrap();
    // SAFETY: our own reference; the kernel holds one, too.
    unsafe { program::release_program(program) }.unwrap();
    kernel
}

fn launch(queue: cl_command_queue, kernel: *mut c_void, block: cl_mem, number: u32, words: u64) {
    let words = words as usize;
    // SAFETY: the arguments have the types of the kernel's, and it writes `words` words of the
    // block, which has as many.
    unsafe {
        kernel::set_kernel_arg(kernel, 0, size_of::<cl_mem>(), (&raw const block).cast()).unwrap();
        kernel::set_kernel_arg(kernel, 1, 4, (&raw const number).cast()).unwrap();
        let done = command_queue::enqueue_nd_range_kernel(
            queue,
            kernel,
            1,
            ptr::null(),
            &raw const words,
            ptr::null(),
            0,
            ptr::null(),
        );
        event::release_event(done.unwrap()).unwrap();
    }
}

fn write(queue: cl_command_queue, buffer: cl_mem, words: &[u32]) {
    let bytes = size_of_val(words);
    // SAFETY: the buffer has so many bytes, and the call waits for the copy.
    unsafe {
        let from = words.as_ptr().cast();
        let done = command_queue::enqueue_write_buffer(
            queue,
            buffer,
            CL_BLOCKING,
            0,
            bytes,
            from,
            0,
            ptr::null(),
        );
        event::release_event(done.unwrap()).unwrap();
    }
}

fn read(queue: cl_command_queue, buffer: cl_mem, words: &mut [u32]) {
    let bytes = size_of_val(words);
    // SAFETY: the buffer has so many bytes, and the call waits for the copy.
    unsafe {
        let to = words.as_mut_ptr().cast();
        let done = command_queue::enqueue_read_buffer(
            queue,
            buffer,
            CL_BLOCKING,
            0,
            bytes,
            to,
            0,
            ptr::null(),
        );
        event::release_event(done.unwrap()).unwrap();
    }
}
