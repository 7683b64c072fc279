// Steps for tests.
#include "tests/support/recorded_step.h"

#include <utility>
#include <variant>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "traces/text_schedule.h"

namespace bubblescope {

RecordedStep record_step(const Schedule& schedule, const UniformCost& cost,
                         const LowerOptions& options) {
  std::variant<Program, Deadlock> lowered = lower(schedule, options);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered))
    throw Error(Fault::kProblem, to_string(*deadlock));
  RecordedStep step{schedule, std::get<Program>(std::move(lowered)), {}, {}, {options, "", ""}};
  step.timeline = simulate(step.program, spread(cost, schedule));
  step.report = analyze(schedule, step.program, step.timeline);
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
  return record_step(parse_schedule_text(text), cost, options);
}

std::string write_as(const std::string& format, const RecordedStep& step, const std::string& file) {
  const TimelineFormat* const found = Registry<TimelineFormat>::instance().find(format);
  if (found == nullptr) throw Error("no format is called " + format);
  if (!found->stream) return found->write(step.recording(), file);
  return write_exhibit(format, {"", {{step.schedule.name, step.recording()}}});
}

std::string write_exhibit(const std::string& format, const Exhibit& exhibit) {
  std::string text;
  const TimelineFormat* const found = Registry<TimelineFormat>::instance().find(format);
  found->stream(exhibit, [&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace bubblescope
