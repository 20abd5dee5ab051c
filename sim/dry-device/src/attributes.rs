//! What the device says of itself.
//!
//! The figures are those of no device on sale: they are what programs need to choose their usual
//! ways (warps of 32 threads, 1024 threads a block), and are given in one place so that driver and
//! runtime say the same.

/// The device's name.
pub(crate) const NAME: &str = "Metes dry device";
/// Version of the interface: 13.2.
pub(crate) const VERSION: i32 = 13_020;
/// Multiprocessors. Some libraries size their scratch memory by it.
pub(crate) const PROCESSORS: i32 = 132;
pub(crate) const WARP: i32 = 32;
pub(crate) const THREADS_PER_BLOCK: i32 = 1024;
pub(crate) const THREADS_PER_PROCESSOR: i32 = 2048;
pub(crate) const BLOCKS_PER_PROCESSOR: i32 = 32;
pub(crate) const REGISTERS: i32 = 65_536;
pub(crate) const SHARED_PER_BLOCK: i32 = 48 << 10;
pub(crate) const SHARED_OPT_IN: i32 = 227 << 10;
pub(crate) const SHARED_PER_PROCESSOR: i32 = 228 << 10;
pub(crate) const CACHE: i32 = 50 << 20;
pub(crate) const BUS_BITS: i32 = 5120;
pub(crate) const CLOCK_KHZ: i32 = 1_980_000;
pub(crate) const MEMORY_CLOCK_KHZ: i32 = 2_619_000;
pub(crate) const GRID: [i32; 3] = [i32::MAX, 65_535, 65_535];
pub(crate) const BLOCK: [i32; 3] = [1024, 1024, 64];
/// Bytes that identify the device.
pub(crate) const UUID: [u8; 16] = *b"metes-dry-device";
/// Where the device would be on the bus.
pub(crate) const BUS_ADDRESS: &str = "0000:01:00.0";

/// The value of an attribute by its number in `CUdevice_attribute`, which are those of
/// `cudaDeviceAttr` too; 0 for what the device does not have.
pub(crate) fn value(attribute: i32, capability: (i32, i32)) -> i32 {
    match attribute {
        1 => THREADS_PER_BLOCK,
        2..=4 => BLOCK[attribute as usize - 2],
        5..=7 => GRID[attribute as usize - 5],
        8 => SHARED_PER_BLOCK,
        9 => 64 << 10, // constant memory
        10 => WARP,
        11 => i32::MAX, // pitch
        12 => REGISTERS,
        13 => CLOCK_KHZ,
        14 => 512, // alignment of textures
        16 => PROCESSORS,
        // may map host memory; runs kernels side by side; unified addresses; managed memory and
        // concurrent access to it; stream priorities; cooperative launch
        19 | 31 | 41 | 78 | 83 | 89 | 95 => 1,
        33 => 1, // bus
        36 => MEMORY_CLOCK_KHZ,
        37 => BUS_BITS,
        38 => CACHE,
        39 => THREADS_PER_PROCESSOR,
        40 => 3, // copy engines
        75 => capability.0,
        76 => capability.1,
        81 => SHARED_PER_PROCESSOR,
        82 => REGISTERS, // of a processor
        97 => SHARED_OPT_IN,
        102 => 1, // virtual memory management
        106 => BLOCKS_PER_PROCESSOR,
        115 => 1, // pools of stream-ordered blocks
        _ => 0,
    }
}
