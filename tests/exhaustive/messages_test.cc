// Every way to post the messages of the smallest schedules, and many ways for larger ones: the
// times and deadlocks of the Program are those of an independent interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/analysis/analyze.h"
#include "sim/analysis/receive_order.h"
#include "sim/engine/simulate.h"
#include "sim/ir/check_messages.h"
#include "sim/ir/depend.h"
#include "sim/ir/offload.h"
#include "sim/model/schedule_def.h"
#include "tests/exhaustive/message_interpreter.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {
namespace {

CostModel costs_of(const Schedule& schedule, Nanos latency) {
  UniformCost cost;
  cost.forward = 2;
  cost.input_grad = 1;
  cost.weight_grad = 2;
  cost.message = latency;
  cost.per = UniformCost::Per::kChunk;
  return spread(cost, schedule);
}

std::string text_of(const Schedule& schedule) {
  std::string text;
  for (const RankOrder& list : schedule.posted) {
    text += text.empty() ? "" : "| ";
    for (const Op& op : list) text += to_string(op) + " ";
  }
  return text;
}

OpKind wait_of_send(OpKind send) {
  return send == OpKind::kSendForward ? OpKind::kWaitSendForward : OpKind::kWaitSendBackward;
}

/// Lists that receive messages in another order than they are sent are legal if all sends are
/// waited for. At the end of the lists, the waits block nothing.
Schedule with_waits(Schedule schedule) {
  for (RankOrder& list : schedule.posted) {
    RankOrder waits;
    for (Op op : list) {
      if (!is_send(op.kind)) continue;
      op.kind = wait_of_send(op.kind);
      waits.push_back(op);
    }
    list.insert(list.end(), waits.begin(), waits.end());
  }
  return schedule;
}

/// The same result from the Program.
Starts simulated_starts(const Schedule& written, const LowerOptions& options,
                        const CostModel& costs) {
  const Schedule schedule = with_waits(written);
  const auto lowered = lower(schedule, options);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered)) {
    EXPECT_FALSE(deadlock->empty());
    return std::nullopt;
  }
  const auto& program = std::get<Program>(lowered);
  const Timeline timeline = simulate(program, costs);
  const BubbleReport report = analyze(schedule, program, timeline);
  for (const RankReport& rank : report.ranks) {
    Nanos causes = 0;
    for (const Nanos cause : rank.idle_by_cause) causes += cause;
    EXPECT_EQ(causes, rank.idle);
    EXPECT_EQ(rank.busy + rank.idle, report.makespan);
  }
  std::map<std::string, Nanos> starts;
  for (InstructionId id = 0; id < program.size(); ++id)
    if (is_compute(program.instructions[id].op.kind))
      starts[to_string(program.instructions[id].op)] = timeline.start[id];
  return starts;
}

const std::vector<LowerOptions> kQueueModes{
    {.mode = P2pMode::kFifo},
    {.mode = P2pMode::kRendezvous},
    {.mode = P2pMode::kEager, .eager_slots = 0},
    {.mode = P2pMode::kEager, .eager_slots = 1},
    {.mode = P2pMode::kEager, .eager_slots = 2},
};
const std::vector<LowerOptions> kHostModes{
    {.mode = P2pMode::kHostRendezvous}, {.mode = P2pMode::kHostSend}, {.mode = P2pMode::kBatched}};

/// `check` runs the lists without a Program; its messages must be those of lowering.
void expect_words_of_programs(const Schedule& schedule) {
  for (std::int32_t slots = 0; slots <= 2; ++slots) {
    LowerOptions options;
    options.eager_slots = slots;
    for (const ModeVerdict& verdict : check_modes(schedule, options)) {
      options.mode = verdict.mode;
      const auto lowered = lower(schedule, options);
      const auto* const deadlock = std::get_if<Deadlock>(&lowered);
      EXPECT_EQ(verdict.deadlock ? to_string(*verdict.deadlock) : "",
                deadlock ? to_string(*deadlock) : "")
          << to_string(verdict.mode, slots) << ": " << text_of(schedule);
    }
  }
}

