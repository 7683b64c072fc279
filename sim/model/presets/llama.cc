// Llama 2, Touvron et al., arXiv 2307.09288 (appendix A.2.1, and the published params.json);
// Llama 3, Grattafiori et al., arXiv 2407.21783, table 3.
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {
namespace {

struct Size {
  const char* name;
  std::int64_t layers;
  std::int64_t hidden;
  std::int64_t heads;
  std::int64_t key_value_heads;
  std::int64_t feed_forward;
};

ModelDef define(const Size& size, std::int64_t vocabulary, std::int64_t sequence,
                const char* source) {
  Transformer model;
  model.layers = size.layers;
  model.hidden = size.hidden;
  model.heads = size.heads;
  model.key_value_heads = size.key_value_heads;
  model.head_size = 128;
  model.feed_forward = size.feed_forward;
  model.gated = true;
  model.vocabulary = vocabulary;
  model.sequence = sequence;
  const std::string groups = size.heads == size.key_value_heads ? "" : ", grouped queries";
  return {size.name, {}, "dense, SwiGLU" + groups, source, model};
}

ModelDef llama2(const Size& size) {
  ModelDef def = define(size, 32'000, 4096, "arXiv 2307.09288");
  def.aliases = {"meta-llama/Llama-2-" + std::string(size.name).substr(7) + "-hf"};
  return def;
}
/// Llama 3, 3.1 and 3.3 have the same sizes.
ModelDef llama3(const Size& size) {
  ModelDef def = define(size, 128'256, 8192, "arXiv 2407.21783, table 3");
  const std::string billions = std::string(size.name).substr(std::string("llama3-").size());
  std::string upper = billions;
  upper.back() = 'B';
  def.aliases = {"llama3.1-" + billions, "meta-llama/Llama-3.1-" + upper};
  if (billions != "405b") def.aliases.push_back("meta-llama/Meta-Llama-3-" + upper);
  if (billions == "70b")
    def.aliases.insert(def.aliases.end(), {"llama3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"});
  return def;
}

const ModelRegistrar k2Small{[] { return llama2({"llama2-7b", 32, 4096, 32, 32, 11'008}); }};
const ModelRegistrar k2Medium{[] { return llama2({"llama2-13b", 40, 5120, 40, 40, 13'824}); }};
const ModelRegistrar k2Large{[] { return llama2({"llama2-70b", 80, 8192, 64, 8, 28'672}); }};
const ModelRegistrar k3Small{[] { return llama3({"llama3-8b", 32, 4096, 32, 8, 14'336}); }};
const ModelRegistrar k3Medium{[] { return llama3({"llama3-70b", 80, 8192, 64, 8, 28'672}); }};
const ModelRegistrar k3Large{[] { return llama3({"llama3-405b", 126, 16'384, 128, 8, 53'248}); }};

}  // namespace
}  // namespace bubblescope::inline sim
