// The command table: help, dispatch and completion all read it.
#include "tools/command.h"

namespace bubblescope::tools {

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      {"simulate", "time one schedule: drawing, bubbles, memory, critical path", run_simulate},
      {"compare", "several schedules side by side", run_compare},
      {"search", "find a schedule for given costs and memory, with a lower bound", run_search},
      {"partition", "split a model's layers into stages and replicas", run_partition},
      {"plan", "sweep schedules and shapes: ranked, with break-even points", run_plan},
      {"run", "execute a schedule: its timeline, its bubbles, its gradients", run_run},
      {"calibrate", "measure what ops and messages cost here, as a --costs file", run_calibrate},
      {"analyze", "report on a measured trace: bubbles, stragglers, what-ifs", run_analyze},
      {"check", "is a schedule legal, can it deadlock, what memory does it need", run_check},
      {"convert", "write a schedule in another format", run_convert},
      {"diff", "two reports or timelines, op by op; a gate for CI", run_diff},
      {"list", "the schedules, models, GPUs, formats and other names that flags accept", run_list},
      {"completion", "print a completion script for bash, zsh or fish", run_completion},
  };
  return table;
}

}  // namespace bubblescope::tools
