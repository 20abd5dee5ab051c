//! The modules in which calls lie: programs and libraries as they lie in memory.
//!
//! The C library finds the module of an address without a lock (`_dl_find_object`, since 2.35), as it
//! does for exceptions. The first time that a module is met it is written to the file, with its build
//! id, so that addresses can be named when the process is long gone.
//!
//! *Invariant:* a module's entry stands in the file before every stack with a call in it.

use core::ffi::{CStr, c_char, c_int, c_ulonglong, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use core::{ptr, slice};

use crate::kernel;
use crate::layout::{self, Header, MODULE, PACKED};
use crate::store;

/// Modules that are known; of more, some are written again and again.
const MOST: usize = 1024;
/// Longest path that is written, bytes.
const PATH_BYTES: usize = 1000;
/// Longest build id that is written, bytes.
const ID_BYTES: usize = 64;
/// Words before the bytes of an entry, its head among them.
const BEFORE: usize = 6;
/// Words of the longest entry.
const MOST_WORDS: usize = BEFORE + (PATH_BYTES + ID_BYTES).div_ceil(PACKED);

/// First addresses of the modules in the file; 0 for none.
static KNOWN: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
/// Where this library begins and ends, once it is known.
static OWN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// `struct dl_find_object` of the C library.
#[repr(C)]
pub(super) struct Found {
    flags: c_ulonglong,
    start: *mut c_void,
    end: *mut c_void,
    link_map: *const LinkMap,
    frames: *mut c_void,
    /// Some architectures have two fields more; all have reserved ones.
    reserved: [c_ulonglong; 9],
}

/// The beginning of `struct link_map`.
#[repr(C)]
pub(super) struct LinkMap {
    above: u64,
    name: *const c_char,
}

pub(super) type Finder = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;

/// The function of the C library: null until it is looked for, and where there is none.
static FINDER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static LOOKED_FOR: AtomicBool = AtomicBool::new(false);

/// Looks for the function, once. No lock of this library may be held: a loader that does not find it
/// allocates.
pub(super) fn look_for_finder() {
    if !LOOKED_FOR.swap(true, Ordering::Relaxed) {
        // SAFETY: a string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        FINDER.store(found, Ordering::Release);
    }
}

/// The function of the C library, if it has it.
#[inline(always)]
pub(super) fn finder() -> Option<Finder> {
    let found = FINDER.load(Ordering::Acquire);
    // SAFETY: null or a function of this type.
    unsafe { core::mem::transmute::<*mut c_void, Option<Finder>>(found) }
}

/// A module in memory.
#[derive(Clone, Copy)]
pub(super) struct Module {
    start: u64,
    end: u64,
    /// What addresses in memory are above those in the file.
    above: u64,
    name: *const c_char,
    /// Where the index of its frames lies (`.eh_frame_hdr`); 0 for nowhere.
    pub(super) frames: u64,
}

impl Module {
    fn holding(address: u64) -> Option<Module> {
        let finder = finder()?;
        // SAFETY: all-zero bytes are a valid value of this plain structure.
        let mut found: Found = unsafe { core::mem::zeroed() };
        // SAFETY: any address may be asked for, and `found` is a place at least as large as the answer.
        if unsafe { finder(address as *mut c_void, &raw mut found) } != 0
            || found.link_map.is_null()
        {
            return None;
        }
        // SAFETY: the loader's own record of a module that is loaded: it holds the address of a call
        // under way.
        let map = unsafe { &*found.link_map };
        Some(Module {
            start: found.start.addr() as u64,
            end: found.end.addr() as u64,
            above: map.above,
            name: map.name,
            frames: found.frames.addr() as u64,
        })
    }

    /// The bytes from `address` to the end of the segment that holds it.
    pub(super) fn bytes_from(&self, address: u64) -> Option<&'static [u8]> {
        let holding = self.headers().iter().find(|header| {
            let start = self.above.wrapping_add(header.p_vaddr);
            header.p_type == libc::PT_LOAD
                && header.p_flags & libc::PF_R != 0
                && address.wrapping_sub(start) < header.p_memsz
        })?;
        let start = self.above.wrapping_add(holding.p_vaddr);
        let length = holding.p_memsz - address.wrapping_sub(start);
        // SAFETY: within a segment that the loader has mapped readable. What is read of it, tables of
        // frames and notes, nobody writes to. The module stays while a call in it is under way.
        Some(unsafe { slice::from_raw_parts(address as *const u8, length as usize) })
    }

    /// The program headers: of the program where the kernel says they are, as what is known to hold an
    /// address may be one segment of it; of a library where its file begins, if they lie there.
    fn headers(&self) -> &'static [libc::Elf64_Phdr] {
        // SAFETY: the loader's own name of a module that is loaded, and it is not null.
        if !self.name.is_null() && unsafe { *self.name } == 0 {
            // SAFETY: these calls only look, and the headers stay where they are.
            return unsafe {
                let (place, count) = (
                    libc::getauxval(libc::AT_PHDR),
                    libc::getauxval(libc::AT_PHNUM),
                );
                match place {
                    0 => &[],
                    place => {
                        slice::from_raw_parts(place as *const libc::Elf64_Phdr, count as usize)
                    }
                }
            };
        }
        let file = self.start as *const libc::Elf64_Ehdr;
        // SAFETY: the first page of a library is mapped readable, and begins with its file.
        let header = unsafe { file.read_unaligned() };
        let bytes = usize::from(header.e_phnum) * size_of::<libc::Elf64_Phdr>();
        let end = header.e_phoff.saturating_add(bytes as u64);
        if !header.e_ident.starts_with(b"\x7fELF") || end > 4096 || header.e_phoff & 7 != 0 {
            return &[];
        }
        // SAFETY: on the first page, as just seen, and nobody writes there.
        unsafe {
            slice::from_raw_parts(
                (self.start + header.e_phoff) as *const libc::Elf64_Phdr,
                usize::from(header.e_phnum),
            )
        }
    }

    /// The build id; empty if there is none.
    fn build_id(&self) -> &'static [u8] {
        let notes = self
            .headers()
            .iter()
            .filter(|header| header.p_type == libc::PT_NOTE);
        for header in notes {
            let start = self.above.wrapping_add(header.p_vaddr);
            let bytes = self.bytes_from(start).unwrap_or(&[]);
            let mut notes = bytes.get(..header.p_memsz as usize).unwrap_or(&[]);
            while let Some((kind, name, text, rest)) = note(notes) {
                if kind == 3 && name == b"GNU\0" {
                    return text;
                }
                notes = rest;
            }
        }
        &[]
    }
}

