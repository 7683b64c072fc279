// Processes that train together, with a device that computes on the host and an NCCL made of
// sockets: what they enqueue, send, sum and gather makes what a single rank makes.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <variant>

#include "exec/execute.h"
#include "exec/nccl/nccl_place.h"
#include "exec/training/proof.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/shard_stages.h"
#include "sim/model/schedule_def.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/proven_training.h"

namespace bubblescope {
namespace {

Schedule build(const std::string& name, std::int32_t ranks, std::int32_t chunks,
               std::int32_t microbatches) {
  return build_schedule(find_schedule(name), {{ranks, chunks, microbatches, 1, {}}, {}, {}});
}

struct Trained {
  Execution execution;
  std::string proof;  ///< "right" or what was wrong; rank 0's
  std::string device;
};

Trained train_program(ProcessLink& link, const Schedule& schedule, const Program& program,
                      BackendRequest request = {}, const BubblescopeGpu& gpu = fake_gpu_calls()) {
  const TrainingOptions options = small_model(2);
  const JobRequest job{schedule, program, &options, {}, Pass::kSpin, {}};
  const Job started = start_nccl_job({gpu, fake_nccl_calls(), link, 0}, job, std::move(request));
  Trained trained{execute(program, *started.backend, "nccl", {1, 1, started.after_step}), "", ""};
  trained.device = started.device;
  if (trained.execution.breakdown) return trained;
  Schedule whole = schedule;
  whole.shape.microbatches *= started.copies;
  const Proof proof = prove(started.result(), train_serially(whole, options, 2));
  trained.proof = proof.matches ? "right" : to_string(proof);
  return trained;
}

Trained train(ProcessLink& link, const Schedule& schedule, const LowerOptions& lowering = {},
              BackendRequest request = {}, const BubblescopeGpu& gpu = fake_gpu_calls()) {
  return train_program(link, schedule, std::get<Program>(lower(schedule, lowering)),
                       std::move(request), gpu);
}

std::string breakdown_of(const Trained& trained) {
  return trained.execution.breakdown ? trained.execution.breakdown->message : "none";
}

/// Says how many schedules were proven, or the first that was not.
std::string train_every_schedule(ProcessLink& link) {
  int proven = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t chunks : {1, 2}) {
      Schedule schedule;
      try {
        schedule = build(def.name, link.seat().count, chunks, 2 * link.seat().count);
      } catch (const Error&) {
        continue;
      }
      if (!schedule.keeper_of_rank.empty()) continue;  // another process is out of a copy's reach
      const Trained trained = train(link, schedule);
      if (trained.proof != "right")
        return def.name + ": " + trained.proof + "; breakdown: " + breakdown_of(trained);
      ++proven;
    }
  return "proven " + std::to_string(proven);
}

TEST(NcclTraining, EqualsTheSerialReferenceInEverySchedule) {
  for (const std::int32_t ranks : {2, 3, 4}) {
    const auto ends = run_ranks(ranks, train_every_schedule);
    for (const RankEnd& end : ends) {
      EXPECT_TRUE(end.ended);
      EXPECT_EQ(end.said, ends[0].said);
    }
    ASSERT_EQ(ends[0].said.rfind("proven ", 0), 0u) << ends[0].said;
    EXPECT_GE(std::stoi(ends[0].said.substr(7)), ranks == 3 ? 15 : 20) << ranks << " ranks";
  }
}

TEST(NcclTraining, ActivationsWaitInTheHostsMemoryButNotInThatOfOtherProcesses) {
  const auto ends = run_ranks(4, [](ProcessLink& link) -> std::string {
    const Trained trained = train(link, with_offload(build("1f1b", 4, 1, 8), {}));
    if (trained.proof != "right") return trained.proof + breakdown_of(trained);
    try {
      train(link, build("bpipe", 4, 1, 8));
    } catch (const Error& error) {
      return error.what();
    }
    return "was not refused";
  });
  for (const RankEnd& end : ends)
    EXPECT_EQ(end.said,
              "rank 0 evicts to rank 3, which runs in another process; that is not done yet: run "
              "both in one, as --backend cuda does");
}

TEST(NcclTraining, EqualsItInEveryModeOfMessages) {
  const auto ends = run_ranks(3, [](ProcessLink& link) -> std::string {
    for (const char* name : {"1f1b", "interleaved"})
      for (const Named<P2pMode>& mode : kP2pModes) {
        LowerOptions options;
        options.mode = mode.choice;
        const Schedule schedule = build(name, 3, std::string(name) == "interleaved" ? 2 : 1, 6);
        if (std::holds_alternative<Deadlock>(lower(schedule, options))) continue;
        const Trained trained = train(link, schedule, options);
        if (trained.proof != "right")
          return std::string(name) + " " + std::string(mode.name) + ": " + trained.proof +
                 breakdown_of(trained);
      }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

TEST(NcclTraining, ReplicasAreSummedWhereTheProgramSaysSo) {
  const auto ends = run_ranks(4, [](ProcessLink& link) -> std::string {
    for (const char* name : {"dualpipe", "chimera", "gems"})
      for (const GradReduction reduction : {GradReduction::kOverlap, GradReduction::kSerial}) {
        LowerOptions options;
        options.update = {OptimizerMode::kBarrier, reduction};
        const Trained trained = train(link, build(name, 4, 1, 8), options);
        if (trained.proof != "right")
          return std::string(name) + ": " + trained.proof + breakdown_of(trained);
      }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

TEST(NcclTraining, CopiesOfAPipelineTrainTogetherOnDataOfTheirOwn) {
  const auto ends = run_ranks(4, [](ProcessLink& link) -> std::string {
    for (const char* name : {"1f1b", "zb-h1", "interleaved", "chimera"})
      for (const GradReduction reduction : {GradReduction::kNone, GradReduction::kOverlap}) {
        LowerOptions options;
        options.update = {OptimizerMode::kLocal, reduction};
        const Schedule schedule = build(name, 2, std::string(name) == "interleaved" ? 2 : 1, 4);
        const Trained trained = train(link, schedule, options);
        if (trained.proof != "right")
          return std::string(name) + ": " + trained.proof + breakdown_of(trained);
      }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

/// Two or three copies, of which each has its own shards between RESHARD and UNSHARD.
TEST(NcclTraining, CopiesShareTheirParametersOutWhereTheScheduleGathersThem) {
  for (const std::int32_t ranks : {2, 3}) {
    const auto ends = run_ranks(6, [ranks](ProcessLink& link) -> std::string {
      for (const char* name : {"gpipe", "1f1b", "zb-h1", "interleaved", "interleaved-zb"}) {
        const std::int32_t chunks = std::string(name).rfind("interleaved", 0) == 0 ? 4 : 1;
        const Trained trained = train(link, shard_stages(build(name, ranks, chunks, 2 * ranks)));
        if (trained.proof != "right")
          return std::string(name) + ": " + trained.proof + breakdown_of(trained);
      }
      return fake_nccl().spreads > 0 ? "right" : "gathered nothing";
    });
    for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right") << ranks << " ranks";
  }
}

TEST(NcclTraining, AGatherThatIsMissingShowsInTheGradients) {
  const auto ends = run_ranks(4, [](ProcessLink& link) {
    const Schedule schedule = shard_stages(build("1f1b", 2, 1, 4));
    Program program = std::get<Program>(lower(schedule, {}));
    for (Instruction& instruction : program.instructions)
      if (instruction.op.kind == OpKind::kUnshard) instruction.op.kind = OpKind::kReshard;
    return train_program(link, schedule, program).proof;
  });
  EXPECT_NE(ends[0].said, "right");
  EXPECT_NE(ends[0].said, "");
}

TEST(NcclTraining, GivesEverythingBackAndTellsWhatItRanOn) {
  const auto ends = run_ranks(2, [](ProcessLink& link) -> std::string {
    FakeGpu& gpu = reset_fake_gpu(1);
    const FakeNccl& nccl = fake_nccl();
    const Trained trained = train(link, build("zb-h1", 2, 1, 4));
    if (gpu.handles != 0 || gpu.bytes != 0 || nccl.communicators != 0) return "left something";
    return trained.device.substr(0, trained.device.rfind(' ', trained.device.rfind(' ') - 1));
  });
  EXPECT_EQ(ends[0].said,
            "Fake GPU, 132 multiprocessors, CUDA driver 13.0; 2 rank(s), a process and a device "
            "each; NCCL 2.28.9; clocks within");
  EXPECT_EQ(ends[1].said, ends[0].said);
}

TEST(NcclTraining, OneRankNeedsNobody) {
  const auto ends = run_ranks(1, train_every_schedule);
  ASSERT_EQ(ends[0].said.rfind("proven ", 0), 0u) << ends[0].said;
  EXPECT_GT(std::stoi(ends[0].said.substr(7)), 5) << ends[0].said;
}

/// Products of which one does something else instead, in the second step.
const BubblescopeGpu& calls_with(void (*at)()) {
  static void (*action)() = nullptr;
  static int products = 0;
  static BubblescopeGpu calls{};
  action = at;
  products = 0;
  calls = fake_gpu_calls();
  calls.multiply = [](void* multiplier, const BubblescopeProduct* product, void* stream) {
    if (++products == 150) action();
    return fake_gpu_calls().multiply(multiplier, product, stream);
  };
  return calls;
}

std::string train_until(ProcessLink& link, std::int32_t victim, void (*at)()) {
  BackendRequest request;
  request.timeout = 3'000'000'000;
  const bool is_victim = link.seat().rank == victim;
  return breakdown_of(train(link, build("1f1b", 3, 1, 6), {}, std::move(request),
                            is_victim ? calls_with(at) : fake_gpu_calls()));
}

TEST(NcclFaults, ARankThatDiesIsNamed) {
  for (const std::int32_t victim : {0, 1, 2}) {
    const auto ends = run_ranks(3, [victim](ProcessLink& link) {
      return train_until(link, victim, [] { raise(SIGKILL); });
    });
    for (std::int32_t rank = 0; rank < 3; ++rank) {
      const RankEnd& end = ends[static_cast<std::size_t>(rank)];
      EXPECT_EQ(end.ended, rank != victim);
      if (rank == victim) continue;
      EXPECT_EQ(end.said.rfind("rank " + std::to_string(victim) + " ", 0), 0u)
          << "victim " << victim << ", rank " << rank << ": " << end.said;
    }
  }
}

TEST(NcclFaults, ADeathInAnotherCopyIsToldToo) {
  const auto ends = run_ranks(4, [](ProcessLink& link) {
    BackendRequest request;
    request.timeout = 5'000'000'000;
    return breakdown_of(
        train(link, build("1f1b", 2, 1, 6), {}, std::move(request),
              link.seat().rank == 3 ? calls_with([] { raise(SIGKILL); }) : fake_gpu_calls()));
  });
  for (const std::size_t rank : {0u, 1u, 2u})
    EXPECT_EQ(ends[rank].said.rfind("rank 3 ", 0), 0u) << ends[rank].said;
}

TEST(NcclFaults, ARankThatHangsIsNamedWithinTheTimeout) {
  const auto ends =
      run_ranks(3, [](ProcessLink& link) { return train_until(link, 1, [] { raise(SIGSTOP); }); });
  EXPECT_FALSE(ends[1].ended);
  for (const std::size_t rank : {0u, 2u})
    EXPECT_EQ(ends[rank].said.rfind("rank 1 does not answer: its process has died or hangs", 0), 0u)
        << ends[rank].said;
}

TEST(NcclFaults, AnInjectedDeathIsToldByAll) {
  const auto ends = run_ranks(3, [](ProcessLink& link) {
    BackendRequest request;
    request.injections = {parse_injection("rank=1,op=1F1,die")};
    return breakdown_of(train(link, build("1f1b", 3, 1, 6), {}, std::move(request)));
  });
  for (const RankEnd& end : ends)
    EXPECT_EQ(end.said.rfind("rank 1 died at 1F1, as --inject says; every rank was stopped:", 0),
              0u)
        << end.said;
}

TEST(NcclFaults, AnInjectedHangStandsAtItsOp) {
  const auto ends = run_ranks(2, [](ProcessLink& link) {
    BackendRequest request;
    request.timeout = 2'000'000'000;
    request.injections = {parse_injection("rank=1,op=1B0,hang")};
    return breakdown_of(train(link, build("1f1b", 2, 1, 4), {}, std::move(request)));
  });
  for (const RankEnd& end : ends)
    EXPECT_EQ(end.said.rfind("no progress within --timeout: rank 1 at 1B0 (in its own work)", 0),
              0u)
        << end.said;
}

TEST(NcclFaults, EveryCallOfNcclThatFailsStopsAll) {
  for (const char* call :
       {"join", "split", "ask", "send", "receive", "begin_group", "end_group", "sum"}) {
    SCOPED_TRACE(call);
    const auto ends = run_ranks(2, [call](ProcessLink& link) {
      if (link.seat().rank == 1) fake_nccl().fails_at = call;
      return breakdown_of(train(link, build("chimera", 2, 1, 4)));
    });
    for (const RankEnd& end : ends) EXPECT_TRUE(end.ended);
    EXPECT_EQ(ends[1].said, "the fake NCCL fails as it was told");
    EXPECT_EQ(ends[0].said, "rank 1 cannot go on: the fake NCCL fails as it was told");
  }
}

/// While the links are tried out, in a sum after the step, and in a step.
TEST(NcclFaults, WhatIsUnderWayIsAbortedBeforeItsMemoryGoes) {
  for (const bool in_step : {false, true}) {
    const auto ends = run_ranks(2, [in_step](ProcessLink& link) -> std::string {
      if (link.seat().rank == 1) {
        if (!in_step) fake_nccl().fails_at = "send";
        const BubblescopeGpu& gpu = in_step ? calls_with([] { raise(SIGKILL); }) : fake_gpu_calls();
        return breakdown_of(train(link, build("chimera", 2, 1, 4), {}, {}, gpu));
      }
      const FakeGpu& gpu = reset_fake_gpu(1);
      FakeNccl& nccl = fake_nccl();
      std::int64_t bytes = 0;
      nccl.at_abort = [&] { bytes = gpu.bytes; };
      std::string thrown;
      try {
        thrown = breakdown_of(train(link, build("chimera", 2, 1, 4)));
      } catch (const Error& error) {
        thrown = error.what();
      }
      if (!nccl.was_aborted) return "was not aborted: " + thrown;
      if (nccl.was_released_under_way) return "went before it was aborted";
      return bytes > 0 ? "aborted first" : "its memory had gone";
    });
    EXPECT_EQ(ends[0].said, "aborted first") << (in_step ? "in a step" : "before the first step");
  }
}

TEST(NcclJob, RefusesAnotherNumberOfProcessesAndAnotherProgram) {
  const auto counts = run_ranks(
      2, [](ProcessLink& link) { return breakdown_of(train(link, build("1f1b", 3, 1, 6))); });
  EXPECT_EQ(counts[0].said,
            "the backend nccl runs one process per rank: start 3 of them, or a multiple, as in "
            "'torchrun --no-python --nproc-per-node 3 bubblescope ...' (there are 2)");
  const auto programs = run_ranks(2, [](ProcessLink& link) {
    return breakdown_of(train(link, build("1f1b", 2, 1, link.seat().rank == 0 ? 4 : 6)));
  });
  EXPECT_EQ(programs[0].said,
            "rank 1 runs another program than rank 0; start all processes with the same arguments");
}

}  // namespace
}  // namespace bubblescope
