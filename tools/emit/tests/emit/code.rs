//! The emitted C as an object: no warnings, nothing but code and constants.

use std::path::Path;
use std::process::Command;

use metes_emit::Home;

use crate::decisions::drawn;
use crate::sample;
use crate::support::{STRICT, emitted, emitted_in_ranges, emitted_mapped, run_tool, succeed};

fn compile(compiler: &str, directory: &Path, flags: &[&str]) {
    succeed(
        Command::new(compiler)
            .args(STRICT)
            .args(["-O2", "-c", "-o"])
            .arg(directory.join("heap.o"))
            .args(flags)
            .arg(directory.join("c/heap.c")),
    );
}

/// Symbols of the object by the letter that `nm` gives their section.
fn symbols(directory: &Path) -> Vec<(char, String)> {
    let output = succeed(
        Command::new("nm")
            .arg("--format=posix")
            .arg(directory.join("heap.o")),
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap().to_string();
            (words.next().unwrap().chars().next().unwrap(), name)
        })
        .collect()
}

fn text_bytes(directory: &Path) -> usize {
    let output = succeed(Command::new("size").arg(directory.join("heap.o")));
    let table = String::from_utf8(output.stdout).unwrap();
    let row = table.lines().nth(1).expect("size prints a row an object");
    row.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn no_compiler_warns_at_any_width() {
    let targets = ["thumbv7m-none-eabi", "riscv32-none-elf", "sparc-none-elf"];
    for (number, (name, description)) in sample::named().into_iter().enumerate() {
        let directory = emitted(&description);
        // gcc at the host's width is another test's.
        compile("gcc", directory.path(), &["-ffreestanding", "-m32"]);
        // What this compiler warns of, it sees before it optimises.
        compile("clang", directory.path(), &["-fsyntax-only"]);
        // A third of the heaps on each target without a system; where more is asked for, all.
        let many = std::env::var_os("METES_EMIT_CASES").is_some();
        let own = |place: &usize| many || place % targets.len() == number % targets.len();
        for place in (0..targets.len()).filter(own) {
            let target = format!("--target={}", targets[place]);
            compile(
                "clang",
                directory.path(),
                &["-S", "-ffreestanding", "-Os", &target],
            );
        }
        // The library differs with object pools only.
        if !["tlsf", "everything"].contains(&name) {
            continue;
        }
        compile("clang", directory.path(), &["-ffreestanding", "-m32"]);
        for compiler in ["gcc", "clang"] {
            succeed(
                Command::new(compiler)
                    .args(STRICT)
                    .args(["-O2", "-fPIC", "-c", "-o"])
                    .arg(directory.path().join("preload.o"))
                    .arg(directory.path().join("c/preload.c")),
            );
        }
    }
}

#[test]
fn no_compiler_warns_of_drawn_heaps() {
    for seed in 0..drawn() {
        let directory = emitted(&sample::description(seed));
        compile("gcc", directory.path(), &["-ffreestanding", "-m32"]);
        compile("gcc", directory.path(), &["-DHEAP_COUNT"]);
        compile("clang", directory.path(), &["-fsyntax-only"]);
    }
}

/// The library that maps blocks, with slabs and without.
#[test]
fn no_compiler_warns_of_mapped_blocks() {
    for (_, description) in sample::some(&["tlsf", "everything"]) {
        let directory = emitted_mapped(&description, 128 << 10);
        for compiler in ["gcc", "clang"] {
            succeed(
                Command::new(compiler)
                    .args(STRICT)
                    .args(["-O2", "-fPIC", "-c", "-o"])
                    .arg(directory.path().join("preload.o"))
                    .arg(directory.path().join("c/preload.c")),
            );
        }
    }
}

/// In place of the library for hosts there is malloc of WebAssembly, as part of a program and as a module of its own.
#[test]
fn no_compiler_warns_of_webassembly() {
    for (_, description) in sample::some(&["tlsf", "buddy", "everything"]) {
        let directory = emitted_in_ranges(&description, Home::Wasi);
        assert!(!directory.path().join("c/preload.c").exists());
        for joined in [&[][..], &["-DWASI_JOINED", "-mbulk-memory"]] {
            for source in ["wasi.c", "heap.c"] {
                succeed(
                    Command::new("clang-14")
                        .args(["--target=wasm32", "-ffreestanding"])
                        .args(STRICT)
                        .args(joined)
                        .args(["-O2", "-c", "-o"])
                        .arg(directory.path().join("object.o"))
                        .arg(directory.path().join("c").join(source)),
                );
            }
        }
    }
}

#[test]
fn no_compiler_warns_of_an_image() {
    let cortex = ["-mcpu=cortex-m3", "-mthumb"];
    for (_, description) in sample::some(&["tlsf", "buddy", "everything"]) {
        let directory = emitted_in_ranges(&description, Home::Bare);
        assert!(!directory.path().join("c/preload.c").exists());
        for source in ["bare.c", "heap.c"] {
            let source = directory.path().join("c").join(source);
            let object = directory.path().join("object.o");
            let compile = |compiler: &str, flags: &[&str]| {
                succeed(
                    Command::new(compiler)
                        .args(STRICT)
                        .args(flags)
                        .args(["-O2", "-o"])
                        .arg(&object)
                        .arg(&source),
                );
            };
            for library in [
                &[][..],
                &["--specs=nano.specs"],
                &["--specs=picolibc.specs"],
            ] {
                compile("arm-none-eabi-gcc", &[&cortex, library, &["-c"]].concat());
            }
            for target in ["thumbv7m-none-eabi", "riscv32-none-elf", "sparc-none-elf"] {
                compile(
                    "clang",
                    &[&format!("--target={target}"), "-ffreestanding", "-S"],
                );
            }
        }
    }
}

/// The header under a C++ compiler, whose program is linked with the heap as C.
#[test]
fn cpp_programs_link() {
    for (_, description) in sample::some(&["tlsf", "everything"]) {
        let directory = emitted(&description);
        compile("gcc", directory.path(), &[]);
        let program = directory.path().join("program.cpp");
        let text = "#include \"heap.h\"\n\
            static unsigned char memory[1 << 20];\n\
            static heap_t heap;\n\
            int main() {\n\
                if (heap_init(&heap, memory, sizeof memory) != HEAP_OK) return 1;\n\
                void *place = heap_allocate(&heap, 100, 16);\n\
                heap_free(&heap, place);\n\
                return place == nullptr || heap_check(&heap) != HEAP_SOUND;\n\
            }\n";
        std::fs::write(&program, text).unwrap();
        let binary = directory.path().join("program");
        for compiler in ["g++", "clang++"] {
            succeed(
                Command::new(compiler)
                    .args([
                        "-std=c++11",
                        "-Wall",
                        "-Wextra",
                        "-Wpedantic",
                        "-Werror",
                        "-I",
                    ])
                    .arg(directory.path().join("c"))
                    .arg("-o")
                    .arg(&binary)
                    .args([&program, &directory.path().join("heap.o")]),
            );
            succeed(&mut Command::new(&binary));
        }
    }
}

/// A CMake project takes the folder as it is.
#[test]
fn a_cmake_project_takes_the_folder() {
    for (_, description) in sample::some(&["tlsf", "everything"]) {
        let directory = emitted(&description);
        let project = "cmake_minimum_required(VERSION 3.13)\n\
            project(program C)\n\
            add_subdirectory(c heap)\n\
            add_executable(program program.c)\n\
            target_link_libraries(program PRIVATE heap)\n";
        std::fs::write(directory.path().join("CMakeLists.txt"), project).unwrap();
        let text = "#include \"heap.h\"\n\
            static unsigned char memory[1 << 20];\n\
            static heap_t heap;\n\
            int main(void) { return heap_init(&heap, memory, sizeof memory) != HEAP_OK; }\n";
        std::fs::write(directory.path().join("program.c"), text).unwrap();
        let built = directory.path().join("built");
        let mut configure = Command::new("cmake");
        configure
            .arg("-S")
            .arg(directory.path())
            .arg("-B")
            .arg(&built);
        succeed(&mut configure);
        let mut build = Command::new("cmake");
        build.arg("--build").arg(&built);
        succeed(build.args(["--target", "program", "heap_preload"]));
        succeed(&mut Command::new(built.join("program")));
    }
}

/// Misuse is found where assertions are asked for.
#[test]
fn assertions_find_misuse() {
    let (_, description) = sample::some(&["tlsf"]).remove(0);
    let directory = emitted(&description);
    let text = "#include \"heap.h\"\n\
        static unsigned char memory[1 << 16];\n\
        static heap_t heap;\n\
        int main(void) {\n\
            heap_init(&heap, memory, sizeof memory);\n\
            void *block = heap_allocate(&heap, 100, 8);\n\
            void *behind = heap_allocate(&heap, 100, 8);\n\
            heap_free(&heap, block);\n\
            heap_free(&heap, block);\n\
            return behind == NULL;\n\
        }\n";
    let source = directory.path().join("twice.c");
    std::fs::write(&source, text).unwrap();
    let binary = directory.path().join("twice");
    succeed(
        Command::new("gcc")
            .args([
                "-std=c99",
                "-include",
                "assert.h",
                "-DHEAP_ASSERT=assert",
                "-I",
            ])
            .arg(directory.path().join("c"))
            .arg("-o")
            .args([&binary, &source, &directory.path().join("c/heap.c")]),
    );
    let output = run_tool(&mut Command::new(&binary));
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is_in_use"), "{said}");
}

#[test]
fn parameters_are_folded_into_the_code() {
    for (name, description) in sample::named() {
        let directory = emitted(&description);
        compile("gcc", directory.path(), &[]);
        for (section, symbol) in symbols(directory.path()) {
            let known = match section {
                // Code; of what is defined elsewhere, memory functions only.
                'T' | 't' => true,
                'U' => ["memcpy", "memset", "_GLOBAL_OFFSET_TABLE_"].contains(&symbol.as_str()),
                // The table of size classes.
                'r' => ["classes", "class_of"].contains(&symbol.as_str()),
                // No data: neither parameters nor state live in the object.
                _ => false,
            };
            assert!(known, "{name}: {section} {symbol}");
        }
        println!("{name}: {} bytes of code", text_bytes(directory.path()));
    }
}

#[test]
fn what_a_heap_does_not_need_is_not_emitted() {
    let (_, tlsf) = sample::named().remove(0);
    let directory = emitted(&tlsf);
    let files = std::fs::read_dir(directory.path().join("c")).unwrap();
    for file in files {
        let name = file.unwrap().file_name().into_string().unwrap();
        for absent in ["objects", "dedicated", "list", "mapped"] {
            assert!(!name.contains(absent), "{name} beside a plain TLSF");
        }
    }
    let preprocessed = succeed(
        Command::new("gcc")
            .args(["-std=c99", "-E"])
            .arg(directory.path().join("c/heap.c")),
    );
    let code = String::from_utf8(preprocessed.stdout).unwrap();
    for absent in ["objects_", "_dedicated", "wilderness =", "rover"] {
        assert!(!code.contains(absent), "{absent} in a plain TLSF");
    }
    // Neither a variable nor a division: the second level is a constant shift.
    compile("gcc", directory.path(), &[]);
    let objdump = succeed(
        Command::new("objdump")
            .args(["-d", "--no-show-raw-insn"])
            .arg(directory.path().join("heap.o")),
    );
    let listing = String::from_utf8(objdump.stdout).unwrap();
    let body = listing.split("<heap_allocate>:").nth(1).unwrap();
    let body = body.split("\n\n").next().unwrap();
    assert!(!body.contains("div"), "{body}");
}
