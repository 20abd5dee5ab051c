//! Counts the system calls of a stretch of code, by the kernel's dispatch of system calls to the user: while
//! a byte of ours says so, each call of this thread becomes a signal instead.
//!
//! *Invariant:* between [`Counter::begin`] and [`Counter::end`] no call of this thread is missed, and each is made.

#[cfg(target_arch = "x86_64")]
mod dispatch {
    use std::cell::UnsafeCell;
    use std::sync::Once;
    use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};

    const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
    const ALLOW: u8 = 0;
    const BLOCK: u8 = 1;

    #[derive(Default)]
    struct State {
        selector: AtomicU8,
        count: AtomicU64,
        first: AtomicI64,
    }

    struct Local(UnsafeCell<State>);

    thread_local! {
        static STATE: Local = const { Local(UnsafeCell::new(State {
            selector: AtomicU8::new(ALLOW), count: AtomicU64::new(0), first: AtomicI64::new(-1),
        })) };
    }

    fn state() -> &'static State {
        // SAFETY: all fields are atomic, and the counter does not outlive the thread that it counts.
        STATE.with(|local| unsafe { &*local.0.get() })
    }

    /// Makes the call that was held up, with nothing held up meanwhile.
    extern "C" fn held_up(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let state = state();
        state.selector.store(ALLOW, Ordering::SeqCst);
        // SAFETY: the kernel passes the context of the thread that was interrupted.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        let number = registers[libc::REG_RAX as usize];
        if state.count.fetch_add(1, Ordering::SeqCst) == 0 {
            state.first.store(number, Ordering::SeqCst);
        }
        let argument = |register: i32| registers[register as usize];
        let mut result = number;
        // SAFETY: the call that the thread was about to make, with its arguments.
        unsafe {
            std::arch::asm!("syscall", inlateout("rax") result,
                in("rdi") argument(libc::REG_RDI), in("rsi") argument(libc::REG_RSI), in("rdx") argument(libc::REG_RDX),
                in("r10") argument(libc::REG_R10), in("r8") argument(libc::REG_R8), in("r9") argument(libc::REG_R9),
                lateout("rcx") _, lateout("r11") _);
        }
        registers[libc::REG_RAX as usize] = result;
        // The return from this handler is a call, too; the kernel was told to let that one place through.
        state.selector.store(BLOCK, Ordering::SeqCst);
    }

    /// Where the C library returns from a handler, as the kernel knows it.
    fn way_back() -> usize {
        /// The kernel's structure: handler, flags, return, mask.
        #[repr(C)]
        struct Action([usize; 4]);
        let mut action = Action([0; 4]);
        // SAFETY: reads into a structure of ours, of the kernel's layout and mask size.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, libc::SIGSYS, 0, &raw mut action, 8) };
        action.0[2]
    }

    /// Counts the system calls of the calling thread.
    pub(crate) struct Counter;

    impl Counter {
        pub(crate) fn new() -> Counter {
            static HANDLER: Once = Once::new();
            HANDLER.call_once(|| {
                // SAFETY: zeros are a valid structure, which is then filled in; the handler is as the kernel calls it.
                unsafe {
                    let mut action: libc::sigaction = std::mem::zeroed();
                    action.sa_sigaction = held_up as *const () as usize;
                    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
                    libc::sigaction(libc::SIGSYS, &action, std::ptr::null_mut());
                }
            });
            let selector: *const AtomicU8 = &state().selector;
            // SAFETY: the byte lives as long as the thread.
            let status =
                unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, way_back(), 16, selector) };
            assert_eq!(
                status,
                0,
                "the kernel dispatches no system calls: {}",
                std::io::Error::last_os_error()
            );
            Counter
        }

        pub(crate) fn begin(&self) {
            state().count.store(0, Ordering::SeqCst);
            state().first.store(-1, Ordering::SeqCst);
            state().selector.store(BLOCK, Ordering::SeqCst);
        }

        /// How many there were, and which was the first.
        pub(crate) fn end(&self) -> (u64, i64) {
            state().selector.store(ALLOW, Ordering::SeqCst);
            (
                state().count.load(Ordering::SeqCst),
                state().first.load(Ordering::SeqCst),
            )
        }
    }

    impl Drop for Counter {
        fn drop(&mut self) {
            // SAFETY: switches it off.
            unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use dispatch::Counter;
