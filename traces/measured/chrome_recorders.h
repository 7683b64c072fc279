// The ranks and replicas of the ops in a Chrome trace, by what states them: the name of a thread
// ("PP rank 3, TP rank 0, compute", of a process per replica), a rule, or the evidence that
// chrome_ranks.h weighs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/files/recorder.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/chrome_ranks.h"
#include "traces/measured/op_names.h"

namespace bubblescope::traces {

/// The rank that ran an op, and its pipeline.
struct ChromePlace {
  std::int32_t recorder = 0;  ///< index into ChromeRecorders::recorders()
  std::int32_t replica = 0;
};

/// Numbers recorders in the order in which their ops are asked for, so that ranks without any have
/// none.
class ChromeRecorders {
 public:
  /// `named` are the ops that slices state. All must outlive this object; `file` is for messages.
  /// Throws Error where nothing says which rank ran an op.
  ChromeRecorders(const ChromeEvents& events, const std::vector<std::optional<NamedOp>>& named,
                  const std::string& file);

  /// The place of an op, by the index of its slice.
  ChromePlace find(std::size_t slice);

  /// The place that the name of a thread states; nullopt where it states none.
  std::optional<ChromePlace> find_by_thread(std::uint32_t thread);

  bool is_named(std::uint32_t thread) const { return threads_[thread].has_value(); }

  /// Whether a thread is of a tensor rank other than the first: they run in lockstep, so that the
  /// first one represents all.
  bool is_tensor_duplicate(std::uint32_t thread) const;

  const std::vector<Recorder>& recorders() const { return recorders_; }
  const Remarks& remarks() const { return ranks_.remarks; }

 private:
  /// The place in the pipeline that a thread's name states.
  struct NamedThread {
    std::int32_t pipeline_rank = 0;
    std::int32_t tensor_rank = 0;
    std::int32_t replica = 0;
  };

  void find_threads();
  void find_ranks();
  std::int32_t number_stated(std::int32_t rank, std::int32_t replica);
  std::int32_t number_found(std::int32_t recorder);

  const ChromeEvents& events_;
  const std::vector<std::optional<NamedOp>>& named_;
  const std::string& file_;
  std::vector<std::optional<NamedThread>> threads_;                             ///< [thread]
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> first_tensor_;  ///< [replica, rank]
  std::vector<std::int32_t> stated_replicas_;  ///< [slice]; negative: none is stated
  std::vector<std::size_t> ranked_;            ///< [slice], index into ChromeRanks::recorder_of
  ChromeRanks ranks_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> of_stated_;  ///< [rank, replica]
  std::map<std::int32_t, std::int32_t> of_found_;  ///< by index into ChromeRanks::recorders
  std::vector<Recorder> recorders_;
};

}  // namespace bubblescope::traces
