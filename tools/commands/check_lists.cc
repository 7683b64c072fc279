// Looks at the lists that a file posts.
#include "tools/commands/check_lists.h"

#include <utility>

#include "sim/ir/lower_collectives.h"
#include "sim/ir/op_kinds.h"
#include "sim/ir/pytorch_lists.h"
#include "sim/ir/validate.h"
#include "tools/inputs/load_schedule.h"
#include "tools/print.h"

namespace bubblescope::tools {

bool is_of_pytorch(Profile profile) {
  return profile == Profile::kPytorch || profile == Profile::kPytorch215;
}

std::variant<ValidSchedule, InvalidSchedule> check_release(ValidSchedule schedule,
                                                           const ShapeOptions& shape) {
  if (!is_of_pytorch(shape.profile)) return schedule;
  Problems problems = validate_release(schedule, choose_release(shape.profile));
  if (problems.empty()) return schedule;
  return InvalidSchedule{std::move(schedule).take(), std::move(problems)};
}

bool takes_turns_of_215(const std::string& name, const ShapeOptions& shape) {
  return shape.profile == Profile::kPytorch215 && !is_schedule_file(name);
}

ValidSchedule take_turns(ValidSchedule schedule, const std::string& name,
                         const ShapeOptions& shape) {
  return takes_turns_of_215(name, shape) ? take_turns_of_215(std::move(schedule)) : schedule;
}

void warn_of_posted(const std::string& name, const Schedule& schedule,
                    const PredictOptions& options) {
  if (!is_schedule_file(name)) return;
  const bool has_messages = posts_messages(schedule);
  if (has_messages && options.cost.lower.posting != ReceivePosting::kAsap)
    print_message("bubblescope: --lowering changes nothing: {} posts its own messages\n", name);
  if (!is_of_pytorch(options.shape.profile)) return;
  if (!has_messages && !posts_collectives(schedule))
    print_message("bubblescope: --profile changes nothing: {} posts no messages\n", name);
  else if (options.shape.profile == Profile::kPytorch215 &&
           !has_kind(schedule.posted, OpKind::kReduceGrad))
    print_message(
        "bubblescope: {} has no REDUCE_GRAD, without which PyTorch 2.15 leaves gradients "
        "unscaled\n",
        name);
}

}  // namespace bubblescope::tools
