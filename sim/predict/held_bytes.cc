// Finds the sizes of messages in each source of costs.
#include "sim/predict/held_bytes.h"

#include <utility>
#include <variant>

#include "sim/ir/range.h"
#include "sim/model/cost_lists.h"
#include "sim/model/message_costs.h"
#include "sim/model/rank_buffers.h"
#include "sim/model/stage_kinds.h"

namespace bubblescope::inline sim {

namespace {

using Sizes = CostTensor<MessageSizes>;

/// Returns the sizes of a model's messages.
Sizes find_model_sizes(const ModelOnDevices& on, const Schedule& schedule) {
  const std::vector<std::int64_t>& lengths = on.sequence_lengths;
  return make_message_tensor<MessageSizes>(
      schedule, !lengths.empty(), [&](MessageSizes& sizes, const StageMessage& message) {
        ModelOnDevices here = on;
        if (!lengths.empty())
          here.parallel.sequence = lengths[static_cast<std::size_t>(message.producer.microbatch)];
        (message.forward ? sizes.forward : sizes.backward) =
            round_bytes(count_message_bytes(here, schedule.shape.slices), "a message");
      });
}

Sizes find_cluster_sizes(const Cluster& cluster, const Schedule& schedule) {
  const bool by_microbatch = !cluster.sizes.empty();
  return make_message_tensor<MessageSizes>(
      schedule, by_microbatch, [&](MessageSizes& sizes, const StageMessage& message) {
        raise_to(message.forward ? sizes.forward : sizes.backward,
                 cluster.bytes(send_of(message), message.from, message.to));
      });
}

/// The sizes of all messages; empty where the costs do not know any.
Sizes choose_sizes(const Models& models, const Schedule& schedule, const Config& config) {
  if (models.placed) return find_model_sizes(models.placed->on, schedule);
  const auto* const uniform = std::get_if<UniformCosts>(&config.costs);
  if (uniform != nullptr && (!uniform->network || uniform->network->bytes == 0)) return {};
  const auto* const table = std::get_if<CostTable>(&config.costs);
  if (table != nullptr && !knows_message_bytes(*table)) return {};
  if (models.cluster) return find_cluster_sizes(*models.cluster, schedule);
  return table != nullptr ? find_message_sizes(fit_stages(*table, schedule), schedule) : Sizes{};
}

}  // namespace

Models with_held_bytes(Models models, const Schedule& schedule, const Config& config) {
  MemoryModel& memory = models.memory;
  if (config.lower.send_budget) {
    memory.counts_outputs = true;
    memory.output_bytes = choose_sizes(models, schedule, config);
  }
  // A model's weights have bytes, and its buffers leave out those that UNSHARDs gather.
  const bool has_bytes = models.placed && !models.placed->step.gathered_bytes.empty();
  const bool is_asked = config.moves.sharding && config.moves.sharding->lookahead;
  if (!has_bytes && !is_asked) return models;
  memory.counts_gathered = true;
  memory.gathered_bytes = models.placed ? models.placed->step.gathered_bytes : memory.weight_bytes;
  return models;
}

}  // namespace bubblescope::inline sim
