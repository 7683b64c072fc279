// Chooses the lowering of posted messages.
#include "sim/ir/lower_messages.h"

namespace bubblescope::inline sim {

std::variant<Program, Deadlock> lower_messages(const Program& dataflow,
                                               const std::vector<PostedSteps>& steps,
                                               const LowerOptions& options) {
  switch (options.mode) {
    case P2pMode::kDataflow: return dataflow;
    case P2pMode::kFifo: return lower_to_queues(dataflow, steps, std::nullopt);
    case P2pMode::kEager: return lower_to_queues(dataflow, steps, options.eager_slots);
    case P2pMode::kRendezvous: return lower_to_queues(dataflow, steps, 0);
    case P2pMode::kHostRendezvous:
    case P2pMode::kHostSend:
    case P2pMode::kBatched: return lower_to_host(dataflow, steps, options.mode);
  }
  return dataflow;
}

}  // namespace bubblescope::inline sim
