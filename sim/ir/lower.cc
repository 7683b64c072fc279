// Chains the lowerings that a schedule and its options need.
#include "sim/ir/lower.h"

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/defer_receives.h"
#include "sim/ir/error.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/lower_dataflow.h"
#include "sim/ir/lower_messages.h"
#include "sim/ir/lower_send_waits.h"
#include "sim/ir/lower_update.h"
#include "sim/ir/post_messages.h"
#include "sim/ir/send_budget.h"
#include "sim/ir/share_links.h"

namespace bubblescope::inline sim {

namespace {

std::variant<Program, Deadlock> lower_dataflow(const ValidSchedule& schedule, Overlap overlap) {
  if (std::optional<Program> program = lower_directly(schedule, overlap))
    return *std::move(program);
  return lower_by_sorting(schedule, overlap);
}

/// Lists of messages know one receiver of each value.
void expect_chain(const Schedule& schedule, const std::string& what) {
  if (!schedule.graph.is_chain())
    throw Error(what + " needs stages in a chain, and those of " + schedule.name +
                " are a graph; leave it out");
}

}  // namespace

std::vector<RankOrder> make_posted_lists(const ValidSchedule& schedule, ReceivePosting posting) {
  if (posting == ReceivePosting::kAsap || posts_messages(schedule)) return post_messages(schedule);
  expect_chain(schedule, "`lowering` deferred");
  return defer_receives(schedule, post_messages(schedule));
}

namespace {

/// Adds the posts and waits of the posted lists, and the waits for sends of a budget.
std::variant<Program, Deadlock> lower_posted(const ValidSchedule& schedule, const Program& dataflow,
                                             const LowerOptions& options) {
  if (options.send_budget) expect_chain(schedule, "`send_budget`");
  const std::vector<RankOrder> posted =
      options.send_budget ? make_awaited_lists(schedule, options.posting, *options.send_budget)
                          : make_posted_lists(schedule, options.posting);
  std::variant<Program, Deadlock> lowered =
      lower_messages(dataflow, find_steps(schedule, dataflow, posted), options);
  if (options.send_budget)
    if (const auto* program = std::get_if<Program>(&lowered))
      lowered = lower_send_waits(schedule, *program, posted, options);
  return lowered;
}

}  // namespace

std::variant<Program, Deadlock> lower(const ValidSchedule& schedule, const LowerOptions& options) {
  std::variant<Program, Deadlock> lowered = lower_dataflow(schedule, options.overlap);
  if (options.ranks_per_host_link > 1 && std::holds_alternative<Program>(lowered))
    lowered = share_host_links(std::get<Program>(lowered), options.ranks_per_host_link);
  if (options.waits_for_messages())
    if (const auto* dataflow = std::get_if<Program>(&lowered))
      lowered = lower_posted(schedule, *dataflow, options);
  if (posts_collectives(schedule))
    if (const auto* program = std::get_if<Program>(&lowered))
      lowered = lower_collectives(schedule, *program, options.gathers_in_place);
  if (options.update.any())
    if (const auto* program = std::get_if<Program>(&lowered))
      lowered = lower_update(schedule, *program, options.update);
  return lowered;
}

}  // namespace bubblescope::inline sim
