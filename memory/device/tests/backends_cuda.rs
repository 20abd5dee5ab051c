//! CUDA: on the strict software model of the driver's calls, or on a GPU.
//!
//! By default the model stands in for the driver, also where there is one. On a GPU:
//!
//!     METES_CUDA=1 cargo test -p metes-device --test backends_cuda -- --nocapture
//!
//! Every test says on what it ran.
#![cfg(all(feature = "cuda", target_os = "linux"))]

#[path = "it/common/backends.rs"]
mod common;

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use common::{alone, child, conforms, is_child, refused_in_a_fork, without};
use libloading::Library;
use metes_device::backend::cuda::{CUstream, Cuda, Streams};
use metes_device::backend::timeline::{self, Stream, Timeline};
use metes_device::backend::{Backend, Error, Memory};
use metes_dry_device::library::Library as Model;
use metes_random::Random;

const PAGE: u64 = 2 << 20;
/// The model's device.
const PAGES: u64 = 64;

/// What the driver is in this test.
struct Driver {
    /// `None` on a GPU.
    model: Option<Model>,
    /// One test at a time: a process has one device.
    _alone: MutexGuard<'static, ()>,
}

impl Driver {
    fn new() -> Self {
        let alone = alone();
        let model = if std::env::var_os("METES_CUDA").is_some_and(|on| on == "1") {
            None
        } else {
            let model = Model::load().unwrap_or_else(|error| panic!("{error}"));
            model.open(PAGES * PAGE, true).unwrap();
            Some(model)
        };
        Driver {
            model,
            _alone: alone,
        }
    }

    fn open(&self) -> Cuda {
        let cuda = Cuda::open(0).unwrap_or_else(|error| panic!("{error}"));
        let name = cuda.device_name().unwrap();
        match self.model {
            Some(_) => {
                assert!(name.contains("dry"), "not the model, but {name}");
                println!("ran on the model of the driver");
            }
            None => println!("ran on a device: {name}"),
        }
        cuda
    }

    /// Nothing of the backend may be left on the device.
    fn check_empty(&self) {
        if let Some(model) = self.model {
            let left = model.figures().unwrap();
            assert_eq!(
                (left.used, left.reserved, left.mapped, left.handles),
                (0, 0, 0, 0)
            );
        }
    }
}

#[test]
fn answers_as_it_must() {
    let driver = Driver::new();
    let mut cuda = driver.open();
    let answers = [
        "reserve: no addresses",
        "create: out of memory",
        "create: granularity",
        "map: done",
        "map: mapped",
        "map: in use",
        "map: not reserved",
        "unmap: done",
        "unmap: not mapped",
        "unreserve: mapped",
        "release: in use",
        "release: done",
    ];
    // Other programs may use a GPU.
    conforms(&mut cuda, 20, 24, driver.model.is_some(), &answers);
    driver.check_empty();
}

/// Copies cross pages of different memories; a memory keeps its bytes wherever it is mapped.
#[test]
fn memory_keeps_its_bytes_where_it_is_mapped() {
    let driver = Driver::new();
    let mut cuda = driver.open();
    let page = cuda.granularity();
    let range = cuda.reserve(8 * page).unwrap();
    let memories = [(); 4].map(|()| cuda.create(page).unwrap());
    for (place, memory) in memories.iter().enumerate() {
        cuda.map(range.start + place as u64 * page, *memory)
            .unwrap();
    }
    let blank = vec![0x55; 4 * page as usize];
    cuda.write(range.start, &blank).unwrap();
    let bytes: Vec<u8> = (0..page + 999).map(|place| (place % 251) as u8).collect();
    let at = page / 2 + 3;
    cuda.write(range.start + at, &bytes).unwrap();
    let mut expected = blank;
    expected[at as usize..][..bytes.len()].copy_from_slice(&bytes);
    let mut found = vec![0; expected.len()];
    cuda.read(range.start, &mut found).unwrap();
    assert!(found == expected, "bytes or their neighbours differ");

    // The two pages that the copy crossed change places, and one goes to another end.
    for place in 0..4 {
        cuda.unmap(range.start + place * page, page).unwrap();
    }
    for (place, memory) in [(0, 1), (1, 0), (7, 2)] {
        cuda.map(range.start + place * page, memories[memory])
            .unwrap();
    }
    let mut one = vec![0; page as usize];
    for (place, memory) in [(0, 1), (1, 0), (7, 2)] {
        cuda.read(range.start + place * page, &mut one).unwrap();
        assert!(one == expected[memory * page as usize..][..page as usize]);
    }
    drop(cuda);
    driver.check_empty();
}

