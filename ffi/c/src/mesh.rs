//! One heap over many nodes for C: nodes share memory that the program gave.
//!
//! Invariants:
//! - addresses of the heap space are those of the memory, so a block's pointer is its address;
//! - every argument is checked before memory is changed.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{self, NonNull};

use metes_heap::Tlsf;
use metes_mesh::{BadFree, HeapSpace, Mesh, Node, NotMade, Refusal, Shared};

type Nodes = Shared<Tlsf<8>>;

/// `metes_mesh_status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshStatus {
    /// Done.
    Ok,
    /// Every heap was looked into, and none has room.
    Full,
    /// Others held a heap all the time.
    Busy,
    /// This node was taken for dead.
    Expelled,
    /// The address is outside of every heap.
    Outside,
    /// No block in use begins there.
    NotInUse,
    /// There cannot be so many nodes, such a node, so many bytes, or such an alignment.
    Invalid,
    /// A pointer is null or misaligned, or memory is too small.
    Memory,
    /// No such mesh was created in the memory.
    NotCreated,
}

impl From<Refusal> for MeshStatus {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Self::Full,
            // Of leases C has none.
            Refusal::Busy | Refusal::Unleased => Self::Busy,
            Refusal::Expelled => Self::Expelled,
        }
    }
}

impl From<BadFree> for MeshStatus {
    fn from(bad: BadFree) -> Self {
        match bad {
            BadFree::Outside => Self::Outside,
            BadFree::NotInUse => Self::NotInUse,
            BadFree::Expelled => Self::Expelled,
        }
    }
}

impl From<NotMade> for MeshStatus {
    fn from(error: NotMade) -> Self {
        match error {
            NotMade::TooSmall { .. } | NotMade::Misaligned { .. } => Self::Memory,
            NotMade::TooLarge | NotMade::NoMemory => Self::Invalid,
            NotMade::NotLaid => Self::NotCreated,
        }
    }
}

fn status<E: Into<MeshStatus>>(result: Result<(), E>) -> MeshStatus {
    result.map_or_else(E::into, |()| MeshStatus::Ok)
}

/// `metes_mesh_counts`.
#[repr(C)]
#[derive(Debug)]
pub struct MeshCounts {
    local: u64,
    remote: u64,
    full: u64,
    busy: u64,
    visits: u64,
    skips: u64,
    longest: u64,
    parked: u64,
    taken_over: u64,
}

/// A node that C holds a pointer to. It stays where it was made: the view refers to the nodes beside it.
#[derive(Debug)]
pub struct CNode {
    view: Option<Mesh<'static, Nodes>>,
    nodes: Nodes,
}

/// The space of a mesh in this memory, and what it takes; nothing where there can be none.
fn space(memory: *mut c_void, nodes: u32, bytes: usize) -> Option<(HeapSpace, Layout)> {
    let space = HeapSpace::new(memory.addr() as u64, bytes as u64, nodes).ok()?;
    Some((space, Nodes::layout(space).ok()?))
}

/// The same, if the memory suffices.
fn checked(
    memory: *mut c_void,
    size: usize,
    nodes: u32,
    bytes: usize,
) -> Result<(HeapSpace, NonNull<u8>), MeshStatus> {
    let (_, layout) = space(ptr::null_mut(), nodes, bytes).ok_or(MeshStatus::Invalid)?;
    let start = NonNull::new(memory.cast()).ok_or(MeshStatus::Memory)?;
    if size < layout.size() || !memory.addr().is_multiple_of(layout.align()) {
        return Err(MeshStatus::Memory);
    }
    let (space, _) = space(memory, nodes, bytes).ok_or(MeshStatus::Invalid)?;
    Ok((space, start))
}

/// `metes_mesh_size`.
///
/// # Safety
/// `align` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_mesh_size(nodes: u32, bytes: usize, align: *mut usize) -> usize {
    let Some((_, layout)) = space(ptr::null_mut(), nodes, bytes) else {
        return 0;
    };
    // SAFETY: the caller's contract.
    if let Some(align) = unsafe { align.as_mut() } {
        *align = layout.align();
    }
    layout.size()
}

/// `metes_mesh_create`.
///
/// # Safety
/// `memory` is null or points at `size` bytes, all zero, that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_mesh_create(
    memory: *mut c_void,
    size: usize,
    nodes: u32,
    bytes: usize,
) -> MeshStatus {
    match checked(memory, size, nodes, bytes) {
        Err(error) => error,
        // SAFETY: memory of this layout, by the caller's contract all zero and unused.
        Ok((space, memory)) => unsafe { Nodes::lay(space, memory, |_| Tlsf::new()) }
            .map_or_else(MeshStatus::from, |_| MeshStatus::Ok),
    }
}

/// `metes_mesh_node_size`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_mesh_node_size() -> usize {
    size_of::<CNode>()
}

/// `metes_mesh_join`.
///
/// # Safety
/// `storage` is null or points at `metes_mesh_node_size()` bytes that nothing else uses; `memory` is null or points at
/// `size` bytes in which a mesh was created at this address by this library, or zeros; `failed` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_mesh_join(
    storage: *mut c_void,
    memory: *mut c_void,
    size: usize,
    nodes: u32,
    bytes: usize,
    node: u32,
    failed: *mut MeshStatus,
) -> *mut CNode {
    let join = || {
        let place = storage.cast::<CNode>();
        if place.is_null() || !place.is_aligned() {
            return Err(MeshStatus::Memory);
        }
        if node >= nodes {
            return Err(MeshStatus::Invalid);
        }
        let (space, memory) = checked(memory, size, nodes, bytes)?;
        // SAFETY: memory of this layout, by the caller's contract with a mesh or zeros.
        let nodes = unsafe { Nodes::attach(space, memory) }?;
        // SAFETY: aligned storage that is the caller's to give; the view refers to what lies beside it, which moves no more.
        unsafe {
            place.write(CNode { view: None, nodes });
            let nodes: &'static Nodes = &(*place).nodes;
            (*place).view = Some(Mesh::new(nodes, Node(node)));
        }
        Ok(place)
    };
    let joined = join();
    // SAFETY: the caller's contract.
    if let Some(failed) = unsafe { failed.as_mut() } {
        *failed = joined.err().unwrap_or(MeshStatus::Ok);
    }
    joined.unwrap_or(ptr::null_mut())
}

