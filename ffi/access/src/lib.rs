//! The access counter: a plug-in of QEMU's user-mode emulation that counts, for
//! each live block of the guest's heap, the program's reads and writes.
//!
//! What is a block the guest says itself (see [`layout`]): a dynamically linked
//! program through the recording library, a static one through
//! `guest/announce.c`. What the allocator does to the blocks (the zeroing of
//! `calloc`, the copying of `realloc`, its own records) is not counted: it
//! happens while no block is announced there.
//!
//! Instructions are QEMU's: one repetition of a string instruction is one.
//!
//! Threads. Announcements are serialised by one lock. Counts of a block are
//! under a lock of their own as soon as there is a second thread; instructions
//! are counted for each virtual processor.
//!
//! Children. A forked child inherits the mapped files; it counts nothing in
//! them but itself.

mod blocks;
mod count;
mod files;
mod qemu;
mod shadow;

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::collections::HashMap;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use blocks::Blocks;
use metes_layout::accesses as layout;

use layout::{
    ALLOC, ANNOUNCE, ENTER, EVENT_FILE, FREE, Header, LEAVE, MAGIC, RESIZE_BEGIN, RESIZE_END,
    STATE_FILE, VERSION,
};
use qemu::{Block, Id, Info};

static BLOCKS: Mutex<Option<Blocks>> = Mutex::new(None);
static HEADER: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());
/// Counting; not in a forked child.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Every access goes to the event file.
static EVERY: AtomicBool = AtomicBool::new(false);
/// log2 of the bytes of the slices of which the first touches go to the event
/// file; 0: they do not.
static SLICE: AtomicU32 = AtomicU32::new(0);
/// The bits of an address that the guest has.
static ADDRESS_BITS: AtomicU64 = AtomicU64::new(u64::MAX);
/// How the guest's architecture numbers `execve` and `execveat`.
static EXEC: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
/// Bytes of the widest access.
const WIDEST: u64 = 64;
/// 1 while an `execve` is under way, 2 while it is a child's.
static EXECUTING: AtomicU8 = AtomicU8::new(0);

fn header() -> Option<&'static Header> {
    // SAFETY: null, or a header that stays mapped.
    unsafe { HEADER.load(Ordering::Acquire).as_ref() }
}

fn locked() -> MutexGuard<'static, Option<Blocks>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// QEMU's entry: `directory=D[,word=4|8][,every=1][,slice=4..40]`.
///
/// # Safety
/// `info` and `arguments` are what QEMU gives a plug-in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let mut options = HashMap::new();
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's promise: `count` C strings.
        let argument = unsafe { CStr::from_ptr(*arguments.add(index)) };
        let argument = argument.to_string_lossy().into_owned();
        if let Some((key, value)) = argument.split_once('=') {
            options.insert(key.to_owned(), value.to_owned());
        }
    }
    // SAFETY: the caller's promise.
    let (target, machine) = unsafe {
        let info = &*info;
        let name = CStr::from_ptr(info.target_name).to_string_lossy();
        (name.into_owned(), info.system_emulation)
    };
    if machine {
        eprintln!("metes: the access counter is for programs (qemu-{target}), not for machines");
        return -1;
    }
    match begin(&target, &options) {
        Ok(()) => {
            register(id);
            0
        }
        Err(reason) => {
            eprintln!("metes: the access counter cannot begin: {reason}");
            -1
        }
    }
}

