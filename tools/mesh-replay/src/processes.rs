//! Nodes that are processes, forked from this one, over one mapping at one address.
//!
//! A child calls nothing that waits for a lock of another thread of its parent: what it needs is made before it is forked, and
//! all that it says stands in the mapping. So it does not matter how many threads the parent has.
//!
//! Invariant: a child that ends before its time, by whatever, is taken for dead once the system says that it has ended; no
//! child outlives the call.

use std::io;
use std::time::Duration;

use metes_heap::Tagged;
use metes_heap::index::Index;

use crate::common::Common;
use crate::life::Life;
use crate::lists::Lists;
use crate::replay::{Kill, NotReplayed, kill_of};

/// Ends as by `kill -9`.
fn die() -> ! {
    // SAFETY: a signal to this process, which cannot be held up.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    loop {
        std::hint::spin_loop();
    }
}

/// Children that still run; what is left of them is killed.
struct Children(Vec<(u32, libc::pid_t)>);

impl Drop for Children {
    fn drop(&mut self) {
        for &(_, child) in &self.0 {
            // SAFETY: a child of this process that was not waited for.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// Does the operations of all nodes at once; `started` is told each node and its process.
///
/// # Errors
/// [`NotReplayed::NotStarted`].
pub(crate) fn run<I: Index<Tagged> + Clone + Send>(
    common: &Common<I>,
    lists: &Lists,
    kills: &[Kill],
    started: &mut dyn FnMut(u32, u32),
) -> Result<(), NotReplayed> {
    let life = |node| Life {
        fabric: &common.nodes,
        board: common,
        lists,
        node,
    };
    // SAFETY: a call without memory.
    let parent = unsafe { libc::getpid() };
    let mut children = Children(Vec::with_capacity(lists.nodes() as usize));
    for node in 0..lists.nodes() {
        let kill = kill_of(kills, node);
        // SAFETY: the child keeps to what the module says.
        match unsafe { libc::fork() } {
            0 => be(parent, || life(node).live(kill, die, &mut ())),
            child if child > 0 => {
                children.0.push((node, child));
                started(node, child as u32);
            }
            _ => {
                let error = io::Error::last_os_error().raw_os_error().unwrap_or(0);
                return Err(NotReplayed::NotStarted { node, error });
            }
        }
    }
    while !children.0.is_empty() {
        children.0.retain(|&(node, child)| {
            let mut status = 0;
            // SAFETY: a child of this process that was not waited for.
            match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
                0 => return true,
                waited if waited == child && status == 0 => {}
                // Whatever it ended of, it takes no further step.
                _ => life(node).bury(node),
            }
            false
        });
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(())
}

/// What the child does, and nothing else.
fn be(parent: libc::pid_t, live: impl FnOnce()) -> ! {
    #[cfg(target_os = "linux")]
    // SAFETY: calls without memory; where the parent has ended before the first, nobody waits for this process.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parent;
    let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(live));
    // SAFETY: nothing of the parent's is to be ended by its child.
    unsafe { libc::_exit(i32::from(lived.is_err())) }
}
