// Replaces fields by flags.
#include "tools/flags/field_names.h"

#include <algorithm>
#include <array>

namespace bubblescope::tools {

namespace {

struct FieldFlag {
  std::string_view field;
  std::string_view flag;
};

constexpr auto kFlags = std::to_array<FieldFlag>({
    {"arrivals", "--arrivals"},
    {"assume", "--assume"},
    {"cap", "--cap"},
    {"costs", "--costs"},
    {"cp", "--cp"},
    {"dp", "--dp"},
    {"ep", "--ep"},
    {"etp", "--etp"},
    {"explain", "--explain"},
    {"first_layers", "--first-layers"},
    {"grad_reduction", "--grad-reduction"},
    {"hidden_size", "--hidden-size"},
    {"in_flight", "--in-flight"},
    {"inject", "--inject"},
    {"last_layers", "--last-layers"},
    {"layers_per_stage", "--layers-per-stage"},
    {"layout", "--layout"},
    {"layout_costs", "--layout-costs"},
    {"length_jitter", "--length-jitter"},
    {"lengths", "--lengths"},
    {"mem", "--mem"},
    {"micro_batch_size", "--micro-batch-size"},
    {"microbatch_group_size", "--microbatch-group-size"},
    {"microbatches", "-m"},
    {"model", "--model"},
    {"moe_overlap", "--moe-overlap"},
    {"network", "--network"},
    {"num_attention_heads", "--num-attention-heads"},
    {"offload", "--offload"},
    {"optimizer", "--optimizer"},
    {"p2p_mode", "--p2p-mode"},
    {"placement", "--placement"},
    {"policy", "--policy"},
    {"pp", "--pp"},
    {"precision", "--precision"},
    {"profile", "--profile"},
    {"recompute", "--recompute"},
    {"replicas", "--replicas"},
    {"rules", "--rules"},
    {"seed", "--seed"},
    {"send_budget", "--send-budget"},
    {"seq_length", "--seq-length"},
    {"slices", "--slices"},
    {"slow", "--slow"},
    {"tp", "--tp"},
    {"training_optimizer", "--training-optimizer"},
    {"unshard_lookahead", "--unshard-lookahead"},
    {"vocab_size", "--vocab-size"},
    {"vpp", "--vpp"},
});

/// The flag of a field, or the field in its backquotes if there is none.
std::string_view flag_of(std::string_view quoted) {
  const std::string_view field = quoted.substr(1, quoted.size() - 2);
  const auto known = std::find_if(kFlags.begin(), kFlags.end(),
                                  [field](const FieldFlag& each) { return each.field == field; });
  return known == kFlags.end() ? quoted : known->flag;
}

}  // namespace

std::string name_flags(std::string_view text) {
  std::string named;
  for (std::size_t begin = text.find('`'); begin != text.npos; begin = text.find('`')) {
    const std::size_t end = text.find('`', begin + 1);
    if (end == text.npos) break;
    named += text.substr(0, begin);
    const std::string_view quoted = text.substr(begin, end + 1 - begin);
    const std::string_view flag = flag_of(quoted);
    named += flag == quoted ? quoted.substr(0, quoted.size() - 1) : flag;
    // The end of a word that is no field may be the beginning of a field.
    text.remove_prefix(flag == quoted ? end : end + 1);
  }
  return named.append(text);
}

Problems name_flags(Problems problems) {
  for (Problem& problem : problems) problem.message = name_flags(problem.message);
  return problems;
}

}  // namespace bubblescope::tools
