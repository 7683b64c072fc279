// Parses keyword arguments with the parser of the command line.
#include "tools/python/binding/options.h"

#include <utility>

#include "tools/inputs/config.h"

namespace bubblescope::tools {

PredictOptions parse_prediction(const Arguments& words) {
  CommandFlags app{"", "bubblescope simulate"};
  PredictOptions options;
  add_predict_options(app, options);
  add_loss_option(app, options);
  add_noise_options(app, options.noise);
  add_model_options(app, options.model);
  app.parse(words);
  warn_without_model(app, options.model);
  options = read_inputs(std::move(options), {});
  warn_without_noise(app, options.noise, noise_of_costs(options));
  return options;
}

}  // namespace bubblescope::tools
