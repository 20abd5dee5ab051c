//! `cudaDeviceProp` of version 13, and the call that fills it.

use std::ffi::c_int;

use crate::attributes;
use crate::device::with_device;
use crate::driver;
use crate::entry::{entry_points, put};

/// `cudaDeviceProp`. Fields that say nothing here stand together.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceProperties {
    /// Ends with a zero.
    pub name: [u8; 256],
    /// What tells devices apart.
    pub uuid: [u8; 16],
    luid: [u8; 8],
    luid_mask: u32,
    /// Bytes of memory.
    pub total: usize,
    /// Bytes of shared memory a block.
    pub shared_per_block: usize,
    /// Registers a block.
    pub registers_per_block: c_int,
    /// Threads of a warp.
    pub warp: c_int,
    pitch: usize,
    /// Threads of a block.
    pub threads_per_block: c_int,
    block: [c_int; 3],
    grid: [c_int; 3],
    constant: usize,
    /// Compute capability.
    pub major: c_int,
    /// Compute capability.
    pub minor: c_int,
    texture_alignment: usize,
    texture_pitch_alignment: usize,
    /// Multiprocessors.
    pub processors: c_int,
    integrated: c_int,
    maps_host_memory: c_int,
    textures_and_surfaces: [c_int; 39],
    surface_alignment: usize,
    concurrent_kernels: c_int,
    error_correction: c_int,
    /// Place on the bus: bus, device, domain.
    pub bus: [c_int; 3],
    tcc_driver: c_int,
    copy_engines: c_int,
    /// Addresses are those of the host.
    pub unified_addressing: c_int,
    bus_width: c_int,
    /// Bytes of second-level cache.
    pub cache: c_int,
    persisting_cache: c_int,
    /// Threads of a multiprocessor.
    pub threads_per_processor: c_int,
    stream_priorities: c_int,
    first_level_cache: [c_int; 2],
    /// Bytes of shared memory a multiprocessor.
    pub shared_per_processor: usize,
    registers_per_processor: c_int,
    managed_memory: c_int,
    boards: [c_int; 2],
    host_atomics: c_int,
    pageable_access: c_int,
    concurrent_managed_access: c_int,
    preemption: c_int,
    registered_pointers: c_int,
    cooperative_launch: c_int,
    /// Bytes of shared memory that a block may ask for.
    pub shared_opt_in: usize,
    host_tables: [c_int; 2],
    /// Blocks of a multiprocessor.
    pub blocks_per_processor: c_int,
    window: c_int,
    reserved_shared: usize,
    host_register: c_int,
    sparse_arrays: c_int,
    host_register_read_only: c_int,
    timeline_semaphores: c_int,
    /// Stream-ordered memory can be had.
    pub pools: c_int,
    rest: [c_int; 15],
    reserved: [c_int; 56],
}

/// A device with so much memory and of that compute capability.
fn describe(total: usize, (major, minor): (c_int, c_int)) -> DeviceProperties {
    let mut name = [0; 256];
    name[..attributes::NAME.len()].copy_from_slice(attributes::NAME.as_bytes());
    DeviceProperties {
        name,
        uuid: attributes::UUID,
        luid: [0; 8],
        luid_mask: 0,
        total,
        shared_per_block: attributes::SHARED_PER_BLOCK as usize,
        registers_per_block: attributes::REGISTERS,
        warp: attributes::WARP,
        pitch: c_int::MAX as usize,
        threads_per_block: attributes::THREADS_PER_BLOCK,
        block: attributes::BLOCK,
        grid: attributes::GRID,
        constant: 64 << 10,
        major,
        minor,
        texture_alignment: 512,
        texture_pitch_alignment: 32,
        processors: attributes::PROCESSORS,
        integrated: 0,
        maps_host_memory: 1,
        textures_and_surfaces: [0; 39],
        surface_alignment: 512,
        concurrent_kernels: 1,
        error_correction: 0,
        bus: [1, 0, 0],
        tcc_driver: 0,
        copy_engines: 3,
        unified_addressing: 1,
        bus_width: attributes::BUS_BITS,
        cache: attributes::CACHE,
        persisting_cache: 0,
        threads_per_processor: attributes::THREADS_PER_PROCESSOR,
        stream_priorities: 1,
        first_level_cache: [1, 1],
        shared_per_processor: attributes::SHARED_PER_PROCESSOR as usize,
        registers_per_processor: attributes::REGISTERS,
        managed_memory: 1,
        boards: [0; 2],
        host_atomics: 0,
        pageable_access: 0,
        concurrent_managed_access: 1,
        preemption: 1,
        registered_pointers: 1,
        cooperative_launch: 1,
        shared_opt_in: attributes::SHARED_OPT_IN as usize,
        host_tables: [0; 2],
        blocks_per_processor: attributes::BLOCKS_PER_PROCESSOR,
        window: 0,
        reserved_shared: 1024,
        host_register: 1,
        sparse_arrays: 0,
        host_register_read_only: 0,
        timeline_semaphores: 0,
        pools: 1,
        rest: [0; 15],
        reserved: [0; 56],
    }
}

entry_points! {
    via crate::runtime::remembered;

    /// `cudaGetDeviceProperties`.
    fn cudaGetDeviceProperties(place: *mut DeviceProperties, device: c_int) {
        driver::device_number(device)?;
        let (total, capability) = with_device(|found| {
            Ok((found.engine.memory.capacity(), found.settings.capability))
        })?;
        put(place, describe(total as usize, capability))
    }
}
