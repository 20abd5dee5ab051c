/* Runs a program with a library preloaded, and says what it took:
 *
 *     launch REPORT SECONDS PRELOAD PROGRAM NAME [ARGUMENT...]
 *
 * NAME is what the program is called by; "" as PRELOAD: none but what is preloaded here. After SECONDS it is killed.
 * REPORT gets one line: the signal that ended it (0: none), its exit status, microseconds of processor time, KiB
 * resident at most, page faults without and with a read, instructions in user mode (-1: not counted), and whether it
 * was killed for its time.
 *
 *     launch LIBRARY
 *
 * ends with status 0 if the file LIBRARY is mapped here and serves malloc: so a loader that skips a library is found.
 *
 * A process has, among its peak resident set, that of what it was forked from, also after exec. Hence this program,
 * which is smaller than any that it runs.
 *
 * Invariant: the program gets streams, directory, signals and environment of this process, but for LD_PRELOAD, and
 * does not outlive it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNUSABLE = 125, NOT_STARTED = 127, ARGUMENTS = 6 };

static volatile pid_t program;
static volatile sig_atomic_t late;

/* Whoever is to end this process means the program. */
static void pass_on(int signal) {
    if (signal == SIGALRM) {
        late = 1;
        signal = SIGKILL;
    }
    if (program > 0) {
        kill(program, signal);
    }
}

static void handle(int signal, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(signal, &action, NULL);
}

/* Counts instructions of the next program that this process's child runs, and of its children. */
static int counter(void) {
    struct perf_event_attr what;
    memset(&what, 0, sizeof what);
    what.type = PERF_TYPE_HARDWARE;
    what.size = sizeof what;
    what.config = PERF_COUNT_HW_INSTRUCTIONS;
    what.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    what.disabled = 1;
    what.inherit = 1;
    what.enable_on_exec = 1;
    what.exclude_kernel = 1;
    what.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* What it counted; -1 if it did not, or not all the time. */
static long long counted(int events) {
    struct {
        uint64_t value, enabled, running;
    } read_back;
    if (events < 0 || read(events, &read_back, sizeof read_back) != (ssize_t)sizeof read_back) {
        return -1;
    }
    return read_back.enabled > 0 && read_back.enabled == read_back.running ? (long long)read_back.value : -1;
}

static int serves(const char *library) {
    char line[4096];
    int mapped = 0;
    char *block = malloc(100000);
    FILE *maps = fopen("/proc/self/maps", "r");
    if (block == NULL || maps == NULL) {
        return UNUSABLE;
    }
    memset(block, 1, 100000);
    free(block);
    while (fgets(line, sizeof line, maps) != NULL) {
        mapped |= strstr(line, library) != NULL;
    }
    fclose(maps);
    return mapped ? 0 : UNUSABLE;
}

int main(int count, char **words) {
    if (count == 2) {
        return serves(words[1]);
    }
    if (count < ARGUMENTS) {
        return UNUSABLE;
    }
    const char *preload = words[3];
    int report = open(words[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int events = counter();
    pid_t own = getpid();
    if (report < 0) {
        return UNUSABLE;
    }
    sigset_t held, before;
    sigfillset(&held);
    sigprocmask(SIG_SETMASK, &held, &before);
    /* Where it is ignored there is nobody to wait for. */
    void (*of_children)(int) = signal(SIGCHLD, SIG_DFL);
    program = fork();
    if (program == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != own || (preload[0] != '\0' && setenv("LD_PRELOAD", preload, 1) != 0)) {
            _exit(NOT_STARTED);
        }
        signal(SIGCHLD, of_children);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execv(words[4], words + 5);
        _exit(NOT_STARTED);
    }
    if (program < 0) {
        return UNUSABLE;
    }
    handle(SIGTERM, pass_on);
    handle(SIGHUP, pass_on);
    handle(SIGALRM, pass_on);
    /* What comes from the terminal reaches the program by itself. */
    handle(SIGINT, SIG_IGN);
    handle(SIGQUIT, SIG_IGN);
    sigprocmask(SIG_SETMASK, &before, NULL);
    alarm((unsigned)strtoul(words[2], NULL, 10));
    int status = 0;
    struct rusage used;
    while (wait4(program, &status, 0, &used) < 0) {
        if (errno != EINTR) {
            return UNUSABLE;
        }
    }
    alarm(0);
    long long seconds = (long long)used.ru_utime.tv_sec + used.ru_stime.tv_sec;
    long long micros = seconds * 1000000 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    int by_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    int ended_with = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    dprintf(report, "%d %d %lld %ld %ld %ld %lld %d\n", by_signal, ended_with, micros, used.ru_maxrss, used.ru_minflt,
            used.ru_majflt, counted(events), (int)late);
    return 0;
}
