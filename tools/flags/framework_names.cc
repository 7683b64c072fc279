#include "tools/flags/framework_names.h"

#include <algorithm>
#include <array>

namespace bubblescope::tools {

namespace {

struct FrameworkFlag {
  std::string_view name;  ///< without "--" and a section, with "-" between words
  std::string_view flag;  ///< what a command must have for the explanation to hold
  std::string_view text;
};

constexpr const char* kOfModel =
    "it is the model's: '--model' takes the config.json of any (Hugging Face)";
/// Flags of Megatron-LM, DeepSpeed, torchtitan and Transformers that have another name here, or
/// none because they are on unless switched off, or the model's.
constexpr std::array<FrameworkFlag, 57> kFrameworkFlags{{
    {"accumulate-grad-batches", "--microbatches", "here it is '-m'"},
    {"activation-checkpointing", "--recompute", "here it is '--recompute'"},
    {"bf16", "--precision", "here it is '--precision bf16'"},
    {"compile", "--runtime", "here '--runtime torchtitan' has compiled kernels"},
    {"context-parallel-degree", "--cp", "here it is '--cp'"},
    {"cuda-graph-impl", "--assume", "here it is '--assume iteration_graphs=1'"},
    {"data-parallel-replicate-degree", "--shard-size", "here '--shard-size' divides '--dp'"},
    {"data-parallel-shard-degree", "--shard-size", "here it is '--shard-size', with '--zero 3'"},
    {"data-parallel-size", "--dp", "here it is '--dp'"},
    {"data-parallel-size", "--gpus", "it follows from '--gpus'"},
    {"decoder-first-pipeline-num-layers", "--layout", "here '--layout' says what stages hold"},
    {"decoder-last-pipeline-num-layers", "--layout", "here '--layout' says what stages hold"},
    {"dp", "--gpus", "it follows from '--gpus'"},
    {"expert-parallel-degree", "--ep", "here it is '--ep'"},
    {"flash-attention", "--save-scores", "it is on; '--save-scores' switches it off"},
    {"fp16", "--precision", "here it is '--precision fp16'"},
    {"fp8", "--precision", "here it is '--precision fp8'"},
    {"fp8-format", "--precision", "here it is '--precision fp8'"},
    {"fp8-hybrid", "--precision", "here it is '--precision fp8'"},
    {"gpus", "--dp", "devices are the product of '--pp', '--tp', '--cp' and '--dp'"},
    {"grad-reduce-in-bf16", "--gradients", "here it is '--gradients bf16'"},
    {"gradient-accumulation-steps", "--gpus", "it follows from '--global-batch-size'"},
    {"gradient-accumulation-steps", "--microbatches", "here it is '-m'"},
    {"gradient-checkpointing", "--recompute", "here it is '--recompute'"},
    {"hidden-size", "--model", kOfModel},
    {"max-seq-len", "--seq-length", "here it is '--seq-length'"},
    {"moe-router-topk", "--model", kOfModel},
    {"mtp-num-layers", "--model", kOfModel},
    {"no-gradient-accumulation-fusion", "--accumulation-bytes",
     "here '--accumulation-bytes 12' is a step without it"},
    {"no-overlap-grad-reduce", "--grad-reduction", "here it is '--grad-reduction serial'"},
    {"no-overlap-p2p-communication", "--message-exposed", "here it is '--message-exposed 1'"},
    {"nodes", "--gpus", "here '--gpus' counts devices"},
    {"num-attention-heads", "--model", kOfModel},
    {"num-distributed-optimizer-instances", "--shard-size", "here '--shard-size' divides '--dp'"},
    {"num-experts", "--model", kOfModel},
    {"num-layers", "--model", kOfModel},
    {"num-layers-per-virtual-pipeline-stage", "--vpp",
     "here '--vpp' says how many chunks a rank has"},
    {"overlap-grad-reduce", "--grad-reduction", "here it is '--grad-reduction overlap'"},
    {"overlap-moe-expert-parallel-comm", "--moe-overlap", "here it is '--moe-overlap'"},
    {"per-device-train-batch-size", "--micro-batch-size", "here it is '--micro-batch-size'"},
    {"pipeline-parallel-degree", "--pp", "here it is '--pp'"},
    {"pipeline-parallel-microbatch-size", "--micro-batch-size", "here it is '--micro-batch-size'"},
    {"recompute-activations", "--recompute", "here it is '--recompute selective'"},
    {"seq-len", "--seq-length", "here it is '--seq-length'"},
    {"seqlen", "--seq-length", "here it is '--seq-length'"},
    {"sequence-parallel", "--no-sequence-parallel",
     "it is on; '--no-sequence-parallel' switches it off"},
    {"tensor-parallel-degree", "--tp", "here it is '--tp'"},
    {"tp-comm-overlap", "--tensor-exposed",
     "here '--tensor-exposed' says how much of them is not hidden"},
    {"train-batch-size", "--global-batch-size", "here it is '--global-batch-size'"},
    {"train-micro-batch-size-per-gpu", "--micro-batch-size", "here it is '--micro-batch-size'"},
    {"use-distributed-optimizer", "--zero", "here it is '--zero 1', the default of 'megatron'"},
    {"use-flash-attn", "--save-scores", "it is on; '--save-scores' switches it off"},
    {"virtual-pipeline-model-parallel-size", "--vpp", "here it is '--vpp'"},
    {"world-size", "--gpus", "here it is '--gpus'"},
    {"world-size", "--dp", "devices are the product of '--pp', '--tp', '--cp' and '--dp'"},
    {"zero-optimization-stage", "--zero", "here it is '--zero'"},
    {"zero-stage", "--zero", "here it is '--zero'"},
}};

/// "fp8-format" of "--fp8_format", "seq-len" of torchtitan's "--training.seq_len".
std::string plain_name(std::string_view name) {
  const std::size_t section = name.rfind('.');
  const std::size_t begin = section == name.npos ? name.find_first_not_of('-') : section + 1;
  std::string plain(name.substr(std::min(begin, name.size())));
  std::replace(plain.begin(), plain.end(), '_', '-');
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
