// The lists that are written for PyTorch, over all small shapes: in every mode they take as long as
// the schedule that they were written from, and deadlock where it does.
#include "sim/ir/pytorch_lists.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "sim/engine/simulate.h"
#include "sim/ir/shard_stages.h"
#include "sim/model/cost_model.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::tests {
namespace {

constexpr P2pMode kPostingModes[] = {P2pMode::kFifo,       P2pMode::kEager,
                                     P2pMode::kRendezvous, P2pMode::kHostRendezvous,
                                     P2pMode::kHostSend,   P2pMode::kBatched};

/// The makespan; nullopt where the schedule deadlocks.
std::optional<Nanos> time_of(const ValidSchedule& schedule, const LowerOptions& options) {
  const auto lowered = lower(schedule, options);
  const auto* const program = std::get_if<Program>(&lowered);
  if (program == nullptr) return {};
  UniformCost cost;
  cost.forward = 3;
  cost.input_grad = 2;
  cost.weight_grad = 5;
  cost.message = 1;
  return compute_makespan(simulate(*program, spread(cost, schedule)));
}

/// Returns the number of modes in which both were timed.
int expect_lists_take_as_long(const ValidSchedule& schedule, const PytorchListOptions& written,
                              const std::string& what) {
  const ReceivePosting posting = written.posting;
  Schedule listed = schedule;
  listed.posted = make_pytorch_lists(schedule, written);
  const ValidSchedule read = require_valid(std::move(listed));
  int timed = 0;
  for (const P2pMode mode : kPostingModes) {
    LowerOptions options;
    options.mode = mode;
    options.posting = posting;
    const std::optional<Nanos> expected = time_of(schedule, options);
    options.posting = ReceivePosting::kAsap;  // lists say themselves where messages are posted
    EXPECT_EQ(time_of(read, options), expected) << what << " " << to_string(mode, 1);
    timed += expected ? 1 : 0;
  }
  return timed;
}

TEST(PytorchLists, TakeAsLongAsTheirScheduleInEveryMode) {
  int timed = 0;
  for (const char* name : {"gpipe", "1f1b", "interleaved", "bfs", "interleaved-zb", "zb-v", "zb-h1",
                           "dualpipev", "hanayo", "forward-only"}) {
    const ScheduleDef& def = find_schedule(name);
    for (const std::int32_t ranks : {2, 3, 4})
      for (const std::int32_t microbatches : {2, 4, 6, 8}) {
        ScheduleRequest request;
        request.shape = {
            ranks, def.implied_chunks.value_or(def.default_chunks), microbatches, 1, {}};
        if (def.refuse && !def.refuse(request).empty()) continue;
        const ValidSchedule plain = build_schedule(def, request);
        const std::string what = std::string(name) + " p=" + std::to_string(ranks) +
                                 " m=" + std::to_string(microbatches);
        for (const ReceivePosting posting : {ReceivePosting::kAsap, ReceivePosting::kDeferred}) {
          const PytorchListOptions listed{.posting = posting, .reductions_take_turns = false};
          const PytorchListOptions of_215{.posting = posting};
          timed += expect_lists_take_as_long(plain, listed, what);
          timed += expect_lists_take_as_long(take_turns_of_215(plain), of_215, what + " as 2.15");
          const ValidSchedule sharded = take_turns_of_215(shard_stages(plain));
          timed += expect_lists_take_as_long(sharded, of_215, what + " sharded");
        }
      }
  }
  EXPECT_GT(timed, 1000);
}

}  // namespace
}  // namespace bubblescope::tests
