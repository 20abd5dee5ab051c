//! The libraries of kernels around the runtime: linear algebra, convolutions, Fourier transforms,
//! compilation, communication, profiling.
//!
//! What only computes does nothing. What answers a question that the model can answer is written
//! out here; what answers one that it cannot (how much scratch memory an algorithm wants) refuses,
//! and the program says so. `libraries/names.txt` lists the rest.
//!
//! Invariant: a function that succeeds has written every result that its caller reads.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::entry::{put, put_if_wanted};
use crate::error::{Answer, Code};
use crate::launched::counted;

#[allow(missing_docs, reason = "named after functions of other libraries")]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}

/// What handles and descriptors are: no address.
const HANDLE: usize = 0x6d65_0000_0000_0060;
/// The code of every library here for an argument that is none.
const INVALID: c_int = 7;
/// Version that the library of convolutions says it has: the newest of major version 9, as
/// programs ask for at least the one that they were built with.
const CUDNN: usize = 99_900;

/// The number of what `action` answers.
fn answered(action: impl FnOnce() -> Answer) -> c_int {
    match action() {
        Ok(()) => 0,
        Err(_) => INVALID,
    }
}

pub(crate) fn handle<T>(place: *mut *mut T) -> Answer {
    put(place, std::ptr::without_provenance_mut(HANDLE))
}

/// `cublasLtMatmulHeuristicResult_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Heuristic {
    algorithm: [u64; 8],
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// What a function of `names.txt` writes, and through which argument.
#[derive(Clone, Copy, Debug)]
struct Written<'a> {
    argument: usize,
    what: &'a str,
    /// How much scratch memory is wanted.
    rule: &'a str,
    /// Arguments that say the size of a problem, as words.
    extents: [Option<usize>; 3],
}

