// Writes iterations and stragglers as sentences and json members.
#include "traces/reports/iterations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/quantile.h"
#include "traces/reports/cause_phrases.h"
#include "traces/reports/cause_text.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

/// The fraction of a step from which on time that nothing explains is reported.
constexpr double kMinRest = 0.01;
constexpr double kMinReported = 0.02;  ///< as a fraction of a duration
constexpr std::size_t kShown = 5;

std::vector<double> replay_errors(const Iterations& iterations) {
  std::vector<double> errors;
  for (const IterationRow& row : iterations.rows) errors.push_back(row.replay_error);
  return errors;
}

void write_stragglers(JsonWriter& json, const std::optional<StragglerReport>& stragglers) {
  json.line(1).key("stragglers");
  if (!stragglers) {
    json.null();
    return;
  }
  json.begin_object().key("stages").begin_array();
  for (const StageSpeed& speed : stragglers->stages) {
    json.line(3).begin_object().member("stage", speed.stage).member("rank", speed.rank);
    json.member("kind", code(speed.kind)).member("median_ns", speed.median);
    json.key("slowness").fixed(speed.slowness(), 6).end_object();
  }
  json.end_array().line(2).key("outliers").begin_array();
  for (const Outlier& outlier : stragglers->outliers) {
    json.line(3).begin_object().member("iteration", outlier.step).member("rank", outlier.rank);
    json.member("op", to_string(outlier.op)).member("duration_ns", outlier.duration);
    json.member("median_ns", outlier.median).end_object();
  }
  json.end_array().end_object();
}

void write_rows(JsonWriter& json, const std::vector<IterationRow>& rows) {
  json.line(1).key("per_iteration").begin_array();
  for (std::size_t at = 0; at < rows.size(); ++at) {
    json.line(2).begin_object().member("iteration", at).member("label", rows[at].label);
    json.member("makespan_ns", rows[at].makespan).key("bubble_ratio");
    rows[at].bubble_ratio ? json.shortest(*rows[at].bubble_ratio) : json.null();
    json.key("replay_error").shortest(rows[at].replay_error).end_object();
  }
  json.end_array();
}

/// Returns the mean time per step of each kind of work outside the pipeline, the longest first.
std::vector<std::pair<std::string, Nanos>> mean_outside(const std::vector<WholeStep>& steps) {
  std::map<std::string, Nanos> sums;
  for (const WholeStep& step : steps)
    for (const auto& [name, time] : step.outside) sums[name] += time;
  std::vector<std::pair<std::string, Nanos>> means;
  for (const auto& [name, sum] : sums)
    means.emplace_back(name, sum / static_cast<Nanos>(steps.size()));
  std::stable_sort(means.begin(), means.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
  return means;
}

void write_slowdown(JsonWriter& json, const Iterations& iterations) {
  const std::optional<SlowdownReport>& slowdown = iterations.slowdown;
  json.line(1).key("slowdown");
  if (!slowdown) {
    json.null();
    return;
  }
  json.begin_object().key("S").fixed(slowdown->slowdown, 6);
  json.member("replayed_ns", slowdown->replayed).member("fixed_ns", slowdown->fixed);
  json.key("by_kind").begin_object();
  for (std::size_t kind = 0; kind < slowdown->by_kind.size(); ++kind)
    if (const auto& by_kind = slowdown->by_kind[kind])
      json.key(code(static_cast<OpKind>(kind))).fixed(*by_kind, 6);
  for (const ActivitySlowdown& activity : slowdown->by_activity)
    json.key(activity.name).fixed(activity.slowdown, 6);
  json.end_object().line(2).key("by_worker").begin_array();
  for (const WorkerSlowdown& worker : slowdown->by_worker) {
    json.begin_object().member("replica", worker.replica).member("rank", worker.rank);
    json.key("S").fixed(worker.slowdown, 6).end_object();
  }
  json.end_array().line(2).key("by_replica").begin_array();
  for (const double replica : slowdown->by_replica) json.fixed(replica, 6);
  json.end_array().line(2).key("by_stage").begin_array();
  for (const double stage : slowdown->by_stage) json.fixed(stage, 6);
  json.end_array().line(2).key("by_step").begin_array();
  for (std::size_t at = 0; at < slowdown->by_step.size(); ++at) {
    json.begin_object().member("step", iterations.step_numbers[at]).key("S").begin_array();
    for (const double worker : slowdown->by_step[at]) json.fixed(worker, 6);
    json.end_array().end_object();
  }
  json.end_array()
      .key("M_W")
      .fixed(slowdown->worker_share, 6)
      .key("M_S")
      .fixed(slowdown->last_stage_share, 6);
  json.end_object();
}

}  // namespace

