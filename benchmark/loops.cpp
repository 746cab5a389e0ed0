// Timed loops around our kernels, by their address, and around fused multiply-adds, as many as the machine can do.
#include <chrono>

namespace {
template <class Body> double seconds(long count, Body body) {
  const auto start = std::chrono::steady_clock::now();
  for (long k = 0; k < count; ++k) body(k);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

#ifdef __AVX512F__
constexpr int WIDE = 8;
#else
constexpr int WIDE = 4;
#endif
typedef double Wide __attribute__((vector_size(8 * WIDE)));
}  // namespace

extern "C" {

// x: inputs of one state after another, `width` numbers each.
double kernel_seconds(void (*kernel)(const double *, double *), const double *x, double *y, long width, long states, long count) {
  return seconds(count, [&](long k) { kernel(x + width * (k % states), y); });
}

// Operations per second of one core, a fused multiply-add being two: vectors as wide as a register, in enough independent
// chains to hide their latency.
double vector_peak(long count) {
  constexpr int CHAINS = 16, LENGTH = 16;
  Wide c[CHAINS], a = Wide{} + 0.9999999, b = Wide{} + 1e-7;
  for (int i = 0; i < CHAINS; ++i) c[i] = Wide{} + double(i);
  const double took = seconds(count, [&](long) {
    for (int k = 0; k < LENGTH; ++k)
      for (int i = 0; i < CHAINS; ++i) c[i] = c[i] * a + b;
  });
  volatile double sink = 0.0;
  for (int i = 0; i < CHAINS; ++i) sink = sink + c[i][0];
  return 2.0 * WIDE * CHAINS * LENGTH * double(count) / took;
}
}
