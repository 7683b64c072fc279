// Short notation for profiles of PyTorch on a GPU.
#pragma once

#include <string>

#include "tests/support/rank_profile.h"

namespace bubblescope::tests {

/// A profile whose launches have kernels; times are microseconds.
class DeviceProfile : public RankProfile {
 public:
  using RankProfile::RankProfile;

  /// A kernel that the host launches at `launched`, on `thread`.
  DeviceProfile& kernel(const std::string& name, int launched, int stream, int start, int duration,
                        const std::string& group = "", int thread = 2) {
    const std::string id = "\"correlation\":" + std::to_string(++launches_);
    event("cuda_runtime", "cudaLaunchKernel", launched, 1, thread, id);
    const std::string arguments =
        group.empty() ? id : id + R"(,"Process Group Description":")" + group + "\"";
    event("kernel", name, start, duration, stream, arguments);
    return *this;
  }

 private:
  int launches_ = 0;
};

}  // namespace bubblescope::tests
