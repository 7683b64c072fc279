// The inputs of a prediction: what the command line says, what the files hold that it names, and
// the Config that follows from both. read_inputs() opens all files, each once.
//
//   PredictOptions flags;   // parsed: names and numbers
//   const PredictInputs inputs = read_inputs(flags, {schedule});
//   predict_timed_step(schedule, inputs);
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/predict/config.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// The content of the files that flags name.
struct InputFiles {
  std::optional<CostTable> costs = {};       ///< --costs
  std::optional<ModelOnDevices> model = {};  ///< --model, --gpu and --lengths, by resolve_model()
  std::vector<Nanos> arrivals = {};          ///< --arrivals
};

/// Complete and immutable: functions that need other inputs make another value, whose Config
/// follows from its flags again.
class PredictInputs {
 public:
  PredictInputs() : PredictInputs(PredictOptions{}) {}
  /// `files` has the content of every file that the flags name. Throws Error where flags contradict
  /// each other, or do not apply to the model.
  explicit PredictInputs(PredictOptions flags, InputFiles files = {});

  const PredictOptions& flags() const { return flags_; }
  const InputFiles& files() const { return files_; }
  const Config& config() const { return config_; }

  /// The same files under other flags. The model stays as it was read, except for its gradients.
  PredictInputs with(const std::function<void(PredictOptions& flags)>& change) const;

 private:
  PredictOptions flags_;
  InputFiles files_;
  Config config_;
};

/// Reads the files that flags name, so that any of them can be stdin. `schedules` are the names and
/// files of the command's schedules. Throws Error where two inputs are stdin.
PredictInputs read_inputs(PredictOptions flags, const std::vector<std::string>& schedules);

/// Throws Error where two flags set the times.
void expect_one_cost_source(const PredictOptions& flags);

/// Returns the noise of --costs; empty if it has none, or flags replace it.
std::optional<Noise> noise_of_costs(const PredictInputs& inputs);

}  // namespace bubblescope::tools
