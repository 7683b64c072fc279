// Enqueues and opens the gates.
#include "exec/gpu/host/step_start.h"

#include <utility>

#include "exec/runtime/step_clock.h"

namespace bubblescope::exec {

namespace {

/// The longest time for which the host polls for the opening of the gate.
constexpr Nanos kMaxGatePoll = 5'000'000;

}  // namespace

StepStart::StepStart(const GpuMachine& machine) : gpu_(machine.gpu()), gate_(machine.gpu()) {
  for (std::int32_t device = 0; device < machine.device_count(); ++device) {
    streams_.push_back(gpu_.create_stream(device, nullptr));
    zero_.push_back(gpu_.create_event(device, EventUse::kTimed));
  }
}

void StepStart::reset() {
  gate_.close();
  is_open_ = false;
  is_held_ = false;
}

void StepStart::hold_back() {
  for (std::size_t device = 0; device < zero_.size(); ++device) {
    gate_.hold(streams_[device]);
    gpu_.record(zero_[device], streams_[device]);
  }
  is_held_ = !is_open_;
}

void StepStart::open(const std::string& progress) {
  if (std::exchange(is_open_, true)) return;
  if (is_held_)
    for (const GpuHandle& zero : zero_) gate_.expect_held_back(zero, progress);
  zero_time_.earliest = read_monotonic_clock();
  gate_.open();
}

void StepStart::await_zero() {
  while (read_monotonic_clock() < zero_time_.earliest + kMaxGatePoll && !gpu_.has_ended(zero_[0])) {
  }
  zero_time_.latest = read_monotonic_clock();
}

}  // namespace bubblescope::exec
