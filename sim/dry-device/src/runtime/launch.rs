//! Kernels: registered, asked about, launched, and never run.
//!
//! Invariant: a launch is work of its stream like any other, so that events, recordings and
//! destroyed streams are noticed; it touches no memory, but what it was given is not known any more.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, PoisonError, RwLock};

use crate::attributes;
use crate::device::{self, with_context, with_device};
use crate::driver;
use crate::engine::Task;
use crate::entry::{entry_points, get, put, put_if_wanted, text};
use crate::error::{Answer, Code};
use crate::launched;

/// `dim3`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Extent {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// `cudaFuncAttributes`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FunctionAttributes {
    /// Shared, constant and local bytes.
    sizes: [usize; 3],
    threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode: c_int,
    dynamic_shared: c_int,
    rest: [c_int; 23],
}

/// `cudaLaunchConfig_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LaunchConfiguration {
    grid: Extent,
    block: Extent,
    shared: usize,
    stream: *mut c_void,
    attributes: *mut c_void,
    count: c_uint,
}

/// What `<<<...>>>` pushes and the launch behind it pops.
#[derive(Clone, Copy, Debug)]
struct Pushed {
    grid: Extent,
    block: Extent,
    shared: usize,
    stream: *mut c_void,
}

thread_local! {
    static PUSHED: RefCell<Vec<Pushed>> = const { RefCell::new(Vec::new()) };
}

/// Variables of the device by the address of their twin on the host.
static SYMBOLS: Mutex<BTreeMap<usize, Symbol>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Copy, Debug)]
struct Symbol {
    size: usize,
    /// Its block, once somebody asked.
    address: u64,
}

/// Kernels that write a convolution's input out as columns, by the address of their twin on the
/// host: they take memory that libraries of convolutions mostly do without.
static COLUMNS: RwLock<Vec<usize>> = RwLock::new(Vec::new());

/// Counts a launch of a kernel that is told apart.
fn tell(function: *const c_void) {
    let known = COLUMNS.read().unwrap_or_else(PoisonError::into_inner);
    if known.contains(&function.addr()) {
        device::count("columns");
    }
}

/// Stands for a loaded module or library, which nobody looks into.
const MODULE: usize = 0x6d65_0000_0000_0050;

/// A module with kernels is loaded: its handle.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinary(_binary: *mut c_void) -> *mut *mut c_void {
    std::ptr::without_provenance_mut(MODULE)
}

/// All kernels of the module are registered.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinaryEnd(_module: *mut *mut c_void) {}

/// The module is unloaded.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaUnregisterFatBinary(_module: *mut *mut c_void) {}

/// Makes the module ready: 1, it is.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaInitModule(_module: *mut *mut c_void) -> c_char {
    1
}

/// A kernel of a module.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFunction(
    _module: *mut *mut c_void,
    host: *const c_char,
    _device: *mut c_char,
    name: *const c_char,
    _threads: c_int,
    _thread: *mut c_void,
    _block: *mut c_void,
    _block_extent: *mut c_void,
    _grid_extent: *mut c_void,
    _warp: *mut c_int,
) {
    let name = text(name).unwrap_or_default();
    if name.contains("vol2col") || name.contains("im2col") {
        let mut known = COLUMNS.write().unwrap_or_else(PoisonError::into_inner);
        known.push(host.addr());
    }
}

/// A variable of a module.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterVar(
    _module: *mut *mut c_void,
    host: *mut c_char,
    _device: *mut c_char,
    _name: *const c_char,
    _external: c_int,
    size: usize,
    _constant: c_int,
    _global: c_int,
) {
    let mut symbols = SYMBOLS.lock().unwrap_or_else(PoisonError::into_inner);
    symbols.insert(host.addr(), Symbol { size, address: 0 });
}

/// Pushes a launch configuration; 0 to go on.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaPushCallConfiguration(
    grid: Extent,
    block: Extent,
    shared: usize,
    stream: *mut c_void,
) -> c_uint {
    PUSHED.with_borrow_mut(|pushed| {
        pushed.push(Pushed {
            grid,
            block,
            shared,
            stream,
        });
    });
    0
}