impl<'a> Written<'a> {
    /// What stands behind a name in the list.
    fn of(text: &'a str) -> Written<'a> {
        let mut words = text.split(' ');
        let mut word = || words.next().unwrap_or_default();
        Written {
            argument: word().parse().unwrap_or(usize::MAX),
            what: word(),
            rule: word(),
            extents: [word(), word(), word()].map(|number| number.parse().ok()),
        }
    }

    /// Elements of scratch memory by the rule, for rows, columns and a count.
    fn elements(&self, [rows, columns, count]: [Option<u64>; 3]) -> Answer<u64> {
        let rows = rows.ok_or(Code::InvalidValue)?;
        let wanted = match (self.rule, columns) {
            // Blocks of columns, and of rows.
            ("panel", columns) => 64 * (rows + columns.unwrap_or(rows)),
            // A matrix besides the one that is given, and vectors.
            ("eigen", count) => count.unwrap_or(1) * (2 * rows * rows + 6 * rows + 1),
            ("singular", Some(columns)) => {
                let (less, more) = (rows.min(columns), rows.max(columns));
                count.unwrap_or(1) * (4 * less * less + 7 * less + more)
            }
            _ => return Err(Code::InvalidValue),
        };
        Ok(wanted)
    }

    fn write(&self, arguments: &[usize]) -> Answer {
        let word = |number: usize| arguments.get(number).copied().ok_or(Code::InvalidValue);
        let place = word(self.argument)?;
        let place = std::ptr::with_exposed_provenance_mut::<c_void>(place);
        // Only the lower half of a whole number of four bytes is its own.
        let extent = |number: Option<usize>| {
            let number = number.and_then(|number| arguments.get(number));
            number.map(|word| u64::from(*word as u32))
        };
        let [first, second, third] = self.extents.map(extent);
        match self.what {
            "handle" => handle(place.cast::<*mut c_void>()),
            "zero" => put(place.cast::<c_int>(), 0),
            "none" => put(place.cast::<usize>(), 0),
            "elements" => {
                let wanted = self.elements([first, second, third])?;
                put(
                    place.cast(),
                    c_int::try_from(wanted).map_err(|_| Code::InvalidValue)?,
                )
            }
            "bytes" => {
                // Numbers of four and eight bytes, and pairs of these.
                let width = match first {
                    Some(1 | 4) => 8,
                    Some(5) => 16,
                    _ => 4,
                };
                let wanted = self.elements([second, third, None])?;
                put(place.cast::<u64>(), wanted * width)?;
                let host = word(self.argument + 1)?;
                put(std::ptr::with_exposed_provenance_mut::<u64>(host), 0)
            }
            _ => Err(Code::InvalidValue),
        }
    }
}

/// Counts a call of a function that writes an answer and computes.
fn written(name: &'static str, answer: Written<'_>, arguments: &[usize]) -> c_int {
    let number = answered(|| answer.write(arguments));
    counted(name, number, arguments)
}

/// What every library says of every error.
static TEXT: &std::ffi::CStr = c"not modelled by the dry device";

macro_rules! texts {
    ($($(#[$about:meta])* $name:ident)*) => {
        $(
            $(#[$about])*
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(_error: c_int) -> *const c_char {
                TEXT.as_ptr()
            }
        )*
    };
}

texts! {
    /// What an error of the library of convolutions means.
    cudnnGetErrorString
    /// What an error of the library of sparse matrices means.
    cusparseGetErrorString
    /// What an error of the compiler means.
    nvrtcGetErrorString
}

/// The last error of the library of convolutions, as text of at most `size` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn cudnnGetLastErrorString(text: *mut c_char, size: usize) {
    let room = size.min(1024) as c_int;
    let _ = crate::entry::put_text(text, room, "not modelled by the dry device");
}

/// Version of the library of convolutions.
#[unsafe(no_mangle)]
pub extern "C" fn cudnnGetVersion() -> usize {
    CUDNN
}

/// Version of the runtime that the library of convolutions was built with.
#[unsafe(no_mangle)]
pub extern "C" fn cudnnGetCudartVersion() -> usize {
    crate::attributes::VERSION as usize
}

/// Version of the library of matrix products.
#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetVersion() -> usize {
    130_400
}

crate::entry::entry_points! {
    via crate::libraries::answered;

    /// Major, minor or patch number of the library of convolutions.
    fn cudnnGetProperty(which: c_int, value: *mut c_int) {
        put(value, match which {
            0 => (CUDNN / 10_000) as c_int,
            1 => (CUDNN / 100 % 100) as c_int,
            _ => (CUDNN % 100) as c_int,
        })
    }

    /// A handle.
    fn cudnnCreate(place: *mut *mut c_void) { handle(place) }

    /// A handle.
    fn cublasCreate_v2(place: *mut *mut c_void) { handle(place) }

    /// The mode of computation: the default.
    fn cublasGetMathMode(_handle: *mut c_void, mode: *mut c_int) { put(mode, 0) }

    /// Where scalars lie: on the host.
    fn cublasGetPointerMode_v2(_handle: *mut c_void, mode: *mut c_int) { put(mode, 0) }

    /// A description.
    fn cublasLtMatmulDescCreate(place: *mut *mut c_void, _compute: c_int, _scale: c_int) {
        handle(place)
    }

    /// A description.
    fn cublasLtMatrixLayoutCreate(
        place: *mut *mut c_void,
        _kind: c_int,
        _rows: u64,
        _columns: u64,
        _leading: i64,
    ) {
        handle(place)
    }

    /// A description.
    fn cublasLtMatmulPreferenceCreate(place: *mut *mut c_void) { handle(place) }

    /// One algorithm, which needs no scratch memory of its own.
    fn cublasLtMatmulAlgoGetHeuristic(
        _handle: *mut c_void,
        _operation: *mut c_void,
        _a: *mut c_void,
        _b: *mut c_void,
        _c: *mut c_void,
        _d: *mut c_void,
        _preference: *mut c_void,
        wanted: c_int,
        results: *mut Heuristic,
        found: *mut c_int,
    ) {
        let count = wanted.min(1);
        if count > 0 {
            put(results, Heuristic::default())?;
        }
        put(found, count)
    }

    /// Every algorithm will do.
    fn cublasLtMatmulAlgoCheck(
        _handle: *mut c_void,
        _operation: *mut c_void,
        _a: *mut c_void,
        _b: *mut c_void,
        _c: *mut c_void,
        _d: *mut c_void,
        _algorithm: *const c_void,
        result: *mut Heuristic,
    ) {
        put(result, Heuristic::default())
    }

    /// Zeros.
    fn cublasLtMatmulAlgoConfigGetAttribute(
        _algorithm: *const c_void,
        _attribute: c_int,
        place: *mut u8,
        size: usize,
        written: *mut usize,
    ) {
        for index in 0..size.min(64) {
            put(place.wrapping_add(index), 0)?;
        }
        put_if_wanted(written, size);
        Ok(())
    }

    /// A handle.
    fn cusolverDnCreate(place: *mut *mut c_void) { handle(place) }

    /// A handle.
    fn cusparseCreate(place: *mut *mut c_void) { handle(place) }

    /// A plan.
    fn cufftCreate(plan: *mut c_int) { put(plan, 1) }

    /// A plan's scratch memory: what a real one wants is not known, so none.
    fn cufftXtMakePlanMany(
        _plan: c_int,
        _rank: c_int,
        _extents: *mut i64,
        _input_extents: *mut i64,
        _input_stride: i64,
        _input_distance: i64,
        _input_kind: c_int,
        _output_extents: *mut i64,
        _output_stride: i64,
        _output_distance: i64,
        _output_kind: c_int,
        _batch: i64,
        size: *mut usize,
        _execution: c_int,
    ) {
        put(size, 0)
    }

    /// Version of the library of profiling.
    fn cuptiGetVersion(version: *mut c_uint) { put(version, 130_000) }

    /// What an error of the library of profiling means.
    fn cuptiGetResultString(_result: c_int, text: *mut *const c_char) {
        put(text, TEXT.as_ptr())
    }

    /// The name of a call.
    fn cuptiGetCallbackName(_domain: c_int, _call: u32, name: *mut *const c_char) {
        put(name, TEXT.as_ptr())
    }

    /// Version of the compiler.
    fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) {
        put(major, crate::attributes::VERSION / 1000)?;
        put(minor, crate::attributes::VERSION / 10 % 100)
    }

    /// A program.
    fn nvrtcCreateProgram(
        place: *mut *mut c_void,
        _source: *const c_char,
        _name: *const c_char,
        _count: c_int,
        _headers: *const c_void,
        _names: *const c_void,
    ) {
        handle(place)
    }

    /// A program's end.
    fn nvrtcDestroyProgram(place: *mut *mut c_void) { put(place, std::ptr::null_mut()) }

    /// Any program compiles.
    fn nvrtcCompileProgram(_program: *mut c_void, _count: c_int, _options: *const c_void) {
        Ok(())
    }

    /// A name to look up later.
    fn nvrtcAddNameExpression(_program: *mut c_void, _name: *const c_char) { Ok(()) }

    /// That name in the compiled program.
    fn nvrtcGetLoweredName(
        _program: *mut c_void,
        name: *const c_char,
        lowered: *mut *const c_char,
    ) {
        put(lowered, name)
    }

    /// Bytes of the compiled program.
    fn nvrtcGetCUBINSize(_program: *mut c_void, size: *mut usize) { put(size, 1) }

    /// The compiled program.
    fn nvrtcGetCUBIN(_program: *mut c_void, code: *mut c_char) { put(code, 0) }

    /// Bytes of the compiled program as text.
    fn nvrtcGetPTXSize(_program: *mut c_void, size: *mut usize) { put(size, 1) }

    /// The compiled program as text.
    fn nvrtcGetPTX(_program: *mut c_void, code: *mut c_char) { put(code, 0) }

    /// Bytes of the compiler's messages.
    fn nvrtcGetProgramLogSize(_program: *mut c_void, size: *mut usize) { put(size, 1) }

    /// The compiler's messages.
    fn nvrtcGetProgramLog(_program: *mut c_void, text: *mut c_char) { put(text, 0) }
}

/// Whether the function of that name has an answer of its own here.
#[cfg(test)]
fn is_answered(name: &str) -> bool {
    let all = [ENTRIES, crate::communication::ENTRIES];
    all.into_iter().flatten().any(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = include_str!("libraries/names.txt");

    #[test]
    fn no_function_is_there_twice() {
        let names = NAMES
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with(['#', '[']))
            .map(|line| line.trim_start_matches('!'))
            .map(|line| line.split(' ').next().unwrap_or_default());
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            assert!(seen.insert(name), "{name} is listed twice");
            assert!(!is_answered(name), "{name} has an answer and is listed");
        }
        assert!(seen.contains("cublasGemmEx"));
    }

