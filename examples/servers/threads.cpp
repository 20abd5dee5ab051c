// Six threads that each build and drop maps of strings, ARGUMENT times (40): what a recorder costs where all threads
// allocate all the time.
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

static long work(int rounds, unsigned seed) {
    long found = 0;
    for (int round = 0; round < rounds; round++) {
        std::map<std::string, std::vector<int>> words;
        for (int n = 0; n < 4000; n++) {
            seed = seed * 1664525u + 1013904223u;
            words["a word that does not fit inside " + std::to_string(seed >> 20)].push_back(n);
        }
        for (const auto &word : words) found += static_cast<long>(word.second.size());
    }
    return found;
}

int main(int count, char **words) {
    int rounds = count > 1 ? std::atoi(words[1]) : 40;
    std::vector<std::thread> threads;
    for (unsigned n = 0; n < 6; n++) threads.emplace_back([=] { return work(rounds, n); });
    for (auto &thread : threads) thread.join();
    return 0;
}
