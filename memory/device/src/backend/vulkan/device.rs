//! A logical device, and what Vulkan says about it.
//!
//! Invariant: what is made here is destroyed once, device before instance, after all that was
//! made of it; what a program has made is left alone.

use std::error::Error as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ash::{Entry, vk};

use super::{Kind, USAGE};
use crate::backend::Error;
use crate::backend::process::Opened;

/// A device as [`Vulkan::devices`](super::Vulkan::devices) lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Bytes of its largest device-local heap.
    pub bytes: u64,
    /// Whether it can bind sparsely.
    pub paged: bool,
}

/// A logical device with one queue.
pub(super) struct Shared {
    pub(super) opened: Opened,
    pub(super) device: ash::Device,
    pub(super) family: u32,
    /// Whether buffers are sparse.
    pub(super) sparse: bool,
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    queue: Mutex<vk::Queue>,
    /// Waited for when pages are bound.
    bound: vk::Fence,
    /// Whether the driver tells how much it has budgeted.
    budgeted: bool,
    /// The library, if device and instance were made here.
    own: Option<Entry>,
}

impl Shared {
    pub(super) fn open(index: usize, sparse: bool) -> Result<Self, Error> {
        let instance = Instance::make()?;
        let all = instance.physical_devices()?;
        let Some(&physical) = all.get(index) else {
            return Err(Error::Absent {
                what: format!("Vulkan device {index}"),
                remedy: match all.len() {
                    0 => "install a driver (without a GPU, Debian: mesa-vulkan-drivers), or use another backend".into(),
                    many => format!("there are {many}, numbered from 0: choose one of them"),
                },
            });
        };
        let sparse = sparse && instance.binds_sparsely(physical);
        let family = instance.family(physical, sparse)?;
        let budgeted = instance.has_budget(physical)?;
        let priorities = [1.0];
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&priorities)];
        let extensions = [ash::ext::memory_budget::NAME.as_ptr()];
        let features = vk::PhysicalDeviceFeatures::default()
            .sparse_binding(sparse)
            .sparse_residency_buffer(sparse);
        let wanted = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions[..usize::from(budgeted)])
            .enabled_features(&features);
        // SAFETY: queue family, extensions and features are those that the device has.
        let device = unsafe { instance.instance.create_device(physical, &wanted, None) }
            .map_err(failed("vkCreateDevice"))?;
        // SAFETY: the family's first queue, which was asked for.
        let queue = unsafe { device.get_device_queue(family, 0) };
        // SAFETY: a fence of the device.
        let bound = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) };
        let bound = bound.map_err(|code| {
            // SAFETY: nothing of it is left.
            unsafe { device.destroy_device(None) };
            failed("vkCreateFence")(code)
        })?;
        let (entry, instance) = instance.into_parts();
        Ok(Shared {
            opened: Opened::here(),
            device,
            family,
            sparse,
            instance,
            physical,
            queue: Mutex::new(queue),
            bound,
            budgeted,
            own: Some(entry),
        })
    }

    /// # Safety
    /// As of [`Vulkan::within`](super::Vulkan::within).
    pub(super) unsafe fn within(
        instance: ash::Instance,
        physical: vk::PhysicalDevice,
        device: ash::Device,
        queue: vk::Queue,
        family: u32,
    ) -> Result<Self, Error> {
        // SAFETY: a fence of a device that the caller promises is one.
        let bound = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }
            .map_err(failed("vkCreateFence"))?;
        Ok(Shared {
            opened: Opened::here(),
            device,
            family,
            sparse: false,
            instance,
            physical,
            queue: Mutex::new(queue),
            bound,
            // Whether the program enabled the extension is not known.
            budgeted: false,
            own: None,
        })
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, vk::Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of that length without memory.
    pub(super) fn buffer(&self, bytes: u64) -> Result<vk::Buffer, Error> {
        let flags = if self.sparse {
            vk::BufferCreateFlags::SPARSE_BINDING | vk::BufferCreateFlags::SPARSE_RESIDENCY
        } else {
            vk::BufferCreateFlags::empty()
        };
        let wanted = vk::BufferCreateInfo::default()
            .flags(flags)
            .size(bytes)
            .usage(USAGE)
            .sharing_mode(vk::SharingMode::EXCLUSIVE);
        // SAFETY: the length is not 0, and sparse buffers only where that was enabled.
        unsafe { self.device.create_buffer(&wanted, None) }.map_err(failed("vkCreateBuffer"))
    }

    /// What a buffer of that length needs.
    pub(super) fn requirements(&self, bytes: u64) -> Result<vk::MemoryRequirements, Error> {
        let probe = self.buffer(bytes)?;
        // SAFETY: a buffer of ours that nothing uses.
        unsafe {
            let needs = self.device.get_buffer_memory_requirements(probe);
            self.device.destroy_buffer(probe, None);
            Ok(needs)
        }
    }

    /// The memory type for buffers, and its heap: of those of the kind the one whose heap is
    /// largest, the first of equals.
    pub(super) fn memory_type(&self, kind: Kind, allowed: u32) -> Result<(u32, u32), Error> {
        let wanted = match kind {
            Kind::Device => vk::MemoryPropertyFlags::DEVICE_LOCAL,
            Kind::Host => {
                vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT
            }
        };
        // Of these memories parts of devices ask for features of their own.
        let unwanted = vk::MemoryPropertyFlags::PROTECTED
            | vk::MemoryPropertyFlags::LAZILY_ALLOCATED
            | vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD;
        let all = self.memory();
        let types = all.memory_types_as_slice().iter().enumerate();
        let mut best: Option<(u32, u32)> = None;
        for (number, one) in types {
            let fits = allowed & (1 << number) != 0
                && one.property_flags.contains(wanted)
                && !one.property_flags.intersects(unwanted);
            let heap = one.heap_index;
            if fits && best.is_none_or(|(_, best)| self.heap_bytes(heap) > self.heap_bytes(best)) {
                best = Some((number as u32, heap));
            }
        }
        best.ok_or_else(|| Error::Absent {
            what: format!("memory of kind {kind:?} for buffers"),
            remedy: "ask for the other kind".into(),
        })
    }

    pub(super) fn heap_bytes(&self, heap: u32) -> u64 {
        self.memory().memory_heaps[heap as usize].size
    }

    /// What blocks need for every use, and beside images.
    pub(super) fn alignment(&self) -> u64 {
        let limits = self.limits();
        [
            limits.buffer_image_granularity,
            limits.non_coherent_atom_size,
            limits.min_storage_buffer_offset_alignment,
            limits.min_uniform_buffer_offset_alignment,
            limits.min_texel_buffer_offset_alignment,
        ]
        .into_iter()
        .fold(1, u64::max)
    }

    /// Bytes of the longest memory.
    pub(super) fn largest_memory(&self) -> u64 {
        let mut maintenance = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut maintenance);
        // SAFETY: a physical device of the instance.
        unsafe {
            self.instance
                .get_physical_device_properties2(self.physical, &mut properties);
        }
        maintenance.max_memory_allocation_size
    }

    pub(super) fn most_memories(&self) -> u32 {
        self.limits().max_memory_allocation_count
    }

    /// Addresses that all sparse buffers may have together.
    pub(super) fn sparse_addresses(&self) -> u64 {
        self.limits().sparse_address_space_size
    }

    /// What is left of the heap's budget for this process, if the driver says.
    pub(super) fn budget(&self, heap: u32) -> Option<u64> {
        if !self.budgeted {
            return None;
        }
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut memory = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        // SAFETY: a physical device of the instance, which has the extension.
        unsafe {
            self.instance
                .get_physical_device_memory_properties2(self.physical, &mut memory);
        }
        let heap = heap as usize;
        Some(budget.heap_budget[heap].saturating_sub(budget.heap_usage[heap]))
    }

    /// Binds memory to pages of a sparse buffer, and waits until it is bound.
    ///
    /// # Safety
    /// The buffer is a sparse one of the device, the pages are its own, and the memory is of the
    /// device and as long, or null.
    pub(super) unsafe fn bind(
        &self,
        buffer: vk::Buffer,
        offset: u64,
        bytes: u64,
        memory: vk::DeviceMemory,
    ) -> Result<(), Error> {
        let page = [vk::SparseMemoryBind::default()
            .resource_offset(offset)
            .size(bytes)
            .memory(memory)];
        let pages = [vk::SparseBufferMemoryBindInfo::default()
            .buffer(buffer)
            .binds(&page)];
        let work = [vk::BindSparseInfo::default().buffer_binds(&pages)];
        let queue = self.queue();
        // SAFETY: the queue binds sparsely, as it was chosen to, and is held; the fence is not
        // in use, as it is waited for while the queue is held.
        unsafe {
            self.device
                .queue_bind_sparse(*queue, &work, self.bound)
                .map_err(failed("vkQueueBindSparse"))?;
            self.device
                .wait_for_fences(&[self.bound], true, u64::MAX)
                .map_err(failed("vkWaitForFences"))?;
            self.device
                .reset_fences(&[self.bound])
                .map_err(failed("vkResetFences"))
        }
    }

    fn memory(&self) -> vk::PhysicalDeviceMemoryProperties {
        // SAFETY: a physical device of the instance.
        unsafe {
            self.instance
                .get_physical_device_memory_properties(self.physical)
        }
    }

    fn limits(&self) -> vk::PhysicalDeviceLimits {
        // SAFETY: a physical device of the instance.
        let properties = unsafe { self.instance.get_physical_device_properties(self.physical) };
        properties.limits
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.opened.check().is_err() {
            return;
        }
        // SAFETY: whatever was made of the device holds this, so nothing is left of it; device
        // and instance are destroyed only if they were made here.
        unsafe {
            self.device.destroy_fence(self.bound, None);
            if self.own.is_some() {
                self.device.destroy_device(None);
                self.instance.destroy_instance(None);
            }
        }
    }
}

