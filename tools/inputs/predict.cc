// Turns inputs into a predicted step.
#include "tools/inputs/predict.h"

#include <utility>
#include <variant>

#include "sim/predict/choose_layers.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/predict_plain.h"
#include "tools/inputs/describe_inputs.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/notes.h"

namespace bubblescope::tools {

Models load_models(const ValidSchedule& schedule, const PredictInputs& inputs) {
  const Config config = choose_layers(schedule, inputs.config());
  Models models = find_models(schedule, config);
  print_notes(find_cost_notes(schedule, config), schedule, inputs);
  return models;
}

TimedStep predict_timed_step(const std::string& name_or_path, const PredictInputs& inputs,
                             std::span<const Note> noted) {
  return predict_timed_step(load_valid_schedule(name_or_path, inputs), inputs, noted);
}

namespace {

TimedStep make_timed_step(Prediction made, const LowerOptions& lowering,
                          const PredictOptions& flags) {
  TimedStep step{std::move(made.schedule)};
  step.program = std::move(made.program);
  step.models = std::move(made.models);
  step.timing = std::move(made.timing);
  step.timeline = std::move(made.timeline);
  step.report = std::move(made.report);
  step.made = {lowering, costs_text(step.models, flags), to_string(flags.shape.profile),
               list_conditions(flags)};
  return step;
}

/// Predicts every op of a step.
Prediction predict_whole(ValidSchedule schedule, const LowerOptions& lowering,
                         const Config& config) {
  Program program = lower_or_explain(schedule, lowering);
  return predict(std::move(schedule), std::move(program), config);
}

TimedStep predict_by(const Config& config, ValidSchedule schedule, const PredictInputs& inputs,
                     std::span<const Note> noted) {
  const LowerOptions lowering = choose_lowering(schedule, config);
  Prediction made = predict_whole(std::move(schedule), lowering, config);
  print_step_notes(made, inputs, noted);
  return make_timed_step(std::move(made), lowering, inputs.flags());
}

}  // namespace

TimedStep predict_timed_step(ValidSchedule schedule, const PredictInputs& inputs,
                             std::span<const Note> noted) {
  return predict_by(inputs.config(), std::move(schedule), inputs, noted);
}

TimedStep predict_report(const std::string& name_or_path, const PredictInputs& inputs,
                         const ChooseRanks& choose_ranks, std::span<const Note> noted) {
  return predict_report(load_valid_schedule(name_or_path, inputs), inputs, choose_ranks, noted);
}

TimedStep predict_report(ValidSchedule schedule, const PredictInputs& inputs,
                         const ChooseRanks& choose_ranks, std::span<const Note> noted) {
  const Config config = choose_layers(schedule, inputs.config());
  const LowerOptions lowering = choose_lowering(schedule, config);
  auto predicted = predict_repeated(std::move(schedule), config, choose_ranks);
  if (auto* const whole = std::get_if<ValidSchedule>(&predicted))
    predicted = predict_plain_report(std::move(*whole), config, choose_ranks);
  auto* const made = std::get_if<Prediction>(&predicted);
  if (made == nullptr)
    return predict_by(config, std::get<ValidSchedule>(std::move(predicted)), inputs, noted);
  print_step_notes(*made, inputs, noted);
  TimedStep step = make_timed_step(std::move(*made), lowering, inputs.flags());
  step.is_excerpt = true;
  return step;
}

TimedStep complete_excerpt(const TimedStep& excerpt, const PredictInputs& inputs) {
  const LowerOptions lowering = choose_lowering(excerpt.schedule, inputs.config());
  return make_timed_step(predict_whole(excerpt.schedule, lowering, inputs.config()), lowering,
                         inputs.flags());
}

}  // namespace bubblescope::tools
