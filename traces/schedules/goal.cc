// GOAL text: the format goal is for the LogGOPSim of ATLAHS, goal-one-cpu for the original one.
//
//   // 1f1b: 2 ranks, 1 micro-batches, made by bubblescope
//   // LogGOPSim -L 100000 -o 0 -g 0 -O 0 -G 0 -S 65535 -f FILE.bin (after txt2bin; nanoseconds)
//   num_ranks 2
//   rank 0 {
//   l0: calc 1000000                        0F0, in nanoseconds
//   l1: send 1b to 1 tag 0 cpu 1            its activation
//   l1 requires l0
//   ...
//   }
//
// In goal, compute ops run on cpu 0 and messages on cpu 1, so that a message leaves while its rank
// computes. The original LogGOPSim starts an op when its own cpu is free and forgets when the ops
// of other cpus end, so goal-one-cpu has all jobs on cpu 0. There the op after a send waits for
// it; it takes no time with -o 0, and would be late after the op. A receive is posted after the op
// before its consumer, because both programs search their posted receives one by one. Both have a
// single latency, so all messages must take the same time.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/plain_text.h"
#include "traces/schedules/rank_jobs.h"

namespace bubblescope::traces {

namespace {

/// The number of cpus that a rank has.
enum class Cpus : std::uint8_t { kSeveral, kOne };

constexpr int kMessageCpu = 1;

/// Lane 0 computes on cpu 0. The other lanes have the cpus after that of the messages.
std::int32_t cpu_of(const RankJob& job, Cpus cpus) {
  if (cpus == Cpus::kOne) return 0;
  if (is_message(job.kind)) return kMessageCpu;
  return job.lane == 0 ? 0 : job.lane + kMessageCpu;
}

void append_job(fmt::memory_buffer& out, std::size_t label, const RankJob& job, Cpus cpus) {
  const auto end = std::back_inserter(out);
  const std::int32_t cpu = cpu_of(job, cpus);
  if (is_message(job.kind))
    fmt::format_to(end, FMT_COMPILE("l{}: {} {} tag {} cpu {}\n"), label,
                   job.kind == JobKind::kSend ? "send 1b to" : "recv 1b from", job.peer, job.tag,
                   cpu);
  else
    fmt::format_to(end, FMT_COMPILE("l{}: calc {} cpu {}\n"), label, job.duration, cpu);
  for (const std::uint32_t awaited : job.waits_for)
    fmt::format_to(end, FMT_COMPILE("l{} requires l{}\n"), label, awaited);
}

void expect_one_lane(const std::vector<RankJob>& jobs) {
  for (const RankJob& job : jobs)
    if (job.kind == JobKind::kWork && job.lane != 0)
      throw Error(
          fmt::format("goal-one-cpu has one cpu per rank, but {} runs beside the compute ops; "
                      "the format goal has several, for ATLAHS",
                      to_string(job.op)));
}

/// Lets the op after those that a send waits for wait for the send, so that it is not left behind.
void append_send_order(fmt::memory_buffer& out, const std::vector<RankJob>& jobs) {
  std::vector<std::size_t> next_op(jobs.size() + 1, jobs.size());  // [job]: the first op from there
  for (std::size_t at = jobs.size(); at-- > 0;)
    next_op[at] = is_message(jobs[at].kind) ? next_op[at + 1] : at;
  for (std::size_t at = 0; at < jobs.size(); ++at) {
    if (jobs[at].kind != JobKind::kSend) continue;
    std::size_t after = 0;  // after all that the send waits for
    bool follows_ops = true;
    for (const std::uint32_t awaited : jobs[at].waits_for) {
      after = std::max<std::size_t>(after, awaited + 1);
      follows_ops = follows_ops && !is_message(jobs[awaited].kind);
    }
    if (!follows_ops || next_op[after] == jobs.size()) continue;
    fmt::format_to(std::back_inserter(out), FMT_COMPILE("l{} requires l{}\n"), next_op[after], at);
  }
}

void append_rank(fmt::memory_buffer& out, const std::vector<RankJob>& jobs, Cpus cpus) {
  for (std::size_t at = 0; at < jobs.size(); ++at) append_job(out, at, jobs[at], cpus);
  if (cpus == Cpus::kSeveral) return;
  expect_one_lane(jobs);
  append_send_order(out, jobs);
}

bool has_messages(const RankJobs& ranks) {
  for (const std::vector<RankJob>& jobs : ranks)
    for (const RankJob& job : jobs)
      if (is_message(job.kind)) return true;
  return false;
}

std::vector<FilePart> write_goal(const PricedSchedule& priced, Cpus cpus) {
  const RankJobs ranks = make_rank_jobs(priced, "goal", ReceivePosts::kLate);
  const std::optional<Nanos> latency = find_uniform_latency(ranks);
  if (!latency && has_messages(ranks))
    throw Error(
        "goal has one latency for all messages, but these differ by link; give `p2p`, or "
        "a cost file with one message time");
  fmt::memory_buffer out;
  const auto end = std::back_inserter(out);
  fmt::format_to(end,
                 "// {}: {}, {}, made by bubblescope\n"
                 "// LogGOPSim -L {} -o 0 -g 0 -O 0 -G 0 -S 65535 -f FILE.bin (after txt2bin; "
                 "nanoseconds)\nnum_ranks {}\n",
                 escape_line(priced.schedule->name), counted(ranks.size(), "rank"),
                 counted(priced.schedule->shape.microbatches, "micro-batch"), latency.value_or(0),
                 ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    fmt::format_to(end, "\nrank {} {{\n", rank);
    append_rank(out, ranks[rank], cpus);
    fmt::format_to(end, "}}\n");
  }
  return {{"", fmt::to_string(out)}};
}

ScheduleFormat make_format(std::string name, std::string alias, std::string summary, Cpus cpus) {
  ScheduleFormat format{std::move(name), {std::move(alias)}, std::move(summary), {}, {}, {}};
  format.for_runtimes = true;
  format.write_priced = [cpus](const PricedSchedule& priced) { return write_goal(priced, cpus); };
  return format;
}

const Registrar<ScheduleFormat> goal_registrar{[] {
  return make_format("goal", "atlahs", "GOAL text with costs, for ATLAHS", Cpus::kSeveral);
}};
const Registrar<ScheduleFormat> goal_one_cpu_registrar{[] {
  return make_format("goal-one-cpu", "loggopsim",
                     "GOAL text with costs, for the original LogGOPSim", Cpus::kOne);
}};

}  // namespace

}  // namespace bubblescope::traces
