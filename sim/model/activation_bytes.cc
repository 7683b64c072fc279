// Activations take two bytes per number, dropout masks one.
#include "sim/model/activation_bytes.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

/// One tensor that the forward of a layer saves, per rank and micro-batch.
struct SavedTensor {
  std::string name;
  Bytes bytes = 0;
};

/// Bytes of one layer's tensors, for the tokens of a micro-batch, split like each tensor.
class Sizes {
 public:
  Sizes(const Transformer& model, const Parallelism& parallel)
      : model_(model), parallel_(parallel) {}

  /// A 16-bit tensor that every tensor rank holds whole, or its part of the sequence.
  Bytes around_norms(std::int64_t width) const {
    return 2 * width * parallel_.tokens() / parallel_.norm_split();
  }
  /// A 16-bit tensor whose columns are split over the tensor ranks.
  Bytes split(std::int64_t width) const {
    return 2 * width * parallel_.tokens() / parallel_.tensor;
  }

  std::int64_t query_width() const {
    const std::int64_t rotary = model_.latent ? model_.latent->rotary_size : 0;
    return model_.heads * (model_.head_size + rotary);
  }
  std::int64_t key_width() const {
    return model_.latent ? query_width() : model_.key_value_heads * model_.head_size;
  }
  std::int64_t value_width() const {
    return model_.latent ? model_.heads * model_.latent->value_size
                         : model_.key_value_heads * model_.head_size;
  }
  std::int64_t output_width() const {
    return model_.heads * (model_.latent ? model_.latent->value_size : model_.head_size);
  }
  std::int64_t latent_width() const {
    if (!model_.latent) return 0;
    const LatentAttention& latent = *model_.latent;
    return latent.query_rank + latent.key_value_rank + latent.rotary_size;
  }

 private:
  const Transformer& model_;
  const Parallelism& parallel_;
};

/// The feed-forward networks of a layer, combined: their inner width per token, and how many copies
/// of the token's vector enter them.
struct Network {
  std::int64_t inner = 0;
  std::int64_t copies = 0;
};

Network network_of(const Transformer& model, std::int64_t layer) {
  if (!has_experts(model, layer)) return {model.feed_forward, 1};
  const Experts& experts = *model.experts;
  const std::int64_t visited = experts.per_token + experts.shared;
  return {visited * experts.feed_forward, visited};
}

void add_core(std::vector<SavedTensor>& saved, const Transformer& model,
              const Parallelism& parallel) {
  const Bytes rows = parallel.tokens() * model.heads / parallel.tensor;
  if (parallel.flash_attention) {
    saved.push_back({"log-sum-exp of scores", 4 * rows});
    return;
  }
  saved.push_back({"softmax of scores", 2 * rows * parallel.sequence});
  if (!model.dropout) return;
  saved.push_back({"dropout mask of scores", rows * parallel.sequence});
  saved.push_back({"scores after dropout", 2 * rows * parallel.sequence});
}

void add_network(std::vector<SavedTensor>& saved, const Transformer& model, const Network& network,
                 const Sizes& sizes) {
  if (model.gated) saved.push_back({"gate of the network", sizes.split(network.inner)});
  saved.push_back({"inner of the network", sizes.split(network.inner)});
  saved.push_back({"activation of the network", sizes.split(network.inner)});
}

/// Inputs of the GEMMs and gradients of their outputs: what W needs.
Bytes held_for_weight_gradient(const Transformer& model, const Parallelism& parallel,
                               std::int64_t layer) {
  const Sizes sizes(model, parallel);
  const Network network = network_of(model, layer);
  const std::int64_t heads = sizes.query_width() + sizes.key_width() + sizes.value_width();
  const Bytes attention = sizes.around_norms(2 * model.hidden) + sizes.split(heads) +
                          sizes.split(sizes.output_width()) +
                          sizes.around_norms(2 * sizes.latent_width());
  const Bytes feed_forward = sizes.around_norms((1 + network.copies) * model.hidden) +
                             sizes.split((model.gated ? 3 : 2) * network.inner);
  return attention + feed_forward;
}

constexpr std::string_view kHeadsInput = "input of queries, keys and values";
constexpr std::string_view kHeadsBeforeNorms = "queries and keys before their norms";
constexpr std::string_view kOutputInput = "input of the output projection";
constexpr std::string_view kNetworkInput = "input of the network";
constexpr std::string_view kNetworkActivation = "activation of the network";
constexpr std::string_view kGate = "gate of the network";
constexpr std::string_view kInner = "inner of the network";

