// Compares the ops of traces with those that one run of a job can have.
#include "traces/measured/expect_one_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/files/quote.h"
#include "traces/measured/time_span.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

void expect_times(const ObservedTrace& trace) {
  if (trace.ops.empty()) return;
  const Nanos origin = trace.ops.front().start;
  for (const ObservedOp& observed : trace.ops)
    if (!lie_within_days(observed.start, origin) || !lie_within_days(observed.end, origin))
      throw Error(
          fmt::format("{}: {} lies from {} ns to {} ns, over 100 days from the first op, at {} ns; "
                      "correct its times, or leave it out",
                      recorder_of(trace, observed).where, to_string(observed.op), observed.start,
                      observed.end, origin));
}

void expect_one_run(const ObservedTrace& trace, const RankNumbers& numbers) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::set<std::int32_t>> recorders;
  for (const ObservedOp& observed : trace.ops)
    recorders[{observed.replica, numbers.of_recorder[observed.recorder]}].insert(observed.recorder);
  const auto is_single = [](const auto& of_rank) { return of_rank.second.size() == 1; };
  if (std::all_of(recorders.begin(), recorders.end(), is_single)) return;
  using Place = std::tuple<std::int32_t, std::int32_t, std::int64_t, OpKind, std::int32_t,
                           std::int32_t, std::int32_t>;
  std::map<Place, std::int32_t> recorder_of;
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    const Op& op = observed.op;
    const std::int32_t rank = numbers.of_recorder[observed.recorder];
    const Place place{
        observed.replica, rank,    observed.step, op.kind, observed.chunk.value_or(op.stage),
        op.microbatch,    op.slice};
    const auto [found, is_new] = recorder_of.emplace(place, observed.recorder);
    if (is_new || found->second == observed.recorder) continue;
    const auto where = [&](std::int32_t recorder) -> const std::string& {
      return trace.recorders[static_cast<std::size_t>(recorder)].where;
    };
    throw Error(fmt::format(
        "{} and {} both record rank {}, and both have its {} of the same step: they are of two "
        "runs of a job, or of one rank twice; give one trace of each rank of one run",
        where(found->second), where(observed.recorder), rank, to_string(op)));
  }
}

namespace {

[[noreturn]] void refuse_runs_of(const std::string& first, const std::string& second) {
  throw Error(
      fmt::format("{} and {} are of pipelines that never run at the same time, so they are two "
                  "runs and not data-parallel replicas; give the traces of one run",
                  first, second));
}

/// From the first op of a rank or a replica to its last.
struct Extent {
  TimeSpan times;
  std::int32_t recorder = 0;
};

const std::string& file_of(const ObservedTrace& trace, const Extent& extent) {
  return recorder_of(trace, extent).where;
}

/// Throws Error where replicas on one host never run at the same time.
void expect_together_on_hosts(const ObservedTrace& trace) {
  std::map<std::pair<std::string, std::int32_t>, Extent> extents;  // by host and replica
  for (const ObservedOp& observed : trace.ops) {
    const std::string& host = recorder_of(trace, observed).host;
    if (host.empty()) continue;
    const Extent own{{observed.start, observed.end}, observed.recorder};
    widen(extents.emplace(std::pair(host, observed.replica), own).first->second.times, observed);
  }
  for (auto next = extents.begin(); next != extents.end(); ++next) {
    const auto one = next == extents.begin() ? next : std::prev(next);
    if (one == next || one->first.first != next->first.first) continue;
    const Extent& left = one->second;
    const Extent& right = next->second;
    if (left.times.end > right.times.start && right.times.end > left.times.start) continue;
    refuse_runs_of(file_of(trace, left), file_of(trace, right));
  }
}

/// The ops of one replica.
struct Run {
  TimeSpan times;
  std::int32_t replica = 0;
  std::set<std::string> files = {};
  bool is_stated = false;  ///< as a replica
};

std::map<std::int32_t, Run> find_runs(const ObservedTrace& trace) {
  std::map<std::int32_t, Run> runs;
  for (const ObservedOp& observed : trace.ops) {
    const Recorder& recorder = recorder_of(trace, observed);
    Run& run = runs.emplace(observed.replica, Run{{observed.start, observed.end}, observed.replica})
                   .first->second;
    widen(run.times, observed);
    run.files.insert(recorder.where);
    run.is_stated = run.is_stated || recorder.has_replica;
  }
  return runs;
}

/// Whether a time counts from 1970, as all clocks of hosts do that tell the date.
bool is_since_epoch(Nanos time) {
  constexpr Nanos kIn2001 = 1'000'000'000'000'000'000;
  constexpr Nanos kIn2096 = 4'000'000'000'000'000'000;
  return time > kIn2001 && time < kIn2096;
}

/// Says that one run ends before the other one begins. Throws Error where their clocks show that
/// they are no replicas.
std::string judge_apart(const Run& before, const Run& after) {
  constexpr Nanos kMaxApart = Nanos{60} * 1'000'000'000;  // limit for clocks that tell the date
  const std::string& first = *before.files.begin();
  const std::string& second = *after.files.begin();
  std::vector<std::string> shared;
  std::set_intersection(before.files.begin(), before.files.end(), after.files.begin(),
                        after.files.end(), std::back_inserter(shared));
  if (!shared.empty() && !before.is_stated && !after.is_stated)
    throw Error(
        fmt::format("{}: its pipelines never run at the same time, so they are two runs and not "
                    "data-parallel replicas; split the file by run and give one part",
                    shared.front()));
  if (is_since_epoch(before.times.start) && is_since_epoch(after.times.start) &&
      after.times.start - before.times.end > kMaxApart)
    refuse_runs_of(first, second);
  return fmt::format(
      "replica {} ({}) ends before replica {} ({}) begins: unless their clocks differ, these are "
      "two runs, and what is said of replicas is wrong; give the traces of one run",
      before.replica, first, after.replica, second);
}

/// The steps that the ops of a rank state.
struct StatedSteps {
  std::int32_t recorder = 0;
  std::set<std::int64_t> numbers = {};
};

using StepsOfRanks = std::map<std::int32_t, StatedSteps>;

bool have_common_step(const StepsOfRanks& ranks) {
  const std::set<std::int64_t>& first = ranks.begin()->second.numbers;
  return std::any_of(first.begin(), first.end(), [&](std::int64_t number) {
    return std::all_of(ranks.begin(), ranks.end(),
                       [&](const auto& rank) { return rank.second.numbers.contains(number); });
  });
}

std::string describe_steps(const ObservedTrace& trace, const StatedSteps& steps) {
  const std::string& where = trace.recorders[static_cast<std::size_t>(steps.recorder)].where;
  const std::int64_t first = *steps.numbers.begin();
  const std::int64_t last = *steps.numbers.rbegin();
  return first == last ? fmt::format("{} has step {}", where, first)
                       : fmt::format("{} has steps {} to {}", where, first, last);
}

}  // namespace

