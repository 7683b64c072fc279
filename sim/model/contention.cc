// From slowdowns to paces.
#include "sim/model/contention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

/// The nearest whole number of parts that an op so much slower does in a nanosecond.
Rate pace_of(double slowdown) {
  const double pace = std::round(static_cast<double>(kWholePace) / std::max(1.0, slowdown));
  return std::max<Rate>(1, static_cast<Rate>(pace));
}

/// By the number of busy ranks, from 1 on.
std::vector<Rate> paces_of(const Slowdown& slowdown, std::int32_t ranks_per_device) {
  std::vector<Rate> paces{kWholePace};
  for (std::int32_t busy = 2; busy <= ranks_per_device; ++busy) {
    const std::size_t at = std::min(static_cast<std::size_t>(busy) - 2, slowdown.size() - 1);
    paces.push_back(pace_of(slowdown[at]));
  }
  return paces;
}

const Slowdown& slowdown_of(const Contention& contention, const Op& op) {
  const auto stage = static_cast<std::size_t>(op.stage);
  if (stage >= contention.stages.size())
    throw Error("stage " + std::to_string(stage) + " has no costs in company (" +
                std::to_string(contention.stages.size()) + " stages have); add them to /stages");
  return contention.stages[stage][static_cast<std::size_t>(op.kind)];
}

}  // namespace

Traffic with_company(Traffic traffic, const Program& program, const Contention& contention) {
  std::map<std::pair<std::int32_t, OpKind>, std::uint32_t> known;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const auto& [op, lane, rank, peer, role] = program.instructions[id];
    if (!is_compute(op.kind) || role != Role::kWork || traffic.fixed[id] <= 0) continue;
    if (traffic.fixed[id] > kLongestInCompany)
      throw Error(to_string(op) + " takes over an hour, which is too long for an op in company");
    const Slowdown& slowdown = slowdown_of(contention, op);
    const auto [at, is_new] =
        known.try_emplace({op.stage, op.kind}, static_cast<std::uint32_t>(traffic.paces.size()));
    if (is_new)
      traffic.paces.push_back(slowdown.empty() ? std::vector<Rate>{kWholePace}
                                               : paces_of(slowdown, contention.ranks_per_device));
    const auto device = static_cast<std::uint32_t>(rank / contention.ranks_per_device);
    traffic.devices = std::max(traffic.devices, device + 1);
    traffic.company.push_back({id, device, at->second});
  }
  return traffic;
}

}  // namespace bubblescope
