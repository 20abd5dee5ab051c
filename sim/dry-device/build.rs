//! Names the shared library, and makes the functions of other libraries that need no answer.
//!
//! The name is the one under which programs look for the CUDA driver, so that once the library is
//! loaded, from wherever, `dlopen("libcuda.so.1")` finds it.

use std::fmt::Write;
use std::path::Path;

const NAMES: &str = "src/libraries/names.txt";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={NAMES}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    let names = std::fs::read_to_string(NAMES).expect("the list of names lies beside the sources");
    let code = functions(&names).unwrap_or_else(|wrong| panic!("{NAMES}: {wrong}"));
    let out = std::env::var_os("OUT_DIR").expect("cargo says where output goes");
    std::fs::write(Path::new(&out).join("stubs.rs"), code).expect("output can be written");
}

/// Words that a function of another library is given at most. Whatever their number is, so many
/// lie in registers and on the stack of the caller.
const WORDS: usize = 24;

/// A function for each name.
fn functions(names: &str) -> Result<String, String> {
    let mut code = String::new();
    let mut refusal = None;
    let arguments: Vec<String> = (0..WORDS).map(|word| format!("w{word}")).collect();
    let parameters = arguments.join(": usize, ");
    let arguments = arguments.join(", ");
    for line in names.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(heading) = line.strip_prefix('[') {
            let heading = heading.strip_suffix(']').ok_or("a heading does not end")?;
            let number = heading.split(' ').nth(1).ok_or("a heading has no code")?;
            let number: i32 = number.parse().map_err(|_| "a code is no number")?;
            refusal = Some(number);
            continue;
        }
        let refused = refusal.ok_or("a name before the first heading")?;
        if let Some((name, answer)) = line.split_once(' ') {
            let answer = format!("super::Written::of(\"{answer}\")");
            let write = write!(
                code,
                "#[unsafe(no_mangle)]\n\
                 pub(super) extern \"C\" fn {name}({parameters}: usize) -> std::ffi::c_int {{\n    \
                     super::written(\"{name}\", {answer}, &[{arguments}])\n\
                 }}\n"
            );
            write.map_err(|error| error.to_string())?;
            continue;
        }
        let (name, answer) = match line.strip_prefix('!') {
            Some(name) => (name, refused),
            None => (line, 0),
        };
        let write = write!(
            code,
            "#[unsafe(no_mangle)]\n\
             pub(super) extern \"C\" fn {name}({parameters}: usize) -> std::ffi::c_int {{\n    \
                 super::counted(\"{name}\", {answer}, &[{arguments}])\n\
             }}\n"
        );
        write.map_err(|error| error.to_string())?;
    }
    Ok(code)
}
