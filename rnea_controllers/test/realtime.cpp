// What update() does to the machine: memory, locks, exceptions, system calls, instructions, time. Linux with glibc.
//   realtime PLUGIN LIBRARY MODE calls CYCLES   forbid system calls, count the rest; one line of counts
//   realtime PLUGIN LIBRARY MODE steps CYCLES   instructions of single cycles, step by step; one number a line
//   realtime PLUGIN LIBRARY MODE time CYCLES    processor time of each cycle in ns: p50 p99.9 max mean
//   realtime PLUGIN LIBRARY MODE loop CYCLES    nothing but cycles, for callgrind --toggle-collect=cycle
//   realtime PLUGIN LIBRARY MODE life CYCLES    the whole life of a controller, for sanitizers
//   realtime PLUGIN LIBRARY MODE threads CYCLES cycles, while another thread sends messages and parameters, for -fsanitize=thread
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

struct Harness;
extern "C" {
Harness * harness_new(const char *, const char *, unsigned);
void harness_delete(Harness *);
void harness_text(Harness *, const char *, const char *);
void harness_number(Harness *, const char *, double);
void harness_numbers(Harness *, const char *, const double *, int);
void harness_texts(Harness *, const char *, const char * const *, int);
void harness_trajectory(Harness *, std::int64_t, const char * const *, int, const double *, const double *, int);
void harness_override(Harness *, double);
const char * harness_set(Harness *, int);
int harness_transition(Harness *, const char *);
void harness_chained(Harness *, int);
int harness_count(Harness *, const char *);
void harness_write(Harness *, const double *, const double *, const double *);
int harness_update(Harness *, double);
void harness_read(Harness *, double *, double *);
const char * harness_log(Harness *);
}

static volatile bool counting = false;
static volatile long allocations = 0, locks = 0, exceptions = 0;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void * __libc_malloc(size_t);
void * __libc_calloc(size_t, size_t);
void * __libc_realloc(void *, size_t);
void * __libc_memalign(size_t, size_t);
void __libc_free(void *);
void * malloc(size_t size) { allocations = allocations + counting; return __libc_malloc(size); }
void * calloc(size_t n, size_t size) { allocations = allocations + counting; return __libc_calloc(n, size); }
void * realloc(void * old, size_t size) { allocations = allocations + counting; return __libc_realloc(old, size); }
void * memalign(size_t to, size_t size) { allocations = allocations + counting; return __libc_memalign(to, size); }
void * aligned_alloc(size_t to, size_t size) { allocations = allocations + counting; return __libc_memalign(to, size); }
int posix_memalign(void ** found, size_t to, size_t size)
{
  allocations = allocations + counting;
  *found = __libc_memalign(to, size);
  return *found == nullptr;
}
void free(void * old) { allocations = allocations + (counting && old != nullptr); __libc_free(old); }
int __real_pthread_mutex_lock(pthread_mutex_t *);
int __wrap_pthread_mutex_lock(pthread_mutex_t * mutex) { locks = locks + counting; return __real_pthread_mutex_lock(mutex); }
void __real___cxa_throw(void *, void *, void (*)(void *));
void __wrap___cxa_throw(void * thrown, void * type, void (* destroy)(void *))
{
  exceptions = exceptions + counting;
  __real___cxa_throw(thrown, type, destroy);
  std::abort();
}
}
#endif

namespace
{
struct Loop
{
  Harness * harness;
  int n;
  bool on_path;
  std::vector<double> states, references, commands, exported;

