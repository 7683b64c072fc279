// Words what makes a slowdown doubtful.
#include "traces/reports/slowdown_doubts.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/ir/op.h"
#include "traces/measured/trust.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

constexpr double kPrintedAsOne = 0.9995;
constexpr double kDoubtful = 1 - kMaxReplayError;

/// A kind of op or activity, and S with this kind alone at its own times.
struct KindSlowdown {
  std::string name;
  bool communicates = false;
  double slowdown = 1;
};

/// The kind whose own times make the step the shortest.
KindSlowdown find_lowest(const SlowdownReport& slowdown) {
  KindSlowdown lowest;
  for (std::size_t at = 0; at < slowdown.by_kind.size(); ++at) {
    const auto kind = static_cast<OpKind>(at);
    const double own = slowdown.by_kind[at].value_or(1);
    if (own < lowest.slowdown) lowest = {std::string(code(kind)), !is_compute(kind), own};
  }
  for (const ActivitySlowdown& activity : slowdown.by_activity)
    if (activity.slowdown < lowest.slowdown)
      lowest = {activity.name, activity.communicates, activity.slowdown};
  return lowest;
}

/// ", 10.3 ms of it through the mean of B alone"
std::string describe_lowest(const SlowdownReport& slowdown) {
  constexpr double kMinShare = 0.5;  // of the difference
  const KindSlowdown lowest = find_lowest(slowdown);
  const double share = (1 - lowest.slowdown) / (1 - slowdown.slowdown);
  if (share < kMinShare) return ", through several kinds of op together";
  const Nanos time = std::llround((1 - lowest.slowdown) * static_cast<double>(slowdown.fixed));
  return fmt::format(", {} through the {} of {} alone",
                     share < 1 ? format_time(time) + " of it" : "as it would",
                     lowest.communicates ? "median" : "mean", lowest.name);
}

}  // namespace

std::optional<std::string> doubt_replay(const Iterations& iterations,
                                        const std::optional<Cause>& late) {
  if (!iterations.slowdown || !iterations.slowdown->has_whole_steps) return {};
  const Nanos measured = compute_mean_step(iterations);
  const Nanos replayed = iterations.slowdown->replayed;
  std::optional<std::string> doubt = doubt_whole_replay(measured, replayed);
  if (!doubt) return {};
  // The replay of the slowdown lets all replicas begin together, unlike that of the causes.
  if (late && !doubt_whole_replay(measured - late->saves, replayed)) return {};
  return doubt;
}

std::optional<std::string> explain_low_slowdown(const SlowdownReport& slowdown) {
  if (slowdown.slowdown >= kPrintedAsOne) return {};
  return fmt::format(
      "S is {:.3f}: with every op at the mean of its kind (messages: the median) the {} would take "
      "{} longer than it did{}; so that is no ideal step, and S does not tell what can be gained",
      slowdown.slowdown, slowdown.has_whole_steps ? "step" : "pipeline",
      format_time(slowdown.fixed - slowdown.replayed), describe_lowest(slowdown));
}

Iterations with_slowdown_doubt(Iterations iterations) {
  if (!iterations.slowdown || iterations.trust.verdict == Verdict::kNone) return iterations;
  std::optional<std::string> low = explain_low_slowdown(*iterations.slowdown);
  if (!low) return iterations;
  if (iterations.slowdown->slowdown >= kDoubtful) {
    iterations.notes.push_back(*std::move(low));
    return iterations;
  }
  iterations.trust.verdict = Verdict::kLimited;
  iterations.trust.why.push_back(*std::move(low));
  return iterations;
}

}  // namespace bubblescope::traces
