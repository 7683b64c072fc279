// Flags of checkpoints: --checkpoint, --every, --resume.
#pragma once

#include <cstdint>
#include <string>

#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

struct CheckpointOptions {
  std::string folder;  ///< empty: no checkpoints
  std::int32_t every = 1;
  bool resume = false;
};

void add_checkpoint_options(CommandFlags& app, CheckpointOptions& options);

/// Throws Error for flags without --checkpoint.
void expect_sound_checkpoints(const CommandFlags& app, const CheckpointOptions& options);

}  // namespace bubblescope::tools
