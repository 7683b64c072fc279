// Recognizes the keys of trace events.
#pragma once

#include <cstdint>
#include <string_view>

namespace bubblescope::traces {

/// The keys of events and their arguments that matter.
enum class EventKey : std::uint8_t {
  kOther,
  kName,
  kCategory,
  kPhase,
  kProcess,
  kThread,
  kStart,
  kDuration,
  kFlow,
  kArgs,
  kCorrelation,
  kRunningNumber,
  kGroup,
  kGroupRanks,
  kPeer,
  kOp,
  kStep,
  kMicrobatch,
  kChunk,
  kStage,
  kPipelineRank,
  kReplica,
  kTensorPeer,
  kRank,
  kSortIndex
};

/// Programs spell this key in many ways.
inline bool is_microbatch_key(std::string_view key) {
  return key == "mb_id" || key == "microbatch" || key == "micro_batch" || key == "micro-batch" ||
         key == "microbatch_id" || key == "micro_batch_id";
}

/// The place in a group of data-parallel ranks, whose pipelines are replicas.
inline bool is_replica_key(std::string_view key) {
  return key == "dp" || key == "dp_rank" || key == "dp_id" || key == "data_parallel_rank" ||
         key == "replica" || key == "replica_id";
}

/// The key states the place in a group of tensor-parallel ranks, which run the same ops at the same
/// time.
inline bool is_tensor_key(std::string_view key) {
  return key == "tp" || key == "tp_rank" || key == "tp_id" || key == "tensor_parallel_rank";
}

/// Keys are compared for every value of a file, and most differ in their first letter.
inline EventKey key_of(std::string_view key) {
  const auto is = [key](std::string_view text, EventKey found) {
    return key == text ? found : EventKey::kOther;
  };
  if (key.empty()) return EventKey::kOther;
  switch (key.front()) {
    case 'n': return is("name", EventKey::kName);
    case 'c':
      if (key.size() == 3) return is("cat", EventKey::kCategory);
      return key.size() == 5 ? is("chunk", EventKey::kChunk)
                             : is("correlation", EventKey::kCorrelation);
    case 'p':
      if (key == "pp" || key == "pp_rank") return EventKey::kPipelineRank;
      return key.size() == 2 ? is("ph", EventKey::kPhase) : is("pid", EventKey::kProcess);
    case 'r': return is_replica_key(key) ? EventKey::kReplica : is("rank", EventKey::kRank);
    case 't':
      if (is_tensor_key(key)) return EventKey::kTensorPeer;
      return key.size() == 2 ? is("ts", EventKey::kStart) : is("tid", EventKey::kThread);
    case 'd': return is_replica_key(key) ? EventKey::kReplica : is("dur", EventKey::kDuration);
    case 'a': return is("args", EventKey::kArgs);
    case 'E': return is("Ev Idx", EventKey::kRunningNumber);
    case 'P':
      return key.size() == 19 ? is("Process Group Ranks", EventKey::kGroupRanks)
                              : is("Process Group Description", EventKey::kGroup);
    case 'S': return is("Src Rank", EventKey::kPeer);
    case 'D': return is("Dst Rank", EventKey::kPeer);
    case 'i': return key.size() == 2 ? is("id", EventKey::kFlow) : is("iteration", EventKey::kStep);
    case 'o': return is("op", EventKey::kOp);
    case 's':
      if (key.size() == 4) return is("step", EventKey::kStep);
      return key.size() == 5 ? is("stage", EventKey::kStage)
                             : is("sort_index", EventKey::kSortIndex);
    case 'm':
      if (key == "model_chunk") return EventKey::kChunk;
      return is_microbatch_key(key) ? EventKey::kMicrobatch : EventKey::kOther;
    default: return EventKey::kOther;
  }
}

}  // namespace bubblescope::traces
