// Short notation for profiles of PyTorch on a GPU.
#pragma once

#include <string>

#include "tests/support/rank_profile.h"

namespace bubblescope::tests {

/// A profile whose launches have kernels; times are microseconds.
class DeviceProfile : public RankProfile {
 public:
  using RankProfile::RankProfile;

  /// The thread that launches the kernels from now on.
  DeviceProfile& launch_on(int thread) {
    thread_ = thread;
    return *this;
  }

  /// A kernel that the host launches at `launched`.
  DeviceProfile& kernel(const std::string& name, int launched, int stream, int start, int duration,
                        const std::string& group = "") {
    const std::string id = "\"correlation\":" + std::to_string(++launches_);
    event("cuda_runtime", "cudaLaunchKernel", launched, 1, thread_, id);
    const std::string arguments =
        group.empty() ? id : id + R"(,"Process Group Description":")" + group + "\"";
    event("kernel", name, start, duration, stream, arguments);
    return *this;
  }

 private:
  int launches_ = 0;
  int thread_ = 2;
};

}  // namespace bubblescope::tests
