// Processes that train together and die, hang or fail. The GPU is simulated on the host, and NCCL
// over sockets.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <utility>

#include "sim/ir/error.h"
#include "tests/support/built_schedule.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/nccl_trained.h"

namespace bubblescope::tests {
namespace {

/// A GPU whose GEMM calls `at` once, in the second step.
const BubblescopeGpu& calls_with(void (*at)()) {
  static void (*action)() = nullptr;
  static int products = 0;
  static BubblescopeGpu calls{};
  action = at;
  products = 0;
  calls = fake_gpu_calls();
  calls.multiply = [](void* blas_handle, const BubblescopeGemm* gemm, void* stream) {
    if (++products == 150) action();
    return fake_gpu_calls().multiply(blas_handle, gemm, stream);
  };
  return calls;
}

std::string train_until(exec::SocketTransport& link, std::int32_t victim, void (*at)()) {
  exec::BackendRequest request;
  request.limits.timeout = 3'000'000'000;
  const bool is_victim = link.self().rank == victim;
  return breakdown_of(train_over_nccl(link, build("1f1b", 3, 6), {}, std::move(request),
                                      is_victim ? calls_with(at) : fake_gpu_calls()));
}

TEST(NcclFaults, ARankThatDiesIsNamed) {
  for (const std::int32_t victim : {0, 1, 2}) {
    const auto ends = run_ranks(3, [victim](exec::SocketTransport& link) {
      return train_until(link, victim, [] { raise(SIGKILL); });
    });
    expect_others_say(ends, victim, "rank " + std::to_string(victim) + " ");
  }
}

TEST(NcclFaults, ADeathInAnotherReplicaIsReportedToo) {
  const auto ends = run_ranks(4, [](exec::SocketTransport& link) {
    exec::BackendRequest request;
    request.limits.timeout = 5'000'000'000;
    return breakdown_of(train_over_nccl(
        link, build("1f1b", 2, 6), {}, std::move(request),
        link.self().rank == 3 ? calls_with([] { raise(SIGKILL); }) : fake_gpu_calls()));
  });
  expect_others_say(ends, 3, "rank 3 ");
}

TEST(NcclFaults, ARankThatHangsIsNamedWithinTheTimeout) {
  const auto ends = run_ranks(
      3, [](exec::SocketTransport& link) { return train_until(link, 1, [] { raise(SIGSTOP); }); });
  expect_others_say(ends, 1, "rank 1 does not answer: its process has died or hangs");
}

TEST(NcclFaults, AnInjectedDeathIsReportedByAllRanks) {
  const auto ends = run_ranks(3, [](exec::SocketTransport& link) {
    exec::BackendRequest request;
    request.injections = {parse_injection("rank=1,op=1F1,die")};
    return breakdown_of(train_over_nccl(link, build("1f1b", 3, 6), {}, std::move(request)));
  });
  for (const RankEnd& end : ends)
    EXPECT_EQ(end.said.rfind("rank 1 died at 1F1, as `inject` says; every rank was stopped:", 0),
              0u)
        << end.said;
}

TEST(NcclFaults, AnInjectedHangIsBlockedAtItsOp) {
  const auto ends = run_ranks(2, [](exec::SocketTransport& link) {
    exec::BackendRequest request;
    request.limits.timeout = 2'000'000'000;
    request.injections = {parse_injection("rank=1,op=1B0,hang")};
    return breakdown_of(train_over_nccl(link, build("1f1b", 2, 4), {}, std::move(request)));
  });
  for (const RankEnd& end : ends)
    EXPECT_EQ(end.said.rfind("no progress within `timeout`: rank 1 at 1B0 (running)", 0), 0u)
        << end.said;
}

TEST(NcclFaults, EveryCallOfNcclThatFailsStopsAll) {
  for (const char* call :
       {"join", "split", "ask", "send", "receive", "begin_group", "end_group", "sum"}) {
    SCOPED_TRACE(call);
    const auto ends = run_ranks(2, [call](exec::SocketTransport& link) {
      if (link.self().rank == 1) fake_nccl().fails_at = call;
      return breakdown_of(train_over_nccl(link, build("chimera", 2, 4)));
    });
    for (const RankEnd& end : ends) EXPECT_TRUE(end.ended);
    EXPECT_EQ(ends[1].said, "the fake NCCL fails as it was told");
    EXPECT_EQ(ends[0].said, "rank 1 cannot continue: the fake NCCL fails as it was told");
  }
}

std::string fail(exec::SocketTransport& link, bool in_step) {
  if (!in_step) fake_nccl().fails_at = "send";
  const BubblescopeGpu& gpu = in_step ? calls_with([] { raise(SIGKILL); }) : fake_gpu_calls();
  return breakdown_of(train_over_nccl(link, build("chimera", 2, 4), {}, {}, gpu));
}

/// Says what was aborted, and whether its memory was still there.
std::string watch_the_abort(exec::SocketTransport& link) {
  const FakeGpu& gpu = reset_fake_gpu(1);
  FakeNccl& nccl = fake_nccl();
  std::int64_t bytes = 0;
  nccl.at_abort = [&] { bytes = gpu.bytes; };
  std::string thrown;
  try {
    thrown = breakdown_of(train_over_nccl(link, build("chimera", 2, 4)));
  } catch (const Error& error) {
    thrown = error.what();
  }
  if (!nccl.was_aborted) return "was not aborted: " + thrown;
  if (nccl.was_released_under_way) return "went before it was aborted";
  return bytes > 0 ? "aborted first" : "its memory had gone";
}

/// The fault occurs in the warm-up of the links, and in a step.
TEST(NcclFaults, WhatIsUnderWayIsAbortedBeforeItsMemoryGoes) {
  for (const bool in_step : {false, true}) {
    const auto ends = run_ranks(2, [in_step](exec::SocketTransport& link) {
      return link.self().rank == 1 ? fail(link, in_step) : watch_the_abort(link);
    });
    EXPECT_EQ(ends[0].said, "aborted first") << (in_step ? "in a step" : "before the first step");
  }
}

TEST(NcclJob, RefusesAnotherNumberOfProcessesAndAnotherProgram) {
  const auto counts = run_ranks(2, [](exec::SocketTransport& link) {
    return breakdown_of(train_over_nccl(link, build("1f1b", 3, 6)));
  });
  EXPECT_EQ(counts[0].said,
            "the backend nccl runs one process per rank: start 3 of them, or a multiple, as in "
            "'torchrun --no-python --nproc-per-node 3 bubblescope ...' (there are 2)");
  const auto programs = run_ranks(2, [](exec::SocketTransport& link) {
    return breakdown_of(train_over_nccl(link, build("1f1b", 2, link.self().rank == 0 ? 4 : 6)));
  });
  EXPECT_EQ(programs[0].said,
            "rank 1 runs another program than rank 0; start all processes with the same arguments");
}

}  // namespace
}  // namespace bubblescope::tests