  Loop(const char * plugin, const char * library, const char * mode)
  : harness(harness_new(plugin, "controller", 1000))
  {
    if (harness == nullptr) {
      std::fprintf(stderr, "no plugin %s\n", plugin);
      std::exit(2);
    }
    const double stiffness = 100.0, damping = 10.0;
    const char * const names[] = {"1", "2", "3", "4", "5", "6", "7"};
    on_path = std::strstr(plugin, "OnPath") != nullptr;
    harness_text(harness, "robot_library", library);
    harness_text(harness, "mode", mode);
    if (on_path) {
      harness_texts(harness, "joints", names, 7);
    }
    harness_numbers(harness, "stiffness", &stiffness, 1);
    harness_numbers(harness, "damping", &damping, 1);
    harness_set(harness, 1);
    require("init");
    require("configure");
    n = harness_count(harness, "commands");
    states.resize(static_cast<std::size_t>(harness_count(harness, "states")));
    references.resize(static_cast<std::size_t>(harness_count(harness, "references")));
    commands.resize(static_cast<std::size_t>(n));
    exported.resize(static_cast<std::size_t>(harness_count(harness, "exported")));
    harness_chained(harness, 1);
    move(0);
    harness_write(harness, states.data(), nullptr, nullptr);
    require("activate");
    if (on_path) {  // 100 s from here on
      const double times[2] = {0.0, 100.0};
      std::vector<double> knots(42, 0.0);
      for (int k = 0; k < 7; ++k) {
        knots[static_cast<std::size_t>(k)] = states[static_cast<std::size_t>(k)];
        knots[static_cast<std::size_t>(21 + k)] = 1.0;
      }
      harness_trajectory(harness, 0, names, 7, times, knots.data(), 2);
    }
  }
  ~Loop() { harness_delete(harness); }
  void require(const char * transition)
  {
    if (harness_transition(harness, transition) != 97) {
      std::fprintf(stderr, "%s failed: %s\n", transition, harness_log(harness));
      std::exit(2);
    }
  }
  // Smooth references, and states near them.
  void move(long cycle)
  {
    if (on_path) {
      states.assign(states.size(), 0.1);
      references.assign(references.size(), cycle / 500 % 2 ? 0.2 : 1.0);
      return;
    }
    const double t = 1e-3 * static_cast<double>(cycle);
    for (int k = 0; k < n; ++k) {
      const double w = 1.0 + 0.3 * k, x = 0.3 * std::sin(w * t + k), v = 0.3 * w * std::cos(w * t + k);
      const auto at = static_cast<std::size_t>(k);
      states[2 * at] = x + 0.01 * std::sin(3.0 * t + k);
      states[2 * at + 1] = v + 0.03 * std::cos(3.0 * t + k);
      if (!references.empty()) {
        references[3 * at] = x;
        references[3 * at + 1] = v;
        references[3 * at + 2] = -w * w * x;
      }
    }
  }
  void write() { harness_write(harness, states.data(), references.data(), nullptr); }
};
}  // namespace

extern "C" __attribute__((noinline)) int cycle(Harness * harness) { return harness_update(harness, 1e-3); }

static int calls(Loop & loop, long cycles)
{
  int channel[2];
  if (pipe(channel) != 0) {
    return 2;
  }
  const pid_t child = fork();
  if (child == 0) {
    long found[4] = {0, 0, 0, 0};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {  // any system call but read, write and exit ends the process
      found[3] = -1;
    }
    for (long k = 0; k < cycles; ++k) {
      loop.move(k);
      if (k % 7 == 5) {
        loop.states[0] = NAN;
      }
      if (k / 100 % 5 == 3 && !loop.on_path) {  // long enough to hold gravity
        loop.states[1] = NAN;
        loop.references[0] = INFINITY;
      }
      loop.write();
      counting = true;
      cycle(loop.harness);
      counting = false;
    }
    harness_read(loop.harness, loop.commands.data(), loop.exported.data());
    if (loop.on_path && !(loop.exported[1] > 1e-4 * static_cast<double>(cycles))) {
      syscall(SYS_exit, 4);  // the path was not played
    }
    found[0] = allocations;
    found[1] = locks;
    found[2] = exceptions;
    if (write(channel[1], found, sizeof found) != sizeof found) {
      syscall(SYS_exit, 3);
    }
    syscall(SYS_exit, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  long found[4] = {0, 0, 0, 0};
  const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!ended || read(channel[0], found, sizeof found) != static_cast<ssize_t>(sizeof found)) {
    std::printf("system call: the process ended with status %d\n", status);
    return 1;
  }
  std::printf("allocations %ld locks %ld exceptions %ld seccomp %s\n", found[0], found[1], found[2], found[3] ? "no" : "yes");
  return 0;
}

static int steps(Loop & loop, long cycles)
{
  for (int k = 0; k < 1000; ++k) {  // beyond the activation
    loop.move(k);
    loop.write();
    cycle(loop.harness);
  }
  for (long k = 0; k < cycles; ++k) {
    loop.move(1000 + k);
    loop.write();
    const pid_t child = fork();
    if (child == 0) {
      ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      raise(SIGSTOP);
      cycle(loop.harness);
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    long count = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status)) {
      return 2;
    }
    while (true) {
      if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) < 0 || waitpid(child, &status, 0) < 0) {
        return 2;
      }
      if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
        break;
      }
      ++count;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    cycle(loop.harness);
    std::printf("%ld\n", count);
  }
  return 0;
}

