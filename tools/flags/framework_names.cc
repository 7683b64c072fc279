#include "tools/flags/framework_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace bubblescope::tools {

namespace {

struct FrameworkFlag {
  std::string_view name;  ///< without "--" and a section, with "-" between words
  std::string_view flag;  ///< what a command must have for the explanation to hold
  std::string_view text;
};

constexpr const char* kOfModel =
    "the model sets it: give '--model' a name or a config.json (Hugging Face)";
/// Flags of Megatron-LM, DeepSpeed, torchtitan and Transformers that say something here too, in
/// other words, or that are the model's.
constexpr std::array<FrameworkFlag, 29> kFrameworkFlags{{
    {"activation-checkpointing", "--recompute", "here it is '--recompute'"},
    {"checkpoint-activations", "--recompute", "here it is '--recompute full'"},
    {"compile", "--runtime", "here '--runtime torchtitan' has compiled kernels"},
    {"cuda-graph-impl", "--assume", "here it is '--assume iteration_graphs=1'"},
    {"data-parallel-replicate-degree", "--shard-size", "here '--shard-size' divides '--dp'"},
    {"data-parallel-shard-degree", "--shard-size", "here it is '--shard-size', with '--zero 3'"},
    {"data-parallel-size", "--gpus", "it follows from '--gpus'"},
    {"decoder-first-pipeline-num-layers", "--layout", "here '--layout' says what stages hold"},
    {"decoder-last-pipeline-num-layers", "--layout", "here '--layout' says what stages hold"},
    {"dp", "--gpus", "it follows from '--gpus'"},
    {"fp8", "--precision", "here it is '--precision fp8'"},
    {"fp8-format", "--precision", "here it is '--precision fp8'"},
    {"fp8-hybrid", "--precision", "here it is '--precision fp8'"},
    {"gpus", "--dp", "devices are the product of '--pp', '--tp', '--cp' and '--dp'"},
    {"gradient-checkpointing", "--recompute", "here it is '--recompute'"},
    {"hidden-size", "--model", kOfModel},
    {"local-batch-size", "--micro-batch-size", "here it is '-m' times '--micro-batch-size'"},
    {"moe-router-topk", "--model", kOfModel},
    {"mtp-num-layers", "--model", kOfModel},
    {"no-gradient-accumulation-fusion", "--accumulation-bytes",
     "here '--accumulation-bytes 12' is a step without it"},
    {"nodes", "--gpus", "here '--gpus' counts devices"},
    {"num-attention-heads", "--model", kOfModel},
    {"num-distributed-optimizer-instances", "--shard-size", "here '--shard-size' divides '--dp'"},
    {"num-experts", "--model", kOfModel},
    {"num-layers", "--model", kOfModel},
    {"num-layers-per-virtual-pipeline-stage", "--vpp",
     "here '--vpp' says how many chunks a rank has"},
    {"recompute-activations", "--recompute", "here it is '--recompute selective'"},
    {"tp-comm-overlap", "--tensor-exposed",
     "here '--tensor-exposed' says how much of the tensor ranks' communication is exposed"},
    {"world-size", "--dp", "devices are the product of '--pp', '--tp', '--cp' and '--dp'"},
}};

/// A flag of a framework that says just what one of a command says.
struct EqualFlag {
  std::string_view name;  ///< as that of a FrameworkFlag
  std::string_view flag;
  std::string_view value;  ///< empty: the same value
};

constexpr std::string_view kNoValue = "on";       ///< the command's flag takes none
constexpr std::string_view kDefault = "default";  ///< it holds unless that flag is given

constexpr std::array<EqualFlag, 35> kEqualFlags{{
    {"accumulate-grad-batches", "--microbatches", ""},
    {"bf16", "--precision", "bf16"},
    {"context-parallel-degree", "--cp", ""},
    {"data-parallel-size", "--dp", ""},
    {"expert-parallel-degree", "--ep", ""},
    {"expert-tensor-parallel-degree", "--etp", ""},
    {"flash-attention", "--save-scores", kDefault},
    {"fp16", "--precision", "fp16"},
    {"grad-reduce-in-bf16", "--gradients", "bf16"},
    {"global-batch-size", "--global-batch-size", ""},
    {"gradient-accumulation-steps", "--microbatches", ""},
    {"max-seq-len", "--seq-length", ""},
    {"microbatch-group-size-per-virtual-pipeline-stage", "--microbatch-group-size", ""},
    {"no-overlap-grad-reduce", "--grad-reduction", "serial"},
    {"no-overlap-p2p-communication", "--message-exposed", "1"},
    {"model-parallel-size", "--tp", ""},
    {"overlap-grad-reduce", "--grad-reduction", "overlap"},
    {"overlap-moe-expert-parallel-comm", "--moe-overlap", kNoValue},
    {"overlap-param-gather", "--grad-reduction", kDefault},
    {"per-device-train-batch-size", "--micro-batch-size", ""},
    {"pipe-parallel-size", "--pp", ""},
    {"pipeline-parallel-degree", "--pp", ""},
    {"pipeline-parallel-microbatch-size", "--micro-batch-size", ""},
    {"seq-len", "--seq-length", ""},
    {"seqlen", "--seq-length", ""},
    {"sequence-parallel", "--no-sequence-parallel", kDefault},
    {"tensor-parallel-degree", "--tp", ""},
    {"train-batch-size", "--global-batch-size", ""},
    {"train-micro-batch-size-per-gpu", "--micro-batch-size", ""},
    {"use-distributed-optimizer", "--zero", "1"},
    {"use-flash-attn", "--save-scores", kDefault},
    {"virtual-pipeline-model-parallel-size", "--vpp", ""},
    {"world-size", "--gpus", ""},
    {"zero-optimization-stage", "--zero", ""},
    {"zero-stage", "--zero", ""},
}};

/// "training" of torchtitan's "--training.seq_len"; empty without one.
std::string_view section_of(std::string_view name) {
  const std::size_t end = name.rfind('.');
  const std::size_t begin = std::min(name.find_first_not_of('-'), name.size());
  return end == name.npos || end < begin ? std::string_view() : name.substr(begin, end - begin);
}

/// "fp8-format" of "--fp8_format", "seq-len" of torchtitan's "--training.seq_len".
std::string plain_name(std::string_view name) {
  const std::size_t section = name.rfind('.');
  const std::size_t begin = section == name.npos ? name.find_first_not_of('-') : section + 1;
  std::string plain(name.substr(std::min(begin, name.size())));
  std::replace(plain.begin(), plain.end(), '_', '-');
  return plain;
}

/// Other sections have keys of the same name that are about something else: "--validation.seq_len".
bool is_of_training(std::string_view section) {
  return section.empty() || section == "training" || section == "parallelism";
}

}  // namespace

