// Lowers plans once, and simulates each once per value.
#include "tools/plan/plan_timer.h"

#include <numeric>

namespace bubblescope::tools {

namespace {

constexpr InstructionId kMaxInstructions = 1 << 17;     ///< a larger program is too slow to vary
constexpr std::int64_t kMaxKeptInstructions = 1 << 22;  ///< instructions of all programs kept
constexpr std::int64_t kMaxTimedInstructions = 100'000'000;  ///< instructions, over all costs
constexpr std::int64_t kMaxUnit = 1 << 20;

}  // namespace

void PlanTimer::vary(const CostParameter& parameter) {
  parameter_ = &parameter;
  for (auto& times : times_) times.clear();
}

double PlanTimer::time(std::size_t plan, Nanos value) {
  return static_cast<double>(step(plan, value)) /
         static_cast<double>(ranked_[plan].configuration.samples());
}

Nanos PlanTimer::step(std::size_t plan, Nanos value) {
  const auto known = times_[plan].find(value);
  if (known != times_[plan].end()) return known->second;
  const Configuration& configuration = ranked_[plan].configuration;
  const WhatIf::Lowered& lowered = lower(plan);
  timed_ += lowered.program.size();
  if (timed_ > kMaxTimedInstructions) throw TooManySimulations();
  UniformCost flags = what_if_.flags();
  parameter_->of(flags) = value;
  const Nanos time = what_if_.step(lowered, what_if_.share_of_rank(flags, configuration));
  times_[plan].emplace(value, time);
  return time;
}

Nanos PlanTimer::now() const {
  UniformCost flags = what_if_.flags();
  return parameter_->of(flags);
}

std::optional<Nanos> PlanTimer::unit() const {
  std::int64_t all = 1;
  for (const Plan& plan : ranked_) {
    const Shape& shape = plan.configuration.shape;
    const std::int64_t ranks = what_if_.divides_model() ? shape.ranks : 1;
    all = std::lcm(all, ranks * shape.chunks * shape.slices);
    if (all > kMaxUnit) return {};
  }
  return all;
}

double PlanTimer::bound(std::size_t plan, Nanos min_value) {
  if (!is_convex()) return 0;
  return min_value == now() ? ranked_[plan].nanos_per_sample() : time(plan, min_value);
}

const WhatIf::Lowered& PlanTimer::lower(std::size_t plan) {
  if (lowered_[plan]) return *lowered_[plan];
  lowered_[plan] = what_if_.lower_plan(ranked_[plan].configuration);
  held_ += lowered_[plan]->program.size();
  if (lowered_[plan]->program.size() > kMaxInstructions || held_ > kMaxKeptInstructions)
    throw TooManySimulations();
  return *lowered_[plan];
}

}  // namespace bubblescope::tools
