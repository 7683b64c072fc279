// Bounds the time for which a gate holds a stream back.
#include "exec/gpu/host/gpu_gate.h"

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

constexpr std::int64_t kMaxSeconds = 3;

}  // namespace

void GpuGate::hold(const GpuHandle& stream) const {
  gpu_.spin({kMaxSeconds * 1'000'000'000, 0, flag_.on_device(), 1}, stream.get());
}

void GpuGate::expect_held_back(const GpuHandle& event, const std::string& progress) const {
  if (!gpu_.has_ended(event)) return;
  throw Error(Fault::kMachine,
              "the gate that holds the device back ended by itself after " +
                  std::to_string(kMaxSeconds) + " s, " + progress +
                  "; something makes launches wait (a debugger, a profiler, a full queue)");
}

}  // namespace bubblescope::exec
