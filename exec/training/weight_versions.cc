// Keeps the weight versions that are still read.
#include "exec/training/weight_versions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope::exec {

std::vector<std::vector<WeightUse>> weight_uses(const Schedule& schedule) {
  std::vector<std::vector<WeightUse>> uses(
      static_cast<std::size_t>(schedule.stages()),
      std::vector<WeightUse>(static_cast<std::size_t>(schedule.shape.microbatches)));
  for (std::size_t rank = 0; rank < schedule.weights.size(); ++rank)
    for (std::size_t at = 0; at < schedule.weights[rank].size(); ++at) {
      const Op& op = schedule.order[rank][at];
      const WeightUse& use = schedule.weights[rank][at];
      WeightUse& noted =
          uses[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.microbatch)];
      noted.read = use.read;
      if (use.written) noted.written = use.written;
    }
  return uses;
}

namespace {

/// Replicas make a version together.
std::int32_t count_updates(const std::vector<WeightUse>& uses) {
  std::int32_t updates = 1;
  for (const WeightUse& use : uses) updates = std::max(updates, use.written.value_or(0));
  return updates;
}

}  // namespace

float gradient_scale(const Schedule& schedule) {
  return static_cast<float>(count_updates(weight_uses(schedule)[0])) /
         static_cast<float>(schedule.shape.microbatches);
}

std::vector<float> update_scales(const Schedule& schedule) {
  const std::vector<std::vector<WeightUse>> uses = weight_uses(schedule);
  std::vector<float> scales;
  for (const std::vector<WeightUse>& stage : uses)
    scales.push_back(static_cast<float>(count_updates(stage)) /
                     static_cast<float>(count_updates(uses[0])));
  return scales;
}

WeightVersions::WeightVersions(Stage initial, std::vector<WeightUse> uses)
    : uses_(std::move(uses)) {
  versions_.emplace(0, std::move(initial));
  begin_step();
}

const Stage& WeightVersions::read(std::int32_t version, const Op& reader) const {
  const auto found = versions_.find(version);
  if (found == versions_.end())
    throw Error(Fault::kProblem, to_string(reader) + " reads version " + std::to_string(version) +
                                     " of the weights, which does not exist at that time");
  return found->second;
}

void WeightVersions::release(std::int32_t version) {
  --readers_[static_cast<std::size_t>(version)];
  drop_unread();
}

void WeightVersions::update(const std::vector<Matrix>& gradients, const OptimizerOptions& options) {
  const std::int32_t next = versions_.rbegin()->first + 1;
  Stage& created = versions_.emplace(next, newest()).first->second;
  bubblescope::exec::update(created.weights, gradients, optimizer_, options);
  drop_unread();
}

void WeightVersions::begin_step() {
  auto last = versions_.extract(std::prev(versions_.end()));
  versions_.clear();
  last.key() = 0;
  versions_.insert(std::move(last));
  readers_.assign(uses_.size() + 1, 0);  // at most one update per micro-batch
  for (const WeightUse& use : uses_) ++readers_[static_cast<std::size_t>(use.read)];
}

void WeightVersions::restore(std::vector<Matrix> weights, OptimizerState optimizer) {
  begin_step();
  versions_.begin()->second.weights = std::move(weights);
  optimizer_ = std::move(optimizer);
}

void WeightVersions::drop_unread() {
  const std::int32_t newest = versions_.rbegin()->first;
  std::erase_if(versions_, [&](const auto& version) {
    return version.first != newest && readers_[static_cast<std::size_t>(version.first)] <= 0;
  });
}

}  // namespace bubblescope::exec
