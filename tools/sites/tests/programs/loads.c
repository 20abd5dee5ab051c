/* Loads one library after the other, each where the one before lay, and asks by its function. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *kept[8];

__attribute__((noinline)) void use(const char *path, const char *name, int which) {
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL) exit(3);
    void *(*ask)(size_t) = (void *(*)(size_t))dlsym(library, name);
    if (ask == NULL) exit(4);
    kept[which] = ask(1001 + which);
    dlclose(library);
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) use(argv[i], argv[i + 1], i / 2);
    return 0;
}