/// Runs in a process of its own: a fault may end the driver's context.
#[test]
fn addresses_without_memory_fault() {
    if !is_child() {
        child("addresses_without_memory_fault", &[]);
        return;
    }
    let driver = Driver::new();
    let mut cuda = driver.open();
    let page = cuda.granularity();
    let range = cuda.reserve(4 * page).unwrap();
    let memory = cuda.create(page).unwrap();
    cuda.map(range.start, memory).unwrap();
    assert!(matches!(
        cuda.write(range.end() - 1, &[1, 2]),
        Err(Error::NotReserved { .. })
    ));
    // Half on mapped memory, half beyond.
    let error = cuda.write(range.start + page - 1, &[1, 2]).unwrap_err();
    println!("{error}");
    let Error::Device { call, text, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(call, "cuMemcpyHtoD");
    assert!(text.starts_with("CUDA_ERROR_"), "{text}");
}

#[test]
fn two_users_of_a_device_see_each_other() {
    let driver = Driver::new();
    let mut first = driver.open();
    let mut second = Cuda::open(0).unwrap();
    let page = first.granularity();
    let free = first.capacity().unwrap().free / page * page;
    let half = free / page / 2 * page;
    let memory = first.create(half).unwrap();
    let error = second.create(free).unwrap_err();
    let Error::OutOfMemory {
        wanted, free: left, ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(wanted, free);
    assert!(left <= free - half, "{left} of {free}");
    // One's memory is not the other's.
    assert_eq!(second.release(memory), Err(Error::NoMemory(memory)));
    drop(first);
    let again = second.create(half).unwrap();
    second.release(again).unwrap();
    drop(second);
    driver.check_empty();
}

#[test]
fn impossible_requests_are_refused() {
    let driver = Driver::new();
    let mut cuda = driver.open();
    let page = cuda.granularity();
    assert!(page.is_power_of_two());
    assert_eq!(cuda.create(0), Err(Error::Empty("memory")));
    assert_eq!(
        cuda.create(page + 1),
        Err(Error::Granularity {
            what: "memory",
            value: page + 1,
            granularity: page
        })
    );
    let total = cuda.capacity().unwrap().total;
    let beyond = (total + 1).next_multiple_of(page);
    assert!(matches!(
        cuda.create(beyond),
        Err(Error::OutOfMemory { wanted, .. }) if wanted == beyond
    ));
    let all = 1 << 62;
    assert_eq!(cuda.reserve(all), Err(Error::Addresses { wanted: all }));
    assert_eq!(cuda.release(Memory(9)), Err(Error::NoMemory(Memory(9))));
    let error = Cuda::open(1000).unwrap_err();
    assert!(error.to_string().contains("choose one of them"), "{error}");
}

/// Without a driver, with one that is too old, and with one that finds no device: libraries that
/// are made here and found before any other.
#[test]
fn what_is_not_there_is_said() {
    if is_child() {
        return println!("{}", Cuda::open(0).unwrap_err());
    }
    let test = "what_is_not_there_is_said";
    let broken = without("libcuda.so.1");
    let said = child(test, &[("LD_LIBRARY_PATH", &broken)]);
    assert!(said.contains("the CUDA driver (libcuda.so.1:"), "{said}");
    assert!(said.contains("install NVIDIA's driver"), "{said}");
    let no_device = 100;
    let mut functions = FUNCTIONS.to_vec();
    let said = child(
        test,
        &[("LD_LIBRARY_PATH", &answering(no_device, &functions))],
    );
    assert!(
        said.contains("a GPU that CUDA can use is not there"),
        "{said}"
    );
    let stub_library = 34;
    let said = child(
        test,
        &[("LD_LIBRARY_PATH", &answering(stub_library, &functions))],
    );
    assert!(said.contains("the toolkit's stub"), "{said}");
    functions.retain(|name| *name != "cuMemCreate");
    let said = child(
        test,
        &[("LD_LIBRARY_PATH", &answering(no_device, &functions))],
    );
    assert!(
        said.contains("cuMemCreate in the CUDA driver is not there"),
        "{said}"
    );
    assert!(said.contains("update the driver"), "{said}");
}

/// What a driver must have.
const FUNCTIONS: [&str; 31] = [
    "cuInit",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuCtxSynchronize",
    "cuMemGetInfo_v2",
    "cuMemGetAllocationGranularity",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemSetAccess",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuStreamWaitEvent",
    "cuStreamIsCapturing",
    "cuThreadExchangeStreamCaptureMode",
];

/// The directory of a `libcuda.so.1` whose functions all answer the same.
fn answering(code: i32, functions: &[&str]) -> String {
    let directory = format!(
        "{}/answering-{code}-{}",
        env!("CARGO_TARGET_TMPDIR"),
        functions.len()
    );
    std::fs::create_dir_all(&directory).unwrap();
    let line = |name: &&str| format!("int {name}(void) {{ return {code}; }}\n");
    let source: String = functions.iter().map(line).collect();
    let file = format!("{directory}/driver.c");
    std::fs::write(&file, source).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(format!("{directory}/libcuda.so.1"))
        .arg(&file)
        .status()
        .expect("a C compiler");
    assert!(built.success());
    directory
}

/// When the driver fails, nothing has changed for the backend: it can be asked again. The model's
/// device is replaced under the backend, so that the driver knows nothing of what it has.
#[test]
fn a_failing_driver_changes_nothing() {
    let driver = Driver::new();
    let Some(model) = driver.model else {
        println!("not tried on a device: it cannot be made to fail");
        return;
    };
    let mut cuda = driver.open();
    let page = cuda.granularity();
    let range = cuda.reserve(4 * page).unwrap();
    let [mapped, unmapped] = [(); 2].map(|()| cuda.create(page).unwrap());
    cuda.map(range.start, mapped).unwrap();
    model.open(PAGES * PAGE, true).unwrap();
    let _another = Cuda::open(0).unwrap();
    let fails = |error: Option<Error>| {
        let device = matches!(error, Some(Error::Device { .. }));
        assert!(device, "{error:?}");
    };
    for _ in 0..2 {
        // The second time the books would refuse what the first time had been entered.
        fails(cuda.map(range.start + page, unmapped).err());
        fails(cuda.unmap(range.start, page).err());
        fails(cuda.release(unmapped).err());
    }
    assert!(matches!(cuda.unreserve(range), Err(Error::Mapped { .. })));
    assert_eq!(cuda.release(mapped), Err(Error::InUse(mapped)));
}

/// A backend may move to another thread, whose context is left as it was.
#[test]
fn any_thread_may_use_it() {
    let driver = Driver::new();
    let mut cuda = driver.open();
    let moved = std::thread::spawn(move || {
        let page = cuda.granularity();
        let range = cuda.reserve(page).unwrap();
        let memory = cuda.create(page).unwrap();
        cuda.map(range.start, memory).unwrap();
        cuda.write(range.start, b"from another thread").unwrap();
        let calls = Calls::load();
        let mut current = ptr::dangling_mut();
        // SAFETY: a place for a context.
        assert_eq!(unsafe { (calls.cuCtxGetCurrent)(&raw mut current) }, 0);
        assert!(current.is_null(), "a context is left current");
        (cuda, range)
    });
    let (cuda, range) = moved.join().unwrap();
    let mut found = [0; 19];
    cuda.read(range.start, &mut found).unwrap();
    assert_eq!(&found, b"from another thread");
}

#[test]
fn a_fork_is_refused() {
    let driver = Driver::new();
    drop(refused_in_a_fork(driver.open()));
    driver.check_empty();
}

#[test]
fn streams_complete_their_tickets_in_order() {
    let driver = Driver::new();
    let cuda = driver.open();
    let calls = Calls::load();
    calls.make_current();
    let [first, second] = [(); 2].map(|()| calls.stream());
    let mut streams = cuda.streams(2).unwrap();
    let [a, b] = [first, second].map(|stream| join(&mut streams, stream));
    assert_eq!(
        join(&mut streams, first),
        a,
        "a known stream keeps its name"
    );
    assert_eq!(streams.completed(a), Ok(0));

    let gate = Gate::close(&driver, &calls, first);
    for ticket in 1..=20 {
        streams.mark(a, ticket).unwrap();
    }
    streams.order(b, a, 20).unwrap();
    streams.mark(b, 1).unwrap();
    assert_eq!(streams.completed(a), Ok(0), "nothing can have run");
    assert_eq!(
        streams.completed(b),
        Ok(0),
        "the other stream waits for the first"
    );
    assert_eq!(
        streams.mark(a, 20),
        Err(timeline::Error::Order {
            stream: a,
            ticket: 20,
            last: 20
        })
    );
    assert_eq!(
        streams.wait(b, 2),
        Err(timeline::Error::Unmarked {
            stream: b,
            ticket: 2,
            last: 1
        })
    );
    gate.open();
    streams.wait(b, 1).unwrap();
    assert_eq!(streams.completed(b), Ok(1));
    assert_eq!(
        streams.completed(a),
        Ok(20),
        "the second ran behind the first"
    );

    // Many marks take no further events.
    let made = driver.model.map(|model| model.calls(c"cuEventCreate"));
    for ticket in 21..=2000 {
        streams.mark(a, ticket).unwrap();
    }
    streams.wait(a, 2000).unwrap();
    assert_eq!(streams.completed(a), Ok(2000));
    assert_eq!(
        driver.model.map(|model| model.calls(c"cuEventCreate")),
        made
    );

    streams.leave(a).unwrap();
    assert_eq!(streams.mark(a, 2001), Err(timeline::Error::NoStream(a)));
    calls.destroy(first);
    let third = calls.stream();
    let c = join(&mut streams, third);
    assert_eq!(c.slot(), a.slot());
    assert_eq!(streams.completed(c), Ok(0));
    drop(streams);
    for stream in [second, third] {
        calls.destroy(stream);
    }
}

/// Random marks, orders and holds on three streams, against a naive account of what has run.
#[test]
fn streams_report_only_what_has_run() {
    const STREAMS: usize = 3;
    let driver = Driver::new();
    let Some(model) = driver.model else {
        println!("not tried on a device: its streams cannot be stopped and looked into");
        return;
    };
    let cuda = driver.open();
    let calls = Calls::load();
    calls.make_current();
    let raw = [(); STREAMS].map(|()| calls.stream());
    let mut random = Random::new(1);
    let mut exact = 0;
    for _ in 0..200 {
        let mut streams = cuda.streams(STREAMS).unwrap();
        let names = raw.map(|stream| join(&mut streams, stream));
        // Of each stream: its work in order, how much of that has run, and whether it is held.
        let mut work: [Vec<Task>; STREAMS] = Default::default();
        let mut run = [0; STREAMS];
        let mut held = [false; STREAMS];
        for ticket in 1..200 {
            let one = random.remainder(STREAMS as u64) as usize;
            match random.remainder(8) {
                0..4 => {
                    streams.mark(names[one], ticket).unwrap();
                    work[one].push(Task::Mark(ticket));
                }
                4 => {
                    let other = random.remainder(STREAMS as u64) as usize;
                    let marked = last(&work[other]);
                    if marked > 0 && other != one {
                        let behind = 1 + random.remainder(marked);
                        streams.order(names[one], names[other], behind).unwrap();
                        // The point that stands for the ticket is what is waited for.
                        work[one].push(Task::Behind(other, behind));
                    }
                }
                5 | 6 if held[one] => {
                    model.release(raw[one].cast()).unwrap();
                    held[one] = false;
                }
                5 => {
                    model.hold(raw[one].cast()).unwrap();
                    held[one] = true;
                }
                _ => {}
            }
            advance(&work, &mut run, held);
            for (stream, name) in names.iter().enumerate() {
                let truth = last(&work[stream][..run[stream]]);
                let completed = streams.completed(*name).unwrap();
                assert!(completed <= truth, "{completed} reported, {truth} has run");
                exact += usize::from(completed == truth);
            }
        }
        for stream in 0..STREAMS {
            if held[stream] {
                model.release(raw[stream].cast()).unwrap();
            }
        }
        for (stream, name) in names.iter().enumerate() {
            assert_eq!(streams.completed(*name), Ok(last(&work[stream])));
        }
    }
    // Little is lost by knowing eight points of a stream.
    assert!(exact > 200 * 199 * STREAMS * 9 / 10, "{exact}");
    for stream in raw {
        calls.destroy(stream);
    }
}

#[derive(Clone, Copy)]
enum Task {
    Mark(u64),
    /// What follows runs behind a ticket of another stream.
    Behind(usize, u64),
}

fn last(work: &[Task]) -> u64 {
    let mark = |task: &Task| match task {
        Task::Mark(ticket) => Some(*ticket),
        Task::Behind(..) => None,
    };
    work.iter().filter_map(mark).next_back().unwrap_or(0)
}

/// Runs what can run at the earliest: a device may be later, but never earlier.
fn advance<const N: usize>(work: &[Vec<Task>; N], run: &mut [usize; N], held: [bool; N]) {
    loop {
        let mut more = false;
        for stream in 0..N {
            while !held[stream] && run[stream] < work[stream].len() {
                if let Task::Behind(other, ticket) = work[stream][run[stream]]
                    && last(&work[other][..run[other]]) < ticket
                {
                    break;
                }
                run[stream] += 1;
                more = true;
            }
        }
        if !more {
            return;
        }
    }
}

/// A stream that a program destroyed without leaving it. Only the model promises what its driver
/// does then, so on a GPU this is not tried.
#[test]
fn destroyed_streams_are_refused() {
    let driver = Driver::new();
    if driver.model.is_none() {
        println!("not tried on a device: the driver promises nothing about destroyed streams");
        return;
    }
    let cuda = driver.open();
    let calls = Calls::load();
    calls.make_current();
    let [first, second] = [(); 2].map(|()| calls.stream());
    let mut streams = cuda.streams(2).unwrap();
    let [a, b] = [first, second].map(|stream| join(&mut streams, stream));
    streams.mark(a, 1).unwrap();
    calls.destroy(first);
    let gone = Err(timeline::Error::NoStream(a));
    assert_eq!(streams.mark(a, 2), gone);
    assert_eq!(streams.order(a, b, 0).map(drop), gone);
    // What was marked before is known to complete.
    assert_eq!(streams.completed(a), Ok(1));
    streams.leave(a).unwrap();
    // SAFETY: the model knows which streams there are.
    let unknown = unsafe { streams.join(first) };
    assert!(
        matches!(unknown, Err(timeline::Error::Backend(_))),
        "{unknown:?}"
    );
    drop(streams);
    calls.destroy(second);
}

/// Captured streams take no marks; other streams go on without disturbing the capture.
#[test]
fn captured_streams_are_refused_and_not_disturbed() {
    let driver = Driver::new();
    let mut cuda = driver.open();
    let calls = Calls::load();
    calls.make_current();
    let [first, second] = [(); 2].map(|()| calls.stream());
    let mut streams = cuda.streams(2).unwrap();
    let [a, b] = [first, second].map(|stream| join(&mut streams, stream));
    streams.mark(a, 1).unwrap();
    streams.mark(b, 1).unwrap();
    calls.begin_capture(first);
    assert_eq!(streams.capturing(a), Ok(true));
    assert_eq!(streams.capturing(b), Ok(false));
    assert_eq!(streams.mark(a, 2), Err(timeline::Error::Capturing(a)));
    assert_eq!(streams.order(a, b, 1), Err(timeline::Error::Capturing(a)));
    streams.wait(b, 1).unwrap();
    assert_eq!(streams.completed(b), Ok(1));
    streams.wait(a, 1).unwrap();
    assert_eq!(streams.completed(a), Ok(1), "what was marked before runs");
    // Memory is taken and mapped meanwhile, too.
    let page = cuda.granularity();
    let range = cuda.reserve(page).unwrap();
    let memory = cuda.create(page).unwrap();
    cuda.map(range.start, memory).unwrap();
    assert_eq!(calls.end_capture(first), 0, "the capture was disturbed");
    streams.mark(a, 2).unwrap();
    streams.wait(a, 2).unwrap();
    drop(streams);
    for stream in [first, second] {
        calls.destroy(stream);
    }
}

fn join(streams: &mut Streams, stream: CUstream) -> Stream {
    // SAFETY: the tests destroy streams after they are left, but for those of the model.
    unsafe { streams.join(stream) }.unwrap()
}

/// Holds a stream's work back until it is opened, so that no clock decides.
enum Gate {
    Model(Model, CUstream),
    Device(Arc<(Mutex<bool>, Condvar)>),
}

impl Gate {
    fn close(driver: &Driver, calls: &Calls, stream: CUstream) -> Gate {
        if let Some(model) = driver.model {
            model.hold(stream.cast()).unwrap();
            return Gate::Model(model, stream);
        }
        extern "C" fn wait(data: *mut c_void) {
            // SAFETY: the count that `close` gave away.
            let gate = unsafe { Arc::from_raw(data.cast::<(Mutex<bool>, Condvar)>()) };
            let open = gate.0.lock().unwrap();
            drop(gate.1.wait_while(open, |open| !*open).unwrap());
        }
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let data = Arc::into_raw(Arc::clone(&gate)).cast_mut().cast();
        // SAFETY: the function takes the count back that it is given.
        let code = unsafe { (calls.cuLaunchHostFunc)(stream, wait, data) };
        assert_eq!(code, 0);
        Gate::Device(gate)
    }

    fn open(self) {
        match self {
            Gate::Model(model, stream) => model.release(stream.cast()).unwrap(),
            Gate::Device(gate) => {
                *gate.0.lock().unwrap() = true;
                gate.1.notify_all();
            }
        }
    }
}

type Handle = *mut c_void;

/// What the tests themselves ask of the driver, model or not.
#[allow(non_snake_case, reason = "names of the driver's interface")]
struct Calls {
    cuDevicePrimaryCtxRetain: unsafe extern "C" fn(*mut Handle, c_int) -> c_int,
    cuCtxSetCurrent: unsafe extern "C" fn(Handle) -> c_int,
    cuCtxGetCurrent: unsafe extern "C" fn(*mut Handle) -> c_int,
    cuStreamCreate: unsafe extern "C" fn(*mut CUstream, c_uint) -> c_int,
    cuStreamDestroy: unsafe extern "C" fn(CUstream) -> c_int,
    cuStreamBeginCapture: unsafe extern "C" fn(CUstream, c_uint) -> c_int,
    cuStreamEndCapture: unsafe extern "C" fn(CUstream, *mut Handle) -> c_int,
    cuLaunchHostFunc: unsafe extern "C" fn(CUstream, extern "C" fn(Handle), Handle) -> c_int,
}

impl Calls {
    fn load() -> Self {
        // SAFETY: it is loaded already; the types are those of the driver's header.
        unsafe {
            let library = Library::new("libcuda.so.1").unwrap();
            let calls = Calls {
                cuDevicePrimaryCtxRetain: *library.get("cuDevicePrimaryCtxRetain").unwrap(),
                cuCtxSetCurrent: *library.get("cuCtxSetCurrent").unwrap(),
                cuCtxGetCurrent: *library.get("cuCtxGetCurrent").unwrap(),
                cuStreamCreate: *library.get("cuStreamCreate").unwrap(),
                cuStreamDestroy: *library.get("cuStreamDestroy_v2").unwrap(),
                cuStreamBeginCapture: *library.get("cuStreamBeginCapture_v2").unwrap(),
                cuStreamEndCapture: *library.get("cuStreamEndCapture").unwrap(),
                cuLaunchHostFunc: *library.get("cuLaunchHostFunc").unwrap(),
            };
            // It stays loaded.
            core::mem::forget(library);
            calls
        }
    }

    /// Makes the primary context this thread's.
    fn make_current(&self) {
        let mut context = ptr::null_mut();
        // SAFETY: a place for a context.
        unsafe {
            assert_eq!((self.cuDevicePrimaryCtxRetain)(&raw mut context, 0), 0);
            assert_eq!((self.cuCtxSetCurrent)(context), 0);
        }
    }

    /// A stream that does not wait for the default stream.
    fn stream(&self) -> CUstream {
        let mut stream = ptr::null_mut();
        // SAFETY: a place for a stream.
        assert_eq!(unsafe { (self.cuStreamCreate)(&raw mut stream, 1) }, 0);
        stream
    }

    fn destroy(&self, stream: CUstream) {
        // SAFETY: a stream of the test.
        assert_eq!(unsafe { (self.cuStreamDestroy)(stream) }, 0);
    }

    fn begin_capture(&self, stream: CUstream) {
        // SAFETY: a stream of the test; 0 is the mode that forbids other threads most.
        assert_eq!(unsafe { (self.cuStreamBeginCapture)(stream, 0) }, 0);
    }

    fn end_capture(&self, stream: CUstream) -> c_int {
        let mut graph = ptr::null_mut();
        // SAFETY: a stream of the test, and a place for a graph.
        unsafe { (self.cuStreamEndCapture)(stream, &raw mut graph) }
    }
}
