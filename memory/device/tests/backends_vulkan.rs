//! Vulkan on a real device: lavapipe where there is no other.
//!
//! Debian 12's lavapipe cannot bind sparsely. `scripts/setup` lays a newer one beside the build,
//! on which all tests run again; and all run under Khronos's validation layer, if that is there.
#![cfg(feature = "vulkan")]

#[path = "it/common/backends.rs"]
mod common;

use std::path::Path;
use std::process::Command;

use ash::vk;
use common::{alone, child, conforms, is_child, refused_in_a_fork, without};
use metes_device::backend::vulkan::{Block, Kind, Vulkan};
use metes_device::backend::{Backend, Error, Memory};

/// The first device, mapping whole ranges and, if it can, pages.
fn open() -> Vec<Vulkan> {
    let devices = Vulkan::devices().unwrap_or_else(|error| panic!("{error}"));
    let first = devices.first().expect("a device: install a driver");
    let whole = Vulkan::open_whole(0, Kind::Device).unwrap();
    assert!(!whole.paged());
    let paged = Vulkan::open(0, Kind::Device).unwrap();
    assert_eq!(paged.paged(), first.paged);
    if first.paged {
        println!("on {}, whole and paged", first.name);
        vec![whole, paged]
    } else {
        println!("on {}, whole: it cannot bind sparsely", first.name);
        vec![whole]
    }
}

#[test]
fn answers_as_it_must() {
    let _alone = alone();
    for mut vulkan in open() {
        let answers = [
            "create: done",
            "create: out of memory",
            "map: done",
            "map: mapped",
            "unmap: done",
            "unreserve: mapped",
            "release: in use",
            "release: done",
        ];
        // The budget is the whole machine's.
        let all = conforms(&mut vulkan, 20, 24, false, &answers);
        let not_paged = all.times("map: not paged");
        assert_eq!(not_paged > 20, !vulkan.paged(), "{all:?}");
    }
}

/// The device fills blocks at their offsets; all of the range is copied to the host, which finds
/// what was filled, and nothing else changed.
#[test]
fn fills_reach_their_blocks_and_nothing_else() {
    const BEFORE: u32 = 0x5555_5555;
    let _alone = alone();
    for mut vulkan in open() {
        let page = vulkan.granularity().max(1 << 18);
        let bytes = 4 * page;
        let range = vulkan.reserve(bytes).unwrap();
        let parts = if vulkan.paged() { 4 } else { 1 };
        for part in 0..parts {
            let memory = vulkan.create(bytes / parts).unwrap();
            vulkan
                .map(range.start + part * (bytes / parts), memory)
                .unwrap();
        }
        let device = Work::new(&vulkan, bytes);
        let whole = vulkan.block(range.start, bytes).unwrap();
        device.run(|commands| device.fill(commands, &whole, bytes, BEFORE));

        let mut expected = vec![BEFORE; (bytes / 4) as usize];
        let align = vulkan.alignment();
        let mut address = range.start;
        let mut blocks = Vec::new();
        for number in 0_u32.. {
            // Odd lengths at every alignment that the device allows, across pages, too; every
            // other is left alone.
            let length = 4 * (1 + u64::from(number) * 1300 % 5000);
            if address + length > range.end() {
                break;
            }
            if number % 2 == 0 {
                let block = vulkan.block(address, length).unwrap();
                device.run(|commands| device.fill(commands, &block, length, number));
                let first = ((address - range.start) / 4) as usize;
                expected[first..][..(length / 4) as usize].fill(number);
                blocks.push(block);
            }
            address += length.next_multiple_of(align);
        }
        assert!(blocks.len() > 20);
        assert!(
            device.read(&whole) == expected,
            "blocks or their neighbours differ"
        );
        drop(whole);
        drop(blocks);

        if vulkan.paged() {
            // Pages change places, and their bytes with them.
            let part = bytes / 4;
            let taken = [0, 1, 2, 3].map(|n| vulkan.unmap(range.start + n * part, part).unwrap());
            assert!(matches!(
                vulkan.block(range.start, part),
                Err(Error::NotMapped { .. })
            ));
            for (place, memory) in [(0, 3), (1, 2), (2, 1), (3, 0)] {
                let address = range.start + place * part;
                vulkan.map(address, taken[memory]).unwrap();
            }
            let moved: Vec<u32> = expected
                .chunks((part / 4) as usize)
                .rev()
                .flatten()
                .copied()
                .collect();
            let whole = vulkan.block(range.start, bytes).unwrap();
            assert!(
                device.read(&whole) == moved,
                "bytes did not move with their pages"
            );
        }
        device.end();
    }
}

