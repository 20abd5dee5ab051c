//! Exact instruction counts of single calls, by single-stepping.
//!
//! A [`Stepper`] makes a [`Call`] with the processor stopping after every
//! instruction. Counted are the `call`, every instruction of the function and
//! its return. System calls count as one instruction: the kernel is not stepped.
//! On machines other than x86-64 under Linux, [`Stepper::new`] is an error.
//!
//! Invariant: a count depends on the code and its data alone, never on load,
//! interrupts or other threads.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod other;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use other::{Stepper, so_far};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use x86_64::{Stepper, so_far};

/// A measured call: a function of up to five words that returns a word.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Address of the function.
    pub function: usize,
    /// Its arguments; those beyond its own are ignored by the calling convention.
    pub arguments: [usize; 5],
}

/// The shape under which all measured functions are called.
type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> usize;

impl Call {
    /// Makes the call. A function without a result leaves an arbitrary word.
    ///
    /// # Safety
    /// The function is `extern "C"`, takes at most five words, belongs together
    /// with the arguments, and its own contract is kept.
    #[inline(always)]
    pub unsafe fn invoke(self) -> usize {
        let [a, b, c, d, e] = self.arguments;
        // SAFETY: `function` is the address of an extern "C" function of at
        // most five words, all passed in registers; extra ones are ignored.
        unsafe {
            let function: Function =
                std::mem::transmute::<*const (), Function>(self.function as *const ());
            function(a, b, c, d, e)
        }
    }
}
