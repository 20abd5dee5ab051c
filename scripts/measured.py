"""Programs on preloaded allocators: what `scripts/growing` and `scripts/foreign` share.

*Invariant:* the process that measures is not measured: a child begins with the peak resident set of
the process that forks it, so a small program forks it.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRELOAD = ROOT / "target/release/libmetes_preload.so"

LAUNCHER = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    int status = 127;
    struct rusage use;
    (void)count;
    const pid_t child = fork();
    if (child == 0) {
        execvp(words[2], words + 2);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &use) != child) {
        return 127;
    }
    FILE *const file = fopen(words[1], "w");
    if (file == NULL) {
        return 127;
    }
    fprintf(file, "%ld %ld.%06ld %ld.%06ld", use.ru_maxrss, (long)use.ru_utime.tv_sec,
            (long)use.ru_utime.tv_usec, (long)use.ru_stime.tv_sec, (long)use.ru_stime.tv_usec);
    return fclose(file) != 0 ? 127 : WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}
"""


def loaded(script, heap):
    """What the environment needs for a heap of Metes (a spec or heap.toml) or for any library."""
    library, environment = (heap, {}) if ".so" in Path(heap).name else (PRELOAD, {"METES_HEAP": heap})
    if not Path(library).is_file():
        sys.exit(f"{script}: {library} is missing: run cargo build --release -p metes-preload")
    return {"LD_PRELOAD": str(Path(library).resolve()), **environment}


class Launcher:
    """Starts commands and says what they took; its files lie in the folder `work`."""

    def __init__(self, script, work):
        self.script, self.found, self.program = script, work / "found", work / "launcher"
        source = work / "launcher.c"
        source.write_text(LAUNCHER)
        subprocess.run(["cc", "-O2", "-o", self.program, source], check=True)

    def measure(self, command, environment, stdin=None, folder=None, limit=None):
        """Peak resident KiB and CPU seconds of a command with its children, and what it printed;
        nothing if it was still running after `limit` seconds."""
        variables = [f"{name}={value}" for name, value in environment.items()]
        with open(stdin or "/dev/null", "rb") as source:
            ran = subprocess.Popen(
                [self.program, self.found, "env", *variables, *command],
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                start_new_session=True,
            )
        try:
            printed, _ = ran.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(ran.pid, signal.SIGKILL)
            ran.communicate()
            return None
        if ran.returncode != 0:
            said = " ".join(variables) or "glibc"
            sys.exit(f"{self.script}: {command[0]} ended with status {ran.returncode} on {said}")
        kibibytes, user, system = self.found.read_text().split()
        return int(kibibytes), float(user) + float(system), printed.decode(errors="replace")
