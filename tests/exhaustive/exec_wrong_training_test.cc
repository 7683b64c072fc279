// Wrong trainings are found by verification or reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>

#include "sim/ir/offload.h"
#include "tests/support/as_written.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

TEST(Training, AWrongVersionOfTheWeightsFailsVerification) {
  // 0B3 of rank 0 reads version 1, as its forward did; here both read version 0 instead.
  const Schedule schedule = *build_if_legal(find_schedule("pipedream"), {3, 1, 6, 1, {}});
  Schedule fresher = schedule;
  for (std::size_t at = 0; at < fresher.order[0].size(); ++at)
    if (fresher.order[0][at].microbatch == 3) fresher.weights[0][at].read = 0;
  const Program program = lowered(schedule);
  exec::Training training(fresher, program, small_model());
  const auto backend = exec::find_backend("cpu").make({training.work(), {}}, program);
  exec::execute(program, *backend, "cpu", {1, kVerifiedSteps - 1, [&] { training.finish_step(); }});
  EXPECT_FALSE(exec::verify(training.stages().result(),
                            exec::train_serially(schedule, small_model(), kVerifiedSteps))
                   .matches);
}

TEST(Training, ADamagedMessageIsFoundAndItsSenderNamed) {
  for (const auto& [name, chunks] :
       {std::pair{"gpipe", 1}, std::pair{"zb-h1", 1}, std::pair{"interleaved", 2}}) {
    const Schedule schedule = *build_if_legal(find_schedule(name), {2, chunks, 4, 1, {}});
    const Program program = lowered(schedule);
    for (InstructionId message = 0; message < program.size(); ++message) {
      if (!is_message(program.instructions[message])) continue;
      const Instruction& producer = program.instructions[program.dependencies_of(message)[0]];
      for (const auto& [kind, text] :
           {std::pair{Injection::Kind::kWrongSize, "sent a wrong size: 5 x 8 entries instead of"},
            std::pair{Injection::Kind::kGarbage, "sent an invalid message"}}) {
        exec::Training training(schedule, program, small_model());
        const Injections damage{{producer.rank, to_string(producer.op), kind}};
        const auto backend = exec::find_backend("cpu").make({training.work(), damage}, program);
        const exec::Execution execution = exec::execute(program, *backend, "cpu", {0, 1, {}});
        ASSERT_TRUE(execution.breakdown) << name << " " << to_string(producer.op);
        EXPECT_EQ(
            execution.breakdown->message.find("rank " + std::to_string(producer.rank) + " " + text),
            0u)
            << execution.breakdown->message;
        EXPECT_EQ(execution.steps.back().breakdown, execution.breakdown->message);
      }
    }
  }
}

/// The program without the dependencies for which `is_dropped` holds.
Program without(const Program& program,
                const std::function<bool(InstructionId, InstructionId)>& is_dropped) {
  Program result = program;
  result.dependencies.clear();
  result.dependency_begin.clear();
  for (InstructionId id = 0; id < program.size(); ++id) {
    result.dependency_begin.push_back(static_cast<std::uint32_t>(result.dependencies.size()));
    for (const InstructionId dependency : program.dependencies_of(id))
      if (!is_dropped(id, dependency)) result.dependencies.push_back(dependency);
  }
  result.dependency_begin.push_back(static_cast<std::uint32_t>(result.dependencies.size()));
  return result;
}

/// Delays the producer of a message that nothing waits for any more, so that its reader comes
/// first.
Injection delay_producer(const Program& program, InstructionId message) {
  const Instruction& producer = program.instructions[program.dependencies_of(message)[0]];
  return {producer.rank, to_string(producer.op), Injection::Kind::kDelay, 20'000'000};
}

/// The op that reads the content of a message.
InstructionId reader_of(const Program& program, const Op& message) {
  const bool goes_forward = message.kind == OpKind::kSendForward;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Op& op = program.instructions[id].op;
    const bool reads = goes_forward ? op.kind == OpKind::kForward : gives_input_grad(op.kind);
    if (reads && op.microbatch == message.microbatch &&
        op.stage == message.stage + (goes_forward ? 1 : -1))
      return id;
  }
  return 0;
}