/// An instance, until a device of it is opened.
struct Instance {
    entry: Entry,
    instance: ash::Instance,
    taken: bool,
}

impl Instance {
    fn make() -> Result<Self, Error> {
        // SAFETY: what runs when the loader is loaded is the loader's; every program that uses
        // Vulkan runs it.
        let entry = unsafe { Entry::load() }.map_err(|error| {
            let cause = error
                .source()
                .map_or_else(String::new, |cause| format!(": {cause}"));
            Error::Absent {
                what: format!("Vulkan's loader ({error}{cause})"),
                remedy: "install it (Debian: libvulkan1), or use another backend".into(),
            }
        })?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let wanted = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: no layers, no extensions; the entry lives as long as the instance.
        let instance = unsafe { entry.create_instance(&wanted, None) };
        let instance = instance.map_err(|code| match code {
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => Error::Absent {
                what: "a driver for Vulkan 1.1".into(),
                remedy: "install one (without a GPU, Debian: mesa-vulkan-drivers), or use another backend"
                    .into(),
            },
            code => failed("vkCreateInstance")(code),
        })?;
        Ok(Instance {
            entry,
            instance,
            taken: false,
        })
    }

    fn physical_devices(&self) -> Result<Vec<vk::PhysicalDevice>, Error> {
        // SAFETY: the instance is alive.
        let all = unsafe { self.instance.enumerate_physical_devices() }
            .map_err(failed("vkEnumeratePhysicalDevices"))?;
        // SAFETY: a physical device of the instance.
        let recent = |device: &vk::PhysicalDevice| unsafe {
            self.instance
                .get_physical_device_properties(*device)
                .api_version
                >= vk::API_VERSION_1_1
        };
        Ok(all.into_iter().filter(recent).collect())
    }