bool is_any(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Bytes of a layer's tensors that recomputed modules need not save.
class ModuleTensors {
 public:
  ModuleTensors(const Transformer& model, const Parallelism& parallel, std::int64_t layer)
      : model_(model), modules_(parallel.modules), experts_(has_experts(model, layer)) {}

  double dropped_share(std::string_view name) const {
    if (is_any(name, {"queries", "keys", "values"}))
      return share(model_.latent && has(RecomputeModule::kUpProjection));
    if (name == kHeadsInput) return share(has(RecomputeModule::kLayerNorm));
    if (name.find("scores") != name.npos) return share(has(RecomputeModule::kCoreAttention));
    return experts_ ? share_of_experts(name) : share_of_network(name);
  }

 private:
  static double share(bool all) { return all ? 1 : 0; }
  bool has(RecomputeModule module) const { return modules_.has(module); }

  double share_of_network(std::string_view name) const {
    if (name == kNetworkInput) return share(has(RecomputeModule::kLayerNorm));
    return share(has(RecomputeModule::kNetwork) &&
                 is_any(name, {kGate, kInner, kNetworkActivation}));
  }

  /// The input of router and experts stays, and the copies of it that are dispatched do not.
  double share_of_experts(std::string_view name) const {
    const Experts& experts = *model_.experts;
    const auto visited = static_cast<double>(experts.per_token + experts.shared);
    const auto shared = static_cast<double>(experts.shared);
    if (!is_any(name, {kNetworkInput, kGate, kInner, kNetworkActivation})) return 0;
    if (has(RecomputeModule::kExperts)) return name == kNetworkInput ? 1 - 1 / visited : 1;
    if (name == kNetworkInput) return 0;
    double dropped = has(RecomputeModule::kSharedExperts) ? shared / visited : 0;
    if (name == kNetworkActivation && has(RecomputeModule::kExpertActivation))
      dropped += 1 - shared / visited;
    return dropped;
  }

  const Transformer& model_;
  RecomputeModules modules_;
  bool experts_;
};

/// Whether selective recomputation drops a tensor: the scores alone (arXiv 2205.05198); or every
/// second GEMM's output and what lies between (torchtitan); or, with latent attention, its
/// up-projections, the norms before GEMMs and the activation function (arXiv 2412.19437, section
/// 3.2.3).
bool drops(const Transformer& model, const Parallelism& parallel, std::string_view name) {
  if (parallel.pytorch)
    return is_any(name,
                  {kHeadsInput, kHeadsBeforeNorms, "keys", kNetworkInput, kNetworkActivation}) ||
           (model.gated && name == kInner);
  if (model.latent)
    return is_any(name, {kHeadsInput, "queries", "keys", "values", kNetworkActivation});
  return name.find("scores") != std::string_view::npos;
}

/// Whether a tensor is saved in 8 bits: the inputs of GEMMs with weights, and of the activation
/// function where selective recomputation gives its output again (arXiv 2412.19437, section 3.3.3).
bool saved_in_8_bits(const Transformer& model, const Parallelism& parallel, std::string_view name) {
  if (!parallel.fp8_inputs) return false;
  const bool again =
      model.latent && parallel.recompute == Recompute::kSelective && parallel.modules.empty();
  return is_any(name, {kHeadsInput, kOutputInput, kNetworkInput, kNetworkActivation}) ||
         (again && is_any(name, {kGate, kInner}));
}

/// The two functions below return the bytes of a tensor, and those that selective recomputation
/// drops.
Bytes count_tensor(const Transformer& model, const Parallelism& parallel,
                   const SavedTensor& tensor) {
  return saved_in_8_bits(model, parallel, tensor.name) ? tensor.bytes / 2 : tensor.bytes;
}

Bytes count_dropped(const Transformer& model, const Parallelism& parallel, std::int64_t layer,
                    const SavedTensor& tensor) {
  const Bytes bytes = count_tensor(model, parallel, tensor);
  if (parallel.modules.empty()) return drops(model, parallel, tensor.name) ? bytes : 0;
  const double share = ModuleTensors(model, parallel, layer).dropped_share(tensor.name);
  return round_bytes(share * static_cast<double>(bytes), "what is recomputed");
}

/// The tensors saved without recomputation, in 16 bits. For GPT-style layers the sum is that of
/// arXiv 2205.05198, table 2: s b h (10 + 24/t + 5 a s / (h t)); with sequence parallelism
/// everything is over t. The last term vanishes if the core of attention is recomputed or flash
/// attention is used, which keeps one number per row of scores instead: 4 a s b / t bytes.
std::vector<SavedTensor> saved_tensors(const Transformer& model, const Parallelism& parallel,
                                       std::int64_t layer) {
  const Sizes sizes(model, parallel);
  const Network network = network_of(model, layer);
  std::vector<SavedTensor> saved{
      {"input of the first norm", sizes.around_norms(model.hidden)},
      {"input of queries, keys and values", sizes.around_norms(model.hidden)},
      {"queries", sizes.split(sizes.query_width())},
      {"keys", sizes.split(sizes.key_width())},
      {"values", sizes.split(sizes.value_width())},
  };
  if (model.query_key_norms)
    saved.push_back(
        {std::string(kHeadsBeforeNorms), sizes.split(sizes.query_width() + sizes.key_width())});
  if (model.latent) saved.push_back({"latents", sizes.around_norms(sizes.latent_width())});
  add_core(saved, model, parallel);
  saved.push_back({"input of the output projection", sizes.split(sizes.output_width())});
  saved.push_back({"input of the second norm", sizes.around_norms(model.hidden)});
  saved.push_back({"input of the network", sizes.around_norms(network.copies * model.hidden)});
  add_network(saved, model, network, sizes);
  if (model.dropout)
    saved.push_back({"dropout masks of attention and network", sizes.around_norms(model.hidden)});
  return saved;
}

}  // namespace

