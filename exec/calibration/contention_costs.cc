// Sorts durations by the number of busy ranks.
#include "exec/calibration/contention_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "exec/calibration/busy_ops.h"

namespace bubblescope::exec {

namespace {

constexpr double kBusyTolerance = 0.25;  // in ranks

using Samples = std::vector<std::array<std::vector<std::vector<Nanos>>, kComputeKinds>>;

/// Calls visit(duration, busy ranks) for all messages that take time.
template <class Visit>
void for_each_message(const Observation& observation, std::int32_t ranks_per_device, Visit visit) {
  const Program& program = observation.program;
  for (const Timeline& timeline : observation.steps) {
    auto of_device = find_busy_ops(program, timeline, ranks_per_device);
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Nanos time = timeline.end[id] - timeline.start[id];
      if (!is_message(program.instructions[id]) || time <= 0) continue;
      const BusyOps& busy = of_device[program.instructions[id].rank / ranks_per_device];
      visit(time, busy.mean_busy(timeline.start[id], timeline.end[id]));
    }
  }
}

void collect(Samples& samples, const Program& program, const Timeline& timeline,
             std::int32_t ranks_per_device) {
  auto of_device = find_busy_ops(program, timeline, ranks_per_device);
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!is_busy_op(program, timeline, id)) continue;
    const Instruction& instruction = program.instructions[id];
    const Nanos start = timeline.start[id];
    const Nanos end = timeline.end[id];
    const double busy = of_device[instruction.rank / ranks_per_device].mean_busy(start, end);
    const double whole = std::round(busy);
    if (std::abs(busy - whole) > kBusyTolerance || whole < 1 || whole > ranks_per_device) continue;
    const auto& [op, lane, rank, peer, role] = instruction;
    samples[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.kind)]
           [static_cast<std::size_t>(whole) - 1]
               .push_back(end - start);
  }
}

/// Interpolates between two numbers of busy ranks that were measured.
Nanos interpolate(const std::vector<std::optional<Estimate>>& seen, std::size_t low,
                  std::size_t high, std::size_t at) {
  const Nanos first = seen[low]->mean;
  const Nanos span = seen[high]->mean - first;
  return first + span * static_cast<Nanos>(at - low) / static_cast<Nanos>(high - low);
}

}  // namespace

ContentionCosts find_contention_costs(std::span<const Observation> observations,
                                      const ContentionRequest& request) {
  Samples samples(static_cast<std::size_t>(request.stages));
  for (auto& kinds : samples)
    for (auto& by_busy : kinds) by_busy.resize(static_cast<std::size_t>(request.ranks_per_device));
  for (const Observation& observation : observations)
    for (const Timeline& timeline : observation.steps)
      collect(samples, observation.program, timeline, request.ranks_per_device);
  ContentionCosts costs(samples.size());
  for (std::size_t stage = 0; stage < samples.size(); ++stage)
    for (std::size_t kind = 0; kind < samples[stage].size(); ++kind)
      for (std::vector<Nanos>& of_busy : samples[stage][kind])
        costs[stage][kind].push_back(estimate(std::move(of_busy)));
  return costs;
}

std::vector<std::optional<Estimate>> find_message_costs(std::span<const Observation> observations,
                                                        std::int32_t ranks_per_device) {
  std::vector<std::vector<Nanos>> samples(static_cast<std::size_t>(ranks_per_device) + 1);
  for (const Observation& observation : observations)
    for_each_message(observation, ranks_per_device, [&](Nanos time, double busy) {
      const double whole = std::round(busy);
      if (std::abs(busy - whole) <= kBusyTolerance && whole <= ranks_per_device)
        samples[static_cast<std::size_t>(whole)].push_back(time);
    });
  std::vector<std::optional<Estimate>> costs;
  for (std::vector<Nanos>& of_busy : samples) costs.push_back(estimate(std::move(of_busy)));
  return costs;
}

std::vector<CopyCosts> find_copy_costs(const Observation& observation,
                                       const ContentionRequest& request) {
  const Program& program = observation.program;
  const auto busy_levels = static_cast<std::size_t>(request.ranks_per_device) + 1;
  std::vector<std::array<std::vector<std::vector<Nanos>>, 2>> samples(
      static_cast<std::size_t>(request.stages));
  for (auto& kinds : samples)
    for (auto& by_busy : kinds) by_busy.resize(busy_levels);
  for (const Timeline& timeline : observation.steps) {
    auto of_device = find_busy_ops(program, timeline, request.ranks_per_device);
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Op& op = program.instructions[id].op;
      const Nanos time = timeline.end[id] - timeline.start[id];
      if (!is_copy(op.kind) || time <= 0) continue;
      const double busy =
          of_device[program.instructions[id].rank / request.ranks_per_device].mean_busy(
              timeline.start[id], timeline.end[id]);
      const auto whole = static_cast<std::size_t>(std::lround(busy));
      if (std::abs(busy - std::round(busy)) <= kBusyTolerance && whole < busy_levels)
        samples[static_cast<std::size_t>(op.stage)][op.kind == OpKind::kEvict ? 0 : 1][whole]
            .push_back(time);
    }
  }
  std::vector<CopyCosts> costs(samples.size());
  for (std::size_t stage = 0; stage < samples.size(); ++stage)
    for (std::size_t busy = 0; busy < busy_levels; ++busy) {
      costs[stage].evict.push_back(estimate(std::move(samples[stage][0][busy])));
      costs[stage].load.push_back(estimate(std::move(samples[stage][1][busy])));
    }
  return costs;
}

std::optional<Estimate> find_message_time(std::span<const Observation> observations) {
  std::vector<Nanos> samples;
  for (const Observation& observation : observations)
    for_each_message(observation, observation.program.ranks,
                     [&](Nanos time, double) { samples.push_back(time); });
  return estimate(std::move(samples));
}

std::vector<Nanos> fill_contention(const std::vector<std::optional<Estimate>>& seen) {
  std::vector<std::size_t> known;
  for (std::size_t at = 0; at < seen.size(); ++at)
    if (seen[at]) known.push_back(at);
  if (known.empty()) return {};
  std::vector<Nanos> filled;
  for (std::size_t at = 0; at < seen.size(); ++at) {
    const auto next = std::lower_bound(known.begin(), known.end(), at);
    Nanos time = 0;
    if (next == known.end())
      time = seen[known.back()]->mean;
    else if (next == known.begin() || *next == at)
      time = seen[*next]->mean;
    else
      time = interpolate(seen, *(next - 1), *next, at);
    filled.push_back(filled.empty() ? time : std::max(time, filled[0]));
  }
  return filled;
}

}  // namespace bubblescope::exec
