// DistributedBackend over sockets: one process per rank, with a thread per lane.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <string>
#include <utility>

#include "exec/runtime/distributed_backend.h"
#include "exec/runtime/execute.h"
#include "exec/runtime/processes.h"
#include "exec/training/verification.h"
#include "sim/ir/lower.h"
#include "tests/support/built_schedule.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

/// Trains in this process. Returns "right", or what was wrong or failed. `at` is called before the
/// 20th op of this rank.
std::string train(exec::SocketTransport& link, const Schedule& schedule,
                  exec::BackendRequest request = {}, void (*at)() = nullptr) {
  const Program program = lowered(schedule);
  const exec::Limits limits{request.limits.timeout};
  const exec::Processes processes(link, limits);
  const exec::TrainingOptions options = small_model();
  exec::Training training(schedule, program, options, processes);
  std::atomic<int> ops = 0;
  request.work = [&, work = training.work()](const exec::WorkItem& item) {
    if (at != nullptr && ++ops == 20) at();
    return work(item);
  };
  request.payload_codec = training.payload_codec();
  exec::DistributedBackend backend(std::move(request), program, link);
  const exec::Execution execution = exec::execute(
      program, backend, "sockets", {1, kVerifiedSteps - 1, [&] { training.finish_step(); }});
  if (execution.breakdown) return execution.breakdown->message;
  const exec::Verification verification = exec::verify(
      training.stages().result(), exec::train_serially(schedule, options, kVerifiedSteps));
  return verification.matches ? "right" : to_string(verification);
}

TEST(DistributedBackend, EveryProcessTrainsRight) {
  // These cover messages, split backwards, copies to another process and back, and two replicas per
  // stage.
  for (const auto& [name, ranks] : {std::pair{"1f1b", 3}, std::pair{"zb-h1", 3},
                                    std::pair{"bpipe", 4}, std::pair{"dualpipe", 4}}) {
    SCOPED_TRACE(name);
    const Schedule schedule = build(name, ranks, 8);
    const auto ends = run_ranks(
        ranks, [&schedule](exec::SocketTransport& link) { return train(link, schedule); });
    for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
  }
}

TEST(DistributedBackend, ARankThatDiesIsNamed) {
  for (const std::int32_t victim : {0, 1, 2}) {
    const auto ends = run_ranks(3, [victim](exec::SocketTransport& link) {
      const bool is_victim = link.self().rank == victim;
      return train(link, build("1f1b", 3, 6), {}, is_victim ? +[] { raise(SIGKILL); } : nullptr);
    });
    expect_others_say(ends, victim, "rank " + std::to_string(victim) + " ");
  }
}

TEST(DistributedBackend, ARankThatHangsIsNamedWithinTheTimeout) {
  const auto ends = run_ranks(3, [](exec::SocketTransport& link) {
    exec::BackendRequest request;
    request.limits.timeout = 2'000'000'000;
    const bool hangs = link.self().rank == 1;
    return train(link, build("1f1b", 3, 6), std::move(request),
                 hangs ? +[] { raise(SIGSTOP); } : nullptr);
  });
  expect_others_say(ends, 1, "rank 1 does not answer: its process has died or hangs");
}

TEST(DistributedBackend, AnInjectedDeathIsReportedByAllRanks) {
  const auto ends = run_ranks(3, [](exec::SocketTransport& link) {
    exec::BackendRequest request;
    request.injections = {parse_injection("rank=1,op=1F1,die")};
    return train(link, build("1f1b", 3, 6), std::move(request));
  });
  for (const RankEnd& end : ends)
    EXPECT_EQ(end.said.rfind("rank 1 died at 1F1, as `inject` says; every rank was stopped:", 0),
              0u)
        << end.said;
}

}  // namespace
}  // namespace bubblescope::tests