std::string explain_framework_flag(std::string_view name, const std::vector<std::string>& known) {
  const std::string plain = plain_name(name);
  for (const FrameworkFlag& theirs : kFrameworkFlags)
    if (theirs.name == plain && std::find(known.begin(), known.end(), theirs.flag) != known.end())
      return std::string(theirs.text);
  return {};
}

std::string list_unknown_flags(const std::vector<std::string>& names,
                               const std::vector<std::string>& known) {
  constexpr std::size_t kMaxNames = 6;
  std::vector<std::string> explained;
  std::vector<std::string> others;
  for (const std::string& name : names) {
    const std::string hint = explain_framework_flag(name, known);
    if (hint.empty())
      others.push_back("'" + name + "'");
    else
      explained.push_back("'" + name + "' (" + hint + ")");
  }
  explained.insert(explained.end(), others.begin(), others.end());
  std::string text = "no flag is called ";
  for (std::size_t at = 0; at < std::min(explained.size(), kMaxNames); ++at)
    text += (at == 0 ? "" : ", ") + explained[at];
  if (explained.size() > kMaxNames)
    text += " and " + std::to_string(explained.size() - kMaxNames) + " more";
  return text;
}

std::optional<std::vector<std::string>> translate_framework_flag(
    std::string_view word, const std::function<bool(std::string_view)>& is_known) {
  const std::size_t sign = std::min(word.find('='), word.size());
  const std::string plain = plain_name(word.substr(0, sign));
  const std::string_view section = section_of(word.substr(0, sign));
  if (!is_of_training(section)) return {};
  if (std::string own = "--" + plain; section.empty() && is_known(own))
    return {{own.append(word.substr(sign))}};
  for (const EqualFlag& theirs : kEqualFlags) {
    if (theirs.name != plain || !is_known(theirs.flag)) continue;
    std::string flag(theirs.flag);
    if (theirs.value.empty()) return {{flag.append(word.substr(sign))}};
    if (sign < word.size()) continue;  // a value, where the framework's flag takes none
    if (theirs.value == kDefault) return std::vector<std::string>{};
    if (theirs.value == kNoValue) return {{std::move(flag)}};
    return {{flag.append("=").append(theirs.value)}};
  }
  return {};
}

std::string explain_framework(std::string_view name) {
  if (name == "nanotron" || name == "picotron")
    return "; eager PyTorch with tensor ranks or pipelines is closest to 'fsdp' with '--zero 1'";
  constexpr std::array<std::string_view, 7> kPlainPyTorch{
      "accelerate", "ddp", "hf", "huggingface", "lightning", "pytorch", "transformers"};
  if (std::find(kPlainPyTorch.begin(), kPlainPyTorch.end(), name) == kPlainPyTorch.end()) return {};
  return "; plain PyTorch is closest to 'fsdp', with '--zero 0' where every device has all weights";
}

}  // namespace bubblescope::tools
