// Parallelism: how a model is distributed over devices, inside a stage and around the pipeline.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/named.h"
#include "sim/ir/schedule.h"
#include "sim/ir/units.h"
#include "sim/model/megatron_counts.h"
#include "sim/model/recompute_modules.h"
#include "sim/model/recomputed_layers.h"

namespace bubblescope::inline sim {

/// Bytes of training state per parameter, besides its 16-bit weight.
enum class Gradients : std::uint8_t {
  kFp32,  ///< gradients of 4 bytes, Adam of 12 (two moments and the master weight)
  kBf16,  ///< gradients of 2 bytes, Adam of 12
  /// Gradients of 2 bytes, Adam of 10: the master weight stores only the bits that the weight
  /// lacks.
  kLean,
  /// Gradients of 2 bytes, Adam of 4: moments of 16 bits, and no master weight.
  kPure,
};

/// From the largest to the smallest.
inline constexpr std::array<Named<Gradients>, 4> kGradientFormats{{
    {Gradients::kFp32, "fp32"},
    {Gradients::kBf16, "bf16"},
    {Gradients::kLean, "bf16-lean"},
    {Gradients::kPure, "bf16-pure"},
}};

/// Those that are tried in turn where none is chosen: all keep a master weight of 32 bits.
inline constexpr std::array<Gradients, 3> kTriedGradients{Gradients::kFp32, Gradients::kBf16,
                                                          Gradients::kLean};

/// The splits of the layers that were simulated (choose_layers.h in sim/predict).
struct SplitTrials {
  std::int32_t count = 0;
  Nanos shortest = 0;  ///< the step with the chosen split
  Nanos balanced = 0;  ///< the step with the balanced one
};

struct Parallelism {
  std::int32_t tensor = 1;
  std::int32_t context = 1;
  std::int32_t expert = 1;  ///< ranks that share the experts, out of all ranks of a stage
  /// Ranks that share each expert. Empty: the tensor ranks, if the expert ranks divide the data and
  /// context ranks; else 1, and the expert ranks extend over tensor ranks too.
  std::optional<std::int32_t> expert_tensor = {};
  std::int32_t data = 1;
  std::int32_t micro_batch_size = 1;
  std::int64_t sequence = 2048;
  bool sequence_parallel = true;  ///< norms and residuals are split over the tensor ranks too
  bool flash_attention = true;    ///< scores are never stored
  Recompute recompute = Recompute::kNone;  ///< per layer, inside its backward (arXiv 2205.05198)
  /// The modules that selective recomputation computes again; empty: the choice of the runtime.
  RecomputeModules modules = {};
  RecomputedLayers recomputed = {};  ///< those of a stage that full recomputation covers
  std::int32_t zero_stage =
      1;  ///< sharded over the data ranks: 1 optimizer, 2 gradients, 3 weights
  /// Data and context ranks over which ZeRO shards; the others have copies of these shards (hybrid
  /// sharding). Empty: all.
  std::optional<std::int32_t> shard_ranks = {};

  Gradients gradients = Gradients::kFp32;
  /// Whether the gradients were shrunk to fit the memory, not chosen by the user. Times are still
  /// computed for 32-bit gradients, so that lack of memory does not make a schedule look faster.
  bool shrinks_gradients = false;
  /// Whether gradients are whole until the step's end even from ZeRO stage 2 on: an op of the
  /// schedule reduces them there, or the runtime does, once per step (no_sync of PyTorch's FSDP).
  bool whole_gradients = false;
  bool fp8_inputs = false;  ///< the inputs of GEMMs with weights are saved in 8 bits
  Bytes logit_bytes = 4;    ///< per logit, at the peak of the loss
  Bytes moment_bytes = 4;   ///< each of Adam's two moments; kPure has at most 2
  /// Memory as PyTorch's FSDP and pipelines hold it; and selective recomputation as
  /// in torchtitan: every second GEMM, and what lies between, from the others' outputs. Otherwise
  /// both are as in Megatron-LM.
  bool pytorch = false;

  /// How many layers the embedding and the head count as when layers are split; unless given, by
  /// their cost.
  std::optional<double> embedding_layers = {};
  std::optional<double> head_layers = {};
  /// Layers of every stage of a pipeline; empty: as `ends` says, else balanced (balance_layers.h).
  std::vector<std::int64_t> layers_of_stage = {};
  UnevenEnds ends = {};  ///< by Megatron-LM's rule, where any is given

  std::int64_t tokens() const { return micro_batch_size * sequence / context; }
  /// Returns the number of data and context ranks, which have the same parameters.
  std::int32_t copies() const { return data * context; }
  /// All ranks that hold parts or copies of one stage.
  std::int64_t ranks_of_stage() const { return std::int64_t{tensor} * context * data; }
  std::int32_t expert_split() const {
    if (expert_tensor) return *expert_tensor;
    return std::int64_t{data} * context % expert == 0 ? tensor : 1;
  }
  /// Whether full recomputation leaves some layers of a stage out, and the predictions behind them.
  bool keeps_layers() const {
    return recompute == Recompute::kFull && recomputed.method == RecomputeMethod::kBlock;
  }
  /// Returns the bytes of one of Adam's moments.
  Bytes bytes_of_moment() const {
    return gradients == Gradients::kPure && moment_bytes > 2 ? 2 : moment_bytes;
  }
  /// The number of ranks over which the tensors around the norms are split.
  std::int32_t norm_split() const { return sequence_parallel ? tensor : 1; }

  void shrink_gradients(Gradients smaller) {
    gradients = smaller;
    shrinks_gradients = true;
  }
};

}  // namespace bubblescope::inline sim
