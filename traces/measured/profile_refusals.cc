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
  if (!rules.empty())
    text += fmt::format("; a file for `rules` that may read them: {}", as_rules_file(rules));
  return text;
}

/// Whether nothing but the beginning of steps was recorded, besides what the profiler says of
/// itself.
bool holds_marks_alone(const ChromeEvents& events) {
  const auto marks =
      std::count_if(events.profiled.begin(), events.profiled.end(),
                    [](const ProfiledEvent& event) { return event.activity == Activity::kStep; });
  const auto is_mark = [marks](const auto& of_category) {
    const auto& [category, count] = of_category;
    return category == "Trace" || (category == "user_annotation" && count == marks);
  };
  return marks > 0 && std::ssize(events.profiled) == marks &&
         std::all_of(events.left_out.begin(), events.left_out.end(), is_mark);
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
  if (holds_marks_alone(events))
    throw EmptyRecording(file +
                         ": nothing ran in this recording of PyTorch's profiler; it was stopped "
                         "when a step had just begun. If it has replaced an earlier recording of "
                         "that name, give torch.profiler.schedule() repeat=1");
  const bool is_of_pipeline =
      has(Activity::kAutograd) && (has(Activity::kSend) || has(Activity::kReceive));
  if (is_of_pipeline && !events.distributed_rank)
    throw NoPipeline(fmt::format(
        "{}: this trace of PyTorch's profiler names no op, so that its forwards and backwards are "
        "those between its messages. It has no distributedInfo, so the rank is unknown. PyTorch "
        "writes it only in newer releases, and only if init_process_group() ran before the "
        "profiler started; record again, or annotate the ops: {}",
        file, kNameOps));
  if (is_of_pipeline && !has(Activity::kStep))
    throw NoPipeline(fmt::format(
        "{}: this trace of PyTorch's profiler names no op and marks no step (ProfilerStep#N), so "
        "that its forwards, backwards and messages cannot be divided into steps{}; {}, and where "
        "ranks have several stages, annotate the ops: {}",
        file, suggest_rules(events.names), kMarkSteps, kNameOps));
  throw NoPipeline(fmt::format(
      "{}: there is no pipeline op in this trace of PyTorch's profiler{}; annotate the ops: {}{}",
      file, others.empty() ? "" : " (it has " + others + ")", kNameOps, events.names.describe()));
}

}  // namespace bubblescope::traces
