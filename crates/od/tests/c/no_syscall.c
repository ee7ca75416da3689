/*
 * Proves that reading makes no system call: the program reads a million readings while every system call except write() and
 * exit_group() kills the process.
 *
 *     no_syscall DIR NAME [wait]
 *
 * With `wait`, the program finally waits, which makes a system call. It must then be killed; otherwise the filter is broken.
 *
 * The program uses a seccomp filter, not strict mode: on x86, strict mode also forbids reading the time stamp counter, from
 * which the clock is read without a system call.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <od.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READINGS 1000000

static int forbid_system_calls(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { sizeof steps / sizeof steps[0], steps };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void leave(const char *said, int status)
{
    _exit(write(STDOUT_FILENO, said, strlen(said)) < 0 ? 3 : status);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    od *handle = od_open(argv[1]);
    int kpi = handle == NULL ? -1 : od_subscribe(handle, argv[2]);
    struct od_reading reading = OD_READING_INIT;
    if (kpi < 0 || od_wait(handle, kpi, 0, 10000000000, &reading) != 0) {
        perror("no_syscall");
        return 2;
    }
    if (forbid_system_calls() != 0) {
        perror("seccomp");
        return 77;
    }
    double sum = 0.0;
    for (int i = 0; i < READINGS; i++) {
        if (od_latest(handle, kpi, &reading) != 0)
            leave("od_latest failed\n", 1);
        if (od_age_ns(&reading) < 0)
            leave("od_age_ns failed\n", 1);
        if (od_alive(handle) < 0)
            leave("od_alive failed\n", 1);
        sum += reading.value;
    }
    if (sum != READINGS * reading.value)
        leave("the sum is wrong\n", 1);
    if (argc > 3)
        od_wait(handle, kpi, reading.sequence, 1000000, &reading);
    leave("a million readings, no system call\n", 0);
    return 0;
}
