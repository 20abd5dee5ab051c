//! Exceptions of C++ for PyTorch, which understands nothing else.
//!
//! A pluggable allocator that returns null makes tensors without data, and later a confusing
//! `RuntimeError`. PyTorch turns an exception of its class `c10::OutOfMemoryError` into
//! `torch.OutOfMemoryError`, and any other into `RuntimeError` with its text. Both are thrown
//! here by the functions that PyTorch and the C++ runtime export, so that neither their headers
//! nor a compiler is needed: the name of the class's constructor says which arguments it takes,
//! and a library that exports no such name gets the other exception.
//!
//! Layouts that are relied on: `std::string` of the new ABI of libstdc++ (in the constructor's
//! name: `__cxx11`), `c10::SourceLocation` (two texts and a number), and the first entry of a
//! virtual table, which is the destructor of a class that derives from `std::exception`
//! (Itanium C++ ABI, section 2.5.3).

use core::ffi::{CStr, c_char, c_void};
use core::{mem, ptr};
use std::ffi::CString;
use std::sync::OnceLock;

type Allocate = unsafe extern "C" fn(usize) -> *mut c_void;
type Destroy = unsafe extern "C" fn(*mut c_void);
type Throw = unsafe extern "C-unwind" fn(*mut c_void, *const c_void, Option<Destroy>) -> !;
type WithText = unsafe extern "C" fn(*mut c_void, *const c_char);
type WithPlace = unsafe extern "C" fn(*mut c_void, Place, *mut Text);

/// `c10::SourceLocation`.
#[repr(C)]
struct Place {
    function: *const c_char,
    file: *const c_char,
    line: u32,
}

/// `std::string`.
#[repr(C)]
struct Text {
    start: *const c_char,
    length: usize,
    /// The characters of a short one; here the capacity of a long one.
    capacity: usize,
    _rest: usize,
}

/// What exceptions are made with.
struct Functions {
    allocate: Allocate,
    throw: Throw,
    /// `operator new` and `operator delete`.
    new: Allocate,
    delete: Destroy,
    runtime_error: (WithText, Destroy, *const c_void),
    out_of_memory: Option<(WithPlace, *const c_void)>,
}

// SAFETY: addresses of functions and of descriptions of types, in libraries that stay loaded.
unsafe impl Send for Functions {}
// SAFETY: as before.
unsafe impl Sync for Functions {}

static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();

/// More than any class that is thrown here has.
const ROOM: usize = 1024;

/// The address that a library has for a name.
fn find(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a library, and a text.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The library of that name, if the process has it.
fn loaded(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a text; nothing is loaded that is not there already, so nothing is run.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    (!library.is_null()).then_some(library)
}

fn functions() -> Option<Functions> {
    let runtime = loaded(c"libstdc++.so.6")?;
    let out_of_memory = loaded(c"libc10.so").and_then(|torch| {
        let make = find(
            torch,
            c"_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        )?;
        let class = find(torch, c"_ZTIN3c1016OutOfMemoryErrorE")?;
        // SAFETY: the constructor that has this name takes these arguments, an object of a class
        // that is copied by its constructor being passed by its address (Itanium C++ ABI,
        // section 3.1.2).
        Some((unsafe { mem::transmute::<*mut c_void, WithPlace>(make) }, class.cast_const()))
    });
    let make = find(runtime, c"_ZNSt13runtime_errorC1EPKc")?;
    let destroy = find(runtime, c"_ZNSt13runtime_errorD1Ev")?;
    let class = find(runtime, c"_ZTISt13runtime_error")?;
    let allocate = find(runtime, c"__cxa_allocate_exception")?;
    let throw = find(runtime, c"__cxa_throw")?;
    let new = find(runtime, c"_Znwm")?;
    let delete = find(runtime, c"_ZdlPv")?;
    // SAFETY: the functions of these names have these arguments (Itanium C++ ABI, section 2.4).
    unsafe {
        Some(Functions {
            allocate: mem::transmute::<*mut c_void, Allocate>(allocate),
            throw: mem::transmute::<*mut c_void, Throw>(throw),
            new: mem::transmute::<*mut c_void, Allocate>(new),
            delete: mem::transmute::<*mut c_void, Destroy>(delete),
            runtime_error: (
                mem::transmute::<*mut c_void, WithText>(make),
                mem::transmute::<*mut c_void, Destroy>(destroy),
                class,
            ),
            out_of_memory,
        })
    }
}

/// Finds what exceptions are made with, once; whether PyTorch's own can be.
pub(crate) fn prepare() -> bool {
    let functions = FUNCTIONS.get_or_init(functions);
    functions
        .as_ref()
        .is_some_and(|functions| functions.out_of_memory.is_some())
}

/// Destroys an object by the first entry of its virtual table.
unsafe extern "C" fn destroy(object: *mut c_void) {
    // SAFETY: the runtime calls this with an object that `raise` made: its first word is the
    // address of its virtual table, whose first entry is its destructor.
    unsafe {
        let table = object.cast::<*const Destroy>().read();
        (*table)(object);
    }
}

/// Throws, as `torch.OutOfMemoryError` or as `RuntimeError`. Returns only if nothing can be
/// thrown, as there is no C++ in the process.
pub(crate) fn raise(out_of_memory: bool, text: String) {
    prepare();
    let Some(Some(functions)) = FUNCTIONS.get() else {
        return;
    };
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // SAFETY: room for an exception, filled by the constructor of its class before it is thrown;
    // a text that both constructors copy. The frames of this library that the exception passes
    // have nothing left to drop: `text` is dropped before.
    unsafe {
        let exception = (functions.allocate)(ROOM);
        match functions.out_of_memory {
            Some((make, class)) if out_of_memory => {
                // Not one that the string would keep in itself.
                let length = text.as_bytes().len();
                let capacity = length.max(16);
                let characters = (functions.new)(capacity + 1).cast::<c_char>();
                ptr::copy_nonoverlapping(text.as_ptr(), characters, length + 1);
                drop(text);
                let mut text = Text {
                    start: characters,
                    length,
                    capacity,
                    _rest: 0,
                };
                let place = Place {
                    function: c"metes_torch_malloc".as_ptr(),
                    file: c"metes".as_ptr(),
                    line: 0,
                };
                make(exception, place, &raw mut text);
                // A string that was moved from has other characters now: its own.
                if text.start == characters {
                    (functions.delete)(characters.cast());
                }
                (functions.throw)(exception, class, Some(destroy));
            }
            _ => {
                let (make, destroy, class) = functions.runtime_error;
                make(exception, text.as_ptr());
                drop(text);
                (functions.throw)(exception, class, Some(destroy));
            }
        }
    }
}
