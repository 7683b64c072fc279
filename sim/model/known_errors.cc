// The table "Without calibration, by device" of docs/accuracy_published.md. A test checks that both
// agree.
#include "sim/model/known_errors.h"

#include <algorithm>
#include <array>

namespace bubblescope::inline sim {

namespace {

constexpr std::string_view kSc21 = "SC21, arXiv 2205.05198, 2201.11990 and 2211.05100";
constexpr std::string_view kNemo = "NVIDIA DGX Cloud benchmarking 24.11.1 and arXiv 2407.21783";
constexpr std::string_view kNemoExperts = "NVIDIA DGX Cloud benchmarking 24.11.1, Megatron-Bridge";
constexpr std::string_view kBlackwell = "NVIDIA DGX Cloud benchmarking 25.05.05, Megatron-Bridge";

constexpr std::array<KnownErrors, 5> kErrors{{
    {"a100", false, 28, -0.23, -0.04, 0.03, 0.08, kSc21},
    {"h100", false, 22, -0.20, -0.05, 0.04, -0.01, kNemo},
    {"h100", true, 9, -0.43, -0.20, 0.01, -0.18, kNemoExperts},
    {"gb200", false, 4, -0.21, -0.16, 0.01, -0.15, kBlackwell},
    {"gb200", true, 3, -0.72, -0.48, 0.24, -0.14, kBlackwell},
}};

Nanos scaled(Nanos step, double error) {
  return static_cast<Nanos>(static_cast<double>(step) / (1 + error));
}

}  // namespace

std::string KnownErrors::from() const { return std::string(device) + "/megatron/bf16"; }

const KnownErrors* find_nearest_errors(const ModelOnDevices& on) {
  if (on.assumptions.slowdown != 1) return nullptr;
  const bool experts = on.model.experts.has_value();
  const auto found = std::find_if(kErrors.begin(), kErrors.end(), [&](const KnownErrors& errors) {
    return errors.device == on.device && errors.experts == experts;
  });
  return found == kErrors.end() ? nullptr : &*found;
}

StepInterval compute_interval(Nanos step, const KnownErrors& errors) {
  return {scaled(step, errors.highest), scaled(step, errors.lowest)};
}

}  // namespace bubblescope::inline sim