Bytes count_selectively_recomputed(const Transformer& model, const Parallelism& parallel,
                                   std::int64_t layer) {
  Bytes attention = 0;
  Bytes network = 0;
  for (const SavedTensor& tensor : saved_tensors(model, parallel, layer)) {
    const bool of_network = is_any(tensor.name, {kNetworkInput, kNetworkActivation, kGate, kInner});
    (of_network ? network : attention) += count_dropped(model, parallel, layer, tensor);
  }
  return parallel.pytorch ? attention + network : std::max(attention, network);
}

MemoryDelta estimate_layer_memory(const Transformer& model, const Parallelism& parallel,
                                  std::int64_t layer) {
  Bytes saved = 0;
  if (parallel.recompute == Recompute::kFull) {
    saved = Sizes(model, parallel).around_norms(model.hidden);
  } else {
    const bool selective = parallel.recompute == Recompute::kSelective;
    for (const SavedTensor& tensor : saved_tensors(model, parallel, layer))
      saved += count_tensor(model, parallel, tensor) -
               (selective ? count_dropped(model, parallel, layer, tensor) : 0);
  }
  const Bytes held = held_for_weight_gradient(model, parallel, layer);
  return {saved, held - saved, -held};
}

namespace {

/// Bytes per logit at the peak. A fused loss works in place on 32-bit logits, or holds 16-bit
/// logits and their gradients: 4. PyTorch's cross-entropy of 32-bit logits holds the 16-bit logits
/// and, in 32 bits, their copy, its log-softmax and its gradient: 14; with loss_parallel, where
/// tensor ranks split the vocabulary, the exponentials as well
/// (torch/distributed/tensor/parallel/loss.py).
Bytes count_logit_bytes(const Parallelism& parallel) {
  constexpr Bytes kUnfused = 14;
  const bool holds_exponentials = parallel.logit_bytes >= kUnfused && parallel.tensor > 1;
  return parallel.logit_bytes + (holds_exponentials ? 4 : 0);
}

}  // namespace

MemoryDelta estimate_head_memory(const Transformer& model, const Parallelism& parallel) {
  const Bytes logits = parallel.tokens() * model.vocabulary / parallel.tensor;
  const Sizes sizes(model, parallel);
  // The head's input and the input of its norm. PyTorch saves the input that it has gathered from
  // all tensor ranks, Megatron gathers it again.
  const Bytes part = sizes.around_norms(model.hidden);
  const Bytes head = parallel.pytorch ? 2 * model.hidden * parallel.tokens() : part;
  const Bytes held = 2 * logits + head;
  const Bytes taken = count_logit_bytes(parallel) * logits + head + part;
  return {taken, held - taken, -held};
}

MemoryDelta estimate_prediction_memory(const Transformer& model, const Parallelism& parallel) {
  MemoryDelta sum{0, 0, 0};
  const auto add = [&](const MemoryDelta& more) {
    sum.forward += model.predictions * more.forward;
    sum.input_grad += model.predictions * more.input_grad;
    sum.weight_grad += model.predictions * more.weight_grad;
  };
  Parallelism of_layer = parallel;
  if (parallel.keeps_layers()) of_layer.recompute = Recompute::kNone;
  add(estimate_layer_memory(model, of_layer, model.layers - 1));
  add(estimate_head_memory(model, parallel));
  add(estimate_embedding_memory(model, parallel));
  const Bytes projected = Sizes(model, parallel).around_norms(2 * model.hidden);
  add({projected, 0, -projected});
  return sum;
}

MemoryDelta estimate_embedding_memory(const Transformer& model, const Parallelism& parallel) {
  const Bytes ids = 8 * parallel.tokens();
  const Bytes mask =
      model.dropout ? model.hidden * parallel.tokens() / parallel.norm_split() : Bytes{0};
  return {ids + mask, -mask, -ids};
}

}  // namespace bubblescope::inline sim
