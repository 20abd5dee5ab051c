//! The extension module of the Python package.
//!
//! Frameworks call an allocator without holding Python's lock, and PyTorch takes it as addresses
//! of C functions; so the package calls those of `metes_device.h`, which this library exports.
//! What is for Python itself is in `curve`.
//!
//! Invariant: one library has the module and the functions, so that an installed package has
//! either both or neither.

mod curve;

use pyo3::prelude::*;

/// The module says which version it is.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Named, so that the library of its functions is linked.
    let create = metes_device_c::heap::metes_device_create_offsets as *const () as usize;
    module.add_class::<curve::Curve>()?;
    module.add_function(wrap_pyfunction!(curve::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(curve::chain, module)?)?;
    module.add("linked", create != 0)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
