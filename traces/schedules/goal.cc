// GOAL text, for LogGOPSim: `convert --to goal`.
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
// Compute ops run on cpu 0 and messages on cpu 1, so that a message leaves while its rank computes.
// LogGOPSim has a single latency, so all messages must take the same time.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>

#include "sim/ir/error.h"
#include "sim/ir/plain_text.h"
#include "traces/schedules/rank_jobs.h"

namespace bubblescope::traces {

namespace {

constexpr int kMessageCpu = 1;

/// Lane 0 computes on cpu 0. The other lanes have the cpus after that of the messages.
std::int32_t cpu_of(const RankJob& job) { return job.lane == 0 ? 0 : job.lane + kMessageCpu; }

void append_job(fmt::memory_buffer& out, std::size_t label, const RankJob& job) {
  const auto end = std::back_inserter(out);
  switch (job.kind) {
    case JobKind::kWork:
      fmt::format_to(end, FMT_COMPILE("l{}: calc {} cpu {}\n"), label, job.duration, cpu_of(job));
      break;
    case JobKind::kSend:
      fmt::format_to(end, FMT_COMPILE("l{}: send 1b to {} tag {} cpu {}\n"), label, job.peer,
                     job.tag, kMessageCpu);
      break;
    case JobKind::kReceive:
      fmt::format_to(end, FMT_COMPILE("l{}: recv 1b from {} tag {} cpu {}\n"), label, job.peer,
                     job.tag, kMessageCpu);
      break;
  }
  for (const std::uint32_t awaited : job.waits_for)
    fmt::format_to(end, FMT_COMPILE("l{} requires l{}\n"), label, awaited);
}

bool has_messages(const RankJobs& ranks) {
  for (const std::vector<RankJob>& jobs : ranks)
    for (const RankJob& job : jobs)
      if (job.kind != JobKind::kWork) return true;
  return false;
}

std::vector<FilePart> write_goal(const PricedSchedule& priced) {
  const RankJobs ranks = make_rank_jobs(priced, "goal");
  const std::optional<Nanos> latency = find_uniform_latency(ranks);
  if (!latency && has_messages(ranks))
    throw Error(
        "goal has one latency for all messages, but these differ by link; give --p2p, or "
        "a cost file with one message time");
  fmt::memory_buffer out;
  const auto end = std::back_inserter(out);
  fmt::format_to(end,
                 "// {}: {} ranks, {} micro-batches, made by bubblescope\n"
                 "// LogGOPSim -L {} -o 0 -g 0 -O 0 -G 0 -S 65535 -f FILE.bin (after txt2bin; "
                 "nanoseconds)\nnum_ranks {}\n",
                 escape_line(priced.schedule->name), ranks.size(),
                 priced.schedule->shape.microbatches, latency.value_or(0), ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    fmt::format_to(end, "\nrank {} {{\n", rank);
    for (std::size_t at = 0; at < ranks[rank].size(); ++at) append_job(out, at, ranks[rank][at]);
    fmt::format_to(end, "}}\n");
  }
  return {{"", fmt::to_string(out)}};
}

const Registrar<ScheduleFormat> registrar{
    {"goal", {"loggopsim"}, "GOAL text with costs, for LogGOPSim", {}, {}, {}, true, write_goal}};

}  // namespace

}  // namespace bubblescope::traces