/// Memory that the host can see is seen where the backend says that a block lies.
#[test]
fn the_host_sees_blocks_where_they_lie() {
    let _alone = alone();
    let mut vulkan = Vulkan::open_whole(0, Kind::Host).unwrap();
    let align = vulkan.alignment();
    let bytes = 16 * align;
    let range = vulkan.reserve(bytes).unwrap();
    let memory = vulkan.create(bytes).unwrap();
    vulkan.map(range.start, memory).unwrap();
    let device = Work::new(&vulkan, bytes);
    let block = vulkan.block(range.start + 5 * align, align).unwrap();
    device.run(|commands| device.fill(commands, &block, align, 0xabcd_1234));
    let (place, offset) = vulkan.place(range.start + 5 * align, align).unwrap();
    assert_eq!(offset, 5 * align);
    // SAFETY: memory that the host can map, not mapped yet, and coherent; the work has run.
    let word = unsafe {
        let flags = vk::MemoryMapFlags::empty();
        let start = vulkan.device().map_memory(place, 0, bytes, flags).unwrap();
        let word = start.cast::<u8>().add(offset as usize).cast::<u32>().read();
        vulkan.device().unmap_memory(place);
        word
    };
    assert_eq!(word, 0xabcd_1234);
    drop(block);
    device.end();
}

#[test]
fn impossible_requests_are_refused() {
    let _alone = alone();
    for mut vulkan in open() {
        let granularity = vulkan.granularity();
        let align = vulkan.alignment();
        assert_eq!(vulkan.create(0), Err(Error::Empty("memory")));
        assert_eq!(vulkan.release(Memory(3)), Err(Error::NoMemory(Memory(3))));
        let total = vulkan.capacity().unwrap().total;
        let beyond = (total + 1).next_multiple_of(granularity);
        assert!(matches!(
            vulkan.create(beyond),
            Err(Error::OutOfMemory { wanted, .. }) if wanted == beyond
        ));
        let most = vulkan.largest();
        if most < total {
            let beyond = (most + 1).next_multiple_of(granularity);
            let refused = Error::TooLarge {
                wanted: beyond,
                most,
            };
            assert_eq!(vulkan.create(beyond), Err(refused));
        }
        let range = vulkan.reserve(4 * granularity).unwrap();
        let block = |vulkan: &Vulkan, address, bytes| vulkan.block(address, bytes).unwrap_err();
        let unmapped = block(&vulkan, range.start, 4);
        assert!(matches!(unmapped, Error::NotMapped { .. }), "{unmapped}");
        let memory = vulkan.create(4 * granularity).unwrap();
        vulkan.map(range.start, memory).unwrap();
        assert_eq!(block(&vulkan, range.start, 0), Error::Empty("a block"));
        if align > 1 {
            let odd = block(&vulkan, range.start + 1, 4);
            assert!(matches!(odd, Error::Granularity { .. }), "{odd}");
        }
        let beyond = block(&vulkan, range.start + granularity, 4 * granularity);
        assert!(matches!(beyond, Error::NotMapped { .. }), "{beyond}");
    }
    let many = Vulkan::devices().unwrap().len();
    let error = Vulkan::open(many, Kind::Device).unwrap_err();
    assert!(error.to_string().contains("choose one of them"), "{error}");
}