/// A note's kind, name and text, and what follows it.
type Note<'a> = (u32, &'a [u8], &'a [u8], &'a [u8]);

/// The first note.
fn note(bytes: &[u8]) -> Option<Note<'_>> {
    let word = |at: usize| {
        let word = bytes.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*word))
    };
    let (name, text, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
    let text_at = 12 + name.next_multiple_of(4);
    let rest_at = text_at.checked_add(text)?.next_multiple_of(4);
    Some((
        kind,
        bytes.get(12..12 + name)?,
        bytes.get(text_at..text_at + text)?,
        bytes.get(rest_at..).unwrap_or(&[]),
    ))
}

/// The module that holds the call at `address`. If it is met for the first time, it is written.
///
/// # Safety
/// `header` is mapped, and the call under way.
pub(super) unsafe fn find(header: *mut Header, address: u64) -> Option<Module> {
    let module = Module::holding(address)?;
    let start = module.start;
    let mut free = None;
    for place in &KNOWN {
        match place.load(Ordering::Acquire) {
            known if known == start => return Some(module),
            0 => {
                free = Some(place);
                break;
            }
            _ => {}
        }
    }
    // SAFETY: the caller's promise.
    unsafe { write(header, &module) };
    if let Some(free) = free {
        // Lost where another thread was faster: it is written again then.
        let _ = free.compare_exchange(0, start, Ordering::Release, Ordering::Relaxed);
    }
    Some(module)
}

/// Forgets all modules but this library.
pub(super) fn forget() {
    for place in &KNOWN {
        place.store(0, Ordering::Relaxed);
    }
}

/// Where this library lies.
#[inline(always)]
pub(super) fn own() -> Range<u64> {
    let [start, end] = &OWN;
    let known = end.load(Ordering::Acquire);
    if known == 0 {
        return find_own();
    }
    start.load(Ordering::Relaxed)..known
}

#[cold]
fn find_own() -> Range<u64> {
    let Some(module) = Module::holding(find_own as *const () as u64) else {
        return 0..0;
    };
    let [start, end] = &OWN;
    start.store(module.start, Ordering::Relaxed);
    end.store(module.end, Ordering::Release);
    module.start..module.end
}

/// Writes the entry of a module.
///
/// # Safety
/// `header` is mapped.
#[cold]
#[inline(never)]
unsafe fn write(header: *mut Header, module: &Module) {
    let mut text = [0u8; ID_BYTES + PATH_BYTES];
    let id = module.build_id();
    let id = id.get(..ID_BYTES.min(id.len())).unwrap_or(&[]);
    let mut length = 0;
    let mut add = |bytes: &[u8]| {
        for (place, &byte) in text.iter_mut().skip(length).zip(bytes) {
            *place = byte;
            length += 1;
        }
    };
    add(id);
    if !module.name.is_null() {
        // SAFETY: the loader's own name of a module that is loaded.
        let name = unsafe { CStr::from_ptr(module.name) }.to_bytes();
        if name.contains(&b'/') && !name.starts_with(b"/") {
            let mut directory = [0u8; PATH_BYTES];
            let bytes = kernel::working_directory(&mut directory);
            add(directory.get(..bytes.saturating_sub(1)).unwrap_or(&[]));
            add(b"/");
        }
        add(name);
    }
    let path = length - id.len();
    let mut words = [0u64; MOST_WORDS];
    let count = BEFORE + length.div_ceil(PACKED);
    let first = [
        layout::entry(MODULE, count - 1),
        0,
        layout::more(module.start),
        layout::more(module.end),
        layout::more(module.above),
        layout::more(id.len() as u64 | (path as u64) << 16),
    ];
    let packed = text.chunks(PACKED).map(|bytes| {
        let word = bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte));
        layout::more(word)
    });
    for (place, word) in words.iter_mut().zip(first.into_iter().chain(packed)) {
        *place = word;
    }
    // SAFETY: the caller's promise.
    unsafe { store::put_entry(header, words.get(..count).unwrap_or(&[])) };
}
