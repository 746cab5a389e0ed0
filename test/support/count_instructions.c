/* How many instructions a function takes: a child runs it, its parent steps through it. Counts all of them, independently of the clock.
 *
 * long count(call, arguments): call(arguments) between two marks, or -1 where the system forbids to step. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int mark;

long count(void (*call)(double **), double **arguments)
{
    const pid_t child = fork();
    int status;
    long steps = 0;
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        call(arguments); /* once before, so that nothing is bound or paged in while it counts */
        raise(SIGSTOP);
        call(arguments);
        raise(SIGSTOP);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
        return -1;
    while (1) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) < 0 || waitpid(child, &status, 0) < 0)
            return -1;
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
            break;
        ++steps;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return steps;
}
