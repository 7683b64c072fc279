// What devices really did inside of a step's instructions: kernels and copies as CUPTI recorded
// them, each under the instruction that launched it.
//
// An instruction's own time is that between its two events. What lies in it and in none of its
// kernels and copies is their launches: gaps that costs of the instruction contain.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exec/gpu/calls.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// A BubblescopeActivity that stays.
struct ActivityRecord {
  BubblescopeActivity told{};
  std::string name;
};

struct ActivityLog {
  std::vector<ActivityRecord> records;
  std::int64_t lost = 0;
};

// They throw Error (Fault::kMachine), which names what is missing.
void start_activity(const BubblescopeGpu& calls);
/// While nothing runs.
ActivityLog read_activity(const BubblescopeGpu& calls);
/// All that `enqueue` puts on streams has the tag.
void tag_activity(const BubblescopeGpu& calls, std::uint64_t tag,
                  const std::function<void()>& enqueue);

/// Of an instruction in a step, from 0; no two have the same, and none has 0.
std::uint64_t activity_tag(std::int64_t step, InstructionId id, std::size_t instructions);

/// One kernel, copy or clearing of memory.
struct DeviceActivity {
  InstructionId id = 0;   ///< what launched it
  std::int32_t kind = 0;  ///< kBubblescopeKernel, ...
  std::string name;       ///< "norm_kernel<float>"
  Nanos start = 0;        ///< on the Timeline's clock
  Nanos end = 0;
  std::int32_t device = 0;
  std::uint32_t stream = 0;
  Bytes bytes = 0;
};

/// What an instruction launched.
struct OpActivity {
  InstructionId id = 0;
  std::int64_t launches = 0;
  Nanos between_events = 0;
  Nanos covered = 0;  ///< of that, with at least one of its launches under way
};

struct StepActivity {
  std::vector<DeviceActivity> activities;  ///< by their start
  std::vector<OpActivity> ops;             ///< that launched something, by id
  std::int64_t lost = 0;     ///< records that the profiler had no room for, of any step
  std::int64_t untimed = 0;  ///< records of this step without a time
};

/// Of one step's Timeline. The profiler's clock is laid over that of the events, device by device,
/// so that the op that waited least for its first launch waited for nothing.
StepActivity activity_of_step(const ActivityLog& log, std::int64_t step, const Timeline& timeline);

/// "norm_kernel<float>" of "_ZN11bubblescope11norm_kernelIfEEvPT_i": without what it returns and
/// takes, and without our namespace. A name that is not mangled stays.
std::string kernel_name(const std::string& compiled);

/// "activity: 96 kernels, 12 copies, 4 clearings; their ops take 12.4 ms, 3.1 % of it with none of
/// them under way\nactivity: most time in attention_kernel<float> (45.0 %), ...": the three kernels
/// that took most, by their share of all that ran. A third line where records are missing.
std::string to_string(const StepActivity& activity);

/// `"activity":{"kernels":96,"copies":12,"clears":4,"lost":0,"untimed":0,"ops_ns":12400000,
/// "covered_ns":12015600,"most":[{"name":"attention_kernel<float>","ns":5400000},...]}`.
std::string activity_json(const StepActivity& activity);

}  // namespace bubblescope
