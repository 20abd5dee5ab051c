//! Compiles the constants of MPI that are macros in C and that `mpi` does not name.

fn main() {
    println!("cargo:rerun-if-changed=src/operations.c");
    let mut build = cc::Build::new();
    build.file("src/operations.c");
    match build_probe_mpi::probe() {
        Ok(library) => {
            if let Some(mpicc) = library.mpicc {
                build.compiler(mpicc);
            }
            for path in library.include_paths {
                build.include(path);
            }
            build.compile("metes_operations");
        }
        Err(_) => panic!(
            "no MPI library is found: install one with its headers (Debian: libopenmpi-dev), or name its compiler in MPICC"
        ),
    }
}
