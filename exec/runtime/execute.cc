// Runs steps one after another.
#include "exec/runtime/execute.h"

#include <algorithm>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::exec {

namespace {

Timeline gather(const Program& program, const std::vector<RankResult>& results) {
  Timeline timeline;
  Nanos last = 0;
  for (const RankResult& result : results)
    for (const Span& span : result.spans) last = std::max(last, span.end);
  timeline.start.assign(program.size(), last);
  timeline.end.assign(program.size(), last);
  for (const RankResult& result : results)
    for (const Span& span : result.spans) {
      timeline.start[span.id] = span.start;
      timeline.end[span.id] = span.end;
    }
  return timeline;
}

std::string describe(const Program& program, const BlockedAt& blocked) {
  const Instruction& at = program.instructions[blocked.at];
  const std::string where = "rank " + std::to_string(at.rank) + " at " + to_string(at.op);
  if (blocked.started) return where + " (running)";
  if (!blocked.awaited) return where + " (about to start)";
  const Instruction& awaited = program.instructions[*blocked.awaited];
  return where + " waits for " + to_string(awaited.op) +
         (awaited.rank == at.rank ? "" : " of rank " + std::to_string(awaited.rank));
}

/// Lists first the rank that failed first, then lanes that were at work, then lanes that waited.
std::string describe(const Program& program, const std::vector<RankResult>& results) {
  std::vector<std::string> failed;
  std::vector<std::string> working;
  std::vector<std::string> waiting;
  for (const RankResult& result : results)
    for (const BlockedAt& blocked : result.blocked) {
      auto& group = result.failure != nullptr ? failed : blocked.started ? working : waiting;
      group.push_back(describe(program, blocked));
    }
  std::string text;
  for (const auto* group : {&failed, &working, &waiting})
    for (const std::string& blocked : *group) text += (text.empty() ? "" : "; ") + blocked;
  return text;
}

/// If the rank's process is gone, nothing else is known about it.
Breakdown explain_failure(const RankResult& result, const std::string& blocked_lanes) {
  const std::string behind = blocked_lanes.empty() ? "; all other ranks had finished the step"
                                                   : "; every rank was stopped: " + blocked_lanes;
  try {
    std::rethrow_exception(result.failure);
  } catch (const Error& error) {
    return {error.fault(), error.what() + behind};
  } catch (const std::exception& error) {
    return {Fault::kMachine, error.what() + behind};
  }
}

std::optional<Breakdown> find_breakdown(const Program& program,
                                        const std::vector<RankResult>& results) {
  const std::string blocked_lanes = describe(program, results);
  for (const RankResult& result : results)
    if (result.failure != nullptr) return explain_failure(result, blocked_lanes);
  for (const RankResult& result : results) {
    if (result.reason == AbortReason::kTimeout)
      return Breakdown{Fault::kMachine, "no progress within `timeout`: " + blocked_lanes,
                       result.reason};
    if (result.reason == AbortReason::kInterrupt)
      return Breakdown{Fault::kMachine, "interrupted: " + blocked_lanes, result.reason};
  }
  return std::nullopt;
}

}  // namespace

bool StepSeries::run(bool is_measured) {
  const std::vector<RankResult> results = backend_.run_step();
  execution_.breakdown = find_breakdown(program_, results);
  if (is_measured || execution_.breakdown) {
    execution_.steps.push_back(gather(program_, results));
    execution_.steps.back().source = source_;
  }
  if (execution_.breakdown) {
    execution_.steps.back().breakdown = execution_.breakdown->message;
    return false;
  }
  if (after_step_) after_step_();
  return true;
}

Execution execute(const Program& program, Backend& backend, const std::string& source,
                  const ExecuteOptions& options) {
  StepSeries series(program, backend, source, options.after_step);
  for (std::int32_t step = -options.warmup; step < options.steps; ++step) {
    const bool is_measured = step >= 0;
    if (is_measured && options.begin_measured) options.begin_measured();
    const bool runs = series.run(is_measured);
    if (is_measured && options.end_measured) options.end_measured();
    if (!runs) break;
  }
  return std::move(series).take();
}

const Timeline& median_step(const std::vector<Timeline>& steps) {
  std::vector<std::pair<Nanos, std::size_t>> lengths;
  for (std::size_t step = 0; step < steps.size(); ++step)
    lengths.push_back({compute_makespan(steps[step]), step});
  return steps[quantile(std::move(lengths), 50).second];
}

}  // namespace bubblescope::exec