static std::int64_t now()
{
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int measure(Loop & loop, long cycles)
{
  std::vector<double> times(static_cast<std::size_t>(cycles));
  for (long k = 0; k < cycles; ++k) {
    loop.move(k);
    loop.write();
    const auto before = now();
    cycle(loop.harness);
    times[static_cast<std::size_t>(k)] = static_cast<double>(now() - before);
  }
  double overhead = 1e9, mean = 0.0;
  for (int k = 0; k < 1000; ++k) {
    const auto before = now();
    overhead = std::min(overhead, static_cast<double>(now() - before));
  }
  std::sort(times.begin(), times.end());
  for (const double x : times) {
    mean += x / static_cast<double>(cycles);
  }
  const auto at = [&times, overhead](double share) {
      return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))] - overhead;
    };
  std::printf("%.0f %.0f %.0f %.0f\n", at(0.5), at(0.999), at(1.0), mean - overhead);
  return 0;
}

static int life(Loop & loop, long cycles)
{
  for (int round = 0; round < 3; ++round) {
    for (long k = 0; k < cycles; ++k) {
      loop.move(k);
      if (k % 100 > 80) {
        loop.states[static_cast<std::size_t>(k) % loop.states.size()] = NAN;
      }
      loop.write();
      cycle(loop.harness);
      harness_read(loop.harness, loop.commands.data(), loop.exported.data());
      if (k == cycles / 2) {
        harness_number(loop.harness, "payload.mass", 0.5);
        harness_set(loop.harness, 0);
      }
    }
    loop.move(0);
    loop.write();
    loop.require("deactivate");
    loop.require(round == 1 ? "error" : "cleanup");
    loop.require("configure");
    harness_write(loop.harness, loop.states.data(), nullptr, nullptr);
    loop.require("activate");
  }
  std::printf("lived\n");
  return 0;
}

static int threads(Loop & loop, long cycles)
{
  std::atomic<bool> ended{false};
  std::atomic<long> sent{0};
  std::thread other([&] {
      const char * const names[] = {"1", "2", "3", "4", "5", "6", "7"};
      const double times[2] = {0.0, 1.0};
      std::vector<double> knots(42, 0.1);
      std::fill(knots.begin() + 7, knots.begin() + 21, 0.0);
      std::fill(knots.begin() + 28, knots.end(), 0.0);
      while (!ended) {
        const long k = ++sent;
        if (loop.on_path) {
          harness_trajectory(loop.harness, 0, names, 7, times, knots.data(), 2);
          harness_override(loop.harness, k % 2 ? 0.3 : 1.0);
        } else {
          harness_number(loop.harness, "payload.mass", 0.1 * static_cast<double>(k % 5));
          harness_set(loop.harness, 0);
        }
        harness_log(loop.harness);
        std::this_thread::yield();
      }
    });
  for (long k = 0; k < cycles || sent < 50; ++k) {
    loop.move(k);
    loop.write();
    cycle(loop.harness);
    harness_read(loop.harness, loop.commands.data(), loop.exported.data());
  }
  ended = true;
  other.join();
  std::printf("lived\n");
  return 0;
}

int main(int count, char ** words)
{
  if (count != 6) {
    return 2;
  }
  Loop loop(words[1], words[2], words[3]);
  const std::string what = words[4];
  const long cycles = std::atol(words[5]);
  if (what == "loop") {
    for (long k = 0; k < cycles; ++k) {
      loop.move(k);
      loop.write();
      cycle(loop.harness);
    }
    return 0;
  }
  return what == "calls" ? calls(loop, cycles) : what == "steps" ? steps(loop, cycles) :
         what == "time" ? measure(loop, cycles) : what == "threads" ? threads(loop, cycles) : life(loop, cycles);
}
