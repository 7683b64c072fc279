// Parses keyword arguments with the parser of the command line.
#include "tools/python/binding/options.h"

#include <filesystem>
#include <string>
#include <utility>

#include "tools/flags/arrival_options.h"
#include "tools/inputs/config.h"

namespace bubblescope::tools {

namespace {

/// The package writes the content of `costs` to a file that is gone when a report names it.
void name_written_costs(CostOptions& cost) {
  const std::string name = std::filesystem::path(cost.file).filename().string();
  if (cost.content && name.starts_with("bubblescope-costs-")) cost.file = "costs";
}

}  // namespace

PredictOptions parse_prediction(const Arguments& words) {
  CommandFlags app{"", "bubblescope simulate"};
  PredictOptions options;
  add_predict_options(app, options);
  add_arrival_options(app, options);
  add_loss_option(app, options);
  add_held_memory_options(app, options);
  add_noise_options(app, options.noise);
  add_model_options(app, options.model);
  app.parse(words);
  warn_without_model(app, options.model);
  options = read_inputs(std::move(options), {});
  name_written_costs(options.cost);
  warn_without_noise(app, options.noise, noise_of_costs(options));
  return options;
}

}  // namespace bubblescope::tools
