//! Gives the shared library the name under which programs look for the CUDA driver, so that once
//! it is loaded, from wherever, `dlopen("libcuda.so.1")` finds it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}
