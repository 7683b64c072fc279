// Counting busy ranks over time.
#include "exec/company_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace bubblescope {

namespace {

constexpr double kNear = 0.25;  // of a rank

/// How much compute time the ranks of a device have had by any time of a step.
class BusyTime {
 public:
  void add(Nanos start, Nanos end) {
    ++changes_[start];
    --changes_[end];
  }

  /// After everything was added.
  void sum_up() {
    std::int64_t busy = 0;
    Nanos before = 0;
    double sum = 0;
    for (const auto& [time, change] : changes_) {
      sum += static_cast<double>(busy) * static_cast<double>(time - before);
      busy += change;
      before = time;
      sums_[time] = sum;
    }
  }

  /// The mean number of busy ranks; both are times that something was added with.
  double mean(Nanos start, Nanos end) const {
    return (sums_.at(end) - sums_.at(start)) / static_cast<double>(end - start);
  }

 private:
  std::map<Nanos, std::int64_t> changes_;
  std::map<Nanos, double> sums_;
};

using Samples = std::vector<std::array<std::vector<std::vector<Nanos>>, kComputeKinds>>;

bool counts(const Instruction& instruction, Nanos start, Nanos end) {
  return instruction.lane != kNoLane && is_compute(instruction.op.kind) && end > start;
}

void collect(Samples& samples, const Program& program, const Timeline& timeline,
             std::int32_t ranks_per_device) {
  std::map<std::int32_t, BusyTime> of_device;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (counts(instruction, timeline.start[id], timeline.end[id]))
      of_device[instruction.rank / ranks_per_device].add(timeline.start[id], timeline.end[id]);
  }
  for (auto& [device, busy] : of_device) busy.sum_up();
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const Nanos start = timeline.start[id];
    const Nanos end = timeline.end[id];
    if (!counts(instruction, start, end)) continue;
    const double busy = of_device[instruction.rank / ranks_per_device].mean(start, end);
    const double whole = std::round(busy);
    if (std::abs(busy - whole) > kNear || whole < 1 || whole > ranks_per_device) continue;
    const auto& [op, lane, rank, peer, role] = instruction;
    samples[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.kind)]
           [static_cast<std::size_t>(whole) - 1]
               .push_back(end - start);
  }
}

/// Between two numbers of busy ranks that were seen.
Nanos between(const std::vector<std::optional<Estimate>>& seen, std::size_t low, std::size_t high,
              std::size_t at) {
  const Nanos first = seen[low]->mean;
  const Nanos span = seen[high]->mean - first;
  return first + span * static_cast<Nanos>(at - low) / static_cast<Nanos>(high - low);
}

}  // namespace

CompanyCosts find_company_costs(std::span<const Observation> observations,
                                const CompanyRequest& request) {
  Samples samples(static_cast<std::size_t>(request.stages));
  for (auto& kinds : samples)
    for (auto& by_busy : kinds) by_busy.resize(static_cast<std::size_t>(request.ranks_per_device));
  for (const Observation& observation : observations)
    for (const Timeline& timeline : observation.steps)
      collect(samples, observation.program, timeline, request.ranks_per_device);
  CompanyCosts costs(samples.size());
  for (std::size_t stage = 0; stage < samples.size(); ++stage)
    for (std::size_t kind = 0; kind < samples[stage].size(); ++kind)
      for (std::vector<Nanos>& of_busy : samples[stage][kind])
        costs[stage][kind].push_back(estimate(std::move(of_busy)));
  return costs;
}

std::vector<Nanos> fill_company(const std::vector<std::optional<Estimate>>& seen) {
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
      time = between(seen, *(next - 1), *next, at);
    filled.push_back(filled.empty() ? time : std::max(time, filled[0]));
  }
  return filled;
}

}  // namespace bubblescope