/// Whether lanes and dependencies still make `later` wait for `earlier`: then nothing is missing.
bool waits_for(const Program& program, InstructionId later, InstructionId earlier) {
  std::vector<bool> after(program.size(), false);
  std::vector<bool> lane_after(program.lanes.size(), false);
  for (InstructionId id = earlier; id <= later; ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    after[id] = id == earlier || (lane != kNoLane && lane_after[lane]);
    for (const InstructionId dependency : program.dependencies_of(id))
      after[id] = after[id] || after[dependency];
    if (lane != kNoLane) lane_after[lane] = after[id];
  }
  return after[later];
}

TEST(Training, AMissingDependencyFailsVerification) {
  int found = 0;
  for (const char* name : {"gpipe", "zb-h1", "dualpipe"}) {
    const Schedule schedule = *build_if_legal(find_schedule(name), {2, 1, 4, 1, {}});
    const Program program = lowered(schedule);
    for (InstructionId message = 0; message < program.size(); ++message) {
      if (!is_message(program.instructions[message])) continue;
      SCOPED_TRACE(std::string(name) + " " + to_string(program.instructions[message].op));
      const Injections late{delay_producer(program, message)};
      const Program leaves_early =
          without(program, [&](InstructionId id, InstructionId) { return id == message; });
      EXPECT_FALSE(train(schedule, leaves_early, small_model(), late).matches);
      const Program not_awaited = without(
          program, [&](InstructionId, InstructionId dependency) { return dependency == message; });
      const InstructionId reader = reader_of(program, program.instructions[message].op);
      if (waits_for(not_awaited, reader, program.dependencies_of(message)[0])) continue;
      EXPECT_FALSE(train(schedule, not_awaited, small_model(), late).matches);
      ++found;
    }
  }
  EXPECT_GE(found, 20);
}

/// Without the dependency of a user on its copy, the user finds nothing.
TEST(Training, ABackwardThatDoesNotWaitForItsLoadIsFound) {
  const Schedule schedule =
      with_offload(*build_if_legal(find_schedule("gpipe"), {2, 1, 6, 1, {}}), {});
  const Program program = lowered(schedule);
  int loads = 0;
  for (InstructionId load = 0; load < program.size(); ++load) {
    if (program.instructions[load].op.kind != OpKind::kLoad) continue;
    const Program not_awaited = without(
        program, [&](InstructionId, InstructionId dependency) { return dependency == load; });
    const auto reads_it = [&](InstructionId id) {
      const auto dependencies = program.dependencies_of(id);
      return std::find(dependencies.begin(), dependencies.end(), load) != dependencies.end();
    };
    exec::Training training(schedule, not_awaited, small_model());
    exec::Work work = training.work();
    std::atomic<bool> was_read = false;
    const auto slow_loads = [&](const exec::WorkItem& item) {
      if (is_compute(program.instructions[item.id].op.kind) && reads_it(item.id)) was_read = true;
      while (item.id == load && !was_read && !item.clock.stopped())
        item.clock.wait_until(item.clock.now() + 1'000'000);
      return work(item);
    };
    const auto backend = exec::find_backend("cpu").make({slow_loads, {}}, not_awaited);
    EXPECT_TRUE(exec::execute(not_awaited, *backend, "cpu", {0, 1, {}}).breakdown);
    ++loads;
  }
  EXPECT_GT(loads, 2);
}

/// A backward that begins before later slices have added to the gradients of its keys and values.
TEST(Training, ASliceThatComesTooEarlyFailsVerification) {
  Schedule schedule = *build_if_legal(find_schedule("terapipe"), {2, 1, 2, 2, {}});
  const Schedule right = schedule;
  for (RankOrder& order : schedule.order)
    for (Op& op : order)
      if (op.kind == OpKind::kBackward) op.slice = static_cast<std::int16_t>(1 - op.slice);
  Program program = lowered(right);
  for (Instruction& instruction : program.instructions)
    if (instruction.op.kind == OpKind::kBackward || instruction.op.kind == OpKind::kSendBackward)
      instruction.op.slice = static_cast<std::int16_t>(1 - instruction.op.slice);
  EXPECT_TRUE(train(right, lowered(right), small_model()).matches);
  EXPECT_FALSE(train(schedule, program, small_model()).matches);
}

}  // namespace
}  // namespace bubblescope::tests
