// Puts the flags of one plan together: what the question gave for all plans, and what the plan has
// of its own.
#include "tools/plan/command_of_plan.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <vector>

#include "sim/ir/recompute.h"
#include "sim/ir/send_budget.h"
#include "sim/model/parallelism.h"
#include "tools/command_line.h"
#include "tools/flags/words.h"
#include "tools/plan/what_if.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::tools {

namespace {

/// The flags of a question that a plan answers, and those that only a plan has.
const std::set<std::string_view> kAnswered{"--pp",           "--vpp",
                                           "--microbatches", "--schedules",
                                           "--slices",       "--moe-overlap",
                                           "--gpus",         "--global-batch-size",
                                           "--tp",           "--cp",
                                           "--ep",           "--etp",
                                           "--recompute",    "--micro-batch-size",
                                           "--send-budget",  "--recompute-method",
                                           "--split",        "--recompute-num-layers",
                                           "--explain",      "--unshard-lookahead",
                                           "--total-f",      "--total-i",
                                           "--total-w",      "--total-b"};

/// The flags that say how layers are split, which the layout of a plan answers.
const std::set<std::string_view> kSplitting{"--embedding-layers", "--head-layers",
                                            "--first-layers",     "--last-layers",
                                            "--account-for-loss", "--account-for-embedding"};

/// The words of a command line.
class CommandWords {
 public:
  explicit CommandWords(const std::string& schedule) : words_{schedule} {}

  template <class Value>
  void add(std::string_view flag, const Value& value) {
    words_.emplace_back(flag);
    words_.push_back(fmt::format("{}", value));
  }

  void add_word(std::string word) { words_.push_back(std::move(word)); }

  std::string line() const { return format_command_line("simulate", words_); }

 private:
  std::vector<std::string> words_;
};

/// Adds what was given for all plans.
void add_given(CommandWords& words, const PlanQuestion& question, bool has_layout) {
  for (std::size_t at = 0; at < question.words.size(); ++at) {
    const std::string& flag = question.words[at];
    const bool has_value =
        at + 1 < question.words.size() && !question.words[at + 1].starts_with("--");
    const bool is_scaled = question.whole_model && flag == "--cap";
    const bool is_answered =
        kAnswered.count(flag) > 0 || is_scaled || (has_layout && kSplitting.count(flag) > 0);
    if (has_value) ++at;
    if (is_answered) continue;
    if (has_value)
      words.add(flag, question.words[at]);
    else
      words.add_word(flag);
  }
}

/// Adds a rank's share of the times and of the limit that are those of a whole model.
void add_shares(CommandWords& words, const PlanQuestion& question,
                const Configuration& configuration) {
  if (!question.whole_model) return;
  const std::int32_t ranks = configuration.shape.ranks;
  const UniformCost share = divide_among_ranks(question.predict.cost, ranks);
  const bool has_halves = share.backward && share.halves_add_up();  // they follow where not given
  words.add("--f", fmt::format("{}ns", share.forward));
  if (!has_halves || question.gives("--total-i"))
    words.add("--i", fmt::format("{}ns", share.input_grad));
  if (!has_halves || question.gives("--total-w"))
    words.add("--w", fmt::format("{}ns", share.weight_grad));
  if (share.backward) words.add("--b", fmt::format("{}ns", *share.backward));
  std::vector<std::string> caps;
  for (const Millionths cap : multiply_by_ranks(question.predict.memory.cap, ranks))
    caps.push_back(fmt::format("{}", static_cast<double>(cap) / 1e6));
  if (!caps.empty()) words.add("--cap", join(caps, ","));
}

void add_shape(CommandWords& words, const PlanQuestion& question,
               const Configuration& configuration) {
  const ShapeOptions shape = shape_of(configuration, question.predict.shape);
  words.add("--pp", configuration.shape.ranks);
  if (shape.chunks) words.add("--vpp", *shape.chunks);
  words.add("-m", configuration.shape.microbatches);
  if (shape.slices) words.add("--slices", *shape.slices);
  if (shape.group_size) words.add("--microbatch-group-size", *shape.group_size);
  if (configuration.moe_overlap) words.add_word("--moe-overlap");
  if (configuration.send_budget > 0)
    words.add("--send-budget", budget_text(configuration.send_budget));
  if (configuration.lookahead) {
    words.add_word("--fsdp");
    words.add("--unshard-lookahead", traces::lookahead_text(configuration));
  }
}

void add_recomputation(CommandWords& words, const Configuration& configuration) {
  if (configuration.recompute == Recompute::kNone) return;
  words.add("--recompute", name(configuration.recompute));
  if (!configuration.modules.empty())
    words.add("--recompute-modules", to_text(configuration.modules));
  if (configuration.recomputed == RecomputedLayers{}) return;
  words.add("--recompute-method", name_of(kRecomputeMethods, configuration.recomputed.method));
  words.add("--recompute-num-layers", configuration.recomputed.number);
}

void add_model(CommandWords& words, const Plan& plan, bool has_experts) {
  const Configuration& configuration = plan.configuration;
  words.add("--tp", configuration.tensor);
  words.add("--dp", configuration.data);
  if (configuration.context > 1) words.add("--cp", configuration.context);
  if (has_experts) {
    words.add("--ep", configuration.expert);
    words.add("--etp", configuration.expert_tensor);
  }
  words.add("--micro-batch-size", configuration.micro_batch_size);
  add_recomputation(words, configuration);
  words.add("--layout", plan.layout);
}

}  // namespace

std::string simulate_command(const PlanQuestion& question, const Plan& plan, bool has_experts) {
  CommandWords words(plan.configuration.schedule);
  add_given(words, question, !plan.layout.empty());
  add_shares(words, question, plan.configuration);
  add_shape(words, question, plan.configuration);
  if (!plan.layout.empty()) add_model(words, plan, has_experts);
  if (plan.gradients && !question.gives("--gradients"))
    words.add("--gradients", name_of(kGradientFormats, *plan.gradients));
  return words.line();
}

}  // namespace bubblescope::tools
