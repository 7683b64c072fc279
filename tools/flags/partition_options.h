// The flags of `partition`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/partition/bottleneck.h"
#include "schedules/partition/replicated.h"
#include "sim/model/layer_layout.h"
#include "sim/model/megatron_counts.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

enum class PartitionMethod : std::uint8_t {
  kPipedream,  ///< assigns stages and replicas to a number of workers
  kMinMax,     ///< minimizes the bottleneck exactly
  kBlocks,     ///< torchgpipe's method
  kMegatron,   ///< equal numbers of layers, except at the ends
};

struct PartitionOptions {
  std::string profile;
  PartitionMethod method = PartitionMethod::kPipedream;
  bool method_is_given = false;
  std::int32_t repeats = 1;  ///< for each layer of an Aceso profile
  std::optional<std::int32_t> stages;
  std::optional<std::int32_t> workers;
  std::vector<std::int32_t> levels;     ///< workers per unit, the innermost first
  std::vector<Bytes> bytes_per_second;  ///< of each level; one for all; empty: unlimited
  std::optional<StageLayers> layers;    ///< the kinds of the profile's layers, E t m L
  bool straight = false;
  bool counts_transfers = false;
  std::optional<Bytes> memory;
  std::string memory_text;  ///< as it was given
  UnevenEnds ends;
  std::string schedule = "1f1b";
  std::optional<std::int32_t> microbatches;
  double parameter_copies = 4;              ///< weights, gradients and Adam's two moments
  std::optional<double> weight_grad_share;  ///< as a fraction of a backward

  std::int32_t worker_count() const;
  std::int32_t stage_count() const { return stages ? *stages : worker_count(); }
  /// Returns twice the number of stages unless given.
  std::int32_t microbatch_count() const { return microbatches.value_or(2 * stage_count()); }
  std::vector<schedules::WorkerLevel> worker_levels() const;
};

/// Chooses the method where none was given. Throws Error where flags contradict each other.
PartitionOptions choose_method(PartitionOptions options);

void add_partition_options(CommandFlags& app, PartitionOptions& options);

}  // namespace bubblescope::tools
