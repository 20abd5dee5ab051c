//! What the tests share: writing and reading pages, and what the kernel says of them.

use std::ptr::NonNull;

use metes_regions::{PAGE, Policy, Region};

/// Every policy.
pub(crate) const POLICIES: [Policy; 6] = [
    Policy::Retain,
    Policy::Bounded(1),
    Policy::Bounded(100),
    Policy::Graveyard {
        slice: 7,
        threaded: false,
    },
    Policy::Graveyard {
        slice: 64,
        threaded: true,
    },
    Policy::Immediate,
];

/// The address of a page of a region.
pub(crate) fn page(start: NonNull<u8>, page: usize) -> *mut u8 {
    start.as_ptr().wrapping_add(page * PAGE)
}

/// Writes the first byte of pages of a mapped region.
pub(crate) fn touch(region: &Region, pages: std::ops::Range<usize>, value: u8) {
    for number in pages {
        // SAFETY: a page of a mapped region.
        unsafe { page(region.start, number).write_volatile(value) };
    }
}

/// The first byte of a page of a mapped region.
pub(crate) fn read(start: NonNull<u8>, number: usize) -> u8 {
    // SAFETY: a page of a mapped region.
    unsafe { page(start, number).read_volatile() }
}

/// Of each of so many pages, whether it has a frame.
pub(crate) fn resident(start: NonNull<u8>, pages: usize) -> Vec<bool> {
    let mut found = vec![0_u8; pages];
    // SAFETY: a byte for each page; the addresses are mapped as long as their manager lives.
    let asked = unsafe { libc::mincore(start.as_ptr().cast(), pages * PAGE, found.as_mut_ptr()) };
    assert_eq!(asked, 0, "{}", std::io::Error::last_os_error());
    found.iter().map(|byte| byte & 1 != 0).collect()
}

/// How the process ends in which `act` runs: the signal, if one ends it. SIGALRM, if it does not end.
pub(crate) fn signal_of(act: impl FnOnce()) -> Option<i32> {
    const PATIENCE: u32 = 100;
    // SAFETY: the child calls nothing but what is given, which allocates nothing, and ends.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            libc::alarm(PATIENCE);
            // A panic is not to unwind into the child's copy of the test.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
            libc::_exit(i32::from(done.is_err()));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(!libc::WIFEXITED(status) || libc::WEXITSTATUS(status) == 0);
        libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
    }
}
