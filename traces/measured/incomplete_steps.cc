// Compares the steps of a job with each other.
#include "traces/measured/incomplete_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/replay.h"
#include "sim/ir/counted.h"
#include "traces/measured/number_ranges.h"
#include "traces/measured/trust.h"

namespace bubblescope::traces {

AssembledSteps without_steps(AssembledSteps read, const std::vector<std::int64_t>& numbers) {
  const auto is_removed = [&](std::int64_t number) {
    return std::binary_search(numbers.begin(), numbers.end(), number);
  };
  std::erase_if(read.steps, [&](const auto& step) { return is_removed(step.number); });
  std::erase_if(read.whole_steps, [&](const auto& step) { return is_removed(step.step); });
  std::erase_if(read.outer_activities,
                [&](const auto& activities) { return is_removed(activities.first); });
  return read;
}

bool is_broken(const MeasuredStep& step) { return !step.timeline.breakdown.empty(); }

AssembledSteps separate_incomplete_steps(AssembledSteps read) {
  std::vector<MeasuredStep>& steps = read.steps;
  const auto broken = std::find_if(steps.begin(), steps.end(), is_broken);
  if (broken == steps.end()) return read;
  const std::string why = broken->timeline.breakdown;
  const auto count = std::count_if(steps.begin(), steps.end(), is_broken);
  if (count < std::ssize(steps)) {
    read.remarks.notes.push_back(
        fmt::format("{} left out: {}", counted(count, "incomplete step"), why));
    std::vector<std::int64_t> gone;
    for (const MeasuredStep& step : steps)
      if (is_broken(step)) gone.push_back(step.number);
    std::erase_if(steps, is_broken);
    for (const MeasuredStep& step : steps) std::erase(gone, step.number);
    std::sort(gone.begin(), gone.end());
    read = without_steps(std::move(read), gone);
  } else {
    read.remarks.notes.push_back(
        "this step did not complete: " + why +
        "; instructions that never started are at its end, with no length");
    read.remarks.faults.push_back(read.remarks.notes.back());
  }
  return read;
}

AssembledSteps separate_partial_steps(AssembledSteps read) {
  std::map<std::int64_t, std::size_t> replicas;
  std::set<std::int32_t> all;
  for (const MeasuredStep& step : read.steps) {
    ++replicas[step.number];
    all.insert(step.replica);
  }
  std::vector<std::int64_t> partial;
  for (const auto& [number, count] : replicas)
    if (count < all.size()) partial.push_back(number);
  if (partial.empty()) return read;
  if (2 * partial.size() > replicas.size()) {
    read.remarks.notes.push_back(fmt::format(
        "neither causes nor slowdown are computed: {} of {} steps lack a replica, and replicas "
        "wait for each other",
        partial.size(), replicas.size()));
    return read;
  }
  read = without_steps(std::move(read), partial);
  read.remarks.left_out.push_back(fmt::format("left out: {}, {} a replica", list_steps(partial),
                                              partial.size() > 1 ? "which lack" : "which lacks"));
  return read;
}

AssembledSteps separate_unexplained_steps(AssembledSteps read) {
  if (!read.steps.front().missing_ranks.empty()) return read;  // a fault already
  std::map<std::int64_t, double> errors;  // of the replica that replays the worst
  for (const MeasuredStep& step : read.steps) {
    double& error = errors[step.number];
    if (step.may_mix_steps) error = std::max(error, replay_error(step.program, step.timeline));
  }
  std::vector<std::int64_t> unexplained;
  double largest = 0;
  for (const auto& [number, error] : errors) {
    if (error < kMaxReplayError) continue;
    unexplained.push_back(number);
    largest = std::max(largest, error);
  }
  if (unexplained.empty() || unexplained.size() == errors.size()) return read;
  const bool are_several = unexplained.size() > 1;
  const std::string why = fmt::format(
      "{} ops may come from two steps, because the trace states no steps and others lack ops: a "
      "replay misses {} by up to {:.1f} %; state the step of every op (args.step, or a range "
      "around each step)",
      are_several ? "their" : "its", are_several ? "them" : "it", 100 * largest);
  if (4 * unexplained.size() > errors.size()) {
    read.remarks.faults.push_back(
        fmt::format("{} of {} steps {} not explained by {} ops: {}", unexplained.size(),
                    errors.size(), are_several ? "are" : "is", are_several ? "their" : "its", why));
    return read;
  }
  read = without_steps(std::move(read), unexplained);
  read.remarks.left_out.push_back(fmt::format("left out: {}: {}", list_steps(unexplained), why));
  return read;
}

}  // namespace bubblescope::traces