    fn binds_sparsely(&self, physical: vk::PhysicalDevice) -> bool {
        // SAFETY: a physical device of the instance.
        let features = unsafe { self.instance.get_physical_device_features(physical) };
        features.sparse_binding != 0
            && features.sparse_residency_buffer != 0
            && self.family(physical, true).is_ok()
    }

    /// A queue family that computes and transfers, and binds sparsely if that is wanted.
    fn family(&self, physical: vk::PhysicalDevice, sparse: bool) -> Result<u32, Error> {
        let wanted = if sparse {
            vk::QueueFlags::COMPUTE | vk::QueueFlags::SPARSE_BINDING
        } else {
            vk::QueueFlags::COMPUTE
        };
        // SAFETY: a physical device of the instance.
        let families = unsafe {
            self.instance
                .get_physical_device_queue_family_properties(physical)
        };
        let has = |family: &vk::QueueFamilyProperties| family.queue_flags.contains(wanted);
        let found = families.iter().position(has);
        found
            .map(|place| place as u32)
            .ok_or_else(|| Error::Absent {
                what: "a queue that computes".into(),
                remedy: "choose another device".into(),
            })
    }

    fn has_budget(&self, physical: vk::PhysicalDevice) -> Result<bool, Error> {
        // SAFETY: a physical device of the instance.
        let extensions = unsafe {
            self.instance
                .enumerate_device_extension_properties(physical)
        }
        .map_err(failed("vkEnumerateDeviceExtensionProperties"))?;
        Ok(extensions.iter().any(|extension| {
            extension.extension_name_as_c_str() == Ok(ash::ext::memory_budget::NAME)
        }))
    }

    fn into_parts(mut self) -> (Entry, ash::Instance) {
        self.taken = true;
        (self.entry.clone(), self.instance.clone())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.taken {
            // SAFETY: no device of it was made, or that was destroyed.
            unsafe { self.instance.destroy_instance(None) };
        }
    }
}

pub(super) fn devices() -> Result<Vec<Description>, Error> {
    let instance = Instance::make()?;
    let described = |physical| {
        // SAFETY: a physical device of the instance.
        let (properties, memory) = unsafe {
            (
                instance.instance.get_physical_device_properties(physical),
                instance
                    .instance
                    .get_physical_device_memory_properties(physical),
            )
        };
        let name = properties.device_name_as_c_str().unwrap_or_default();
        let local = |heap: &&vk::MemoryHeap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
        let heaps = memory.memory_heaps_as_slice().iter().filter(local);
        Description {
            name: name.to_string_lossy().into_owned(),
            bytes: heaps.map(|heap| heap.size).max().unwrap_or(0),
            paged: instance.binds_sparsely(physical),
        }
    };
    Ok(instance
        .physical_devices()?
        .into_iter()
        .map(described)
        .collect())
}

/// What a call's failure means.
pub(super) fn failed(call: &'static str) -> impl Fn(vk::Result) -> Error {
    move |code| Error::Device {
        call,
        code: code.as_raw().into(),
        text: format!("{code:?}, {code}"),
    }
}
