// Flags that apply to the model of --model and to the transformer of --work transformer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/flags/command_flags.h"
#include "tools/flags/model_options.h"
#include "tools/flags/run_options.h"

namespace bubblescope::tools {

/// The values of the shared flags: --seq-length, --micro-batch-size, --precision.
struct SharedSizes {
  std::optional<std::int64_t> sequence;
  std::optional<std::int32_t> batch;
  std::string precision;  ///< empty where not given
};

/// Adds the flags of a model and those of a run to a command that takes both.
void add_model_and_run_options(CommandFlags& app, ModelOptions& model, RunOptions& run,
                               SharedSizes& sizes);

/// Passes the sizes to the model and to the transformer. Throws Error for a precision or a length
/// that the one in use cannot have.
void apply_shared_sizes(const SharedSizes& sizes, ModelOptions& model, RunOptions& run);

/// Warns about shared flags that were given with neither a model nor a transformer.
void warn_of_unused_sizes(const CommandFlags& app, const ModelOptions& model,
                          const RunOptions& run);

}  // namespace bubblescope::tools
