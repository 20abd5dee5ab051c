//! What a thread knows of its node.
//!
//! Invariant: reaching it never allocates. The general thread-local model may, after a `dlopen`, and would come back here. So
//! it lies in static thread-local storage (initial-exec model), which programs and the libraries that they are started with
//! have; stable Rust has no word for that, hence the assembly.

use core::cell::Cell;
use core::ptr;

use crate::node::{Node, nobodys};

/// Of the calling thread.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Current {
    /// The node that it is bound to, where requests may go straight to it; otherwise one without pages.
    pub(crate) node: Cell<*const Node>,
    /// The node that it is bound to.
    pub(crate) bound: Cell<*const Node>,
    /// It is about to end, or was refused a node, and uses the shared one.
    pub(crate) shares: Cell<bool>,
}

impl Current {
    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(miri)
    )))]
    const NEW: Current = Current {
        node: Cell::new(nobodys()),
        bound: Cell::new(ptr::null()),
        shares: Cell::new(false),
    };

    /// Forgets the node, for what is left of the thread.
    pub(crate) fn share(&self) {
        self.node.set(nobodys());
        self.bound.set(ptr::null());
        self.shares.set(true);
    }
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
))]
mod place {
    use super::{Current, Node};

    core::arch::global_asm!(
        ".pushsection .tdata.metes_threads_current,\"awT\",@progbits",
        ".globl metes_threads_current",
        ".hidden metes_threads_current",
        ".type metes_threads_current, @object",
        ".size metes_threads_current, {size}",
        ".p2align 4",
        "metes_threads_current:",
        ".quad {nobodys}",
        ".zero {size} - 8",
        ".popsection",
        size = const size_of::<Current>(),
        nobodys = sym crate::node::NOBODYS,
    );

    /// The node of the calling thread, if requests may go straight to it, or one without pages.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn node() -> *const Node {
        let node: *const Node;
        // SAFETY: reads the first word of our thread-local bytes.
        unsafe {
            core::arch::asm!(
                "mov {node}, qword ptr [rip + metes_threads_current@GOTTPOFF]",
                "mov {node}, qword ptr fs:[{node}]",
                node = out(reg) node,
                options(nostack, preserves_flags, readonly),
            );
        }
        node
    }

    /// Of the calling thread; nobody else touches it but the thread's own signal handlers.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn current() -> &'static Current {
        let place: *const Current;
        // SAFETY: address arithmetic only: the thread pointer, which x86-64 keeps at `fs:0`, plus the offset that the linker
        // resolves for our bytes.
        unsafe {
            core::arch::asm!(
                "mov {place}, qword ptr [rip + metes_threads_current@GOTTPOFF]",
                "add {place}, qword ptr fs:[0]",
                place = out(reg) place,
                options(nostack, pure, readonly),
            );
        }
        // SAFETY: zeros are one; nobody keeps the reference beyond the thread.
        unsafe { &*place }
    }

    /// As above.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub(crate) fn node() -> *const Node {
        current().node.get()
    }

    /// As above.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub(crate) fn current() -> &'static Current {
        let place: *const Current;
        // SAFETY: address arithmetic only: the thread pointer plus the offset that the linker resolves for our bytes.
        unsafe {
            core::arch::asm!(
                "mrs {place}, tpidr_el0",
                "adrp {offset}, :gottprel:metes_threads_current",
                "ldr {offset}, [{offset}, :gottprel_lo12:metes_threads_current]",
                "add {place}, {place}, {offset}",
                place = out(reg) place,
                offset = out(reg) _,
                options(nostack, preserves_flags, pure, readonly),
            );
        }
        // SAFETY: zeros are one; nobody keeps the reference beyond the thread.
        unsafe { &*place }
    }
}

/// Elsewhere by the general model: of programs, not of libraries that are loaded later.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
)))]
mod place {
    use super::{Current, Node};

    std::thread_local! {
        static CURRENT: Current = const { Current::NEW };
    }

    pub(crate) fn node() -> *const Node {
        CURRENT.with(|current| current.node.get())
    }

    pub(crate) fn current() -> &'static Current {
        // SAFETY: it has no destructor, so it stays as long as the thread; nobody keeps the reference beyond that.
        CURRENT.with(|current| unsafe { &*core::ptr::from_ref(current) })
    }
}

pub(crate) use place::{current, node};
