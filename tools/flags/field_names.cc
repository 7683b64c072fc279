// Replaces fields by flags.
#include "tools/flags/field_names.h"

#include <algorithm>

namespace bubblescope::tools {

namespace {

/// The fields whose flags have their names, each between blanks.
constexpr std::string_view kFields =
    " activity all_ranks arrivals assume attention backend cap costs cp dp ep epilogue etp explain "
    "first_layers format fsdp gpu grad_reduction graph hidden_size i in_flight inject last_layers "
    "layers_per_stage layout layout_costs length_jitter lengths lose lowering max_input "
    "mem micro_batch_size "
    "microbatch_group_size model moe_overlap network num_attention_heads offload "
    "optimizer "
    "output_layer p2p p2p_mode parts placement policy pp precision profile recompute "
    "recompute_method recompute_modules recompute_num_layers "
    "repeat_layers "
    "replicas reserve_memory rules save schedules seed send_budget seq_length shard_size share "
    "slices slow "
    "timeline timeout to top total_i total_w tp training_optimizer unshard_lookahead vocab_size "
    "vpp w wide work ";

/// The flag of a field, or the field in its backquotes if there is none.
std::string flag_of(std::string_view quoted) {
  const std::string_view field = quoted.substr(1, quoted.size() - 2);
  if (field == "microbatches") return "-m";
  const bool is_known =
      field.find(' ') == field.npos && kFields.find(' ' + std::string(field) + ' ') != field.npos;
  if (!is_known) return std::string(quoted);
  std::string flag = "--" + std::string(field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace

std::string name_flags(std::string_view text) {
  std::string named;
  for (std::size_t begin = text.find('`'); begin != text.npos; begin = text.find('`')) {
    const std::size_t end = text.find('`', begin + 1);
    if (end == text.npos) break;
    named += text.substr(0, begin);
    const std::string_view quoted = text.substr(begin, end + 1 - begin);
    const std::string flag = flag_of(quoted);
    named += flag == quoted ? quoted.substr(0, quoted.size() - 1) : flag;
    // The end of a word that is not a field may be the beginning of a field.
    text.remove_prefix(flag == quoted ? end : end + 1);
  }
  return named.append(text);
}

Problems name_flags(Problems problems) {
  for (Problem& problem : problems) {
    problem.what = name_flags(problem.what);
    problem.remedy = name_flags(problem.remedy);
  }
  return problems;
}

}  // namespace bubblescope::tools
