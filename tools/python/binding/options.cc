// Parses keyword arguments with the parser of the command line.
#include "tools/python/binding/options.h"

#include <filesystem>
#include <string>
#include <utility>

#include "tools/flags/arrival_options.h"
#include "tools/flags/take_input_limit.h"
#include "tools/flags/unstated_defaults.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

namespace {

/// The package writes the content of `costs` to a file that is gone when a report names it.
PredictInputs name_written_costs(const PredictInputs& inputs) {
  const std::string name = std::filesystem::path(inputs.flags().cost.file).filename().string();
  if (!name.starts_with("bubblescope-costs-")) return inputs;
  return inputs.with([](PredictOptions& flags) { flags.cost.file = "costs"; });
}

}  // namespace

PredictInputs parse_prediction(const Arguments& words) {
  CommandFlags app{"", "bubblescope simulate"};
  PredictOptions flags;
  add_predict_options(app, flags);
  add_arrival_options(app, flags);
  add_loss_option(app, flags);
  add_held_memory_options(app, flags);
  add_noise_options(app, flags.noise);
  add_model_options(app, flags.model);
  app.parse(take_input_limit(words));
  warn_without_model(app, flags.model);
  find_unstated_defaults(app, flags);
  PredictInputs inputs = name_written_costs(read_inputs(std::move(flags), {}));
  warn_without_noise(app, inputs.flags().noise, noise_of_costs(inputs));
  return inputs;
}

}  // namespace bubblescope::tools