    #[test]
    fn results_that_are_read_are_written_or_refused() {
        for line in NAMES.lines().filter(|line| !line.is_empty()) {
            let asks = ["Size", "Create", "Get", "Find", "Init"];
            let harmless = line.starts_with(['!', '#', '['])
                || line.contains(' ')
                || [
                    "cublasLtMatmulAlgoInit",
                    "cufftSetWorkArea",
                    "cusparseCreateIdentityPermutation",
                ]
                .contains(&line);
            assert!(
                harmless || !asks.iter().any(|word| line.contains(word)),
                "{line} would succeed without a result"
            );
        }
    }

    #[test]
    fn answers_of_the_list_can_be_written() {
        let mut count = 0;
        for line in NAMES.lines().filter(|line| !line.starts_with(['#', '['])) {
            let Some((name, text)) = line.split_once(' ') else {
                continue;
            };
            count += 1;
            let mut room = [u64::MAX; 2];
            let answer = Written::of(text);
            let place = room.as_mut_ptr().expose_provenance();
            // Every other argument is an extent of 10, with another number above it.
            let mut arguments = [10 | 7 << 32; 24];
            arguments[answer.argument] = place;
            arguments[answer.argument + 1] = place + 8;
            if answer.what == "elements" && answer.extents[2].is_some() {
                arguments[answer.extents[2].unwrap()] = 3;
            }
            assert_eq!(answer.write(&arguments), Ok(()), "{name}");
            assert_ne!(room[0], u64::MAX, "{name} wrote nothing");
        }
        assert!(count > 70);
    }