fn begin(target: &str, options: &HashMap<String, String>) -> Result<(), String> {
    let directory = options
        .get("directory")
        .ok_or("option directory is missing")?;
    let directory = Path::new(directory);
    let word: u32 = match options.get("word").map(String::as_str) {
        None | Some("4") => 4,
        Some("8") => 8,
        Some(other) => return Err(format!("a word has 4 or 8 bytes, not {other}")),
    };
    let text = |error: std::io::Error| format!("{}: {error}", directory.display());
    let state = files::State::create(&directory.join(STATE_FILE)).map_err(text)?;
    let events = files::Events::create(&directory.join(EVENT_FILE)).map_err(text)?;
    let header = state.header();
    header.version.store(VERSION, Ordering::Relaxed);
    header.word.store(word, Ordering::Relaxed);
    header.pid.store(std::process::id(), Ordering::Relaxed);
    header.magic.store(MAGIC, Ordering::Release);
    HEADER.store(ptr::from_ref(header).cast_mut(), Ordering::Release);
    let every = options.get("every").is_some_and(|every| every == "1");
    EVERY.store(every, Ordering::Relaxed);
    if let Some(text) = options.get("slice") {
        // Granules have up to 8 bytes, and a slice begins in one of its own.
        let shift = text.parse().ok().filter(|shift| (4..=40).contains(shift));
        let shift = shift.ok_or_else(|| format!("a slice has 2^4 to 2^40 bytes, not 2^{text}"))?;
        SLICE.store(shift, Ordering::Relaxed);
    }
    if !has_long_addresses(target) {
        ADDRESS_BITS.store(u64::from(u32::MAX), Ordering::Relaxed);
        shadow::set_granule_shift(2);
    }
    for (place, number) in EXEC.iter().zip(exec_numbers(target)) {
        place.store(number, Ordering::Relaxed);
    }
    count::begin(state.place(), word.trailing_zeros());
    *locked() = Some(Blocks::new(state, events));
    // SAFETY: registers a function that touches atomics only.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    ACTIVE.store(true, Ordering::Release);
    Ok(())
}

/// Whether pointers of this architecture have 64 bits.
fn has_long_addresses(target: &str) -> bool {
    target.contains("64") && target != "sparc32plus" || matches!(target, "s390x" | "alpha")
}

/// The numbers of `execve` and `execveat`; 0 where they are not known.
fn exec_numbers(target: &str) -> [u32; 2] {
    match target {
        "x86_64" => [59, 322],
        "i386" => [11, 358],
        "arm" | "armeb" => [11, 387],
        "sparc" | "sparc32plus" | "sparc64" => [59, 350],
        "ppc" | "ppc64" | "ppc64le" => [11, 362],
        "aarch64" | "aarch64_be" | "riscv32" | "riscv64" | "or1k" | "loongarch64" => [221, 281],
        _ => [0, 0],
    }
}

/// In a child that was forked: it is not followed.
extern "C" fn in_child() {
    ACTIVE.store(false, Ordering::Relaxed);
    if let Some(header) = header() {
        header.forks.fetch_add(1, Ordering::Relaxed);
    }
}

fn register(id: Id) {
    // SAFETY: QEMU's functions, called while it installs the plug-in, as its
    // interface asks; the callbacks stay for the life of the process.
    unsafe {
        qemu::qemu_plugin_register_vcpu_init_cb(id, on_thread);
        qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
        qemu::qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
        qemu::qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
        qemu::qemu_plugin_register_atexit_cb(id, on_end, ptr::null_mut());
    }
}

extern "C" fn on_thread(_: Id, cpu: c_uint) {
    let Some(header) = header().filter(|_| ACTIVE.load(Ordering::Relaxed)) else {
        return;
    };
    let thread = header.threads.fetch_add(1, Ordering::Relaxed);
    let state = count::cpu(cpu);
    state.thread.store(thread, Ordering::Relaxed);
    state.inside.store(0, Ordering::Relaxed);
    if thread > 0 {
        count::several_threads();
    }
}

extern "C" fn on_translation(_: Id, block: *mut Block) {
    // SAFETY: QEMU's block, valid during this call.
    unsafe {
        let instructions = qemu::qemu_plugin_tb_n_insns(block);
        qemu::qemu_plugin_register_vcpu_tb_exec_cb(
            block,
            on_execution,
            qemu::NO_REGISTERS,
            ptr::without_provenance_mut(instructions),
        );
        for index in 0..instructions {
            // One callback for both ways: QEMU 7.2 leaves out those after the
            // first that does not want the access at hand.
            qemu::qemu_plugin_register_vcpu_mem_cb(
                qemu::qemu_plugin_tb_get_insn(block, index),
                on_memory,
                qemu::NO_REGISTERS,
                qemu::READS_AND_WRITES,
                ptr::null_mut(),
            );
        }
    }
}