/// Returns how many of the modes deadlock.
int expect_agreement(const Schedule& schedule, Nanos latency) {
  expect_words_of_programs(with_waits(schedule));
  int deadlocks = 0;
  const CostModel costs = costs_of(schedule, latency);
  for (const auto& modes : {kQueueModes, kHostModes})
    for (const LowerOptions& options : modes) {
      const Starts want = interpret(with_waits(schedule), options, costs);
      EXPECT_EQ(simulated_starts(schedule, options, costs), want)
          << to_string(options.mode, options.eager_slots) << ", latency " << latency << ": "
          << text_of(schedule);
      if (!want) ++deadlocks;
    }
  return deadlocks;
}

/// The smallest K with which the interpreter does not deadlock.
std::optional<std::int32_t> slots_by_trial(const Schedule& schedule, std::int32_t max_slots) {
  for (std::int32_t slots = 0; slots <= max_slots; ++slots) {
    const LowerOptions options{.mode = P2pMode::kEager, .eager_slots = slots};
    if (interpret(with_waits(schedule), options, costs_of(schedule, 0))) return slots;
  }
  return std::nullopt;
}

/// Compute ops followed by their sends; receives are to be inserted.
RankOrder with_sends(const Schedule& schedule, std::int32_t rank) {
  RankOrder list;
  for (const Op& op : schedule.order[rank]) {
    list.push_back(op);
    const Value produced{value_kind_of(op.kind), op.stage, op.microbatch, op.slice};
    const auto receiver = receiving_stage(schedule, produced);
    if (!receiver || schedule.rank_of_stage[*receiver] == rank) continue;
    const bool forward = op.kind == OpKind::kForward;
    list.push_back({op.stage, op.microbatch, op.slice,
                    forward ? OpKind::kSendForward : OpKind::kSendBackward, Pairing::kAlone});
  }
  return list;
}

struct Receive {
  Op op;
  Op consumer;
};

std::vector<Receive> receives_of(const Schedule& schedule, std::int32_t rank) {
  std::vector<Receive> receives;
  for (const Op& op : schedule.order[rank])
    for (const Value& produced : collect_needs(schedule, op)) {
      if (schedule.rank_of_stage[produced.stage] == rank) continue;
      const bool forward = produced.value_kind == ValueKind::kActivation;
      receives.push_back({{op.stage, op.microbatch, op.slice,
                           forward ? OpKind::kRecvForward : OpKind::kRecvBackward, Pairing::kAlone},
                          op});
    }
  return receives;
}

std::ptrdiff_t latest_place(const RankOrder& list, const Receive& receive) {
  return std::find(list.begin(), list.end(), receive.consumer) - list.begin();
}

/// Every list that has the receives before their consumers, in every order.
std::vector<RankOrder> all_lists(const Schedule& schedule, std::int32_t rank) {
  std::vector<RankOrder> lists{with_sends(schedule, rank)};
  for (const Receive& receive : receives_of(schedule, rank)) {
    std::vector<RankOrder> longer;
    for (const RankOrder& list : lists)
      for (std::ptrdiff_t at = 0; at <= latest_place(list, receive); ++at) {
        longer.push_back(list);
        longer.back().insert(longer.back().begin() + at, receive.op);
      }
    lists = std::move(longer);
  }
  return lists;
}

Schedule empty_schedule(std::int32_t ranks, std::int32_t chunks, std::int32_t microbatches) {
  Schedule schedule;
  schedule.shape = {ranks, chunks, microbatches, 1, {}};
  schedule.rank_of_stage = loop_placement(ranks, chunks);
  schedule.order.resize(static_cast<std::size_t>(ranks));
  return schedule;
}

TEST(Messages, EveryPostingOfTwoMicrobatchesOnTwoRanksAgreesWithTheRules) {
  Schedule schedule = empty_schedule(2, 1, 2);
  int cases = 0;
  int deadlocks = 0;
  const std::vector<std::vector<int>> orders{{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 1, 3, 2}};
  for (const auto& first : orders)
    for (const auto& second : orders) {
      for (std::int32_t rank = 0; rank < 2; ++rank) {
        const RankOrder ops{forward(rank, 0), forward(rank, 1), backward(rank, 0),
                            backward(rank, 1)};
        schedule.order[rank].clear();
        for (const int at : rank == 0 ? first : second) schedule.order[rank].push_back(ops[at]);
      }
      for (const RankOrder& first_list : all_lists(schedule, 0))
        for (const RankOrder& second_list : all_lists(schedule, 1)) {
          schedule.posted = {first_list, second_list};
          deadlocks += expect_agreement(schedule, cases % 3);
          EXPECT_EQ(eager_slots_needed(with_waits(schedule)), slots_by_trial(schedule, 2))
              << text_of(schedule);
          ++cases;
          if (HasFailure()) return;
        }
    }
  EXPECT_GT(cases, 1000);
  EXPECT_GT(deadlocks, 1000);
}

