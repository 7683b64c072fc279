// Splits a Program into jobs per rank.
#include "traces/schedules/rank_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/ir/error.h"

namespace bubblescope::traces {

namespace {

constexpr std::uint32_t kNoJob = std::numeric_limits<std::uint32_t>::max();

class Cutter {
 public:
  Cutter(const PricedSchedule& priced, const std::string& format)
      : program_(priced.program),
        durations_(priced.durations),
        format_(format),
        ranks_(static_cast<std::size_t>(program_.ranks)),
        send_jobs_(program_.size(), kNoJob),
        receive_jobs_(program_.size(), kNoJob),
        last_in_lane_(program_.lanes.size(), kNoJob),
        lane_in_rank_(program_.lanes.size(), 0) {
    std::vector<std::int32_t> lanes(ranks_.size(), 0);
    for (std::size_t lane = 0; lane < program_.lanes.size(); ++lane)
      lane_in_rank_[lane] = lanes[program_.lanes[lane].rank]++;
  }

  RankJobs cut() && {
    for (InstructionId id = 0; id < program_.size(); ++id) {
      const Instruction& instruction = program_.instructions[id];
      if (instruction.role != Role::kWork) refuse(instruction);
      if (is_message(instruction))
        add_message(id);
      else
        add_work(id);
    }
    return std::move(ranks_);
  }

 private:
  [[noreturn]] void refuse(const Instruction& instruction) const {
    throw Error(
        fmt::format("{} has no place for the posting of {} on rank {}: its simulator has "
                    "rules of its own; leave --p2p-mode out",
                    format_, to_string(instruction.op), instruction.rank));
  }

  /// The jobs on `rank` that an instruction waits for. A message is represented by its receive.
  std::vector<std::uint32_t> waits_on(InstructionId id, std::int32_t rank) const {
    std::vector<std::uint32_t> waits;
    for (const InstructionId awaited : program_.dependencies_of(id)) {
      const Instruction& other = program_.instructions[awaited];
      const bool arrives = is_message(other) && other.peer == rank;
      const std::uint32_t job = arrives ? receive_jobs_[awaited] : send_jobs_[awaited];
      if (!arrives && other.rank != rank)
        throw Error(fmt::format("{} cannot express that {} of rank {} waits for {} of rank {}",
                                format_, to_string(program_.instructions[id].op), rank,
                                to_string(other.op), other.rank));
      waits.push_back(job);
    }
    return waits;
  }

  std::uint32_t append(std::int32_t rank, RankJob job) {
    std::sort(job.waits_for.begin(), job.waits_for.end());
    job.waits_for.erase(std::unique(job.waits_for.begin(), job.waits_for.end()),
                        job.waits_for.end());
    std::vector<RankJob>& jobs = ranks_[rank];
    jobs.push_back(std::move(job));
    return static_cast<std::uint32_t>(jobs.size() - 1);
  }

  void add_work(InstructionId id) {
    const Instruction& instruction = program_.instructions[id];
    RankJob job;
    job.op = instruction.op;
    job.duration = durations_[id];
    job.waits_for = waits_on(id, instruction.rank);
    if (instruction.lane != kNoLane) {
      job.lane = lane_in_rank_[instruction.lane];
      std::uint32_t& last = last_in_lane_[instruction.lane];
      if (last != kNoJob) job.waits_for.push_back(last);
      last = send_jobs_[id] = append(instruction.rank, std::move(job));
    } else {
      send_jobs_[id] = append(instruction.rank, std::move(job));
    }
  }

  void add_message(InstructionId id) {
    const Instruction& instruction = program_.instructions[id];
    RankJob job;
    job.kind = JobKind::kSend;
    job.op = instruction.op;
    job.peer = instruction.peer;
    job.tag = next_tag_++;
    job.duration = durations_[id];
    RankJob receive = job;
    job.waits_for = waits_on(id, instruction.rank);
    send_jobs_[id] = append(instruction.rank, std::move(job));
    receive.kind = JobKind::kReceive;
    receive.peer = instruction.rank;
    receive_jobs_[id] = append(instruction.peer, std::move(receive));
  }

  const Program& program_;
  const std::vector<Nanos>& durations_;
  const std::string& format_;
  RankJobs ranks_;
  std::vector<std::uint32_t> send_jobs_;     ///< [instruction]: its job; for a message its send
  std::vector<std::uint32_t> receive_jobs_;  ///< [instruction]: for a message, its receive
  std::vector<std::uint32_t> last_in_lane_;
  std::vector<std::int32_t> lane_in_rank_;
  std::uint32_t next_tag_ = 0;
};

}  // namespace

RankJobs make_rank_jobs(const PricedSchedule& priced, const std::string& format) {
  return Cutter(priced, format).cut();
}

std::optional<Nanos> find_uniform_latency(const RankJobs& ranks) {
  std::optional<Nanos> latency;
  for (const std::vector<RankJob>& jobs : ranks)
    for (const RankJob& job : jobs) {
      if (job.kind == JobKind::kWork) continue;
      if (latency && *latency != job.duration) return {};
      latency = job.duration;
    }
  return latency;
}

}  // namespace bubblescope::traces
