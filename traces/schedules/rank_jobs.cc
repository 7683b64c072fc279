// Splits a Program into jobs per rank.
#include "traces/schedules/rank_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "sim/ir/after_edges.h"
#include "sim/ir/error.h"

namespace bubblescope::traces {

namespace {

constexpr std::uint32_t kNoJob = std::numeric_limits<std::uint32_t>::max();

class Cutter {
 public:
  Cutter(const PricedSchedule& priced, const std::string& format, ReceivePosts posts)
      : program_(priced.program),
        timing_(priced.timing),
        format_(format),
        posts_(posts),
        ranks_(static_cast<std::size_t>(program_.ranks)),
        send_jobs_(program_.size(), kNoJob),
        receive_jobs_(program_.size(), kNoJob),
        tags_(program_.size(), 0),
        last_in_lane_(program_.lanes.size(), kNoJob),
        lane_in_rank_(program_.lanes.size(), 0) {
    std::vector<std::int32_t> lanes(ranks_.size(), 0);
    for (std::size_t lane = 0; lane < program_.lanes.size(); ++lane)
      lane_in_rank_[lane] = lanes[program_.lanes[lane].rank]++;
    if (posts_ == ReceivePosts::kLate) find_consumer_lanes();
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
    for (InstructionId id = 0; id < program_.size(); ++id)  // those that nothing waits for
      if (is_message(program_.instructions[id]) && receive_jobs_[id] == kNoJob) add_receive(id, {});
    return std::move(ranks_);
  }

 private:
  [[noreturn]] void refuse(const Instruction& instruction) const {
    const OpKind kind = instruction.op.kind;
    const bool ends_step = kind == OpKind::kNorm || kind == OpKind::kOptimizer;
    const char* cause = ends_step                     ? "`optimizer`"
                        : kind == OpKind::kReduceGrad ? "`grad_reduction`"
                        : is_send_wait(kind)          ? "`send_budget`"
                                                      : "`p2p_mode`";
    throw Error(
        fmt::format("{} has no place for the posting of {} on rank {}: its simulator has "
                    "rules of its own; leave {} out",
                    format_, to_string(instruction.op), instruction.rank, cause));
  }

  /// Finds for every message the lane of all ops that wait for its arrival; kNoLane where they are
  /// in several lanes, or another message is among them.
  void find_consumer_lanes() {
    std::vector<char> is_known(program_.size(), 0);
    consumer_lanes_.assign(program_.size(), kNoLane);
    for (InstructionId id = 0; id < program_.size(); ++id) {
      const Instruction& consumer = program_.instructions[id];
      const std::uint32_t lane = is_message(consumer) ? kNoLane : consumer.lane;
      for (const InstructionId awaited : program_.dependencies_of(id)) {
        if (program_.instructions[awaited].peer != consumer.rank) continue;
        if (is_known[awaited] && consumer_lanes_[awaited] != lane)
          consumer_lanes_[awaited] = kNoLane;
        if (!is_known[awaited]) consumer_lanes_[awaited] = lane;
        is_known[awaited] = 1;
      }
    }
  }

  /// Whether the receive of a message is added where the first instruction waits for it.
  bool is_posted_late(InstructionId message) const {
    return posts_ == ReceivePosts::kLate && consumer_lanes_[message] != kNoLane;
  }

  /// Adds the receives that an instruction is the first to wait for.
  void add_late_receives(const Instruction& consumer, std::span<const InstructionId> awaited) {
    for (const InstructionId id : awaited) {
      const bool arrives =
          is_message(program_.instructions[id]) && program_.instructions[id].peer == consumer.rank;
      if (!arrives || receive_jobs_[id] != kNoJob) continue;
      const std::uint32_t last = last_in_lane_[consumer.lane];
      add_receive(id, last == kNoJob ? std::vector<std::uint32_t>{} : std::vector{last});
    }
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
    if (instruction.lane != kNoLane) add_late_receives(instruction, program_.dependencies_of(id));
    RankJob job;
    job.op = instruction.op;
    job.duration = timing_.durations[id];
    job.waits_for = waits_on(id, instruction.rank);
    if (instruction.lane != kNoLane) {
      job.lane = lane_in_rank_[instruction.lane];
      std::uint32_t& last = last_in_lane_[instruction.lane];
      if (!timing_.gaps.empty() && timing_.gaps[id] > 0)
        last = append(instruction.rank,
                      {JobKind::kGap, job.op, job.lane, 0, 0, timing_.gaps[id], {last}});
      if (last != kNoJob) job.waits_for.push_back(last);
      last = send_jobs_[id] = append(instruction.rank, std::move(job));
    } else {
      send_jobs_[id] = append(instruction.rank, std::move(job));
    }
  }

  RankJob make_message_job(InstructionId id, JobKind kind) const {
    const Instruction& instruction = program_.instructions[id];
    RankJob job;
    job.kind = kind;
    job.op = instruction.op;
    job.peer = kind == JobKind::kSend ? instruction.peer : instruction.rank;
    job.tag = tags_[id];
    job.duration = timing_.durations[id];
    return job;
  }

  void add_message(InstructionId id) {
    tags_[id] = next_tag_++;
    RankJob job = make_message_job(id, JobKind::kSend);
    job.waits_for = waits_on(id, program_.instructions[id].rank);
    send_jobs_[id] = append(program_.instructions[id].rank, std::move(job));
    if (!is_posted_late(id)) add_receive(id, {});
  }

  void add_receive(InstructionId id, std::vector<std::uint32_t> waits_for) {
    RankJob job = make_message_job(id, JobKind::kReceive);
    job.waits_for = std::move(waits_for);
    receive_jobs_[id] = append(program_.instructions[id].peer, std::move(job));
  }

  const Program& program_;
  const Timing& timing_;
  const std::string& format_;
  ReceivePosts posts_;
  RankJobs ranks_;
  std::vector<std::uint32_t> send_jobs_;       ///< [instruction]: its job; for a message its send
  std::vector<std::uint32_t> receive_jobs_;    ///< [instruction]: for a message, its receive
  std::vector<std::uint32_t> tags_;            ///< [instruction]: for a message, its tag
  std::vector<std::uint32_t> consumer_lanes_;  ///< [instruction]: see find_consumer_lanes()
  std::vector<std::uint32_t> last_in_lane_;
  std::vector<std::int32_t> lane_in_rank_;
  std::uint32_t next_tag_ = 0;
};

}  // namespace

RankJobs make_rank_jobs(const PricedSchedule& priced, const std::string& format,
                        ReceivePosts posts) {
  refuse_after_edges(priced.schedule, format);
  if (priced.timing.traffic && !priced.timing.traffic->contended_ops.empty())
    throw Error(
        fmt::format("{} has one time for an op, but ops of 'contended' costs take longer beside "
                    "others; leave it out",
                    format));
  return Cutter(priced, format, posts).cut();
}

std::optional<Nanos> find_uniform_latency(const RankJobs& ranks) {
  std::optional<Nanos> latency;
  for (const std::vector<RankJob>& jobs : ranks)
    for (const RankJob& job : jobs) {
      if (!is_message(job.kind)) continue;
      if (latency && *latency != job.duration) return {};
      latency = job.duration;
    }
  return latency;
}

}  // namespace bubblescope::traces
