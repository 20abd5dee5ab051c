//! Lets the linker find the layout of the unit's memory.
fn main() {
    println!("cargo:rustc-link-search={}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rerun-if-changed=duster.ld");
}
