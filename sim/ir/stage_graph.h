// A stage graph: which stages read the output of which others, where a model is not a chain.
//
//   two encoders and their decoder   stages 0 and 1 read tokens, stage 2 reads 0 and 1
//   a second prediction head         stages 1 and 2 both read stage 0, and end the model
//
// Forwards follow the graph, backwards go against it. A stage without inputs begins the model, one
// without readers ends it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bubblescope::inline sim {

/// [stage]: other stages, ascending.
using StageLists = std::vector<std::vector<std::int32_t>>;

class StageGraph {
 public:
  /// A chain: every stage of a pipeline reads the one before it.
  StageGraph() = default;
  /// Each stage reads the stages in its list; none at all is a chain. Lists may name stages that
  /// validate() refuses.
  explicit StageGraph(StageLists inputs);

  bool is_chain() const { return inputs_.empty(); }
  /// Returns the inputs of each stage. The list is empty for a chain.
  const StageLists& inputs() const { return inputs_; }
  /// May be called only if this is not a chain.
  std::span<const std::int32_t> inputs(std::int32_t stage) const {
    return inputs_[static_cast<std::size_t>(stage)];
  }
  std::span<const std::int32_t> readers(std::int32_t stage) const {
    return readers_[static_cast<std::size_t>(stage)];
  }

  bool operator==(const StageGraph&) const = default;

 private:
  StageLists inputs_;
  StageLists readers_;
};

}  // namespace bubblescope::inline sim
