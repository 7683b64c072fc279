// The table "Intervals" of docs/accuracy_steps.md. A test checks that both agree.
#include "sim/model/known_errors.h"

#include <algorithm>
#include <array>

namespace bubblescope::inline sim {

namespace {

/// From the nearest classes to the widest.
constexpr std::array<KnownErrors, 15> kErrors{{
    {"ampere", "deepspeed", false, "bf16", 388, -0.22, -0.01, 0.05, 0.15},
    {"ampere", "megatron-2021", false, "bf16", 21, -0.20, 0.00, 0.04, 0.09},
    {"hopper", "fsdp", false, "bf16", 20, -0.08, 0.05, 0.03, 0.15},
    {"hopper", "nemo", false, "fp8", 21, -0.08, 0.04, 0.07, 0.13},
    {"hopper", "nemo", true, "bf16", 9, -0.28, -0.08, 0.01, 0.05},
    {"ampere", "", false, "bf16", 450, -0.22, -0.02, 0.05, 0.13},
    {"hopper", "", false, "bf16", 46, -0.05, 0.06, 0.04, 0.13},
    {"hopper", "", false, "fp8", 26, -0.08, 0.08, 0.05, 0.21},
    {"hopper", "", true, "bf16", 9, -0.28, -0.08, 0.01, 0.05},
    {"ampere", "", false, "", 450, -0.22, -0.02, 0.05, 0.13},
    {"blackwell", "", false, "", 10, -0.15, -0.07, 0.05, 0.13},
    {"hopper", "", false, "", 72, -0.05, 0.05, 0.05, 0.13},
    {"hopper", "", true, "", 11, -0.28, -0.08, 0.02, 0.05},
    {"", "", false, "", 532, -0.20, 0.00, 0.06, 0.13},
    {"", "", true, "", 16, -0.65, -0.08, 0.02, 0.17},
}};

bool matches(std::string_view wanted, std::string_view given) {
  return wanted.empty() || wanted == given;
}

Nanos scaled(Nanos step, double error) {
  return static_cast<Nanos>(static_cast<double>(step) / (1 + error));
}

}  // namespace

std::string KnownErrors::from() const {
  std::string text;
  for (const std::string_view part : {generation, runtime, precision})
    if (!part.empty()) text += std::string(part) + "/";
  return text + (experts ? "expert" : "dense");
}

const KnownErrors* find_nearest_errors(const ModelOnDevices& on) {
  if (on.assumptions.slowdown != 1 || on.gpu.generation.empty()) return nullptr;
  const bool experts = on.model.experts.has_value();
  const std::string_view precision = on.matrices == MatrixType::kFp8 ? "fp8" : "bf16";
  const auto found = std::find_if(kErrors.begin(), kErrors.end(), [&](const KnownErrors& errors) {
    return matches(errors.generation, on.gpu.generation) && errors.experts == experts &&
           matches(errors.runtime, on.runtime) && matches(errors.precision, precision);
  });
  return found == kErrors.end() ? nullptr : &*found;
}

StepInterval compute_interval(Nanos step, const KnownErrors& errors) {
  return {scaled(step, errors.highest), scaled(step, errors.lowest)};
}

}  // namespace bubblescope::inline sim
