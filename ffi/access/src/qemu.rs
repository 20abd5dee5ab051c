//! The part of QEMU's plug-in interface, version 1, that is used here. QEMU
//! (7.2 and later) resolves the functions when it loads the library.

use core::ffi::{c_char, c_int, c_uint, c_void};

/// Version of the interface that QEMU looks for in a plug-in.
#[unsafe(no_mangle)]
#[used]
#[allow(non_upper_case_globals, reason = "QEMU's name")]
pub(crate) static qemu_plugin_version: c_int = 1;

/// What QEMU tells a plug-in of itself: the beginning of `qemu_info_t`.
#[repr(C)]
pub struct Info {
    /// Name of the guest's architecture.
    pub target_name: *const c_char,
    /// Oldest and present version of the interface.
    pub version: [c_int; 2],
    /// Whether it emulates a machine, not a program.
    pub system_emulation: bool,
}

/// A translation block, QEMU's own.
#[repr(C)]
pub(crate) struct Block(c_void);
/// An instruction, QEMU's own.
#[repr(C)]
pub(crate) struct Instruction(c_void);

pub(crate) type Id = u64;
pub(crate) type CpuCallback = extern "C" fn(Id, c_uint);
pub(crate) type TranslationCallback = extern "C" fn(Id, *mut Block);
pub(crate) type ExecutionCallback = extern "C" fn(c_uint, *mut c_void);
pub(crate) type MemoryCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);
pub(crate) type SyscallCallback =
    extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub(crate) type SyscallReturnCallback = extern "C" fn(Id, c_uint, i64, i64);
pub(crate) type EndCallback = extern "C" fn(Id, *mut c_void);

/// The callback looks at no register.
pub(crate) const NO_REGISTERS: c_int = 0;
/// Reads and writes are wanted.
pub(crate) const READS_AND_WRITES: c_int = 3;

unsafe extern "C" {
    pub(crate) fn qemu_plugin_register_vcpu_init_cb(id: Id, callback: CpuCallback);
    pub(crate) fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: TranslationCallback);
    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        callback: ExecutionCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        callback: MemoryCallback,
        flags: c_int,
        which: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_syscall_cb(id: Id, callback: SyscallCallback);
    pub(crate) fn qemu_plugin_register_vcpu_syscall_ret_cb(id: Id, callback: SyscallReturnCallback);
    pub(crate) fn qemu_plugin_register_atexit_cb(id: Id, callback: EndCallback, data: *mut c_void);
    pub(crate) fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub(crate) fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    pub(crate) safe fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
    pub(crate) safe fn qemu_plugin_mem_is_store(info: u32) -> bool;
}
