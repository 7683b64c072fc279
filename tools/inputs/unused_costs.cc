// Pairs each cost with its kind of op.
#include "tools/inputs/unused_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tools/print.h"

namespace bubblescope::tools {

namespace {

struct GivenCost {
  const char* flag;
  bool given;
  OpKind kind;
  const char* remedy;
};

bool has_op(const Program& program, OpKind kind) {
  return std::any_of(
      program.instructions.begin(), program.instructions.end(),
      [kind](const Instruction& instruction) { return instruction.op.kind == kind; });
}

}  // namespace

void warn_of_unused_costs(const UniformCost& cost, std::span<const Program> programs) {
  const UpdateCost& update = cost.update;
  const GivenCost all[] = {
      {"--r", cost.recompute.has_value(), OpKind::kRecompute, "--recompute full"},
      {"--r-selective", cost.selective_recompute.has_value(), OpKind::kRecompute,
       "--recompute selective"},
      {"--copy", cost.copy > 0, OpKind::kEvict, "--offload"},
      {"--optimizer-step", update.optimizer > 0, OpKind::kOptimizer, "--optimizer"},
      {"--reduce-grad", update.reduce_grad > 0, OpKind::kReduceGrad, "--grad-reduction or --fsdp"},
      {"--unshard", update.unshard > 0, OpKind::kUnshard, "--fsdp"},
      {"--norm", cost.norm > 0, OpKind::kNorm, "--optimizer barrier"},
  };
  const auto is_used = [&](OpKind kind) {
    return std::any_of(programs.begin(), programs.end(),
                       [kind](const Program& program) { return has_op(program, kind); });
  };
  for (const GivenCost& cost_of : all)
    if (cost_of.given && !is_used(cost_of.kind))
      print_message("bubblescope: {} changes nothing: the step has no such op; add {}\n",
                    cost_of.flag, cost_of.remedy);
}

}  // namespace bubblescope::tools