/// The view of a node.
///
/// # Safety
/// `node` is null or was joined, and no other call uses it.
unsafe fn view<'a>(node: *mut CNode) -> Option<&'a mut Mesh<'static, Nodes>> {
    // SAFETY: the caller's contract; the reference is to the view alone, not to the nodes that it refers to.
    unsafe { (!node.is_null()).then(|| (*node).view.as_mut())? }
}

/// `metes_mesh_allocate`.
///
/// # Safety
/// `node` is null or was joined, and no other call uses it; `failed` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_mesh_allocate(
    node: *mut CNode,
    size: usize,
    align: usize,
    failed: *mut MeshStatus,
) -> *mut c_void {
    // SAFETY: the caller's contract.
    let taken = match unsafe { view(node) } {
        None => Err(MeshStatus::Memory),
        Some(_) if !align.is_power_of_two() => Err(MeshStatus::Invalid),
        Some(view) => view
            .allocate(size as u64, align as u64)
            .map_err(MeshStatus::from),
    };
    // SAFETY: the caller's contract.
    if let Some(failed) = unsafe { failed.as_mut() } {
        *failed = taken.err().unwrap_or(MeshStatus::Ok);
    }
    // The space begins where the memory does.
    taken.map_or(ptr::null_mut(), |address| {
        // SAFETY: the caller's contract: the node was joined.
        let block = unsafe { (*node).nodes.memory(address) };
        block.map_or(ptr::null_mut(), |block| block.as_ptr().cast())
    })
}

/// `metes_mesh_free`.
///
/// # Safety
/// `node` is null or was joined, and no other call uses it. If `block` is one in use, nothing uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_mesh_free(node: *mut CNode, block: *mut c_void) -> MeshStatus {
    // SAFETY: the caller's contract.
    match unsafe { view(node) } {
        None => MeshStatus::Memory,
        Some(_) if block.is_null() => MeshStatus::Ok,
        Some(view) => status(view.free(block.addr() as u64)),
    }
}

/// `metes_mesh_declare_dead`.
///
/// # Safety
/// `node` is null or was joined, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_mesh_declare_dead(node: *mut CNode, dead: u32) -> MeshStatus {
    // SAFETY: the caller's contract.
    unsafe { about(node, dead, |view, dead| view.declare_dead(dead)) }
        .map_or_else(|error| error, |()| MeshStatus::Ok)
}

/// `metes_mesh_adopt`.
///
/// # Safety
/// `node` is null or was joined, and no other call uses it; `adopted` may be called with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_mesh_adopt(
    node: *mut CNode,
    dead: u32,
    adopted: Option<unsafe extern "C" fn(block: *mut c_void, context: *mut c_void)>,
    context: *mut c_void,
) -> MeshStatus {
    let Some(adopted) = adopted else {
        return MeshStatus::Memory;
    };
    let tell = |address: u64| {
        // SAFETY: the caller's contract: the node was joined.
        if let Some(block) = unsafe { (*node).nodes.memory(address) } {
            // SAFETY: the caller's contract.
            unsafe { adopted(block.as_ptr().cast(), context) };
        }
    };
    // SAFETY: the caller's contract.
    unsafe { about(node, dead, |view, dead| view.adopt(dead, tell)) }
        .map_or_else(|error| error, status)
}

/// `metes_mesh_readmit`.
///
/// # Safety
/// `node` is null or was joined, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_mesh_readmit(node: *mut CNode, dead: u32) -> MeshStatus {
    // SAFETY: the caller's contract.
    unsafe { about(node, dead, |view, dead| view.readmit(dead)) }.map_or_else(|error| error, status)
}

/// Does something about another node.
///
/// # Safety
/// `node` is null or was joined, and no other call uses it.
unsafe fn about<T>(
    node: *mut CNode,
    other: u32,
    work: impl FnOnce(&mut Mesh<'static, Nodes>, Node) -> T,
) -> Result<T, MeshStatus> {
    // SAFETY: the caller's contract.
    let view = unsafe { view(node) }.ok_or(MeshStatus::Memory)?;
    let known = other < view.nodes() && Node(other) != view.node();
    known
        .then(|| work(view, Node(other)))
        .ok_or(MeshStatus::Invalid)
}

/// `metes_mesh_count`.
///
/// # Safety
/// `node` is null or was joined, and no other call uses it; `counts` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_mesh_count(node: *mut CNode, counts: *mut MeshCounts) -> MeshStatus {
    // SAFETY: the caller's contract.
    let (Some(view), false) = (unsafe { view(node) }, counts.is_null()) else {
        return MeshStatus::Memory;
    };
    let own = view.counts();
    // SAFETY: the caller's contract.
    unsafe {
        counts.write(MeshCounts {
            local: own.local,
            remote: own.remote,
            full: own.full,
            busy: own.busy,
            visits: own.visits,
            skips: own.skips,
            longest: own.longest,
            parked: own.parked,
            taken_over: own.taken_over,
        });
    }
    MeshStatus::Ok
}
