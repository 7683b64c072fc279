// The fake device as a module that the program can open in place of bubblescope_cuda.so: rehearsals
// of everything that is done on a machine with a GPU.
//
// Its times are those of no real device; what counts is that ops of different work differ, and that
// ranks slow each other, products less than other kernels.
#include <string_view>

#include "tests/support/fake_gpu.h"

namespace bubblescope::tests {

namespace {

const BubblescopeGpu& start_simulated_gpu() {
  FakeGpu& gpu = reset_fake_gpu(1);
  const std::string_view bus = "0000:01:00.0";
  bus.copy(gpu.devices[0].bus, bus.size());
  gpu.times.nanos_per_product = 0.05;
  gpu.times.nanos_per_entry = 20;
  gpu.times.nanos_per_copy = 2000;
  gpu.times.nanos_per_byte = 0.05;
  gpu.times.copies = {1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.45};
  gpu.times.products = {1.01, 1.02, 1.04, 1.05, 1.06, 1.08, 1.1};
  gpu.times.kernels = {1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6};
  return fake_gpu_calls();
}

}  // namespace

}  // namespace bubblescope::tests

const BubblescopeGpu* bubblescope_open_gpu(const char** error) {
  static const BubblescopeGpu& calls = bubblescope::tests::start_simulated_gpu();
  *error = nullptr;
  return &calls;
}
