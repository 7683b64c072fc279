// Kernels and copies as CUPTI recorded them, assigned to the instructions that launched them.
//
// An instruction lasts from its first event to its second. The part of that time in which none of
// its kernels and copies runs is launch overhead, which its measured cost includes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "exec/gpu/calls.h"
#include "sim/ir/timeline.h"

namespace bubblescope::exec {

/// An owned copy of a BubblescopeActivity.
struct ActivityRecord {
  BubblescopeActivity raw{};
  std::string name;
};

struct ActivityLog {
  std::vector<ActivityRecord> records;
  std::int64_t lost = 0;
};

// These functions throw Error (Fault::kMachine), which names what is missing.
void start_activity(const BubblescopeGpu& calls);
/// Call only while nothing runs.
ActivityLog read_activity(const BubblescopeGpu& calls);
/// Tags everything that this thread puts on streams until the tag is removed.
class ActivityTag {
 public:
  ActivityTag(const BubblescopeGpu& calls, std::uint64_t tag);
  ~ActivityTag();  ///< removes the tag if an exception kept remove() from being called
  ActivityTag(const ActivityTag&) = delete;
  ActivityTag& operator=(const ActivityTag&) = delete;

  void remove();

 private:
  const BubblescopeGpu& calls_;
  bool is_removed_ = false;
};

/// Returns a tag that is unique for the instruction and step (counted from 0), and never 0.
std::uint64_t activity_tag(std::int64_t step, InstructionId id, std::size_t instructions);

/// One kernel, copy or memory set.
struct DeviceActivity {
  InstructionId id = 0;   ///< the instruction that launched it
  std::int32_t kind = 0;  ///< kBubblescopeKernel, ...
  std::string name;       ///< "norm_kernel<float>"
  Nanos start = 0;        ///< on the Timeline's clock
  Nanos end = 0;
  std::int32_t device = 0;
  std::uint32_t stream = 0;
  Bytes bytes = 0;
};

/// Summary of the activities that an instruction launched.
struct OpActivity {
  InstructionId id = 0;
  std::int64_t launches = 0;
  Nanos between_events = 0;
  Nanos covered = 0;  ///< time in which at least one of its activities runs
};

struct StepActivity {
  std::vector<DeviceActivity> activities;  ///< sorted by start
  std::vector<OpActivity> ops;             ///< instructions with activities, sorted by id
  std::int64_t lost = 0;                   ///< records dropped by the profiler, in any step
  std::int64_t untimed = 0;                ///< records of this step without a time
};

/// Sums over the activities of a step.
struct ActivitySums {
  std::int64_t kernels = 0;
  std::int64_t copies = 0;
  std::int64_t clears = 0;
  Nanos all = 0;             ///< the sum of their durations
  Nanos between_events = 0;  ///< of the ops that launched them
  Nanos covered = 0;
  std::vector<std::pair<std::string, Nanos>> longest;  ///< the three longest-running kernels
};

ActivitySums sum_activity(const StepActivity& activity);

/// Selects the activities of one step and moves them to the clock of `timeline`. Each device's
/// clock is aligned so that no activity starts before its instruction, and one starts together with
/// it.
StepActivity activity_of_step(const ActivityLog& log, std::int64_t step, const Timeline& timeline);

/// Demangles "_ZN11bubblescope4exec11norm_kernelIfEEvPT_i" to "norm_kernel<float>", without result,
/// parameters and our namespace. Returns other names unchanged.
std::string kernel_name(const std::string& compiled);

///   activity: 96 kernels, 12 copies, 4 memory sets; their ops take 12.4 ms, 3.1 % in launch gaps
///   activity: most time in attention_kernel<float> (45.0 %), ...
///
/// The second line lists the three longest-running kernels with their share of all kernel time. A
/// third line appears if records are missing.
std::string to_string(const StepActivity& activity);

}  // namespace bubblescope::exec