/// Random orders in which everything can run: each next op is one that is ready.
Schedule random_schedule(std::mt19937& random, Schedule schedule) {
  std::vector<Op> left;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (std::int32_t microbatch = 0; microbatch < schedule.shape.microbatches; ++microbatch) {
      left.push_back(forward(stage, microbatch));
      if (microbatch % 2 == 0) {
        left.push_back(backward(stage, microbatch));
      } else {
        left.push_back(input_grad(stage, microbatch));
        left.push_back(weight_grad(stage, microbatch));
      }
    }
  const ValueIndex index(schedule);
  std::vector<bool> produced(index.size(), false);
  while (!left.empty()) {
    std::shuffle(left.begin(), left.end(), random);
    const auto next = std::find_if(left.begin(), left.end(), [&](const Op& op) {
      const Needs needs = collect_needs(schedule, op);
      return std::all_of(needs.begin(), needs.end(),
                         [&](const Value& m) { return produced[index(m)]; });
    });
    produced[index(*next)] = true;
    schedule.order[schedule.rank_of_stage[next->stage]].push_back(*next);
    left.erase(next);
  }
  return schedule;
}

std::vector<RankOrder> random_posting(std::mt19937& random, const Schedule& schedule) {
  std::vector<RankOrder> posted;
  for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank) {
    RankOrder list = with_sends(schedule, rank);
    for (const Receive& receive : receives_of(schedule, rank)) {
      const std::ptrdiff_t latest = latest_place(list, receive);
      const std::ptrdiff_t earliest = std::max<std::ptrdiff_t>(0, latest - 4);
      list.insert(list.begin() + std::uniform_int_distribution(earliest, latest)(random),
                  receive.op);
    }
    posted.push_back(list);
  }
  return posted;
}

TEST(Messages, SuggestedReceivesDeadlockInNoMode) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    const std::int32_t ranks = 2 + round % 4;
    Schedule schedule =
        random_schedule(random, empty_schedule(ranks, 1 + round % 3, 1 + round % 6));
    schedule.posted = random_posting(random, schedule);
    const CostModel costs = costs_of(schedule, round % 4);
    const Schedule waiting = with_waits(schedule);
    const Program dataflow = std::get<Program>(lower(waiting));
    schedule.posted =
        order_receives(dataflow, simulate(dataflow, costs),
                       find_steps(waiting, dataflow, waiting.posted), ReceiveTiming::kLast);
    EXPECT_EQ(eager_slots_needed(with_waits(schedule)), 0)
        << "seed " << kSeed << ": " << text_of(schedule);
    for (const ModeVerdict& verdict : check_modes(schedule))
      EXPECT_FALSE(verdict.deadlock) << to_string(verdict.mode, 1) << ": " << text_of(schedule);
  }
}

TEST(Messages, ListsMadeWithTheirOpsBlockInNoMode) {
  std::mt19937 random(20'261'123);
  for (int round = 0; round < 400; ++round) {
    const Schedule empty = empty_schedule(1 + round % 5, 1 + round % 3, 1 + round % 6);
    const Schedule schedule = random_schedule(random, empty);
    expect_words_of_programs(schedule);
    EXPECT_EQ(eager_slots_needed(schedule), 0) << text_of(schedule);
  }
}

/// A copy that shares a link with another rank's may wait for ops that are placed later.
TEST(Messages, CopiesOfSeveralRanksCanBlockListsMadeWithTheirOps) {
  int deadlocks = 0;
  for (const char* name : {"1f1b", "zb-v", "dualpipev"}) {
    ScheduleRequest request;
    request.shape = {8, find_schedule(name).implied_chunks.value_or(1), 16, 1, {}};
    const ValidSchedule schedule =
        with_offload(build_schedule(find_schedule(name), request), {.share = kWhole / 2});
    LowerOptions options{.ranks_per_host_link = 2};
    for (const ModeVerdict& verdict : check_messages(schedule, options).modes) {
      options.mode = verdict.mode;
      const bool blocks = std::holds_alternative<Deadlock>(lower(schedule, options));
      EXPECT_EQ(verdict.deadlock.has_value(), blocks) << name << to_string(verdict.mode, 1);
      deadlocks += blocks ? 1 : 0;
    }
  }
  EXPECT_GT(deadlocks, 0);
}

