// Runs a module of WASI preview 1 in V8: node node.mjs MODULE ARGUMENT...
import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";

const [path, ...rest] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: ["kernel", ...rest], env: {}, returnOnExit: true });
const module = await WebAssembly.compile(readFileSync(path));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