/// The device's block for a variable.
fn address_of(symbol: *const c_void) -> Answer<u64> {
    let mut symbols = SYMBOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = symbols.get_mut(&symbol.addr()).ok_or(Code::NotFound)?;
    if found.address == 0 {
        let size = found.size.max(1) as u64;
        found.address = with_context(|device| device.engine.memory.allocate(size))?;
    }
    Ok(found.address)
}

fn attributes_of(place: *mut FunctionAttributes) -> Answer {
    let (major, minor) = with_device(|device| Ok(device.settings.capability))?;
    put(
        place,
        FunctionAttributes {
            sizes: [0; 3],
            threads: attributes::THREADS_PER_BLOCK,
            registers: 32,
            ptx_version: major * 10 + minor,
            binary_version: major * 10 + minor,
            cache_mode: 0,
            dynamic_shared: attributes::SHARED_OPT_IN,
            rest: [0; 23],
        },
    )
}

/// Blocks of `threads` threads that a processor holds at once.
fn occupancy(place: *mut c_int, threads: c_int) -> Answer {
    if threads <= 0 {
        return Err(Code::InvalidValue);
    }
    let blocks = attributes::THREADS_PER_PROCESSOR / threads;
    put(place, blocks.clamp(1, attributes::BLOCKS_PER_PROCESSOR))
}