/// Every rank only receives from below and sends upward, each receive just before its use: nothing
/// in a queue blocks something that could go earlier.
TEST(Messages, WithoutHeadOfLineWaitsFifoIsDataflow) {
  for (std::int32_t ranks = 1; ranks <= 5; ++ranks)
    for (std::int32_t microbatches = 1; microbatches <= 6; ++microbatches)
      for (const Nanos latency : {0, 1, 5}) {
        Schedule schedule = empty_schedule(ranks, 1, microbatches);
        schedule.forward_only = true;
        for (std::int32_t rank = 0; rank < ranks; ++rank)
          for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch)
            schedule.order[rank].push_back(forward(rank, microbatch));
        const CostModel costs = costs_of(schedule, latency);
        const Starts dataflow = simulated_starts(schedule, {}, costs);
        LowerOptions options{.mode = P2pMode::kFifo, .posting = ReceivePosting::kDeferred};
        EXPECT_EQ(simulated_starts(schedule, options, costs), dataflow);
        options.mode = P2pMode::kEager;
        options.eager_slots = microbatches;
        EXPECT_EQ(simulated_starts(schedule, options, costs), dataflow);
      }
}

/// Inserts a wait for each send, somewhere after it.
void insert_waits(std::mt19937& random, RankOrder& list) {
  for (std::ptrdiff_t at = 0; at < std::ssize(list); ++at) {
    Op op = list[static_cast<std::size_t>(at)];
    if (!is_send(op.kind)) continue;
    op.kind = wait_of_send(op.kind);
    const std::ptrdiff_t latest = std::min(std::ssize(list), at + 5);
    list.insert(list.begin() + std::uniform_int_distribution(at + 1, latest)(random), op);
  }
}

TEST(Messages, WaitsForSendsAreReportedAsByLowering) {
  constexpr unsigned kSeed = 31;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 400; ++round) {
    Schedule schedule =
        random_schedule(random, empty_schedule(2 + round % 4, 1 + round % 3, 1 + round % 6));
    schedule.posted = random_posting(random, schedule);
    for (RankOrder& list : schedule.posted) insert_waits(random, list);
    expect_words_of_programs(schedule);
    ASSERT_FALSE(HasFailure()) << "seed " << kSeed << ", round " << round;
  }
}

TEST(Messages, EnoughSlotsAreUnlimitedBuffers) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    Schedule schedule = random_schedule(random, empty_schedule(2 + round % 3, 2, 1 + round % 5));
    schedule.posted = random_posting(random, schedule);
    const CostModel costs = costs_of(schedule, round % 3);
    EXPECT_EQ(simulated_starts(schedule, {.mode = P2pMode::kEager, .eager_slots = 100}, costs),
              simulated_starts(schedule, {.mode = P2pMode::kFifo}, costs))
        << "seed " << kSeed << ": " << text_of(schedule);
  }
}

TEST(Messages, RandomPostingsAgreeWithTheRules) {
  constexpr unsigned kSeed = 20240607;
  std::mt19937 random(kSeed);
  int agreed_to_run = 0;
  for (int round = 0; round < 600; ++round) {
    const std::int32_t ranks = 2 + round % 3;
    Schedule schedule = empty_schedule(ranks, 1 + round % 2, 1 + round % 5);
    if (round % 4 == 3) schedule.rank_of_stage = zigzag_placement(ranks, schedule.shape.chunks);
    schedule = random_schedule(random, schedule);
    schedule.posted = random_posting(random, schedule);
    if (expect_agreement(schedule, round % 4) < 8) ++agreed_to_run;
    EXPECT_EQ(eager_slots_needed(with_waits(schedule)), slots_by_trial(schedule, 30))
        << text_of(schedule);
    schedule.posted.clear();
    for (const ReceivePosting posting : {ReceivePosting::kAsap, ReceivePosting::kDeferred}) {
      schedule.posted = make_posted_lists(schedule, posting);
      expect_agreement(schedule, round % 4);
      schedule.posted.clear();
    }
    ASSERT_FALSE(HasFailure()) << "seed " << kSeed << ", round " << round;
  }
  EXPECT_GT(agreed_to_run, 100);
}

}  // namespace
}  // namespace bubblescope::tests
