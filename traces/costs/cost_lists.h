// Reads the values of stages in cost files: one for all micro-batches, or lists.
//
// A value stands in the stage's object, or in the root for all stages: as a value, as a list with
// one entry per stage, or as an object whose lists have one list per stage.
//
//   {"stages": [{"forward": {"per_microbatch": [10, 12, 9]}, ...}, ...]}
//   {"forward": {"per_microbatch": [[10, 12, 9], [11, 13, 10]]}, "backward": [20, 21], ...}
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/cost_table.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

/// The length that all lists of one kind in a file have.
struct ListLength {
  std::size_t entries = 0;
  std::string where;  ///< the JSON pointer of the first list; empty: there was none yet
};

struct ListLengths {
  ListLength microbatches;
  ListLength slices;
};

/// An entry of a stage and its lists, while a file is being read.
struct StageDraft {
  std::size_t stage = 0;
  bool in_root = false;  ///< the values being read stand in the root, for all stages
  StageEntry entry;
  std::vector<CostList> lists;
  StageParts parts;           ///< of ops whose durations are parts
  LaneContention contention;  ///< between the lanes of parts
};

/// Reads the value of a node for the stage of the draft: a duration or a size, by its key.
void read_value(const JsonNode& node, CostKey key, StageDraft& draft, ListLengths& lengths);

/// Whether a node says something about every micro-batch or slice, or in the root about every
/// stage.
bool is_list(const JsonNode& node);

/// Returns the part of a root's value that is the draft's: a duration that all micro-batches share.
Nanos read_shared_duration(const JsonNode& node, const StageDraft& draft);
Bytes read_shared_bytes(const JsonNode& node, const StageDraft& draft);

/// The number of stages for which the lists in a file's root have entries. Throws Error where they
/// have different numbers.
class StageCount {
 public:
  /// Counts a value of the root, if it is a list.
  void add(const std::optional<JsonNode>& value);
  /// Counts a list with one entry per stage.
  void add_list(const JsonNode& list);
  std::optional<std::size_t> count() const { return count_; }
  const std::string& where() const { return where_; }  ///< the first list's pointer; or empty

 private:
  std::optional<std::size_t> count_;
  std::string where_;
};

}  // namespace bubblescope::traces
