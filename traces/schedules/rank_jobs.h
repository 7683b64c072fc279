// A Program in the form that other simulators expect: per rank, jobs that wait for jobs of the same
// rank, with a send and a receive for every message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/files/format.h"

namespace bubblescope::traces {

/// A gap is the time that a lane rests before an op.
enum class JobKind : std::uint8_t { kWork, kGap, kSend, kReceive };

inline bool is_message(JobKind kind) { return kind == JobKind::kSend || kind == JobKind::kReceive; }

struct RankJob {
  JobKind kind = JobKind::kWork;
  Op op;                  ///< for a gap, the op after it
  std::int32_t lane = 0;  ///< the lane within its rank, the compute lane first; messages have none
  std::int32_t peer = 0;  ///< for a message, the other rank
  std::uint32_t tag = 0;  ///< for a message, the same at both ends and unique
  Nanos duration = 0;     ///< for a message, from its send's start to its receive's end
  std::vector<std::uint32_t> waits_for;  ///< jobs of the same rank, by index, all before this one
};

/// The jobs of each rank, in an order in which each job comes after everything that it waits for.
using RankJobs = std::vector<std::vector<RankJob>>;

/// When a receive is posted. Simulators that search their posted receives one by one are many times
/// faster where few are posted: kLate posts one after the op before its consumer in the same lane.
/// The times are the same, because the consumer waits for that op as well.
enum class ReceivePosts : std::uint8_t { kAtOnce, kLate };

/// Throws Error if the Program has posts and waits of messages, because the simulator of `format`
/// has its own rules for them, or ops that slow each other, whose times are not known.
RankJobs make_rank_jobs(const PricedSchedule& priced, const std::string& format,
                        ReceivePosts posts = ReceivePosts::kAtOnce);

/// Returns the common time of all messages; nullopt if they differ or there are none.
std::optional<Nanos> find_uniform_latency(const RankJobs& ranks);

}  // namespace bubblescope::traces
