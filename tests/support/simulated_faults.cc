// Hits the first launch after a gate.
#include "tests/support/simulated_faults.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/support/fake_gpu.h"

namespace bubblescope::tests {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGateBound{3};  // after which gates end by themselves

struct Fault {
  std::string kind;
  Clock::time_point due;
  bool is_armed = false;  ///< a step has begun since it is due
  bool is_done = false;
};

const BubblescopeGpu* sound_calls = nullptr;
Fault next_fault;

/// Never set, so that a kernel that waits for it never ends.
const std::uint32_t never = 0;

void hit(void* stream) {
  next_fault.is_done = true;
  const BubblescopeSpin endless{0, 0, &never, 1};
  if (next_fault.kind == "hang") sound_calls->spin(&endless, stream);
  if (next_fault.kind == "lost") kill(getpid(), SIGKILL);
  while (next_fault.kind == "block") pause();
  if (next_fault.kind != "queue") return;
  std::this_thread::sleep_for(kGateBound);
  fake_gpu_clock().expire_blocks();
}

/// A full queue shows only while a gate is closed.
void hit_if_due(void* stream) {
  if (!next_fault.is_armed || next_fault.is_done) return;
  if (next_fault.kind != "queue" || fake_gpu_clock().is_blocked()) hit(stream);
}

const char* spin_or_hit(const BubblescopeSpin* order, void* stream) {
  if (order->awaits_stop == 0)
    hit_if_due(stream);
  else
    next_fault.is_armed = Clock::now() >= next_fault.due;
  return sound_calls->spin(order, stream);
}

const char* launch_or_hit(const exec::KernelLaunch* order, void* stream) {
  hit_if_due(stream);
  return sound_calls->launch(order, stream);
}

const char* multiply_or_hit(void* blas_handle, const BubblescopeGemm* gemm, void* stream) {
  hit_if_due(stream);
  return sound_calls->multiply(blas_handle, gemm, stream);
}

const char* launch_graph_or_hit(void* graph, void* stream) {
  hit_if_due(stream);
  return sound_calls->launch_graph(graph, stream);
}

Fault parse_fault(const std::string& text) {
  const std::size_t colon = text.find(':');
  Fault parsed{text.substr(0, colon), Clock::now()};
  for (const char* const kind : {"hang", "block", "queue", "lost"})
    if (parsed.kind == kind && colon != text.npos) {
      const auto seconds = std::chrono::duration<double>(std::atof(text.c_str() + colon + 1));
      parsed.due += std::chrono::duration_cast<Clock::duration>(seconds);
      return parsed;
    }
  std::fprintf(stderr, "BUBBLESCOPE_SIMULATED_GPU_FAULT: '%s' is not a fault\n", text.c_str());
  std::exit(2);
}

}  // namespace

const BubblescopeGpu& with_simulated_fault(const BubblescopeGpu& calls, const char* text) {
  if (text == nullptr || *text == '\0') return calls;
  next_fault = parse_fault(text);
  sound_calls = &calls;
  static BubblescopeGpu faulty = calls;
  faulty.spin = spin_or_hit;
  faulty.launch = launch_or_hit;
  faulty.multiply = multiply_or_hit;
  faulty.launch_graph = launch_graph_or_hit;
  return faulty;
}

}  // namespace bubblescope::tests