bool has_replicas(const Iterations& iterations) { return iterations.replicas > 1; }

namespace {

/// Names the causes without which the step is shorter than with everything fixed: means spread a
/// cause over all ops, medians keep what all messages have, and equal stages may leave ops of
/// micro-batches unequal where that is better.
std::string describe_shorter(const Iterations& iterations) {
  constexpr double kNoticed = 0.995;
  if (!iterations.causes) return {};
  const auto fixed = static_cast<double>(iterations.slowdown->fixed);
  std::string names;
  for (const Cause& cause : find_shown_causes(*iterations.causes, compute_mean_step(iterations)))
    if (cause.left && static_cast<double>(*cause.left) < kNoticed * fixed)
      names += (names.empty() ? "" : ", ") + phrase_cause(cause).name;
  if (names.empty()) return {};
  return "          (it would be shorter still without " + names + ")\n";
}

std::string slowdown_text(const Iterations& iterations) {
  const SlowdownReport& slowdown = *iterations.slowdown;
  const bool replicated = has_replicas(iterations);
  const auto slowest =
      std::max_element(slowdown.by_worker.begin(), slowdown.by_worker.end(),
                       [](const WorkerSlowdown& left, const WorkerSlowdown& right) {
                         return left.slowdown < right.slowdown;
                       });
  std::string text = fmt::format(
      "slowdown: S {:.3f}: {}the {} replays in {}, and would in {} if every op\n"
      "          took the mean of its kind",
      slowdown.slowdown, replicated ? "of the slowest replica, " : "",
      slowdown.has_whole_steps ? "step" : "pipeline", format_time(slowdown.replayed),
      format_time(slowdown.fixed));
  if (slowdown.fixed >= slowdown.replayed) return text + "\n" + describe_shorter(iterations);
  std::string workers = fmt::format("rank {}", slowest->rank);
  if (replicated) workers += fmt::format(" of replica {}", slowest->replica);
  workers += " alone";
  if (slowdown.slowest_workers > 1)
    workers = "the " + counted(slowdown.slowest_workers, "slowest worker");
  text += fmt::format(
      "; of the difference, fixing {}\n"
      "          takes away {:.0f} %, fixing the last rank{} {:.0f} %\n",
      workers, 100 * std::clamp(slowdown.worker_share, 0.0, 1.0),
      replicated ? " of all replicas" : "", 100 * std::clamp(slowdown.last_stage_share, 0.0, 1.0));
  return text + describe_shorter(iterations);
}

void write_whole_steps(JsonWriter& json, const Iterations& iterations) {
  json.line(1).member_or_null("step_ns", find_known_step(iterations)).key("steps").begin_array();
  for (const WholeStep& step : iterations.whole_steps) {
    json.begin_object().member("step", step.step).key("step_ns");
    step.may_be_longer() ? json.null() : json.value(step.whole);
    json.member("pipeline_ns", step.pipeline).end_object();
  }
  json.end_array().line(1).key("between_steps_ns");
  iterations.between_steps ? json.value(iterations.between_steps->mean) : json.null();
  json.key("longest_between_steps");
  if (iterations.between_steps)
    json.begin_object()
        .member("ns", iterations.between_steps->longest)
        .member("after_step", iterations.between_steps->longest_after)
        .end_object();
  else
    json.null();
  write_step_period(json.line(1).key("step_period"), iterations.step_period);
  json.line(1).key("outside_pipeline_ns").begin_object();
  for (const auto& [name, time] : mean_outside(iterations.whole_steps))
    json.escaped_key(name).value(time);
  json.end_object();
}

std::string spread(const Iterations& iterations) {
  const std::vector<IterationRow>& rows = iterations.rows;
  const auto shorter = [](const IterationRow& left, const IterationRow& right) {
    return left.makespan < right.makespan;
  };
  const auto [shortest, longest] = std::minmax_element(rows.begin(), rows.end(), shorter);
  if (rows.size() == 1) return "1 iteration";
  return fmt::format(
      "{}, from first op to last: {} ({}) to {} ({}); drawn is the median one, all numbers are "
      "means",
      has_replicas(iterations)
          ? counted(std::ssize(rows), "pipeline") + ", one per step and replica"
          : counted(std::ssize(rows), "iteration"),
      format_time(shortest->makespan), shortest->label, format_time(longest->makespan),
      longest->label);
}

/// Says which steps are recorded, where they do not all follow each other.
std::string recorded_text(const std::vector<WholeStep>& steps) {
  if (steps.empty()) return {};
  const std::int64_t first = steps.front().step;
  const std::int64_t last = steps.back().step;
  if (last - first + 1 == std::ssize(steps)) return {};
  return fmt::format("steps:    {} of the {} from {} to {}, so that not all are consecutive\n",
                     steps.size(), counted(last - first + 1, "step"), first, last);
}

std::string period_text(const std::optional<StepPeriod>& period) {
  if (!period || do_steps_overlap(period)) return {};
  return fmt::format("period:   {} from one step to the next, in the mean of consecutive ones\n",
                     format_time(period->mean));
}

/// A pause for a checkpoint or an evaluation would hide in the mean.
std::string between_text(const BetweenSteps& between, Nanos step) {
  std::string text = fmt::format(
      "between:  {} from the last op of a step to the first of the next, {}\n",
      format_time(between.mean),
      between.pairs == 1 ? "of one pair"
                         : "in the mean of " + counted(between.pairs, "consecutive pair"));
  if (between.longest <= 2 * between.median ||
      fraction(between.longest - between.median, step) <= kMinRest)
    return text;
  return text + fmt::format("          (median {}; longest {}, after step {})\n",
                            format_time(between.median), format_time(between.longest),
                            between.longest_after);
}

/// Lists stages whose ops take longer than those of other stages, the slowest first.
std::string slow_stages(const StragglerReport& report) {
  std::vector<StageSpeed> slow;
  std::copy_if(report.stages.begin(), report.stages.end(), std::back_inserter(slow),
               [](const StageSpeed& speed) { return speed.slowness() > 1 + kMinReported; });
  std::stable_sort(slow.begin(), slow.end(), [](const StageSpeed& left, const StageSpeed& right) {
    return left.slowness() > right.slowness();
  });
  if (slow.size() > kShown) slow.resize(kShown);
  std::string text;
  for (const StageSpeed& speed : slow)
    text += fmt::format("{} {} of stage {} (rank {}): {}, {:.2f} x the others' {}\n",
                        text.empty() ? "slow:    " : "         ", code(speed.kind), speed.stage,
                        speed.rank, format_time(speed.median), speed.slowness(),
                        format_time(speed.others));
  return text.empty() ? "slow:     no stage is slower than the others by over 2 %\n" : text;
}

std::string outliers(const Iterations& iterations) {
  const std::vector<Outlier>& all = iterations.stragglers->outliers;
  std::string text;
  for (std::size_t at = 0; at < std::min(all.size(), kShown); ++at) {
    const std::string& label = iterations.rows[all[at].step].label;
    text +=
        fmt::format("{} {} on rank {} took {}, usually {}{}\n", at == 0 ? "outliers:" : "         ",
                    to_string(all[at].op), all[at].rank, format_time(all[at].duration),
                    format_time(all[at].median), label.empty() ? "" : " (" + label + ")");
  }
  return text;
}

}  // namespace

