// Six threads with maps of strings of their own, and strings that they pass around.
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

static std::mutex lock;
static std::vector<std::string> passed;

static void work(unsigned seed) {
    for (int round = 0; round < 3; round++) {
        std::map<std::string, std::string> map;
        for (int i = 0; i < 40000; i++) {
            seed = seed * 1103515245u + 12345u;
            std::string key = "a key that is not short " + std::to_string(seed % 9000);
            auto &value = map[key];
            value += "part " + std::to_string(i);
            if (value.size() > 200) value.clear(), value.shrink_to_fit();
            if (i % 16 == 0) {
                std::lock_guard<std::mutex> held(lock);
                if (passed.size() > 1000) passed.clear();
                passed.push_back(std::move(key));
            }
        }
    }
}

int main() {
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 6; number++) threads.emplace_back(work, number);
    for (auto &thread : threads) thread.join();
    std::printf("%zu\n", passed.size());
}
