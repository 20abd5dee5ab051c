//! The laboratory of WebAssembly beside containers: engines, layers, axes.
