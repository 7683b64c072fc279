// The table "Intervals" of docs/accuracy_steps.md. A test checks that both agree.
#include "sim/model/known_errors.h"

#include <algorithm>
#include <array>

namespace bubblescope::inline sim {

namespace {

/// From the nearest classes to the widest.
constexpr std::array<KnownErrors, 2> kErrors{{
    {"ampere", "", false, "", 28, -0.23, -0.04, 0.03, 0.08},
    {"hopper", "", false, "", 28, -0.23, -0.04, 0.03, 0.08},
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
    return errors.generation == on.gpu.generation && errors.experts == experts &&
           matches(errors.runtime, on.runtime) && matches(errors.precision, precision);
  });
  return found == kErrors.end() ? nullptr : &*found;
}

StepInterval compute_interval(Nanos step, const KnownErrors& errors) {
  return {scaled(step, errors.highest), scaled(step, errors.lowest)};
}

}  // namespace bubblescope::inline sim
