// What C++ does on top of malloc: new, exceptions, containers, threads with
// destructors of their own.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct alignas(256) Wide {
    char bytes[300];
};

struct Kept {
    std::vector<std::string> words;
    ~Kept() { words.clear(); }
};
static thread_local Kept kept;
static std::map<std::string, std::vector<int>> before_main{{"a", {1, 2, 3}}, {"b", {4}}};

static long work(int seed) {
    std::map<int, std::string> tree;
    for (int i = 0; i < 5000; i++) {
        int key = static_cast<int>((static_cast<long>(i) * 7919 + seed) % 2003);
        tree[key] += std::to_string(i);
        if (i % 3 == 0) tree.erase((key + 1) % 2003);
        kept.words.push_back(tree.begin()->second);
    }
    long sum = 0;
    for (const auto &entry : tree) sum += static_cast<long>(entry.second.size()) * entry.first;
    return sum;
}

int main() {
    std::vector<long> sums(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back([&sums, i] { sums[i] = work(i); });
    for (auto &thread : threads) thread.join();
    for (int i = 0; i < 4; i++)
        if (sums[i] != work(i)) return 1;
    int caught = 0;
    for (int i = 0; i < 100; i++) {
        try {
            throw std::runtime_error(std::string(i * 10, 'x'));
        } catch (const std::exception &error) {
            caught += static_cast<int>(std::string(error.what()).size());
        }
    }
    try {
        volatile std::size_t much = SIZE_MAX / 2;
        char *volatile block = new char[much];
        delete[] block;
        return 2;
    } catch (const std::bad_alloc &) {
        caught++;
    }
    std::vector<std::unique_ptr<Wide>> wide;
    for (int i = 0; i < 50; i++) {
        wide.emplace_back(new Wide);
        if (reinterpret_cast<std::uintptr_t>(wide.back().get()) % 256 != 0) return 3;
    }
    std::ostringstream text;
    for (int i = 0; i < 2000; i++) text << i << ' ';
    std::cout << caught << ' ' << before_main.size() << ' ' << text.str().size() << ' ' << sums[2]
              << '\n';
}
