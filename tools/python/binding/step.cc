// Predicts steps and writes them.
#include "tools/python/binding/step.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/nearest_names.h"
#include "sim/predict/memory_caps.h"
#include "sim/predict/moves.h"
#include "tools/flags/field_names.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/model_headline.h"
#include "tools/inputs/model_report.h"
#include "tools/inputs/predict.h"
#include "tools/inputs/unused_flags.h"
#include "traces/reports/report_json.h"
#include "traces/reports/text_report.h"
#include "traces/text/shown_ranks.h"
#include "traces/timelines/made_with.h"

namespace bubblescope::tools {

void expect_shape(const Schedule& schedule, const PredictOptions& flags) {
  const ShapeOptions& asked = flags.shape;
  const auto expect = [&](const char* flag, const std::optional<std::int32_t>& value,
                          std::int32_t is, const char* noun, const char* of = "") {
    if (value && *value != is)
      throw Error(fmt::format("{} has {}{}, not {}; leave {} out", schedule.name, counted(is, noun),
                              of, *value, flag));
  };
  expect("--pp", asked.ranks, schedule.shape.ranks, "rank");
  expect("-m", asked.microbatches, schedule.shape.microbatches, "micro-batch");
  expect("--vpp", asked.chunks, schedule.shape.chunks, "chunk", " per rank");
  expect("--slices", asked.slices, schedule.shape.slices, "slice", " per sequence");
  if (!flags.model.global_batch) return;
  const Parallelism& parallel = flags.model.parallel;
  const std::int64_t batch =
      std::int64_t{parallel.data} * parallel.micro_batch_size * schedule.shape.microbatches;
  if (*flags.model.global_batch != batch)
    throw Error(fmt::format("{} has {}, that is a --global-batch-size of {}, not {}", schedule.name,
                            counted(schedule.shape.microbatches, "micro-batch"), batch,
                            *flags.model.global_batch));
}

namespace {

void warn_of_step(const TimedStep& step, const PredictInputs& inputs) {
  const PredictedOps ops{&step.schedule.get(), &step.program};
  warn_of_unused_flags(inputs, std::span(&ops, 1));
  if (step.models.placed)
    report_model_notes(*step.models.placed, step.report, inputs.flags().model);
}

}  // namespace

NamedColumn find_lane_names(const Program& program) {
  NamedColumn lanes;
  std::map<std::string, std::int32_t> code_of;
  std::vector<std::int32_t> code_of_lane;
  for (const Lane& lane : program.lanes) {
    const auto next = static_cast<std::int32_t>(code_of.size());
    const auto [known, is_new] = code_of.emplace(lane.name, next);
    if (is_new) lanes.names.push_back(lane.name);
    code_of_lane.push_back(known->second);
  }
  lanes.codes.reserve(program.instructions.size());
  for (const Instruction& instruction : program.instructions)
    lanes.codes.push_back(instruction.lane == kNoLane ? -1 : code_of_lane[instruction.lane]);
  return lanes;
}

PythonStep predict_step(ValidSchedule schedule, const PredictInputs& inputs) {
  expect_shape(schedule, inputs.flags());
  const Moves& moves = inputs.config().moves;
  if (moves.any()) schedule = apply_moves(std::move(schedule), moves);
  const auto shown = [](const BubbleReport& report) {
    return traces::choose_shown_ranks(report, false);
  };
  auto timed = std::make_shared<TimedStep>(predict_report(std::move(schedule), inputs, shown));
  warn_of_step(*timed, inputs);
  PythonStep step{std::move(timed), {}, {}};
  step.problems =
      name_flags(find_ranks_over_cap(collect_peaks(step.timed->report), step.timed->models.memory));
  if (step.timed->is_excerpt) step.inputs = std::make_shared<PredictInputs>(inputs);
  return step;
}

PythonWholeStep complete_step(const PythonStep& step) {
  if (!step.inputs) return {step.timed};
  return {std::make_shared<TimedStep>(complete_excerpt(*step.timed, *step.inputs))};
}

std::string write_json(const PythonStep& step) {
  const TimedStep& timed = *step.timed;
  return traces::write_report_json(timed.report, timed.program, timed.timeline,
                                   [&](traces::JsonWriter& json) {
                                     traces::write_made_with_json(json.line(1), timed.made);
                                     if (timed.models.placed)
                                       write_model_json(json, *timed.models.placed, timed.report);
                                   });
}

std::string write_text(const PythonStep& step) {
  const TimedStep& timed = *step.timed;
  const std::string text = name_flags(traces::draw_timeline(timed.record()) + "\n" +
                                      traces::write_text_report(timed.record()));
  const std::optional<PlacedModel>& placed = timed.models.placed;
  if (!placed) return text;
  return write_model_headline(*placed, timed.report) + "\n" + text +
         write_model_text(*placed, timed.report);
}

std::string render(const PythonWholeStep& step, const std::string& format,
                   const std::string& file) {
  const auto& registry = Registry<traces::TimelineFormat>::instance();
  const traces::TimelineFormat* found = registry.find(format);
  if (found == nullptr)
    throw Error("no format of steps is called '" + format + "'" +
                suggestion(nearest_names(format, registry)));
  const traces::StepRecord record = step.timed->record();
  if (found->write) return found->write(record, file);
  std::string content;
  found->stream({"", {{step.timed->schedule->name, record}}},
                [&content](std::string_view piece) { content += piece; });
  return content;
}

}  // namespace bubblescope::tools