Iterations remove_conclusions(Iterations iterations) {
  for (IterationRow& row : iterations.rows) row.bubble_ratio.reset();
  iterations.stragglers.reset();
  iterations.causes.reset();
  iterations.slowdown.reset();
  if (iterations.step_period) iterations.step_period->idle.reset();
  return iterations;
}

void write_iterations_json(JsonWriter& json, const Iterations& iterations) {
  const std::vector<double> errors = replay_errors(iterations);
  json.line(1).member("iterations", iterations.rows.size());
  write_rows(json, iterations.rows);
  json.line(1).key("replay_error").begin_object().key("p50").shortest(quantile(errors, 50));
  json.key("p95").shortest(quantile(errors, 95)).key("max").shortest(quantile(errors, 100));
  json.end_object();
  write_stragglers(json, iterations.stragglers);
  json.line(1).key("notes").begin_array();
  for (const std::vector<std::string>* reasons : {&iterations.left_out, &iterations.notes})
    for (const std::string& note : *reasons) json.value(note);
  json.end_array().line(1).key("causes");
  if (iterations.causes)
    write_causes_json(json, *iterations.causes, compute_mean_step(iterations));
  else
    json.null().line(1).key("causes_together_ns").null();
  write_slowdown(json, iterations);
  write_whole_steps(json, iterations);
  json.line(1).member("lacks_replicas", iterations.lacks_replicas);
  write_trust_json(json.line(1), iterations.trust);
}

