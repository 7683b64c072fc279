#include "tools/flags/framework_names.h"

#include <algorithm>
#include <array>

namespace bubblescope::tools {

namespace {

struct FrameworkFlag {
  std::string_view name;  ///< without "--" and "no-", with "-" between words
  std::string_view flag;  ///< what a command must have for the explanation to hold
  std::string_view text;
};

/// Flags of Megatron-LM, DeepSpeed, torchtitan and Transformers that have another name here, or
/// none because they are always on unless switched off.
constexpr std::array<FrameworkFlag, 28> kFrameworkFlags{{
    {"accumulate-grad-batches", "--microbatches", "here it is '-m'"},
    {"activation-checkpointing", "--recompute", "here it is '--recompute'"},
    {"bf16", "--precision", "here it is '--precision bf16'"},
    {"compile", "--runtime", "here '--runtime torchtitan' has compiled kernels"},
    {"data-parallel-size", "--dp", "here it is '--dp'"},
    {"decoder-first-pipeline-num-layers", "--layout", "here '--layout' says what stages hold"},
    {"decoder-last-pipeline-num-layers", "--layout", "here '--layout' says what stages hold"},
    {"flash-attention", "--save-scores", "it is on; '--save-scores' switches it off"},
    {"fp16", "--precision", "here it is '--precision fp16'"},
    {"fp8", "--precision", "here it is '--precision fp8'"},
    {"fp8-format", "--precision", "here it is '--precision fp8'"},
    {"fp8-hybrid", "--precision", "here it is '--precision fp8'"},
    {"gradient-accumulation-steps", "--microbatches", "here it is '-m'"},
    {"gradient-checkpointing", "--recompute", "here it is '--recompute'"},
    {"num-layers-per-virtual-pipeline-stage", "--vpp",
     "here '--vpp' says how many chunks a rank has"},
    {"overlap-grad-reduce", "--grad-reduction",
     "here it is '--grad-reduction overlap' or 'serial'"},
    {"per-device-train-batch-size", "--micro-batch-size", "here it is '--micro-batch-size'"},
    {"recompute-activations", "--recompute", "here it is '--recompute selective'"},
    {"sequence-parallel", "--no-sequence-parallel",
     "it is on; '--no-sequence-parallel' switches it off"},
    {"tensor-parallel-degree", "--tp", "here it is '--tp'"},
    {"train-batch-size", "--global-batch-size", "here it is '--global-batch-size'"},
    {"train-micro-batch-size-per-gpu", "--micro-batch-size", "here it is '--micro-batch-size'"},
    {"use-distributed-optimizer", "--zero", "here it is '--zero 1'"},
    {"use-flash-attn", "--save-scores", "it is on; '--save-scores' switches it off"},
    {"virtual-pipeline-model-parallel-size", "--vpp", "here it is '--vpp'"},
    {"world-size", "--dp", "ranks are the product of '--pp', '--tp', '--cp' and '--dp'"},
    {"zero-optimization-stage", "--zero", "here it is '--zero'"},
    {"zero-stage", "--zero", "here it is '--zero'"},
}};

/// "fp8-format" of "--fp8_format".
std::string plain_name(std::string_view name) {
  std::string plain(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::replace(plain.begin(), plain.end(), '_', '-');
  if (plain.starts_with("no-")) plain.erase(0, 3);
  return plain;
}

}  // namespace

std::string explain_framework_flag(std::string_view name, const std::vector<std::string>& known) {
  const std::string plain = plain_name(name);
  for (const FrameworkFlag& theirs : kFrameworkFlags)
    if (theirs.name == plain && std::find(known.begin(), known.end(), theirs.flag) != known.end())
      return "; " + std::string(theirs.text);
  return {};
}

std::string explain_framework(std::string_view name) {
  constexpr std::array<std::string_view, 7> kPlainPyTorch{
      "accelerate", "ddp", "hf", "huggingface", "lightning", "pytorch", "transformers"};
  if (std::find(kPlainPyTorch.begin(), kPlainPyTorch.end(), name) == kPlainPyTorch.end()) return {};
  return "; plain PyTorch is closest to 'fsdp', with '--zero 0' where every device has all weights";
}

}  // namespace bubblescope::tools
