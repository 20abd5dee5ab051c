// Memory and devices around the simulated core.
//
// usage: soc IMAGE [--wait-states N] [--limit CYCLES] [--operations FILE] [--garbage SEED]
//
// 64 MiB of memory at 0, big-endian; a word is answered after N further clocks, in the same clock for N = 0.
// At 0x90000000: +0 write a character, +4 end with a status, +8 read the cycle counter, +c read the next word of the
// operations, its length in words first. A program that ends within the limit ends with its own status; beyond it with
// 3, at an access to nothing with a bus error at the core.
//
// Invariant: a run is a function of image, operations, wait states and seed alone.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Vsoc_top.h"
#include "verilated.h"

namespace {

constexpr uint32_t kMemory = 64u << 20;
constexpr uint32_t kDevices = 0x90000000u;

std::vector<uint8_t> read_file(const char* path) {
    FILE* file = std::fopen(path, "rb");
    if (file == nullptr) {
        std::fprintf(stderr, "soc: cannot read %s; build it first\n", path);
        std::exit(2);
    }
    std::vector<uint8_t> bytes;
    uint8_t buffer[65536];
    for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) bytes.insert(bytes.end(), buffer, buffer + got);
    std::fclose(file);
    return bytes;
}

uint32_t word_at(const std::vector<uint8_t>& bytes, size_t at) {
    return uint32_t(bytes[at]) << 24 | uint32_t(bytes[at + 1]) << 16 | uint32_t(bytes[at + 2]) << 8 | bytes[at + 3];
}

uint64_t number(const char* option, const char* text) {
    char* end = nullptr;
    const uint64_t value = text == nullptr ? 0 : std::strtoull(text, &end, 0);
    if (text == nullptr || end == text || *end != 0) {
        std::fprintf(stderr, "soc: %s needs a number\n", option);
        std::exit(2);
    }
    return value;
}

/// Counts the clocks that a request has waited.
class Port {
public:
    explicit Port(unsigned wait_states) : wait_states_(wait_states) {}
    bool answers(bool requested) {
        if (!requested) {
            waited_ = 0;
            return false;
        }
        if (waited_ < wait_states_) {
            ++waited_;
            return false;
        }
        waited_ = 0;
        return true;
    }

private:
    unsigned wait_states_;
    unsigned waited_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    const char* image = nullptr;
    const char* operations_path = nullptr;
    unsigned wait_states = 0;
    uint64_t limit = 2'000'000'000, seed = 0;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
        if (option == "--wait-states") wait_states = unsigned(number("--wait-states", value)), ++i;
        else if (option == "--limit") limit = number("--limit", value), ++i;
        else if (option == "--garbage") seed = number("--garbage", value), ++i;
        else if (option == "--operations" && value != nullptr) operations_path = value, ++i;
        else if (option[0] != '-' && image == nullptr) image = argv[i];
        else {
            std::fprintf(stderr, "soc: unknown argument '%s'; usage: soc IMAGE [--wait-states N] [--limit CYCLES] [--operations FILE] [--garbage SEED]\n", argv[i]);
            return 2;
        }
    }
    if (image == nullptr) {
        std::fprintf(stderr, "soc: no image; usage: soc IMAGE [--wait-states N] [--limit CYCLES] [--operations FILE] [--garbage SEED]\n");
        return 2;
    }

    std::vector<uint8_t> memory(kMemory);
    const std::vector<uint8_t> program = read_file(image);
    if (program.size() > memory.size()) {
        std::fprintf(stderr, "soc: %s is larger than the memory, %u bytes\n", image, kMemory);
        return 2;
    }
    std::memcpy(memory.data(), program.data(), program.size());
    std::vector<uint8_t> operations;
    if (operations_path != nullptr) operations = read_file(operations_path);
    operations.resize(operations.size() / 4 * 4);
    size_t next_operation = 0;
    bool length_told = false;

    // What c, h and s hold at power-up, in local memories or, with their words of the records, in this one.
    if (seed != 0) {
        uint64_t state = seed;
        for (size_t at = 0x400000; at < 0x600000; at += 4)
            if ((at & 0x10) == 0 || (at & 0xc) != 0)
                for (unsigned byte = 0; byte < 4; ++byte) memory[at + byte] = uint8_t((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
    }
    auto context = std::make_unique<VerilatedContext>();
    context->randSeed(int(seed));
    auto top = std::make_unique<Vsoc_top>(context.get());

    Port instruction_port(wait_states), data_port(wait_states);
    top->clk = 0;
    for (uint64_t cycle = 0; cycle < limit; ++cycle) {
        top->rst = cycle < 8;
        top->clk = 1;
        top->eval();

        const bool instruction_answers = instruction_port.answers(top->instruction_strobe != 0);
        top->instruction_ack = instruction_answers;
        if (instruction_answers) top->instruction_data = word_at(memory, top->instruction_address & (kMemory - 4));

        const bool data_answers = data_port.answers(top->data_strobe != 0);
        top->data_ack = 0;
        top->data_error = 0;
        if (data_answers) {
            const uint32_t address = top->data_address & ~3u;
            top->data_ack = 1;
            if (address < kMemory) {
                if (top->data_write) {
                    for (unsigned byte = 0; byte < 4; ++byte)
                        if (top->data_select >> (3 - byte) & 1) memory[address + byte] = uint8_t(top->data_out >> (24 - 8 * byte));
                } else {
                    top->data_in = word_at(memory, address);
                }
            } else if (address == kDevices && top->data_write) {
                std::putchar(int(top->data_out & 0xff));
            } else if (address == kDevices + 4 && top->data_write) {
                std::fflush(stdout);
                top->final();
                return int(top->data_out & 0xff);
            } else if (address == kDevices + 8 && !top->data_write) {
                top->data_in = uint32_t(cycle);
            } else if (address == kDevices + 12 && !top->data_write) {
                if (!length_told) {
                    top->data_in = uint32_t(operations.size() / 4);
                    length_told = true;
                } else if (next_operation + 4 <= operations.size()) {
                    top->data_in = word_at(operations, next_operation);
                    next_operation += 4;
                } else {
                    top->data_in = 0;
                }
            } else {
                top->data_ack = 0;
                top->data_error = 1;
            }
        }
        top->clk = 0;
        top->eval();
    }
    std::fflush(stdout);
    std::fprintf(stderr, "soc: no end after %llu cycles; raise --limit\n", static_cast<unsigned long long>(limit));
    return 3;
}
