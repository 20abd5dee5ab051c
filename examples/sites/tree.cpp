// A program with many small blocks: a tree of named nodes, a map of vectors, ten times anew.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct Node {
    std::unique_ptr<Node> left, right;
    std::string name;
    unsigned key;
};

static void insert(std::unique_ptr<Node> &at, unsigned key) {
    if (!at) {
        at = std::make_unique<Node>();
        at->key = key;
        at->name = "a name that is not short " + std::to_string(key);
        return;
    }
    insert(key < at->key ? at->left : at->right, key);
}

int main() {
    unsigned seed = 1;
    unsigned long sum = 0;
    for (int round = 0; round < 10; round++) {
        std::unique_ptr<Node> root;
        std::map<std::string, std::vector<int>> map;
        for (int i = 0; i < 60000; i++) {
            seed = seed * 1103515245u + 12345u;
            insert(root, seed >> 8);
            map["key " + std::to_string(seed % 5000)].push_back(i);
        }
        sum += map.size();
    }
    std::printf("%lu\n", sum);
}