/// A backend on a device that the program has made leaves it alone when it is dropped.
#[test]
fn a_programs_own_device_is_used_and_left() {
    let _alone = alone();
    // SAFETY: a device with one queue, made and destroyed here after the backend.
    unsafe {
        let entry = ash::Entry::load().unwrap();
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let wanted = vk::InstanceCreateInfo::default().application_info(&application);
        let instance = entry.create_instance(&wanted, None).unwrap();
        let physical = instance.enumerate_physical_devices().unwrap()[0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let wanted = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        let device = instance.create_device(physical, &wanted, None).unwrap();
        let queue = device.get_device_queue(0, 0);
        let kind = Kind::Device;
        let mut vulkan =
            Vulkan::within(instance.clone(), physical, device.clone(), queue, 0, kind).unwrap();
        let memory = vulkan.create(vulkan.granularity()).unwrap();
        vulkan.release(memory).unwrap();
        drop(vulkan);
        device.device_wait_idle().unwrap();
        device.destroy_device(None);
        instance.destroy_instance(None);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_fork_is_refused() {
    let _alone = alone();
    refused_in_a_fork(Vulkan::open(0, Kind::Device).unwrap());
}

/// Without the loader, and without a driver.
#[cfg(target_os = "linux")]
#[test]
fn what_is_not_installed_is_said() {
    // Of the test that runs all others again it is a child, too.
    if std::env::var_os("METES_CHILD_MISSES").is_some() {
        return println!("{}", Vulkan::open(0, Kind::Device).unwrap_err());
    }
    let broken = without("libvulkan.so.1");
    for (variable, wanted) in [
        ("LD_LIBRARY_PATH", "Vulkan's loader ("),
        ("VK_DRIVER_FILES", "a driver for Vulkan 1.1 is not there"),
    ] {
        let environment = [("METES_CHILD_MISSES", "1"), (variable, &broken)];
        let said = child("what_is_not_installed_is_said", &environment);
        assert!(said.contains(wanted) && said.contains("install"), "{said}");
    }
}

/// All tests of this file again, in processes of their own: under the validation layer, which
/// knows what a program may call, on the system's driver and on the newer lavapipe.
#[test]
fn every_call_is_valid() {
    if is_child() {
        return;
    }
    let _alone = alone();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let newer = scratch.with_file_name("lavapipe");
    let mut drivers = vec![None];
    if newer.join("lvp_icd.json").is_file() {
        drivers.push(Some(&newer));
    } else {
        println!(
            "not tried: scripts/setup has laid no newer lavapipe at {}",
            newer.display()
        );
    }
    for driver in drivers {
        let settings = scratch.join(if driver.is_some() { "newer" } else { "system" });
        std::fs::create_dir_all(&settings).unwrap();
        let log = settings.join("validation.log");
        std::fs::remove_file(&log).ok();
        let lines = [
            "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG",
            "khronos_validation.report_flags = error,warn,info",
            &format!("khronos_validation.log_filename = {}", log.display()),
        ];
        std::fs::write(settings.join("vk_layer_settings.txt"), lines.join("\n")).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--nocapture", "--test-threads=1"])
            .env("METES_CHILD", "1")
            .env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
            .env("VK_LAYER_SETTINGS_PATH", &settings);
        if let Some(newer) = driver {
            child
                .env("LD_LIBRARY_PATH", newer)
                .env("VK_DRIVER_FILES", newer.join("lvp_icd.json"));
        }
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            driver.is_none() || said.contains("whole and paged"),
            "{said}"
        );
        let first = said.lines().find(|line| line.contains("on "));
        let heard = std::fs::read_to_string(&log).unwrap_or_default();
        if heard.contains("Khronos Validation Layer Active") {
            let wrong: Vec<&str> = heard.lines().filter(|line| line.contains("VUID")).collect();
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
            println!("valid: {}", first.unwrap_or_default());
        } else {
            println!(
                "not checked, no validation layer: {}",
                first.unwrap_or_default()
            );
        }
    }
}

/// Commands for the device, and memory of the host to copy to. Whoever makes one ends it, before
/// the backend.
struct Work {
    device: ash::Device,
    queue: vk::Queue,
    pool: vk::CommandPool,
    commands: vk::CommandBuffer,
    staging: vk::Buffer,
    memory: vk::DeviceMemory,
    bytes: u64,
}

impl Work {
    fn new(vulkan: &Vulkan, bytes: u64) -> Self {
        let device = vulkan.device().clone();
        let family = vulkan.queue_family();
        let pool = vk::CommandPoolCreateInfo::default()
            .queue_family_index(family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        let staging = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(vk::BufferUsageFlags::TRANSFER_DST);
        // SAFETY: objects of one device; memory of a type that the host can map.
        unsafe {
            let pool = device.create_command_pool(&pool, None).unwrap();
            let commands = vk::CommandBufferAllocateInfo::default()
                .command_pool(pool)
                .command_buffer_count(1);
            let commands = device.allocate_command_buffers(&commands).unwrap()[0];
            let staging = device.create_buffer(&staging, None).unwrap();
            let needs = device.get_buffer_memory_requirements(staging);
            let memory = (0..32)
                .filter(|number| needs.memory_type_bits & (1 << number) != 0)
                .find_map(|number| {
                    let wanted = vk::MemoryAllocateInfo::default()
                        .allocation_size(needs.size)
                        .memory_type_index(number);
                    let memory = device.allocate_memory(&wanted, None).ok()?;
                    let flags = vk::MemoryMapFlags::empty();
                    if device.map_memory(memory, 0, vk::WHOLE_SIZE, flags).is_ok() {
                        device.unmap_memory(memory);
                        return Some(memory);
                    }
                    device.free_memory(memory, None);
                    None
                })
                .expect("memory that the host can map");
            device.bind_buffer_memory(staging, memory, 0).unwrap();
            Work {
                queue: *vulkan.queue(),
                device,
                pool,
                commands,
                staging,
                memory,
                bytes,
            }
        }
    }

    /// Records commands and waits until they have run.
    fn run(&self, record: impl FnOnce(vk::CommandBuffer)) {
        let begin = vk::CommandBufferBeginInfo::default();
        let commands = [self.commands];
        let submit = [vk::SubmitInfo::default().command_buffers(&commands)];
        // SAFETY: the commands are recorded anew after the last have run; tests use the queue
        // one at a time.
        unsafe {
            self.device
                .begin_command_buffer(self.commands, &begin)
                .unwrap();
            record(self.commands);
            self.device.end_command_buffer(self.commands).unwrap();
            self.device
                .queue_submit(self.queue, &submit, vk::Fence::null())
                .unwrap();
            self.device.queue_wait_idle(self.queue).unwrap();
        }
    }

    fn fill(&self, commands: vk::CommandBuffer, block: &Block, bytes: u64, word: u32) {
        // SAFETY: the buffer has so many bytes there.
        unsafe {
            self.device
                .cmd_fill_buffer(commands, block.buffer(), block.offset(), bytes, word);
        }
    }

    /// Copies the block, as long as the staging buffer, to the host.
    fn read(&self, block: &Block) -> Vec<u32> {
        let region = vk::BufferCopy::default()
            .src_offset(block.offset())
            .size(self.bytes);
        // SAFETY: both buffers have so many bytes, and memory that the host maps without
        // coherence is made visible by invalidating it.
        unsafe {
            self.run(|commands| {
                self.device
                    .cmd_copy_buffer(commands, block.buffer(), self.staging, &[region]);
            });
            let flags = vk::MemoryMapFlags::empty();
            let start = self
                .device
                .map_memory(self.memory, 0, vk::WHOLE_SIZE, flags)
                .unwrap();
            let all = vk::MappedMemoryRange::default()
                .memory(self.memory)
                .size(vk::WHOLE_SIZE);
            self.device.invalidate_mapped_memory_ranges(&[all]).unwrap();
            let words = (self.bytes / 4) as usize;
            let found = std::slice::from_raw_parts(start.cast::<u32>(), words).to_vec();
            self.device.unmap_memory(self.memory);
            found
        }
    }

    fn end(self) {
        // SAFETY: all work has run.
        unsafe {
            self.device.destroy_buffer(self.staging, None);
            self.device.free_memory(self.memory, None);
            self.device.destroy_command_pool(self.pool, None);
        }
    }
}
