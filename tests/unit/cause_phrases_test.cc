// Tests the words for every sort of cause, and the numbers of their replicas.
#include "traces/reports/cause_phrases.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "sim/analysis/cause.h"

namespace bubblescope::tests {
namespace {

/// A cause in a job of 8 steps with several replicas.
Cause make_cause(CauseFacts facts) {
  Cause cause{std::move(facts)};
  cause.has_replicas = true;
  cause.all_steps = 8;
  return cause;
}

struct Case {
  CauseFacts facts;
  const char* place;
  const char* name;
  const char* description;
  const char* remedy;
};

std::vector<Case> list_workers_and_replicas() {
  return {
      {SlowWorkers{{{1, 2}}, 1.5, 3}, "rank 2 of replica 1", "slow worker (rank 2 of replica 1)",
       "slow worker: rank 2 of replica 1 takes 1.50 x what its stage takes in other replicas, in 3 "
       "of 8 steps",
       "if it were as fast as there"},
      {SlowWorkers{{{1, 2}, {0, 1}}, 1.25, 1}, "rank 2 of replica 1, rank 1 of replica 0",
       "slow workers (rank 2 of replica 1, rank 1 of replica 0)",
       "slow workers: rank 2 of replica 1, rank 1 of replica 0 take 1.25 x what their stages take "
       "in other replicas, in 1 of 8 steps",
       "if they were as fast as there"},
      {SlowWorkers{{{3, 0}, {1, 0}, {1, 1}, {3, 1}}, 2, 8, true}, "replicas 1 and 3",
       "slow replicas (replicas 1 and 3)",
       "slow replicas: all ranks of replicas 1 and 3 take 2.00 x what their stages take in other "
       "replicas, in 8 of 8 steps",
       "if they were as fast as there"},
      {WorkerSlowAtTimes{{0, 1}, 1.3, 2}, "rank 1 of replica 0",
       "slow worker (rank 1 of replica 0)",
       "slow worker in 2 of 8 steps: rank 1 of replica 0 takes 1.30 x what it takes in the others",
       "if it were as fast as in those"},
      {WorkerSlowAtTimes{{0, 1}, 1.3, 2, true}, "rank 1 of replica 0",
       "slow worker (rank 1 of replica 0)",
       "slow worker: rank 1 of replica 0 becomes slower from step to step, to 1.30 x its first",
       "if it had stayed as fast as at first"},
      {ReplicasThatBeginLate{{1}, 4}, "replica 1", "late start of replica 1",
       "late start: replica 1 begins its ops later in the step than the earliest one does, in 4 of "
       "8 steps",
       "if it began as soon as that one"},
      {ReplicasThatBeginLate{{0, 1, 3}, 4}, "replicas 0, 1 and 3",
       "late start of replicas 0, 1 and 3",
       "late start: replicas 0, 1 and 3 begin their ops later in the step than the earliest one "
       "does, in 4 of 8 steps",
       "if they began as soon as that one"},
  };
}

std::vector<Case> list_unequal_ops() {
  return {
      {UnequalStage{3, 3, {3}, 1.61}, "stage 3 (rank 3)", "unequal stages (stage 3)",
       "unequal stages: stage 3 (rank 3) has 1.61 x the mean stage's work",
       "with the same work in equal stages"},
      {UnequalStage{1, 1, {1, 5}, 1.5}, "stages 1 and 5 (rank 1)",
       "unequal stages (stages 1 and 5)",
       "unequal stages: stages 1 and 5 (rank 1) each have up to 1.50 x the mean stage's work",
       "with the same work in equal stages"},
      {UnequalMicrobatches{0.95}, "micro-batches", "unequal micro-batches",
       "unequal micro-batches: forwards and backwards grow together (correlation 0.95)",
       "with the same work in equal micro-batches"},
      {SlowerOps{{}, 1.1, 4}, "after 4 steps", "drift",
       "drift: after the first 4 steps all ops take 1.1 x as long",
       "if they had stayed as fast as before"},
      {SlowerOps{{{0, 1}, {0, 2}}, 1.6, 3},
       "the ops of rank 1 of replica 0 and 1 other rank after 3 steps", "drift",
       "drift: after the first 3 steps the ops of rank 1 of replica 0 and 1 other rank take 1.6 x "
       "as long",
       "if they had stayed as fast as before"},
      {SlowOnMostRanks{2.5, 2, false}, "in 2 of 8 steps", "slow steps",
       "slow steps: in 2 of 8 steps, the ops of most ranks take 2.50 x what they take in the "
       "others",
       "if they were as fast as in those"},
      {SlowOnMostRanks{2.5, 1, true}, "in the first of 8 steps", "slow steps",
       "slow steps: in the first of 8 steps, the ops of most ranks take 2.50 x what they take in "
       "the others",
       "if they were as fast as in those"},
      {UnevenOps{}, "ops of one kind and stage", "uneven ops",
       "uneven ops: those of one kind and stage do not all take as long, and forwards and "
       "backwards\nof a micro-batch do not grow together",
       "if each took their mean time"},
  };
}

std::vector<Case> list_messages_and_pauses() {
  return {
      {ExposedMessages{}, "messages between ranks", "messages between ranks",
       "exposed communication: messages between ranks", "if messages took no time"},
      {ExposedMessages{SlowLink{0, 2, 1, false, 3'000'000, 1'000'000}},
       "messages from rank 2 to rank 1 of replica 0", "messages from rank 2 to rank 1 of replica 0",
       "exposed communication: messages from rank 2 to rank 1 of replica 0, 3 ms each (usual: 1 "
       "ms)",
       "if they took the usual time"},
      {UnseenMessages{}, "messages that were not recorded", "messages that were not recorded",
       "exposed communication: messages that were not recorded (or ops start late: nothing shows "
       "when these arrive)",
       "if messages took no time"},
      {ExposedCollective{"AllReduce"}, "AllReduce", "AllReduce", "exposed communication: AllReduce",
       "if ops hid it"},
      {LateLaunches{2, 0.125}, "rank 2", "late launches",
       "late launches: ops start after they could, most on rank 2 (12.5 % of its time)",
       "if they were launched in time"},
      {LongGaps{3, 1, 1}, "between ops", "pauses between ops",
       "pauses: 1 gap between ops, long and rare, on rank 3, in 1 step", "without them"},
      {LongGaps{3, 4, 2}, "between ops", "pauses between ops",
       "pauses: 4 gaps between ops, long and rare, longest in total on rank 3, in 2 steps",
       "without them"},
      {InterruptedOps{12, 2.5}, "within ops", "pauses within ops",
       "pauses: 12 ops took 2.5 x as long as usual", "without them"},
      {InterruptedOps{12, 2.5, Worker{0, 1}, 2}, "within ops", "pauses within ops",
       "pauses: 12 ops took 2.5 x as long as usual, nearly all on rank 1 of replica 0, in 2 steps",
       "without them"},
  };
}

TEST(CausePhrases, DescribeEverySort) {
  std::vector<bool> are_described(std::variant_size_v<CauseFacts>, false);
  for (const std::vector<Case>& cases :
       {list_workers_and_replicas(), list_unequal_ops(), list_messages_and_pauses()})
    for (const Case& one : cases) {
      are_described[one.facts.index()] = true;
      const traces::CausePhrases phrases = traces::phrase_cause(make_cause(one.facts));
      EXPECT_EQ(phrases.place, one.place);
      EXPECT_EQ(phrases.name, one.name);
      EXPECT_EQ(phrases.description, one.description);
      EXPECT_EQ(phrases.remedy, one.remedy);
    }
  for (std::size_t sort = 0; sort < are_described.size(); ++sort)
    EXPECT_TRUE(are_described[sort]) << "no case has sort " << sort;
}

// A trace whose replicas are 4 and 7; those that begin late have its numbers already.
TEST(Causes, HaveTheReplicasOfTheTrace) {
  const std::vector<std::int32_t> numbers{4, 7};
  const auto place_of = [&](CauseFacts facts) {
    return traces::phrase_cause(with_replica_numbers(make_cause(std::move(facts)), numbers)).place;
  };
  EXPECT_EQ(place_of(SlowWorkers{{{1, 2}, {0, 3}}}), "rank 2 of replica 7, rank 3 of replica 4");
  EXPECT_EQ(place_of(WorkerSlowAtTimes{{1, 2}}), "rank 2 of replica 7");
  EXPECT_EQ(place_of(ExposedMessages{SlowLink{1, 0, 1}}),
            "messages from rank 0 to rank 1 of replica 7");
  EXPECT_EQ(place_of(SlowerOps{{{0, 1}}, 1.5, 3}), "the ops of rank 1 of replica 4 after 3 steps");
  EXPECT_EQ(place_of(ReplicasThatBeginLate{{7}, 1}), "replica 7");
  const Cause pauses =
      with_replica_numbers(make_cause(InterruptedOps{1, 2, Worker{1, 0}, 1}), numbers);
  EXPECT_EQ(std::get<InterruptedOps>(pauses.facts).worker, (Worker{7, 0}));
}

}  // namespace
}  // namespace bubblescope::tests
