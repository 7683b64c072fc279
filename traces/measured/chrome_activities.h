// Slices of a Chrome trace that are not ops, on the ranks that they belong to:
//
//   |0B6|   |0B7||grads-reduce-scatter||optimizer|   work around the ops, in no op of its own
//   |--------------- train_step ----------------|    a slice around ops: not work
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/other_slices.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// Returns the slices sorted by thread and start, each before those that it contains.
std::vector<OtherSlice> list_outer_first(const OtherSlices& slices);

/// Knows the ops of a trace, to which its other slices are compared.
class ChromeActivities {
 public:
  /// `events` must outlive this object.
  explicit ChromeActivities(const ChromeEvents& events) : events_(events) {}

  void add_op(const ChromeSlice& slice, const ObservedOp& op);

  /// Finds the activity that a slice is, without a step. Its rank is that of the ops with the same
  /// arguments, thread or process. If there are none, as in a process of its own, a slice that
  /// states a step and is work around the ops (the optimizer) belongs to the whole job, and some
  /// rank stands for it. nullopt if the rank of any other slice is not clear, if the slice contains
  /// ops of its rank, or if it lies within the activity that was found last.
  std::optional<ObservedActivity> find(const OtherSlice& slice);

  /// A slice that contains ops of its rank, as a mark of a whole step; nullopt if it does not.
  std::optional<ObservedActivity> find_around_ops(const OtherSlice& slice);

  /// Whether the thread of a slice runs ops.
  bool shares_thread(const OtherSlice& slice) { return know(slice).shares_thread; }

  /// Names slices that state a step and are left without a rank, if they take over 1 % of the time
  /// of the ranks' steps; nullopt where there are none.
  std::optional<std::string> describe_unplaced() const;

  /// Whether slices were left without a rank, and none has one: in processes of ops, or by names of
  /// work around these.
  bool lack_ranks() const { return unplaced_ > 0 && placed_ == 0; }

 private:
  using Place = std::pair<std::int32_t, std::int32_t>;  ///< recorder, replica
  using Places = std::set<Place>;
  /// Arguments, thread and process, which a slice may share with ops: the first weigh most.
  static constexpr std::size_t kEvidence = 8;
  using Evidence = std::array<std::optional<std::string>, kEvidence>;

  /// Slices of one thread with the same numbers have the same place.
  using Origin = std::pair<std::uint32_t, std::uint32_t>;  ///< thread, OtherSlice::numbers
  struct Known {
    std::optional<Place> place;
    bool shares_process = false;  ///< with ops
    bool shares_thread = false;
  };
  /// The purpose that the name of a slice tells.
  struct Purpose {
    bool is_outer = false;
    bool is_loading_data = false;
  };

  Evidence evidence_of(std::uint32_t thread, const SliceNumbers& numbers) const;
  std::optional<Place> find_place(const Evidence& evidence) const;
  std::optional<Place> find_job_place(const OtherSlice& slice);
  void note_unplaced(const OtherSlice& slice);
  const Known& know(const OtherSlice& slice);
  const Purpose& purpose_of(const OtherSlice& slice);
  bool contains_ops(const OtherSlice& slice, const Known& known);
  Nanos find_time_beside_steps(const OtherSlice& slice) const;
  void sort_ops();

  const ChromeEvents& events_;
  std::array<std::map<std::string, Places>, kEvidence> places_;
  std::map<Origin, Known> known_;
  std::unordered_map<std::uint32_t, Purpose> purposes_;  ///< by OtherSlice::name
  std::map<std::int32_t, std::vector<TimeSpan>> ops_;    ///< by recorder
  bool is_sorted_ = false;
  Places all_;
  std::map<std::int64_t, TimeSpan> steps_;       ///< that ops state, from the first to the last
  std::vector<TimeSpan> busy_;                   ///< the times in which some step runs, apart
  std::map<std::uint32_t, std::size_t> of_job_;  ///< threads without a rank, numbered
  std::map<std::string, Nanos> beside_;  ///< slices of no rank by name, the time outside all steps
  std::optional<OtherSlice> last_;       ///< that was found
  std::int64_t placed_ = 0;
  std::int64_t unplaced_ = 0;
};

}  // namespace bubblescope::traces
