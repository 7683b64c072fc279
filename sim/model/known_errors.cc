// The table "Intervals" of docs/accuracy_steps.md. A test checks that both agree;
// tests/golden/published_intervals.py prints the rows.
#include "sim/model/known_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/registry.h"
#include "sim/model/runtime.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::inline sim {

namespace {

/// From the nearest classes to the widest.
constexpr std::array<KnownErrors, 91> kErrors{{
    {"ada", "torchtitan", false, "bf16", 17, -0.34, -0.03, 0.04, 0.27},
    {"ada", "torchtitan", false, "fp8", 9, -0.34, -0.02, 0.04, 0.28},
    {"ampere", "deepspeed", false, "bf16", 490, -0.33, -0.05, 0.04, 0.15},
    {"ampere", "fsdp", false, "bf16", 172, -0.35, -0.04, 0.04, 0.12},
    {"ampere", "megatron", false, "bf16", 9, -0.33, -0.02, 0.04, 0.10},
    {"ampere", "megatron-2021", false, "bf16", 21, -0.35, -0.02, 0.04, 0.10},
    {"ampere", "torchtitan", false, "bf16", 8, -0.42, -0.03, 0.04, 0.10},
    {"ampere-pcie", "torchtitan", false, "bf16", 2, -0.30, 0.00, 0.04, 0.15},
    {"blackwell", "fsdp", false, "bf16", 3, -0.26, -0.03, 0.04, 0.15},
    {"blackwell", "megatron", false, "bf16", 36, -0.25, -0.03, 0.04, 0.15},
    {"blackwell", "megatron", false, "fp8", 2, -0.25, -0.02, 0.04, 0.15},
    {"blackwell", "nemo", false, "bf16", 5, -0.21, -0.02, 0.04, 0.19},
    {"blackwell", "nemo", false, "fp8", 40, -0.18, -0.02, 0.04, 0.20},
    {"blackwell", "torchtitan", false, "bf16", 13, -0.21, -0.03, 0.04, 0.15},
    {"blackwell", "torchtitan", false, "fp8", 2, -0.25, -0.04, 0.04, 0.15},
    {"blackwell-rtx", "torchtitan", false, "bf16", 13, -0.29, 0.03, 0.04, 0.29},
    {"blackwell-rtx", "torchtitan", false, "fp8", 12, -0.29, 0.02, 0.04, 0.29},
    {"cdna3", "megatron", false, "bf16", 3, -0.39, -0.05, 0.04, 0.15},
    {"cdna3", "megatron", false, "fp8", 3, -0.39, -0.04, 0.04, 0.15},
    {"cdna3", "torchtitan", false, "bf16", 1, -0.40, -0.05, 0.04, 0.15},
    {"cdna3", "torchtitan", false, "fp8", 2, -0.40, -0.05, 0.04, 0.15},
    {"cdna4", "megatron", false, "fp8", 1, -0.30, 0.00, 0.04, 0.15},
    {"ga10x", "torchtitan", false, "bf16", 6, -0.30, 0.00, 0.04, 0.15},
    {"hopper", "fsdp", false, "bf16", 70, -0.37, -0.05, 0.04, 0.12},
    {"hopper", "fsdp", false, "fp8", 2, -0.34, -0.03, 0.04, 0.17},
    {"hopper", "megatron", false, "bf16", 34, -0.23, -0.01, 0.04, 0.13},
    {"hopper", "megatron", false, "fp8", 3, -0.25, -0.02, 0.04, 0.15},
    {"hopper", "nemo", false, "bf16", 21, -0.25, 0.01, 0.04, 0.14},
    {"hopper", "nemo", false, "fp8", 53, -0.29, 0.00, 0.04, 0.13},
    {"hopper", "torchtitan", false, "bf16", 43, -0.25, 0.00, 0.04, 0.23},
    {"hopper", "torchtitan", false, "fp8", 15, -0.25, -0.02, 0.04, 0.20},
    {"hopper-pcie", "torchtitan", false, "bf16", 4, -0.30, -0.02, 0.04, 0.15},
    {"blackwell", "fsdp", true, "bf16", 4, -0.57, -0.08, 0.04, 0.20},
    {"blackwell", "megatron", true, "bf16", 14, -0.57, -0.08, 0.04, 0.20},
    {"blackwell", "megatron-bridge-26.06", true, "bf16", 9, -0.57, -0.06, 0.04, 0.20},
    {"blackwell", "megatron-bridge-26.06", true, "fp8", 12, -0.57, -0.03, 0.04, 0.20},
    {"blackwell", "nemo", true, "bf16", 34, -0.60, -0.10, 0.04, 0.25},
    {"blackwell", "nemo", true, "fp8", 10, -0.60, -0.11, 0.04, 0.23},
    {"blackwell", "torchtitan", true, "bf16", 20, -0.52, -0.03, 0.04, 0.16},
    {"blackwell", "torchtitan", true, "fp8", 1, -0.56, -0.03, 0.04, 0.16},
    {"cdna4", "megatron", true, "fp8", 5, -0.57, -0.06, 0.04, 0.20},
    {"hopper", "megatron", true, "bf16", 22, -0.61, -0.02, 0.04, 0.23},
    {"hopper", "megatron", true, "fp8", 1, -0.61, -0.02, 0.04, 0.23},
    {"hopper", "nemo", true, "bf16", 35, -0.60, -0.01, 0.04, 0.25},
    {"hopper", "nemo", true, "fp8", 2, -0.60, -0.05, 0.04, 0.23},
    {"hopper", "nemo-automodel", true, "bf16", 4, -0.60, -0.01, 0.04, 0.23},
    {"ada", "torchtitan", false, "", 26, -0.34, -0.03, 0.04, 0.27},
    {"ampere", "deepspeed", false, "", 490, -0.33, -0.05, 0.04, 0.15},
    {"ampere", "fsdp", false, "", 172, -0.35, -0.04, 0.04, 0.12},
    {"ampere", "megatron", false, "", 9, -0.35, -0.02, 0.04, 0.11},
    {"ampere", "megatron-2021", false, "", 21, -0.35, -0.03, 0.04, 0.12},
    {"ampere", "torchtitan", false, "", 8, -0.42, -0.03, 0.04, 0.12},
    {"ampere-pcie", "torchtitan", false, "", 2, -0.32, -0.01, 0.04, 0.15},
    {"blackwell", "fsdp", false, "", 3, -0.27, -0.03, 0.04, 0.15},
    {"blackwell", "megatron", false, "", 38, -0.26, -0.02, 0.04, 0.15},
    {"blackwell", "nemo", false, "", 45, -0.25, -0.02, 0.04, 0.19},
    {"blackwell", "torchtitan", false, "", 15, -0.25, -0.03, 0.04, 0.15},
    {"blackwell-rtx", "torchtitan", false, "", 25, -0.30, 0.00, 0.04, 0.29},
    {"cdna3", "megatron", false, "", 6, -0.40, -0.04, 0.04, 0.15},
    {"cdna3", "torchtitan", false, "", 3, -0.40, -0.05, 0.04, 0.15},
    {"cdna4", "megatron", false, "", 1, -0.32, -0.01, 0.04, 0.15},
    {"ga10x", "torchtitan", false, "", 6, -0.32, -0.01, 0.04, 0.15},
    {"hopper", "fsdp", false, "", 72, -0.35, -0.03, 0.04, 0.15},
    {"hopper", "megatron", false, "", 37, -0.25, -0.02, 0.04, 0.15},
    {"hopper", "nemo", false, "", 74, -0.29, 0.00, 0.04, 0.15},
    {"hopper", "torchtitan", false, "", 58, -0.25, -0.01, 0.04, 0.20},
    {"hopper-pcie", "torchtitan", false, "", 4, -0.32, -0.02, 0.04, 0.15},
    {"blackwell", "fsdp", true, "", 4, -0.58, -0.07, 0.04, 0.23},
    {"blackwell", "megatron", true, "", 14, -0.57, -0.07, 0.04, 0.20},
    {"blackwell", "megatron-bridge-26.06", true, "", 21, -0.57, -0.04, 0.04, 0.20},
    {"blackwell", "nemo", true, "", 44, -0.60, -0.08, 0.04, 0.23},
    {"blackwell", "torchtitan", true, "", 21, -0.56, -0.03, 0.04, 0.16},
    {"cdna4", "megatron", true, "", 5, -0.57, -0.04, 0.04, 0.20},
    {"hopper", "megatron", true, "", 23, -0.61, -0.02, 0.04, 0.23},
    {"hopper", "nemo", true, "", 37, -0.61, -0.02, 0.04, 0.25},
    {"hopper", "nemo-automodel", true, "", 4, -0.61, -0.02, 0.04, 0.23},
    {"ada", "", false, "", 26, -0.34, -0.02, 0.04, 0.20},
    {"ampere", "", false, "", 700, -0.35, -0.03, 0.04, 0.12},
    {"ampere-pcie", "", false, "", 2, -0.33, -0.02, 0.04, 0.15},
    {"blackwell", "", false, "", 101, -0.27, -0.03, 0.04, 0.16},
    {"blackwell-rtx", "", false, "", 25, -0.32, -0.02, 0.04, 0.27},
    {"cdna3", "", false, "", 9, -0.40, -0.04, 0.04, 0.15},
    {"cdna4", "", false, "", 1, -0.33, -0.02, 0.04, 0.15},
    {"ga10x", "", false, "", 6, -0.33, -0.02, 0.04, 0.15},
    {"hopper", "", false, "", 241, -0.29, -0.02, 0.04, 0.19},
    {"hopper-pcie", "", false, "", 4, -0.33, -0.02, 0.04, 0.15},
    {"blackwell", "", true, "", 104, -0.60, -0.03, 0.04, 0.23},
    {"cdna4", "", true, "", 5, -0.60, -0.04, 0.04, 0.20},
    {"hopper", "", true, "", 64, -0.61, -0.03, 0.04, 0.23},
    {"", "", false, "", 1115, -0.34, -0.02, 0.04, 0.15},
    {"", "", true, "", 173, -0.60, -0.03, 0.04, 0.23},
}};

bool matches(std::string_view wanted, std::string_view given) {
  return wanted.empty() || wanted == given;
}

Nanos scaled(Nanos step, double error) {
  return static_cast<Nanos>(static_cast<double>(step) / (1 + error));
}

/// How much longer a layer's F and backward take because the host launches them more slowly than
/// the device runs them: 0.2 for a fifth.
double find_host_excess(const ModelOnDevices& on) {
  const PhaseTimes device = estimate_layer_times(on, on.model.layers / 2);
  return apply_host_limit(on, device, {1}).total() / device.total() - 1;
}

/// Why the errors of runs that devices limit say nothing about a step that hosts limit.
std::string why_no_errors_of_hosts(const ModelOnDevices& on) {
  constexpr double kMaxExcess = 0.05;
  const RuntimeDef* const runtime = Registry<RuntimeDef>::instance().find(on.runtime);
  // Hosts limited some of the published runs of models with experts, and with launch_blocking.
  if (on.model.experts || on.assumptions.launch_blocking > 0 ||
      (runtime != nullptr && runtime->host_limited))
    return {};
  const double excess = find_host_excess(on);
  if (excess <= kMaxExcess) return {};
  return fmt::format(
      "the host launches kernels more slowly than the device runs them, which makes a layer {:.0f} "
      "% longer (host_layer_us); no published dense run under {} was limited by its host, and "
      "hosts differ: the step may take twice as long",
      100 * excess, on.runtime);
}

std::string why_no_errors(const ModelOnDevices& on) {
  if (!on.trains) return "published runs train, and this schedule has no backwards";
  if (on.assumptions.slowdown != 1)
    return "the slowdown calibrates the prediction, and no calibrated prediction has been compared "
           "with published runs";
  if (!on.rank_gpus.empty())
    return "the ranks have devices of several kinds, and those of published runs have one";
  if (!on.replaced.empty())
    return fmt::format("no published run has been compared with a prediction that has {}",
                       fmt::join(on.replaced, ", "));
  const bool has_runs = !on.gpu.generation.empty() &&
                        std::any_of(kErrors.begin(), kErrors.end(), [&](const KnownErrors& errors) {
                          return errors.generation == on.gpu.generation;
                        });
  if (!has_runs)
    return "no published run on this device, or one of its generation, has been compared with its "
           "prediction, which may be far off";
  if (on.parallel.sequence > kMaxPublishedSequence)
    return "no published run with sequences of more than " +
           counted(kMaxPublishedSequence, "token") +
           " has been compared with its prediction, which may be far off";
  return why_no_errors_of_hosts(on);
}

/// The runtime whose published runs show the errors of this one.
std::string_view published_runtime(const std::string& name) {
  const RuntimeDef* const known = Registry<RuntimeDef>::instance().find(name);
  return known == nullptr || known->errors_of.empty() ? std::string_view(name) : known->errors_of;
}

}  // namespace

