// Converts slowdowns to progress rates.
#include "sim/model/contention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

Rate progress_rate_of(double slowdown) {
  const double progress_rate =
      std::round(static_cast<double>(kFullProgressRate) / std::max(1.0, slowdown));
  return std::max<Rate>(1, static_cast<Rate>(progress_rate));
}

namespace {

/// Returns the progress rates with 1, 2, 3, ... busy ranks.
std::vector<Rate> progress_rates_of(const Slowdown& slowdown, std::int32_t ranks_per_device) {
  std::vector<Rate> progress_rates{kFullProgressRate};
  for (std::int32_t busy = 2; busy <= ranks_per_device; ++busy) {
    const std::size_t at = std::min(static_cast<std::size_t>(busy) - 2, slowdown.size() - 1);
    progress_rates.push_back(progress_rate_of(slowdown[at]));
  }
  return progress_rates;
}

/// Progress rates by the number of busy ranks, from 0, for messages and copies, which make no rank
/// busy.
std::vector<Rate> progress_rates_beside(const Slowdown& slowdown) {
  std::vector<Rate> progress_rates{kFullProgressRate};
  for (const double times : slowdown) progress_rates.push_back(progress_rate_of(times));
  return progress_rates;
}

const Slowdown& slowdown_of(const Contention& contention, const Op& op) {
  const auto stage = static_cast<std::size_t>(op.stage);
  if (stage >= contention.stages.size())
    throw Error("stage " + std::to_string(stage) +
                " has no contended costs (the file has "
                "those of " +
                counted(contention.stages.size(), "stage") + "); add them to /stages");
  return contention.stages[stage][static_cast<std::size_t>(op.kind)];
}

/// Adds contended ops and messages to a Traffic.
class ContentionBuilder {
 public:
  ContentionBuilder(Traffic traffic, const Contention& contention)
      : traffic_(std::move(traffic)), contention_(contention) {
    for (const Flow& flow : traffic_.flows) flows_.insert(flow.instruction);
    traffic_.kind_weights = contention.kind_weights;
  }

  void add(InstructionId id, const Instruction& instruction) {
    const auto& [op, lane, rank, peer, role] = instruction;
    const bool is_slowed = (is_message(instruction) && !contention_.message.empty()) ||
                           (is_copy(op.kind) && !contention_.copy.empty());
    if (role != Role::kWork || (!is_compute(op.kind) && !is_slowed)) return;
    if (traffic_.fixed[id] <= 0 || flows_.contains(id)) return;
    if (traffic_.fixed[id] > kMaxContendedDuration)
      throw Error(to_string(op) +
                  " takes over an hour, which is too long for a contended op; give it a shorter "
                  "time, or no contention");
    const auto device = static_cast<std::uint32_t>(rank / contention_.ranks_per_device);
    traffic_.devices = std::max(traffic_.devices, device + 1);
    traffic_.contended_ops.push_back({id, device, row_of(op), is_compute(op.kind), op.kind});
  }

  Traffic finish() && { return std::move(traffic_); }

 private:
  /// The row of an op's progress rates; all messages share one row, and so do all copies.
  std::uint32_t row_of(const Op& op) {
    const bool computes = is_compute(op.kind);
    const auto [at, is_new] =
        known_.try_emplace(computes ? std::pair(op.stage, op.kind) : std::pair(0, op.kind),
                           static_cast<std::uint32_t>(traffic_.progress_rates.size()));
    if (is_new)
      traffic_.progress_rates.push_back(computes ? progress_rates_for(op)
                                        : is_copy(op.kind)
                                            ? progress_rates_beside(contention_.copy)
                                            : progress_rates_beside(contention_.message));
    return at->second;
  }

  std::vector<Rate> progress_rates_for(const Op& op) const {
    const Slowdown& slowdown = slowdown_of(contention_, op);
    if (slowdown.empty()) return {kFullProgressRate};
    return progress_rates_of(slowdown, contention_.ranks_per_device);
  }

  Traffic traffic_;
  const Contention& contention_;
  std::set<InstructionId> flows_;
  std::map<std::pair<std::int32_t, OpKind>, std::uint32_t> known_;
};

}  // namespace

Traffic with_contention(Traffic traffic, const Program& program, const Contention& contention) {
  ContentionBuilder builder(std::move(traffic), contention);
  for (InstructionId id = 0; id < program.size(); ++id) builder.add(id, program.instructions[id]);
  return std::move(builder).finish();
}

}  // namespace bubblescope::inline sim
