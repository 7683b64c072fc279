// Looks for the time of micro-batches that no op is of.
#include "traces/measured/microbatch_gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "traces/measured/number_ranges.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// Two numbers of micro-batches of which none lies between.
struct Neighbours {
  std::int32_t before = 0;
  std::int32_t after = 0;

  std::int32_t distance() const { return after - before; }
};

/// The numbers of a step in order; nothing where an op has none.
std::set<std::int32_t> collect_numbers(const StepOps& step) {
  std::set<std::int32_t> numbers;
  for (const ObservedOp& observed : step.computes) {
    if (!observed.numbered) return {};
    numbers.insert(observed.op.microbatch);
  }
  return numbers;
}

std::vector<Neighbours> find_neighbours(const std::set<std::int32_t>& numbers) {
  std::vector<Neighbours> all;
  for (auto next = numbers.begin(); next != numbers.end(); ++next)
    if (next != numbers.begin()) all.push_back({*std::prev(next), *next});
  return all;
}

/// When the stages run their forwards, and when their ranks compute.
class ForwardTimes {
 public:
  explicit ForwardTimes(const StepOps& step) {
    for (const ObservedOp& observed : step.computes) {
      const TimeSpan span{observed.start, observed.end};
      busy_[observed.recorder].push_back(span);
      if (observed.op.kind != OpKind::kForward) continue;
      Forwards& forwards = forwards_[{observed.op.stage, observed.recorder}];
      widen(forwards.emplace(observed.op.microbatch, span).first->second, span);
    }
    for (auto& [_, spans] : busy_) sort_by_start(spans);
  }

  /// Whether every stage that runs both forwards in this order had the time for `count` between
  /// them: at least half of what these take. False if no stage does.
  bool have_room(const Neighbours& numbers, std::int32_t count) const {
    bool is_any = false;
    for (const auto& [place, forwards] : forwards_) {
      const auto before = forwards.find(numbers.before);
      const auto after = forwards.find(numbers.after);
      if (before == forwards.end() || after == forwards.end()) continue;
      const Nanos usual = std::min(before->second.length(), after->second.length());
      const TimeSpan between{before->second.end, after->second.start};
      if (between.length() < 0) continue;
      is_any = true;
      const double needed = 0.5 * static_cast<double>(count) * static_cast<double>(usual);
      if (static_cast<double>(find_idle(place.second, between)) < needed) return false;
    }
    return is_any;
  }

 private:
  using Forwards = std::map<std::int32_t, TimeSpan>;  ///< by micro-batch

  /// The time within a span in which no op of the rank begins or runs on.
  Nanos find_idle(std::int32_t rank, const TimeSpan& span) const {
    const std::vector<TimeSpan>& ops = busy_.at(rank);
    auto next = std::lower_bound(ops.begin(), ops.end(), span.start,
                                 [](const TimeSpan& op, Nanos start) { return op.start < start; });
    Nanos idle = 0;
    Nanos free = span.start;
    for (; next != ops.end() && next->start < span.end; ++next) {
      idle += std::max<Nanos>(0, next->start - free);
      free = std::max(free, next->end);
    }
    return idle + std::max<Nanos>(0, span.end - free);
  }

  std::map<std::pair<std::int32_t, std::int32_t>, Forwards> forwards_;  ///< by stage and rank
  std::map<std::int32_t, std::vector<TimeSpan>> busy_;                  ///< by rank
};

/// The gaps that may hold lost micro-batches, and the stride of the numbers without these.
struct Gaps {
  std::vector<Neighbours> open;
  std::int32_t stride = 1;
};

Gaps find_gaps(const StepOps& step) {
  const std::vector<Neighbours> all = find_neighbours(collect_numbers(step));
  std::int32_t least = std::numeric_limits<std::int32_t>::max();
  for (const Neighbours& one : all) least = std::min(least, one.distance());
  const auto is_wider = [&](const Neighbours& one) { return one.distance() > least; };
  if (all.empty() || (least == 1 && std::none_of(all.begin(), all.end(), is_wider))) return {};
  const ForwardTimes times(step);
  const auto may_hold = [&](const Neighbours& one, std::int32_t stride) {
    const std::int32_t count = (one.distance() - 1) / stride;
    return count > 0 && times.have_room(one, count);
  };
  // One pair that is run without a pause shows that the numbers go by more than one.
  const bool has_stride = std::any_of(all.begin(), all.end(), [&](const Neighbours& one) {
    return !is_wider(one) && !may_hold(one, 1);
  });
  Gaps gaps;
  gaps.stride = has_stride ? least : 1;
  std::copy_if(all.begin(), all.end(), std::back_inserter(gaps.open),
               [&](const Neighbours& one) { return may_hold(one, gaps.stride); });
  return gaps;
}

/// The numbers in the gaps, as many as a sentence can name.
NumberRanges collect_missing(const Gaps& gaps) {
  constexpr std::int64_t kMaxNamed = 100;
  NumberRanges missing;
  for (const Neighbours& gap : gaps.open) {
    if (gaps.stride == 1) missing.add(gap.before + 1, gap.after - 1);
    for (std::int64_t step = gaps.stride; gaps.stride > 1 && step < gap.distance();
         step += gaps.stride) {
      missing.add(gap.before + step, gap.before + step);
      if (missing.count() > kMaxNamed) return missing;
    }
  }
  return missing;
}

}  // namespace

std::optional<std::string> describe_missing_microbatches(const StepOps& step) {
  const Gaps gaps = find_gaps(step);
  if (gaps.open.empty()) return {};
  const NumberRanges missing = collect_missing(gaps);
  const bool are_several = missing.are_several();
  return fmt::format(
      "no rank has an op of micro-batch{} {}, though all have those before and after and were idle "
      "between them: {} ops were lost on all ranks, or the numbers skip {}; record all "
      "micro-batches, or number them without gaps",
      are_several ? "es" : "", missing.text(), are_several ? "their" : "its",
      are_several ? "them" : "it");
}

}  // namespace bubblescope::traces