std::string KnownErrors::from() const {
  std::string text;
  for (const std::string_view part : {generation, runtime, precision})
    if (!part.empty()) text += std::string(part) + "/";
  return text + (experts ? "expert" : "dense");
}

NearestErrors find_nearest_errors(const ModelOnDevices& on) {
  if (std::string why = why_no_errors(on); !why.empty()) return {nullptr, std::move(why)};
  const bool experts = on.model.experts.has_value();
  const std::string_view precision = on.matrices == MatrixType::kFp8 ? "fp8" : "bf16";
  const auto found = std::find_if(kErrors.begin(), kErrors.end(), [&](const KnownErrors& errors) {
    return matches(errors.generation, on.gpu.generation) && errors.experts == experts &&
           matches(errors.runtime, published_runtime(on.runtime)) &&
           matches(errors.precision, precision);
  });
  if (found == kErrors.end()) return {};
  return {&*found, "", on.unpublished_schedule};
}

std::string find_unpublished_schedule(std::string_view schedule, std::int32_t ranks, bool experts) {
  const bool is_published = schedule == "1f1b" || schedule == "interleaved" ||
                            (schedule == "dualpipe" && experts);  // DeepSeek-V3's
  const bool is_known = Registry<ScheduleDef>::instance().find(schedule) != nullptr;
  return ranks == 1 || is_published || !is_known ? "" : std::string(schedule);
}

StepInterval compute_interval(Nanos step, const KnownErrors& errors) {
  return {scaled(step, errors.highest), scaled(step, errors.lowest)};
}

}  // namespace bubblescope::inline sim