    #[test]
    fn scratch_memory_grows_with_the_problem() {
        let wanted = |text: &str, extents| Written::of(text).elements(extents);
        assert_eq!(
            wanted("5 elements panel 1 2", [Some(10), Some(20), None]),
            Ok(1920)
        );
        assert_eq!(
            wanted("5 elements panel 1", [Some(10), None, None]),
            Ok(1280)
        );
        assert_eq!(
            wanted("7 elements eigen 3", [Some(10), None, None]),
            Ok(261)
        );
        assert_eq!(
            wanted("7 elements eigen 3 9", [Some(10), Some(4), None]),
            Ok(1044)
        );
        let singular = wanted("3 elements singular 1 2", [Some(10), Some(20), None]);
        assert_eq!(singular, Ok(490));
    }

    #[test]
    fn one_algorithm_is_found() {
        let mut results = [Heuristic {
            workspace: 1,
            ..Heuristic::default()
        }; 2];
        let mut found = -1;
        let none = std::ptr::null_mut();
        // SAFETY: room for as many results as are wanted.
        let code = unsafe {
            cublasLtMatmulAlgoGetHeuristic(
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                2,
                results.as_mut_ptr(),
                &raw mut found,
            )
        };
        assert_eq!((code, found), (0, 1));
        assert_eq!(results[0].workspace, 0);
        assert_eq!(results[1].workspace, 1);
        assert_eq!(size_of::<Heuristic>(), 96);
    }
}
