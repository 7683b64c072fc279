// Steps for tests.
#include "tests/support/recorded_step.h"

#include <utility>
#include <variant>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/random_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {

RecordedStep record_step(const Schedule& schedule, const UniformCost& cost,
                         const LowerOptions& options) {
  ValidSchedule valid = require_valid(schedule);
  std::variant<Program, Deadlock> lowered = lower(valid, options);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered))
    throw Error(Fault::kProblem, to_string(*deadlock));
  RecordedStep step{
      std::move(valid), std::get<Program>(std::move(lowered)), {}, {}, {options, "", ""}};
  step.timeline = simulate(step.program, spread(cost, schedule));
  step.report = analyze(step.schedule, step.program, step.timeline);
  return step;
}

RecordedStep record_step(const std::string& name, const StepShape& shape, const UniformCost& cost,
                         const LowerOptions& options) {
  ScheduleRequest request;
  request.shape.ranks = shape.ranks;
  request.shape.chunks = shape.chunks;
  request.shape.microbatches = shape.microbatches;
  request.cost = cost;
  return record_step(build_schedule(find_schedule(name), request), cost, options);
}

RecordedStep record_text(const std::string& text, const UniformCost& cost,
                         const LowerOptions& options) {
  return record_step(traces::parse_schedule_text(text), cost, options);
}

UniformCost uneven_cost(Nanos message) {
  UniformCost cost;
  cost.forward = 1'100'001;
  cost.input_grad = 1'300'003;
  cost.weight_grad = 700'007;
  cost.message = message;
  cost.update = {400'013, 150'007, 90'001};
  return cost;
}

std::vector<RecordedStep> every_schedule(const UniformCost& cost, const LowerOptions& options,
                                         std::int32_t slices) {
  std::vector<RecordedStep> steps;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    ScheduleRequest request;
    request.shape.ranks = 4;
    request.shape.microbatches = 8;
    request.shape.chunks = def.implied_chunks.value_or(1);
    request.shape.slices = def.slices_sequences ? slices : 1;
    request.cost = cost;
    if (def.refuse && !def.refuse(request).empty()) continue;
    steps.push_back(record_step(build_schedule(def, request), cost, options));
  }
  return steps;
}

std::vector<RecordedStep> many_steps(const UniformCost& cost) {
  std::vector<RecordedStep> steps = every_schedule(cost, {}, 2);
  for (const P2pMode mode : {P2pMode::kFifo, P2pMode::kHostSend, P2pMode::kBatched})
    steps.push_back(record_step("1f1b", {.ranks = 4, .microbatches = 8}, cost, {.mode = mode}));
  for (std::uint32_t seed = 0; seed < 20; ++seed)
    steps.push_back(record_step(random_schedule(seed, {.slices = true, .recompute = true}), cost));
  return steps;
}

std::string write_as(const std::string& format, const RecordedStep& step, const std::string& file) {
  const traces::TimelineFormat* const found =
      Registry<traces::TimelineFormat>::instance().find(format);
  if (found == nullptr) throw Error("no format is called " + format);
  if (!found->stream) return found->write(step.record(), file);
  return write_report_set(format, {"", {{step.schedule->name, step.record()}}});
}

std::string write_report_set(const std::string& format, const traces::ReportSet& report_set) {
  std::string text;
  const traces::TimelineFormat* const found =
      Registry<traces::TimelineFormat>::instance().find(format);
  found->stream(report_set, [&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace bubblescope::tests