extern "C" fn on_execution(cpu: c_uint, instructions: *mut c_void) {
    if !ACTIVE.load(Ordering::Relaxed) {
        return;
    }
    let state = count::cpu(cpu);
    let counter = if state.inside.load(Ordering::Relaxed) == 0 {
        &state.instructions
    } else {
        &state.allocator_instructions
    };
    count::add(counter, instructions.addr() as u64);
}

extern "C" fn on_memory(_: c_uint, info: u32, address: u64, _: *mut c_void) {
    // First the cheap questions: most accesses are to the stack.
    if !shadow::may_hold(address, WIDEST) || !ACTIVE.load(Ordering::Relaxed) {
        return;
    }
    let bytes = 1u64 << (qemu::qemu_plugin_mem_size_shift(info) & 7).min(6);
    // An atomic update is both; the interface has no function that says so, but
    // keeps which it is in these bits.
    let which = info >> 16 & 3;
    let write = qemu::qemu_plugin_mem_is_store(info);
    let read = !write || which == 3;
    if read {
        count(address, bytes, false);
    }
    if write {
        count(address, bytes, true);
    }
}

#[inline(always)]
fn count(address: u64, bytes: u64, write: bool) {
    count::access(address, bytes, write, |hit| {
        let slice = SLICE.load(Ordering::Relaxed);
        let first = slice != 0 && hit.is_first_touch(slice);
        if (first || EVERY.load(Ordering::Relaxed))
            && let Some(blocks) = locked().as_mut()
        {
            blocks.access(hit.address, hit.bytes, write);
        }
    });
}

#[allow(clippy::too_many_arguments, reason = "QEMU's signature")]
extern "C" fn on_syscall(
    _: Id,
    cpu: c_uint,
    number: i64,
    kind: u64,
    address: u64,
    size: u64,
    align_log2: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    let active = ACTIVE.load(Ordering::Relaxed);
    if number == ANNOUNCE && active {
        let bits = ADDRESS_BITS.load(Ordering::Relaxed);
        announced(cpu, kind, address & bits, size & bits, align_log2);
    } else if is_exec(number)
        && let Some(header) = header()
    {
        // It comes back only if it failed.
        EXECUTING.store(if active { 1 } else { 2 }, Ordering::Relaxed);
        if active {
            header.replaced.store(1, Ordering::Relaxed);
        } else {
            header.child_programs.fetch_add(1, Ordering::Relaxed);
        }
    }
}

extern "C" fn on_syscall_return(_: Id, _: c_uint, number: i64, _: i64) {
    if !is_exec(number) {
        return;
    }
    let executing = EXECUTING.swap(0, Ordering::Relaxed);
    if let Some(header) = header() {
        match executing {
            1 => header.replaced.store(0, Ordering::Relaxed),
            2 => {
                header.child_programs.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

fn is_exec(number: i64) -> bool {
    number != 0
        && EXEC
            .iter()
            .any(|exec| i64::from(exec.load(Ordering::Relaxed)) == number)
}

fn announced(cpu: u32, kind: u64, address: u64, size: u64, align_log2: u64) {
    let inside = &count::cpu(cpu).inside;
    match kind {
        ENTER | FREE | RESIZE_BEGIN => inside.store(1, Ordering::Relaxed),
        LEAVE | ALLOC | RESIZE_END => inside.store(0, Ordering::Relaxed),
        _ => return,
    }
    if matches!(kind, ENTER | LEAVE) {
        return;
    }
    let mut blocks = locked();
    let Some(blocks) = blocks.as_mut() else {
        return;
    };
    match kind {
        ALLOC => blocks.alloc(cpu, address, size, align_log2),
        FREE => blocks.free(cpu, address),
        RESIZE_BEGIN => blocks.resize_begin(cpu, address),
        _ => blocks.resize_end(cpu, address, size, align_log2),
    }
}

extern "C" fn on_end(_: Id, _: *mut c_void) {
    if let Some(header) = header().filter(|_| ACTIVE.load(Ordering::Relaxed)) {
        header.finished.store(1, Ordering::Relaxed);
    }
}