Nanos compute_mean_step(const Iterations& iterations) {
  Nanos sum = 0;
  for (const WholeStep& step : iterations.whole_steps) sum += step.whole;
  if (!iterations.whole_steps.empty()) return sum / std::ssize(iterations.whole_steps);
  for (const IterationRow& row : iterations.rows) sum += row.makespan;
  return sum / std::ssize(iterations.rows);
}

namespace {

/// The mean time of a step that neither its pipeline nor the activities outside of it explain.
Nanos mean_rest(const std::vector<WholeStep>& steps) {
  Nanos rest = 0;
  for (const WholeStep& step : steps) {
    Nanos explained = step.pipeline;
    for (const auto& [_, time] : step.outside) explained += time;
    rest += std::max<Nanos>(0, step.whole - explained);
  }
  return rest / std::ssize(steps);
}

}  // namespace

std::optional<Nanos> find_known_step(const Iterations& iterations) {
  for (const WholeStep& step : iterations.whole_steps)
    if (step.may_be_longer()) return {};
  return compute_mean_step(iterations);
}

std::string write_left_out_text(const Iterations& iterations) {
  std::string text;
  for (const std::string& sentence : iterations.left_out) text += sentence + "\n";
  return text + (text.empty() ? "" : "\n");
}

std::string write_whole_step_text(const Iterations& iterations) {
  const std::vector<WholeStep>& steps = iterations.whole_steps;
  const bool adds_detail = std::any_of(steps.begin(), steps.end(), [](const WholeStep& step) {
    return step.whole != step.pipeline;
  });
  const bool is_open = !find_known_step(iterations);
  if (steps.empty() || (!adds_detail && !is_open && !has_replicas(iterations))) return {};
  Nanos pipeline = 0;
  for (const WholeStep& step : steps) pipeline += step.pipeline;
  std::string text = fmt::format(
      "step         {}{}  whole{}: mean of {}\n"
      "pipeline     {}  of it, from the first op to the last{}",
      is_open ? "at least " : "", format_time(compute_mean_step(iterations)),
      has_replicas(iterations) ? ", of the slowest replica" : "",
      counted(std::ssize(steps), "step"), format_time(pipeline / std::ssize(steps)),
      iterations.lacks_ranks ? " of the ranks that have a trace" : "");
  std::vector<std::string> parts;
  for (const auto& [name, time] : mean_outside(steps))
    if (parts.size() < kShown) parts.push_back(name + " " + format_time(time));
  if (const Nanos rest = mean_rest(steps); fraction(rest, compute_mean_step(iterations)) > kMinRest)
    parts.push_back(format_time(rest) + (iterations.lacks_ranks
                                             ? " in which the others may have run ops"
                                             : " in which nothing was recorded"));
  if (!parts.empty())
    text += fmt::format("; {}: {}", iterations.lacks_ranks ? "besides" : "outside the pipeline",
                        fmt::join(parts, ", "));
  text += "\n";
  if (has_replicas(iterations)) text += "             (makespan below: mean of all replicas)\n";
  return text;
}

std::string write_iterations_text(const Iterations& iterations) {
  const std::vector<double> errors = replay_errors(iterations);
  std::string text = "\n" + spread(iterations) + "\n" + recorded_text(iterations.whole_steps);
  if (iterations.between_steps)
    text += between_text(*iterations.between_steps, compute_mean_step(iterations));
  text += period_text(iterations.step_period);
  text += fmt::format(
      "replay:   off by {:.3g} % (median), {:.3g} % (max) with the measured order and "
      "durations\n",
      100 * quantile(errors, 50), 100 * quantile(errors, 100));
  if (iterations.causes)
    text += write_causes_text(*iterations.causes, compute_mean_step(iterations),
                              has_replicas(iterations));
  if (iterations.slowdown) text += slowdown_text(iterations);
  if (iterations.stragglers) text += slow_stages(*iterations.stragglers) + outliers(iterations);
  const std::vector<std::string>& reasons = iterations.trust.why;
  for (const std::string& note : iterations.notes)
    if (std::find(reasons.begin(), reasons.end(), note) == reasons.end())
      text += "note: " + note + "\n";
  return text;
}

}  // namespace bubblescope::traces