entry_points! {
    via crate::runtime::remembered;

    /// Pops a launch configuration.
    fn __cudaPopCallConfiguration(
        grid: *mut Extent,
        block: *mut Extent,
        shared: *mut usize,
        stream: *mut *mut c_void,
    ) {
        let popped = PUSHED.with_borrow_mut(Vec::pop).ok_or(Code::InvalidValue)?;
        put(grid, popped.grid)?;
        put(block, popped.block)?;
        put(shared, popped.shared)?;
        put(stream, popped.stream)
    }

    /// A kernel's handle: the address of its twin on the host.
    fn __cudaGetKernel(kernel: *mut *const c_void, function: *const c_void) {
        put(kernel, function)
    }

    /// Launches a kernel by its handle.
    fn __cudaLaunchKernel(
        kernel: *const c_void,
        _grid: Extent,
        _block: Extent,
        arguments: *mut *mut c_void,
        _shared: usize,
        stream: *mut c_void,
    ) {
        tell(kernel);
        driver::submit(stream, launched::kernel(arguments, std::ptr::null_mut()))
    }

    /// `cudaLaunchKernel`.
    fn cudaLaunchKernel(
        function: *const c_void,
        _grid: Extent,
        _block: Extent,
        arguments: *mut *mut c_void,
        _shared: usize,
        stream: *mut c_void,
    ) {
        tell(function);
        driver::submit(stream, launched::kernel(arguments, std::ptr::null_mut()))
    }

    /// `cudaLaunchCooperativeKernel`.
    fn cudaLaunchCooperativeKernel(
        function: *const c_void,
        _grid: Extent,
        _block: Extent,
        arguments: *mut *mut c_void,
        _shared: usize,
        stream: *mut c_void,
    ) {
        tell(function);
        driver::submit(stream, launched::kernel(arguments, std::ptr::null_mut()))
    }

    /// `cudaLaunchKernelExC`.
    fn cudaLaunchKernelExC(
        configuration: *const LaunchConfiguration,
        function: *const c_void,
        arguments: *mut *mut c_void,
    ) {
        tell(function);
        driver::submit(get(configuration)?.stream, launched::kernel(arguments, std::ptr::null_mut()))
    }

    /// `cudaFuncGetAttributes`.
    fn cudaFuncGetAttributes(place: *mut FunctionAttributes, _function: *const c_void) {
        attributes_of(place)
    }

    /// `cudaFuncSetAttribute`.
    fn cudaFuncSetAttribute(_function: *const c_void, _attribute: c_int, _value: c_int) {
        Ok(())
    }

    /// `cudaKernelSetAttributeForDevice`.
    fn cudaKernelSetAttributeForDevice(
        _kernel: *const c_void,
        _attribute: c_int,
        _value: c_int,
        _device: c_int,
    ) {
        Ok(())
    }

    /// `cudaOccupancyMaxActiveBlocksPerMultiprocessor`: as if threads alone limited it.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        _function: *const c_void,
        threads: c_int,
        _shared: usize,
    ) {
        occupancy(blocks, threads)
    }

    /// `cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int,
        _function: *const c_void,
        threads: c_int,
        _shared: usize,
        _flags: c_uint,
    ) {
        occupancy(blocks, threads)
    }

    /// `cudaGetSymbolAddress`.
    fn cudaGetSymbolAddress(place: *mut *mut c_void, symbol: *const c_void) {
        put(place, std::ptr::without_provenance_mut(address_of(symbol)? as usize))
    }

    /// `cudaMemcpyToSymbol`.
    fn cudaMemcpyToSymbol(
        symbol: *const c_void,
        source: *const c_void,
        size: usize,
        offset: usize,
        _kind: c_int,
    ) {
        driver::complete(Task::CopyIn {
            destination: address_of(symbol)? + offset as u64,
            source: source.expose_provenance() as u64,
            size: size as u64,
        })
    }

    /// `cudaLibraryLoadData`.
    fn cudaLibraryLoadData(
        library: *mut *mut c_void,
        _code: *const c_void,
        _options: *mut c_void,
        _values: *mut c_void,
        _count: c_uint,
        _library_options: *mut c_void,
        _library_values: *mut c_void,
        _library_count: c_uint,
    ) {
        put(library, std::ptr::without_provenance_mut(MODULE))
    }

    /// `cudaLibraryLoadFromFile`.
    fn cudaLibraryLoadFromFile(
        library: *mut *mut c_void,
        _name: *const c_char,
        _options: *mut c_void,
        _values: *mut c_void,
        _count: c_uint,
        _library_options: *mut c_void,
        _library_values: *mut c_void,
        _library_count: c_uint,
    ) {
        put(library, std::ptr::without_provenance_mut(MODULE))
    }

    /// `cudaLibraryUnload`.
    fn cudaLibraryUnload(_library: *mut c_void) { Ok(()) }

    /// `cudaLibraryGetKernel`: whatever its name, there is one.
    fn cudaLibraryGetKernel(
        kernel: *mut *mut c_void,
        library: *mut c_void,
        _name: *const c_char,
    ) {
        put(kernel, library)
    }

    /// `cudaLibraryGetKernelCount`.
    fn cudaLibraryGetKernelCount(count: *mut c_uint, _library: *mut c_void) {
        put(count, 1)
    }

    /// `cudaLibraryGetGlobal`: variables of libraries are not modelled.
    fn cudaLibraryGetGlobal(
        pointer: *mut *mut c_void,
        size: *mut usize,
        _library: *mut c_void,
        _name: *const c_char,
    ) {
        put_if_wanted(pointer, std::ptr::null_mut());
        put_if_wanted(size, 0);
        Err(Code::NotFound)
    }

    /// `cudaLibraryGetManaged`: see [`cudaLibraryGetGlobal`].
    fn cudaLibraryGetManaged(
        pointer: *mut *mut c_void,
        size: *mut usize,
        _library: *mut c_void,
        _name: *const c_char,
    ) {
        put_if_wanted(pointer, std::ptr::null_mut());
        put_if_wanted(size, 0);
        Err(Code::NotFound)
    }

    /// `cudaLibraryGetUnifiedFunction`: see [`cudaLibraryGetGlobal`].
    fn cudaLibraryGetUnifiedFunction(
        function: *mut *mut c_void,
        _library: *mut c_void,
        _name: *const c_char,
    ) {
        put_if_wanted(function, std::ptr::null_mut());
        Err(Code::NotFound)
    }
}
