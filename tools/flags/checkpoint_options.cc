// Turns arguments into checkpoint options.
#include "tools/flags/checkpoint_options.h"

#include "sim/ir/error.h"
#include "tools/flags/heading.h"

namespace bubblescope::tools {

void add_checkpoint_options(CommandFlags& app, CheckpointOptions& options) {
  const Heading heading(app, "Checkpoints of --work transformer");
  app.add_option("--checkpoint", options.folder,
                 "save the training here, so that a killed run can be resumed")
      ->type_name("DIR");
  app.add_option("--every", options.every, "steps between two checkpoints (1)")
      ->check(InRange(1, 1'000'000));
  app.add_flag("--resume", options.resume,
               "continue from the newest whole checkpoint, or begin if there is none");
}

void expect_sound_checkpoints(const CommandFlags& app, const CheckpointOptions& options) {
  if (app.count("--checkpoint") > 0 && options.folder.empty())
    throw Error("--checkpoint needs a folder: give its name");
  if (!options.folder.empty()) return;
  for (const char* const flag : {"--every", "--resume"})
    if (app.count(flag) > 0)
      throw Error(std::string(flag) + " needs a folder of checkpoints; add --checkpoint DIR");
}

}  // namespace bubblescope::tools
