//! The runner of the laboratory as a program of its own: an engine, a module, nothing else.

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(metes_edge_lab::runner::main(&arguments));
}