std::string describe_ranks_apart(const ObservedTrace& trace) {
  std::map<std::pair<std::int32_t, std::string>, std::map<std::int32_t, Extent>> pipelines;
  Nanos longest = 0;
  for (const ObservedOp& observed : trace.ops) {
    const std::string& host = recorder_of(trace, observed).host;
    if (host.empty()) continue;
    const Extent own{{observed.start, observed.end}, observed.recorder};
    std::map<std::int32_t, Extent>& ranks = pipelines[{observed.replica, host}];
    TimeSpan& times = ranks.emplace(observed.recorder, own).first->second.times;
    widen(times, observed);
    longest = std::max(longest, times.length());
  }
  for (const auto& [pipeline, of_recorder] : pipelines) {
    std::vector<Extent> ranks;
    for (const auto& [_, rank] : of_recorder) ranks.push_back(rank);
    std::stable_sort(ranks.begin(), ranks.end(), [](const Extent& left, const Extent& right) {
      return left.times.start < right.times.start;
    });
    const Extent* last = &ranks.front();
    for (const Extent& next : ranks) {
      if (next.times.start - last->times.end > longest)
        return fmt::format(
            "{} ends {} before {} begins, by the clock of their host {}: unless these are several "
            "hosts of one name, the traces are of two runs; give those of one run",
            file_of(trace, *last), format_time(next.times.start - last->times.end),
            file_of(trace, next), quote(pipeline.second));
      if (last->times.end < next.times.end) last = &next;
    }
  }
  return {};
}

void expect_common_step(const ObservedTrace& trace, const RankNumbers& numbers) {
  std::map<std::int32_t, StepsOfRanks> replicas;
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    if (!observed.has_step || observed.step_is_counted) return;
    StatedSteps& own = replicas[observed.replica][numbers.of_recorder[observed.recorder]];
    own.recorder = observed.recorder;
    own.numbers.insert(observed.step);
  }
  if (replicas.empty()) return;
  if (std::any_of(replicas.begin(), replicas.end(),
                  [](const auto& replica) { return have_common_step(replica.second); }))
    return;
  const auto by_start = [](const auto& left, const auto& right) {
    return *left.second.numbers.begin() < *right.second.numbers.begin();
  };
  const StepsOfRanks& ranks = replicas.begin()->second;
  const auto [earliest, latest] = std::minmax_element(ranks.begin(), ranks.end(), by_start);
  throw Error(fmt::format(
      "no step was recorded on all ranks: {}, and {}; record the same steps on all of them, in "
      "profiles of PyTorch with one `schedule=` of torch.profiler.schedule()",
      describe_steps(trace, earliest->second), describe_steps(trace, latest->second)));
}

std::optional<std::string> expect_replicas_together(const ObservedTrace& trace) {
  expect_together_on_hosts(trace);
  std::vector<Run> runs;
  for (auto& [_, run] : find_runs(trace)) runs.push_back(std::move(run));
  std::stable_sort(runs.begin(), runs.end(), [](const Run& left, const Run& right) {
    return left.times.start < right.times.start;
  });
  const Run* last = nullptr;
  for (const Run& next : runs) {
    if (last != nullptr && last->times.end <= next.times.start) return judge_apart(*last, next);
    if (last == nullptr || last->times.end < next.times.end) last = &next;
  }
  return {};
}

}  // namespace bubblescope::traces
