#include "tools/flags/framework_names.h"

#include <algorithm>
#include <array>
#include <string>

namespace bubblescope::tools {

namespace {

struct FrameworkFlag {
  /// With "-" between words and without "--"; with a section only where others have this name.
  std::string_view name;
  std::string_view flag;  ///< what a command must have for the explanation to hold
  std::string_view text;
};

constexpr const char* kOfModel =
    "the model sets it: give '--model' a name or a config.json (Hugging Face)";
constexpr const char* kOfFiles =
    "here '--save FILE' writes the step, and '--format json' prints the report";
constexpr const char* kOfPicture = "here '--svg FILE' draws it";
constexpr const char* kOfDevices = "devices are the product of '--pp', '--tp', '--cp' and '--dp'";
constexpr const char* kOfHost = "optimizers on the host are not modelled";
constexpr const char* kOfAdapters = "adapters (LoRA) and frozen weights are not modelled";
constexpr const char* kOfFourBits =
    "GEMMs in 4 bits are not modelled, those in 8 are '--precision fp8'";
constexpr const char* kOfUlysses =
    "all-to-alls (Ulysses) are not modelled; ranks of '--cp' pass keys and values on";
/// Flags of Megatron-LM, DeepSpeed, torchtitan and Transformers that say something here too, in
/// other words, or that are the model's; and words that many programs have for what is a flag here.
constexpr std::array<FrameworkFlag, 83> kFrameworkFlags{{
    {"activation-checkpoint.mode", "--recompute", "here it is '--recompute'"},
    {"activation-checkpointing", "--recompute", "here it is '--recompute'"},
    {"attention-backend", "--save-scores", "here '--save-scores' is attention that is not fused"},
    {"backward", "--b", "here it is '--b'"},
    {"bandwidth", "--network", "here it is '--network bytes=SIZE,link=GBIT/S'"},
    {"bwd", "--b", "here it is '--b'"},
    {"checkpoint-activations", "--recompute", "here it is '--recompute full'"},
    {"compile", "--runtime", "here '--runtime torchtitan' has compiled kernels"},
    {"cp-comm-type", "--cp",
     "here ranks of '--cp' pass keys and values on; all-to-alls (Ulysses) are not modelled"},
    {"cpu-offload", "--model", kOfHost},
    {"csv", "--format", "here '--format' says how the result is printed"},
    {"cuda-graph-impl", "--assume", "here it is '--assume iteration_graphs=1'"},
    {"data-parallel-replicate-degree", "--dp",
     "here '--dp' is it times data_parallel_shard_degree, which is '--shard-size'"},
    {"data-parallel-replicate-degree", "--shard-size",
     "here '--shard-size' divides the data ranks"},
    {"data-parallel-shard-degree", "--dp",
     "here it is '--dp', or '--shard-size' beside data_parallel_replicate_degree"},
    {"data-parallel-shard-degree", "--shard-size",
     "here it is '--shard-size' beside data_parallel_replicate_degree"},
    {"data-parallel-size", "--gpus", "it follows from '--gpus'"},
    {"dp", "--gpus", "it follows from '--gpus'"},
    {"ds-sequence-parallel-size", "--cp", kOfUlysses},
    {"expert-parallel-size", "--ep", "here it is '--ep'"},
    {"fail-if", "--all-modes", "check fails by itself; '--cap' and '--all-modes' ask for more"},
    {"forward", "--f", "here it is '--f'"},
    {"fp4-format", "--precision", kOfFourBits},
    {"fp4-recipe", "--precision", kOfFourBits},
    {"fp8", "--precision", "here it is '--precision fp8'"},
    {"fp8-format", "--precision", "here it is '--precision fp8'"},
    {"fp8-recipe", "--precision", "here '--precision fp8' stands for all recipes of 8 bits"},
    {"fsdp-size", "--dp", "here it is '--dp', or '--shard-size' where there are more data ranks"},
    {"fwd", "--f", "here it is '--f'"},
    {"gpus", "--dp", kOfDevices},
    {"gradient-checkpointing", "--recompute", "here it is '--recompute'"},
    {"hidden-size", "--model", kOfModel},
    {"json", "--format", "here it is '--format json'"},
    {"latency", "--p2p", "here it is '--p2p'"},
    {"load-in-4bit", "--model", kOfAdapters},
    {"local-batch-size", "--micro-batch-size", "here it is '-m' times '--micro-batch-size'"},
    {"lora-alpha", "--model", kOfAdapters},
    {"lora-r", "--model", kOfAdapters},
    {"lora-rank", "--model", kOfAdapters},
    {"m", "--microbatches", "here it is '-m'"},
    {"main-grads-dtype", "--gradients", "here it is '--gradients'"},
    {"moe-enable-deepep", "--assume", "here it is '--assume dispatch_once=1'"},
    {"moe-router-topk", "--model", kOfModel},
    {"moe-token-dispatcher-type", "--assume",
     "here '--assume dispatch_once=0' is NCCL's all-to-all and '--assume dispatch_once=1' DeepEP"},
    {"mtp-num-layers", "--model", kOfModel},
    {"n-gpus", "--gpus", "here it is '--gpus'"},
    {"n-gpus", "--dp", kOfDevices},
    {"nnodes", "--gpus", "here '--gpus' counts devices"},
    {"nnodes", "--dp", kOfDevices},
    {"no-gradient-accumulation-fusion", "--accumulation-bytes",
     "here '--accumulation-bytes 12' is a step without it"},
    {"nodes", "--gpus", "here '--gpus' counts devices"},
    {"nodes", "--dp", kOfDevices},
    {"num-attention-heads", "--model", kOfModel},
    {"num-distributed-optimizer-instances", "--shard-size", "here '--shard-size' divides '--dp'"},
    {"num-experts", "--model", kOfModel},
    {"num-gpus", "--gpus", "here it is '--gpus'"},
    {"num-gpus", "--dp", kOfDevices},
    {"num-layers", "--model", kOfModel},
    {"num-layers-per-virtual-pipeline-stage", "--vpp",
     "here '--vpp' says how many chunks a rank has"},
    {"num-nodes", "--gpus", "here '--gpus' counts devices"},
    {"num-nodes", "--dp", kOfDevices},
    {"num-stages", "--pp", "here it is '--pp'"},
    {"o", "--save", kOfFiles},
    {"offload-optimizer", "--model", kOfHost},
    {"optimizer-cpu-offload", "--model", kOfHost},
    {"output", "--save", kOfFiles},
    {"peft", "--model", kOfAdapters},
    {"peft-scheme", "--model", kOfAdapters},
    {"pipeline-parallel-schedule", "--schedules", "here it is '--schedules'"},
    {"pipeline-parallel-schedule", "--pp", "here it is the schedule, the first word"},
    {"plot", "--svg", kOfPicture},
    {"png", "--svg", kOfPicture},
    {"ranks", "--pp", "here it is '--pp'"},
    {"recompute-activations", "--recompute", "here it is '--recompute selective'"},
    {"recompute-modules", "--recompute", "here '--recompute modules' chooses them"},
    {"reshard-after-forward", "--zero", "here '--zero 3' is with it and '--zero 2' without it"},
    {"stages", "--pp", "here it is '--pp'"},
    {"strict", "--all-modes", "'--all-modes' is the stricter check"},
    {"tp-comm-overlap", "--tensor-exposed",
     "here '--tensor-exposed' says how much of the tensor ranks' communication is exposed"},
    {"ulysses", "--cp", kOfUlysses},
    {"ulysses-degree", "--cp", kOfUlysses},
    {"ulysses-sequence-parallel-size", "--cp", kOfUlysses},
    {"world-size", "--dp", kOfDevices},
}};

}  // namespace

std::string plain_flag_name(std::string_view name) {
  const std::size_t section = name.rfind('.');
  const std::size_t begin = section == name.npos ? name.find_first_not_of('-') : section + 1;
  std::string plain(name.substr(std::min(begin, name.size())));
  std::replace(plain.begin(), plain.end(), '_', '-');
  return plain;
}

std::string explain_framework_flag(std::string_view name, const std::vector<std::string>& known) {
  const std::string plain = plain_flag_name(name);
  std::string whole(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::replace(whole.begin(), whole.end(), '_', '-');
  for (const FrameworkFlag& theirs : kFrameworkFlags)
    if ((theirs.name == plain || theirs.name == whole) &&
        std::find(known.begin(), known.end(), theirs.flag) != known.end())
      return std::string(theirs.text);
  return {};
}

std::string list_unknown_flags(const std::vector<std::string>& names,
                               const std::vector<std::string>& known) {
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
  for (const std::string& name : explained) text += (&name == explained.data() ? "" : ", ") + name;
  return text;
}

std::string explain_precision(std::string_view name) {
  if (name == "mxfp8" || name == "float8" || name == "e4m3" || name == "hybrid")
    return "; here 'fp8' stands for all recipes of 8 bits";
  constexpr std::array<std::string_view, 5> kFourBits{"fp4", "float4", "int4", "mxfp4", "nvfp4"};
  if (std::find(kFourBits.begin(), kFourBits.end(), name) != kFourBits.end())
    return "; GEMMs in 4 bits are not modelled; 'fp8' has the fewest bits of those that are";
  if (name == "fp32" || name == "float32" || name == "tf32")
    return "; GEMMs in 32 bits are not modelled";
  return {};
}

std::string explain_framework(std::string_view name) {
  if (name == "mindspeed")
    return "; MindSpeed runs Megatron-LM, which is 'megatron', on devices that '--gpu' can "
           "describe in a file";
  if (name == "nanotron" || name == "picotron")
    return "; eager PyTorch with tensor ranks or pipelines is closest to 'fsdp' with '--zero 1'";
  if (name == "gpt-neox") return "; GPT-NeoX runs DeepSpeed, which is 'deepspeed'";
  if (name == "paddle" || name == "paddlenlp")
    return "; PaddleNLP's eager kernels are closest to 'fsdp', with its stage as '--zero'";
  if (name == "primus") return "; Primus runs Megatron-LM or torchtitan, which are runtimes";
  if (name == "jax" || name == "levanter" || name == "maxtext")
    return "; compiled kernels and sharded weights are closest to 'torchtitan'";
  constexpr std::array<std::string_view, 11> kPlainPyTorch{
      "accelerate",    "axolotl", "ddp",       "hf",           "huggingface", "lightning",
      "llama-factory", "pytorch", "torchtune", "transformers", "trl"};
  if (std::find(kPlainPyTorch.begin(), kPlainPyTorch.end(), name) == kPlainPyTorch.end()) return {};
  return "; plain PyTorch is closest to 'fsdp', with '--zero 0' where every device has all weights";
}

}  // namespace bubblescope::tools
