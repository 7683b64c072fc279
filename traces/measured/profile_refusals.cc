// Says why a profile cannot be read, and how to record one that can.
#include "traces/measured/profile_refusals.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/ir/error.h"
#include "traces/files/no_pipeline.h"
#include "traces/measured/overlap_parts.h"

namespace bubblescope::traces {

namespace {

/// Without a schedule, PyTorch's profiler writes no mark, whatever profiler.step() is called for.
constexpr const char* kMarkSteps =
    "give profile() a schedule (torch.profiler.schedule()) and call profiler.step() after each "
    "step: without a schedule it writes no mark";

/// Lists the annotations that were seen, and suggests rules that read them if some fit.
std::string suggest_rules(const SeenNames& names) {
  std::string rules = names.suggest_op_rules();
  const std::string step = names.suggest_step_rule();
  if (!rules.empty() && !step.empty()) rules += ", ";
  rules += step;
  std::string text = names.list();
  if (!rules.empty()) text += fmt::format("; rules that may read them, for `rules`: {}", rules);
  return text;
}

}  // namespace

void refuse_unnumbered(const std::string& file, const std::string& op) {
  throw Error(fmt::format(
      "{}: the op '{}' states no micro-batch, and the profile marks no step (ProfilerStep#N), so "
      "micro-batches and steps cannot be distinguished; {}",
      file, op, kMarkSteps));
}

void refuse_profile(const ChromeEvents& events, const ProfileActivity& activity,
                    const std::string& file) {
  const std::string others = describe_left_out(events);
  if (const std::string parts = describe_parts(events.parts, activity); !parts.empty())
    throw NoPipeline(file + ": there is no pipeline op in this trace of PyTorch's profiler" +
                     parts);
  const auto has = [&](Activity kind) {
    return std::any_of(events.profiled.begin(), events.profiled.end(),
                       [kind](const ProfiledEvent& event) { return event.activity == kind; });
  };
  const bool is_of_pipeline =
      has(Activity::kAutograd) && (has(Activity::kSend) || has(Activity::kReceive));
  if (is_of_pipeline && has(Activity::kStep) && !events.distributed_rank)
    throw NoPipeline(fmt::format(
        "{}: this trace of PyTorch's profiler names no op, so that its forwards and backwards are "
        "those between its messages. It has no distributedInfo, so the rank is unknown. PyTorch "
        "writes it only in newer releases, and only if init_process_group() ran before the "
        "profiler started; record again, or annotate the ops ('PP:0F3', by record_function)",
        file));
  if (is_of_pipeline && !has(Activity::kStep))
    throw NoPipeline(fmt::format(
        "{}: this trace of PyTorch's profiler names no op and marks no step (ProfilerStep#N), so "
        "that its forwards, backwards and messages cannot be divided into steps{}; {}, and where "
        "ranks have several stages, name the ops ('PP:0F3', by record_function, or by "
        "tools/hooks/bubblescope_hooks.py)",
        file, suggest_rules(events.names), kMarkSteps));
  throw NoPipeline(fmt::format(
      "{}: there is no pipeline op in this trace of PyTorch's profiler{}; name each op in its "
      "trace, as PyTorch's pipelining does ('PP:0F3', by record_function or an NVTX range), or "
      "give args.op{}",
      file, others.empty() ? "" : " (it has " + others + ")", events.names.describe()));
}

}  // namespace bubblescope::traces
